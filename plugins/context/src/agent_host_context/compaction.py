"""Shortens what is sent of a session: old results first, then a summary of the beginning.

Works on views alone. System messages stay, and so does the latest part, message by message; no call
is told apart from its result. It knows neither the host nor where a summary comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from agent_hookspecs import CoreMessage, Usage
from agent_host_context.summary import Ask, Summary, summarise
from agent_host_context.trimming import clip_text, fit_results, trim_results
from agent_host_context.view import Item, View

__all__ = ["Compacted", "compact"]

HEADING = (
    "[The beginning of this conversation was summarised to save room. What follows is the summary.]"
)
GONE = (
    "[The beginning of this conversation, {count} messages, was left out to save room, and no "
    "summary could be made of it. What the user said in it:]"
)
LATEST = "[The user's latest message, word for word:]"
ACKNOWLEDGED = "I have read the summary and go on from there."

#: How much of what is kept is for the latest messages, as they are.
_TAIL_SHARE = 2 / 3
#: The messages have at least this share of the limit, whatever tools and instructions take.
_LEAST_SHARE = 1 / 8
_LONGEST_SUMMARY = 2000
_LONGEST_QUOTE = 300


@dataclass(frozen=True, slots=True)
class Compacted:
    """The view after it was shortened, what it probably costs, and what was done."""

    view: View
    tokens: int
    trimmed: int = 0
    summarised: int = 0
    usage: Usage | None = None
    problem: str = ""


def compact(
    view: View,
    overhead: int,
    limit: int,
    target: int,
    ask: Ask,
    *,
    piece: int = 0,
    wish: str = "",
    wants_summary: bool = False,
) -> Compacted:
    """The view at about ``target`` tokens, and below ``limit`` if that can be.

    ``overhead`` is what a request has beside its messages; ``piece`` is how much is summarised at
    once, by default half of the limit. With ``wants_summary`` there is a summary even if trimming
    were enough.
    """
    room = max(target - overhead, int(limit * _LEAST_SHARE))
    first, start = view.first_after_system(), _tail_start(view, int(room * _TAIL_SHARE))
    items, trimmed = trim_results(view, start)
    shorter = view.with_items(items)
    done = Compacted(shorter, shorter.tokens() + overhead, trimmed)
    if wants_summary or done.tokens > target:
        summarise_head = partial(summarise, ask, wish=wish, piece_tokens=piece or limit // 2)
        done = _replace_beginning(done, first, start, overhead, limit, room, summarise_head)
    if done.tokens > limit:
        kept = len(view) - start
        items, cut = fit_results(done.view, len(done.view) - kept, done.tokens - limit)
        shorter = view.with_items(items)
        done = Compacted(
            shorter,
            shorter.tokens() + overhead,
            done.trimmed + cut,
            done.summarised,
            done.usage,
            done.problem,
        )
    return done


def _tail_start(view: View, room: int) -> int:
    """Where the latest part begins: what fits, and at least the last call with its results."""
    first = view.first_after_system()
    starts = [place for place in view.cuts() if first <= place < len(view)] or [first]
    return next((place for place in starts if view.tokens(place) <= room), starts[-1])


def _replace_beginning(
    done: Compacted,
    first: int,
    start: int,
    overhead: int,
    limit: int,
    room: int,
    summarise_head: Callable[..., Summary],
) -> Compacted:
    view = done.view
    head = view.messages[first:start]
    if not any(not message["metadata"].get("from_host") for message in head):
        # Nothing was said since the last summary.
        return done
    most = max(min(_LONGEST_SUMMARY, room // 4), 100)
    summary = summarise_head(head, most=most)
    if summary.text:
        told = f"{HEADING}\n\n{summary.text}"
    elif done.tokens <= limit:
        # Trimming has to do until a summary can be made.
        return Compacted(view, done.tokens, done.trimmed, 0, summary.usage or None, summary.problem)
    else:
        told = _outline(head)
    latest = _latest_words(view.messages, first, start)
    if latest:
        told += f"\n\n{LATEST}\n\n{clip_text(latest, room)}"
    items: list[Item] = [*view.items[:first], _said_by_host("user", told, _found_tools(head))]
    if view.messages[start:] and view.messages[start]["role"] == "user":
        # Many chat templates want user and assistant to take turns.
        items.append(_said_by_host("assistant", ACKNOWLEDGED))
    shorter = view.with_items([*items, *view.items[start:]])
    return Compacted(
        shorter,
        shorter.tokens() + overhead,
        done.trimmed,
        len(head),
        summary.usage or None,
        summary.problem,
    )


def _latest_words(messages: Sequence[CoreMessage], first: int, start: int) -> str:
    """What the user said last, if the latest part no longer has it."""
    for place in range(len(messages) - 1, first - 1, -1):
        message = messages[place]
        if message["role"] == "user" and not message["metadata"].get("from_host"):
            return message["content"] if place < start else ""
    return ""


def _outline(head: Sequence[CoreMessage]) -> str:
    """What is left of messages that nobody could summarise: what the user wanted."""
    said = [
        message["content"]
        for message in head
        if message["role"] == "user" and message["content"].strip()
    ]
    lines = [f"- {clip_text(text, _LONGEST_QUOTE)}" for text in said[-10:]]
    return "\n".join([GONE.format(count=len(head)), *lines])


def _found_tools(head: Sequence[CoreMessage]) -> list[str]:
    """The tools that a provider's search has found in it, so that they stay found without it."""
    found = (message["metadata"].get("found_tools") or () for message in head)
    return list(dict.fromkeys(name for names in found for name in names))


def _said_by_host(role: str, text: str, found_tools: Sequence[str] = ()) -> CoreMessage:
    metadata: dict[str, object] = {"from_host": True}
    if found_tools:
        metadata["found_tools"] = [*found_tools]
    return cast(CoreMessage, {"role": role, "content": text, "metadata": metadata})
