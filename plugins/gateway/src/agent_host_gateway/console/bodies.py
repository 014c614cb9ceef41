"""What the page sends: JSON objects of a bounded size, whose values are what they should be."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from starlette.requests import Request

from agent_host_gateway.access import Caller
from agent_host_gateway.refusals import Refused

__all__ = ["Answering", "Row", "read_number", "read_object", "read_text"]

#: Answers a request of somebody who is logged in, with a response or with what JSON can hold.
Answering: TypeAlias = Callable[[Request, Caller], Awaitable[Any]]
#: A route: method, path below the console's API, and who answers.
Row: TypeAlias = "tuple[str, str, Answering]"


async def read_object(request: Request, most: int) -> dict[str, Any]:
    """The body of a request, which is a JSON object of at most so many bytes."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # No form of another page can say that, which is one more reason that none gets in.
        raise Refused("the body is not application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refused(f"the request has more than {most} bytes", kind="too_large")
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    if not isinstance(found, dict):
        raise Refused("the body is not a JSON object")
    return found


def read_text(given: Mapping[str, Any], key: str, *, most: int = 1000) -> str:
    """A text of an object; empty if there is none."""
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most:
        raise Refused(f"{key!r} is no text of at most {most} characters", param=key)
    return value


def read_number(given: Mapping[str, str], key: str, default: int, most: int) -> int:
    """A whole number of a query, not above ``most``."""
    value = given.get(key)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit()) or len(value) > 9:
        raise Refused(f"{key!r} is no whole number", param=key)
    return min(int(value), most)
