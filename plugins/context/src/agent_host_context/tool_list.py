"""The names of tools as a text that keeps to a budget, with as much of each description as fits."""

from __future__ import annotations

from collections.abc import Sequence

from agent_host_context.estimate import names_tokens
from agent_host_context.search import Described

__all__ = ["list_tools"]

#: How much of a description is shown; the first that fits the budget is taken.
_LENGTHS = (100, 70, 45, 25)


def list_tools(tools: Sequence[Described], most: int) -> str:
    """The tools in the order of their names, in at most ``most`` tokens.

    If not even the names fit, the last are left out, and the text says how many.
    """
    ordered = sorted(tools, key=lambda tool: tool.name)
    for length in _LENGTHS:
        text = "\n".join(f"{tool.name}: {_cut(tool.line, length)}" for tool in ordered)
        if names_tokens(text) <= most:
            return text
    names = [tool.name for tool in ordered]
    text = _group_names(names)
    shown = len(names)
    while shown and names_tokens(text) > most:
        shown = min(shown - 1, shown * most // names_tokens(text))
        text = f"{_group_names(names[:shown])}\nand {len(names) - shown} more, which a search finds"
    return text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def _group_names(names: Sequence[str]) -> str:
    """Names with one beginning, such as the tools of one server, share it."""
    groups: dict[str, list[str]] = {}
    for name in names:
        server, mark, rest = name.partition("__")
        is_shared = bool(mark and server and rest)
        begin, end = (f"{server}__", rest) if is_shared else ("", name)
        groups.setdefault(begin, []).append(end)
    return "\n".join(
        f"{begin}… {', '.join(rest)}" if begin else ", ".join(rest)
        for begin, rest in groups.items()
    )
