"""Ray, imported so that it says nothing by itself.

It prints to standard output what becomes of nodes, between results and events, unless the
environment has it skip that when it is first imported. What is worth telling of a node the engine
tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["ray", "setting"]


@contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    """The environment with a setting that Ray takes from nowhere else."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


with setting("RAY_DEDUP_LOGS_SKIP_REGEX", "."):
    ray: Any = import_module("ray")
