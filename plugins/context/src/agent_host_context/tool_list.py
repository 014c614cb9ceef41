"""The names of tools as a text that keeps to a budget, with as much of each description as fits."""

from __future__ import annotations

from collections.abc import Sequence

from agent_host_context.estimate import names_tokens
from agent_host_context.search import Described

__all__ = ["list_beginnings", "list_tools"]

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


def list_beginnings(names: Sequence[str], most: int) -> str:
    """With what the names begin and how many begin so, and all others, in at most ``most`` tokens.

    What does not fit is left out, and the text says so.
    """
    lines = [
        f"{begin}… ({len(rest)})" if begin else ", ".join(rest)
        for begin, rest in _group_by_server(sorted(names)).items()
    ]
    text = "\n".join(lines)
    while lines and names_tokens(text) > most:
        lines = lines[:-1]
        text = "\n".join([*lines, "and others"])
    return text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def _group_names(names: Sequence[str]) -> str:
    return "\n".join(
        f"{begin}… {', '.join(rest)}" if begin else ", ".join(rest)
        for begin, rest in _group_by_server(names).items()
    )


def _group_by_server(names: Sequence[str]) -> dict[str, list[str]]:
    """Names with one beginning, such as the tools of one server, share it; others have none."""
    groups: dict[str, list[str]] = {}
    for name in names:
        server, mark, rest = name.partition("__")
        is_shared = bool(mark and server and rest)
        begin, end = (f"{server}__", rest) if is_shared else ("", name)
        groups.setdefault(begin, []).append(end)
    return groups
