"""Results of tools, shortened in their place: the call stays, and a word of what it gave.

Only results are touched, for they are what a model can get again. It decides nothing about which.
"""

from __future__ import annotations

from typing import Any, cast

from agent_hookspecs import CoreMessage
from agent_host_context.estimate import message_tokens
from agent_host_context.view import Item, View

__all__ = ["clip_text", "fit_results", "trim_results"]

#: A result that costs less is not worth a note in its place.
_WORTH_IT = 150
_BEGINNING = 200
_SHORTEST = 400


def trim_results(view: View, end: int) -> tuple[list[Item], int]:
    """The items with notes for all large results before a place, and how many those are."""
    items, count = view.items[:], 0
    for place, message in enumerate(view.messages[:end]):
        if _is_large_result(message):
            items[place] = _shorten(message, _left_out(message))
            count += 1
    return items, count


def fit_results(view: View, start: int, excess: int) -> tuple[list[Item], int]:
    """The items with the largest results from a place on cut until ``excess`` tokens are gone."""
    shorter: dict[int, CoreMessage] = {}
    places = [n for n in range(start, len(view)) if view.messages[n]["role"] == "tool"]
    places.sort(key=lambda n: -message_tokens(view.messages[n]))
    # How many tokens a text has is a guess: if a careful cut was not enough, there is another.
    for is_careful in (True, False):
        for place in places:
            message = view.messages[place]
            length = len(message["content"])
            if excess <= 0 or length <= _SHORTEST:
                break
            keep = max(_SHORTEST, length - excess * 5) if is_careful else _SHORTEST
            before = message_tokens(shorter.get(place, message))
            shorter[place] = _shorten(message, clip_text(message["content"], keep))
            excess -= before - message_tokens(shorter[place])
    return [shorter.get(place, item) for place, item in enumerate(view.items)], len(shorter)


def clip_text(text: str, length: int) -> str:
    """The beginning and the end of a text, and between them how much is missing."""
    if len(text) <= length:
        return text
    first = length * 2 // 3
    last = length - first
    missing = len(text) - length
    end = text[-last:] if last else ""
    return f"{text[:first]}\n[{missing:,} characters were left out here to save room]\n{end}"


def _is_large_result(message: CoreMessage) -> bool:
    return (
        message["role"] == "tool"
        and not message["metadata"].get("trimmed")
        and message_tokens(message) > _WORTH_IT
    )


def _left_out(message: CoreMessage) -> str:
    text = message["content"]
    beginning = text[:_BEGINNING]
    dots = "…" if len(text) > len(beginning) else ""
    said = f" It began: {beginning}{dots}" if beginning.strip() else ""
    return (
        f"[This result of {len(text):,} characters was left out to save room; "
        f"call the tool again if it is needed.]{said}"
    )


def _shorten(message: CoreMessage, text: str) -> CoreMessage:
    """The message with another text alone; pictures and structured results go with the old one."""
    kept: dict[str, Any] = dict(message["metadata"])
    kept.pop("display", None)
    shorter = {"role": message["role"], "content": text, "metadata": {**kept, "trimmed": True}}
    return cast(CoreMessage, shorter)
