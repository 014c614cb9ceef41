"""The APIs of the reference packages: each has something that none of the kit's formats has."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from agent_host_testing import (
    Call,
    Failure,
    Ledger,
    Operation,
    Problem,
    Refusal,
    Reply,
    Request,
    Text,
    WireFormat,
    pieces,
)

__all__ = ["FramesFormat", "LadderFormat", "LinesFormat", "MemoFormat", "SpoutFormat"]

_STATUS = {
    "authentication": 401,
    "permission": 403,
    "invalid_request": 400,
    "model_not_found": 404,
    "context_length": 400,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
}


class _Simple(WireFormat):
    """What the three have in common: one address, a key in a header, refusals in JSON."""

    path: ClassVar[str]
    key_header: ClassVar[str]
    turns: ClassVar[str]
    keys: ClassVar[frozenset[str]]
    base_path = "/v1"

    def operation(self, request: Request) -> Operation | None:
        there = (request.method, request.path) == ("POST", f"/v1/{self.path}")
        return "generate" if there else None

    def credential(self, request: Request) -> str | None:
        return request.header(self.key_header) or None

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        unknown = sorted(request.body.keys() - self.keys)
        if unknown:
            return Problem("unknown keys", f"a request has {', '.join(self.keys)}", unknown[0])
        for place, turn in enumerate(request.body[self.turns]):
            if turn.get("by") not in ("system", "user", "assistant", "tool"):
                return Problem("nobody speaks", "a turn says by whom it is", f"{place}")
        return None

    def refusal(self, failure: Failure) -> Refusal:
        body = {"kind": failure.kind, "message": failure.message}
        return Refusal(_STATUS[failure.kind], _json(body), failure.headers)

    def models(self, names: Sequence[str], request: Request) -> bytes:
        return _json(list(names))


class LinesFormat(_Simple):
    """A line for each piece of the text."""

    name: ClassVar[str] = "lines"
    framing = "ndjson"
    stream_type: ClassVar[str] = "application/x-ndjson"
    path, key_header, turns = "lines", "x-lines-key", "said"
    keys = frozenset({"model", "said", "lines", "most"})

    def wants_stream(self, request: Request) -> bool:
        return bool(request.body.get("lines"))

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        return _json({"text": _text(reply), **_end(reply)})

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        lines = [{"text": text} for text in self.texts(pieces(_text(reply), reply.fragments))]
        return [_json(line) + b"\n" for line in (*lines, _end(reply))]

    def texts(self, parts: list[str]) -> list[str]:
        """What each line has of the text."""
        return parts


class LadderFormat(LinesFormat):
    """Every line has all of the text so far."""

    name: ClassVar[str] = "ladder"

    def texts(self, parts: list[str]) -> list[str]:
        return ["".join(parts[: number + 1]) for number in range(len(parts))]


class SpoutFormat(LinesFormat):
    """Lines, whether somebody wants a stream or not."""

    name: ClassVar[str] = "spout"
    path = "spout"
    keys = frozenset({"model", "said", "most"})

    def wants_stream(self, request: Request) -> bool:
        return True


class FramesFormat(LinesFormat):
    """Frames of a length, a kind and so many bytes, whether somebody wants a stream or not."""

    name: ClassVar[str] = "frames"
    stream_type: ClassVar[str] = "application/octet-stream"
    path = "frames"

    def wants_stream(self, request: Request) -> bool:
        return True

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        frames = [_frame(1, piece.encode()) for piece in pieces(_text(reply), reply.fragments)]
        return [*frames, _frame(2, _json(_end(reply)))]


class MemoFormat(_Simple):
    """One document, calls without ids, results by the order of the calls."""

    name: ClassVar[str] = "memo"
    framing = "json"
    path, key_header, turns = "memo", "x-memo-key", "notes"
    keys = frozenset({"model", "notes", "tools", "most", "choice"})

    def wants_stream(self, request: Request) -> bool:
        return False

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        found = super().problem(request, ledger)
        if found is not None:
            return found
        known = {tool["name"] for tool in request.body.get("tools") or ()}
        for tool in known:
            if not tool.replace("_", "").replace("-", "").isalnum():
                return Problem("no name", "a tool's name has letters and digits", tool)
        still_open = 0
        for place, note in enumerate(request.body["notes"]):
            if note["by"] == "tool":
                if not still_open:
                    return Problem("nobody asked", "results follow calls", f"notes[{place}]")
                still_open -= 1
                continue
            if still_open:
                return Problem("unanswered", "every call has a result", f"notes[{place}]")
            asked = note.get("asked", ())
            if any(not isinstance(ask["with"], dict) for ask in asked):
                return Problem("no object", "arguments are an object", f"notes[{place}]")
            still_open = len(asked)
        return None

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        asked = [
            {"tool": part.name, "with": _object(part.arguments)}
            for part in reply.parts
            if isinstance(part, Call)
        ]
        return _json({"text": _text(reply), **_end(reply), **({"asked": asked} if asked else {})})

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        return [self.whole(reply, request, ledger)]


def _text(reply: Reply) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


def _object(arguments: Any) -> Any:
    """Arguments as this API sends them: as an object, where they are one."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    except ValueError:
        return arguments


def _end(reply: Reply) -> dict[str, Any]:
    if reply.failure is not None:
        return {"kind": reply.failure.kind, "message": reply.failure.message}
    words = {"stop": "over", "length": "short", "tool_calls": "asks"}
    tokens = reply.tokens
    counts = {} if tokens is None else {"read": tokens.input, "wrote": tokens.output}
    return {"end": words.get(reply.ending, reply.ending), **counts}


def _frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">IB", len(data), kind) + data


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
