"""Other libraries: which there are, what is known of them, and the Python that has them.

They may live in an environment of their own, so that what they bring does not weigh on ours: a
listing, for one, looks at every distribution that is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import NamedTuple

__all__ = ["PEERS", "Peer", "is_installed", "python_of", "use_python", "versions"]


class Peer(NamedTuple):
    """By which module it shows whether it is there, what to install, and what it speaks."""

    module: str
    wanted: str
    wires: tuple[str, ...] = ("chat", "anthropic")


PEERS = {
    "openai": Peer("openai", "openai", ("chat",)),
    "anthropic": Peer("anthropic", "anthropic", ("anthropic",)),
    "llm": Peer("llm", "llm", ("chat",)),
    "pydantic_ai": Peer("pydantic_ai", "pydantic-ai-slim[openai,anthropic]"),
    "any_llm": Peer("any_llm", "any-llm-sdk[openai,anthropic]"),
    "litellm": Peer("litellm", "litellm"),
    "aisuite": Peer("aisuite", "aisuite[openai]", ("chat",)),
}

_ASKING = """\
import json, sys
from importlib.metadata import distributions
from importlib.util import find_spec
there = [module for module in sys.argv[1:] if find_spec(module)]
versions = {str(d.metadata["Name"]).replace("_", "-").lower(): d.version for d in distributions()}
print(json.dumps([there, versions]))
"""
_python = sys.executable


def use_python(python: str) -> None:
    """Let peers run in another environment's Python."""
    global _python
    _python = python
    _look.cache_clear()


def python_of(name: str) -> str:
    """The Python that runs a contestant."""
    return _python if name in PEERS else sys.executable


def is_installed(name: str) -> bool:
    there, _ = _look()
    return PEERS[name].module in there


def versions() -> dict[str, str]:
    """What is installed beside the peers, by normalised name."""
    return _look()[1]


@cache
def _look() -> tuple[list[str], dict[str, str]]:
    modules = [peer.module for peer in PEERS.values()]
    asked = [_python, "-c", _ASKING, *modules]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    there, found = json.loads(done.stdout)
    return there, found
