"""Which other libraries there are, and the Python that has each of them.

They may live in environments of their own: what they bring does not weigh on ours then, whose
listing looks at every distribution, and those that cannot be installed together can be measured
together all the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

__all__ = ["PEERS", "Peer", "is_installed", "python_of", "use_pythons", "versions"]


class Peer(NamedTuple):
    """By which module it shows whether it is there, what to install, and what it speaks."""

    module: str
    wanted: str
    wires: tuple[str, ...] = ("chat", "anthropic")

    @property
    def project(self) -> str:
        return self.wanted.partition("[")[0]


PEERS = {
    "openai": Peer("openai", "openai", ("chat",)),
    "anthropic": Peer("anthropic", "anthropic", ("anthropic",)),
    "llm": Peer("llm", "llm", ("chat",)),
    "pydantic_ai": Peer("pydantic_ai", "pydantic-ai-slim[openai,anthropic]"),
    "any_llm": Peer("any_llm", "any-llm-sdk[openai,anthropic]"),
    "litellm": Peer("litellm", "litellm[mcp]"),
    "aisuite": Peer("aisuite", "aisuite[openai]", ("chat",)),
}

_ASKING = """\
import json, sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
found = {}
for module, project in json.loads(sys.argv[1]):
    if find_spec(module):
        try:
            found[module] = version(project)
        except PackageNotFoundError:
            found[module] = "of an unknown version"
print(json.dumps(found))
"""
_pythons: Sequence[str] = (sys.executable,)


def use_pythons(pythons: Sequence[str]) -> None:
    """Let each peer run in the first of these Pythons that has it."""
    global _pythons
    _pythons = tuple(pythons)
    _look.cache_clear()


def is_installed(name: str) -> bool:
    return name in _look()


def python_of(name: str) -> str:
    """The Python that runs a contestant."""
    return _look()[name][0] if name in PEERS else sys.executable


def versions() -> dict[str, str]:
    """The versions of the peers that are installed."""
    return {name: version for name, (_, version) in _look().items()}


@cache
def _look() -> dict[str, tuple[str, str]]:
    """The Python and the version of every peer that is installed."""
    asked = json.dumps([(peer.module, peer.project) for peer in PEERS.values()])
    found: dict[str, tuple[str, str]] = {}
    for python in _pythons:
        done = subprocess.run(
            [python, "-c", _ASKING, asked], stdout=subprocess.PIPE, text=True, check=True
        )
        there: dict[str, str] = json.loads(done.stdout)
        for name, peer in PEERS.items():
            if peer.module in there:
                found.setdefault(name, (python, there[peer.module]))
    return found
