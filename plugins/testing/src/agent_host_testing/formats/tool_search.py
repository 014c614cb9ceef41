"""The search that some APIs run over deferred tools: by words, and the same each time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NoReturn

from agent_host_testing.script import Call

__all__ = ["refuse_search", "require_known", "search_deferred"]

_WORD = re.compile(r"[a-z0-9]+")
_MOST = 5


def search_deferred(query: str, tools: Mapping[str, str]) -> list[str]:
    """The names of the tools that fit best; ``tools`` has the description of each by its name.

    Where the query has names of tools, those are all that is found.
    """
    if named := [name for name in query.split() if name in tools]:
        return named[:_MOST]
    wanted = {*_WORD.findall(query.lower())}

    def score(name: str) -> int:
        return len(wanted & {*_WORD.findall(f"{name} {tools[name]}".lower())})

    ranked = sorted(tools, key=lambda name: (-score(name), name))
    return [name for name in ranked if score(name)][:_MOST]


def refuse_search() -> NoReturn:
    """Refuse a script with a search, for an API that has none."""
    raise ValueError("this API searches no tools; leave the Search out of the script")


def require_known(call: Call, deferred: Collection[str], found: Collection[str]) -> None:
    """Refuse a script whose model calls what it has never been shown."""
    if call.name in deferred and call.name not in found:
        raise ValueError(
            f"the tool {call.name!r} is deferred and no search has found it, so no model can call "
            "it; put a Search before the Call"
        )
