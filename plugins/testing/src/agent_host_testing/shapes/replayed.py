"""Looking into the request that follows an answer: what every format calls its messages and calls.

Owns the words of the complaints, so that each family only says what it wants back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agent_host_testing.shapes.shape import NextRequest
from agent_host_testing.wire import Problem, Request

__all__ = ["assistant", "entries", "want_part"]


def want_part(rule: str, find: Callable[[Any], tuple[str, Any, Any]]) -> NextRequest:
    """A check that a part of the body is what it must be.

    ``find`` is given the body and gives the place, what is there and what must be there.
    """

    def check(request: Request) -> Problem | None:
        try:
            place, found, expected = find(request.body)
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError) as error:
            return Problem(f"the body has no such place ({error!r}): {_short(request.body)}", rule)
        if found == expected:
            return None
        return Problem(f"{_short(found)} instead of {_short(expected)}", rule, place)

    return check


def assistant(body: Any) -> dict[str, Any]:
    """The last message of the model in a body that has ``messages`` or ``contents``."""
    for message in reversed(body.get("messages") or body["contents"]):
        if message["role"] in ("assistant", "model"):
            found: dict[str, Any] = message
            return found
    raise KeyError("a message of the model")


def entries(items: Iterable[Any], *kinds: str, key: str = "type") -> Sequence[Any]:
    """Those of the items that are of one of the kinds, in order."""
    return [item for item in items if isinstance(item, dict) and item.get(key) in kinds]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 600 else f"{text[:600]}…"
