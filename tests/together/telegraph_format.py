"""The fake API that `telegraph_provider` speaks to, as strict as those of the kit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from agent_host_testing import (
    Call,
    Failure,
    Ledger,
    Problem,
    Refusal,
    Reply,
    Request,
    Text,
    WireFormat,
)
from agent_host_testing.wire import Operation, pieces

__all__ = ["TelegraphFormat"]


class TelegraphFormat(WireFormat):
    name: ClassVar[str] = "telegraph"
    framing = "ndjson"
    stream_type: ClassVar[str] = "application/x-ndjson"

    def operation(self, request: Request) -> Operation | None:
        return "generate" if (request.method, request.path) == ("POST", "/wire") else None

    def wants_stream(self, request: Request) -> bool:
        return bool(request.body["lines"])

    def credential(self, request: Request) -> str | None:
        return request.header("x-pass") or None

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        open_refs: list[str] = []
        for number, turn in enumerate(request.body["turns"]):
            place = f"turns[{number}]"
            if turn.keys() - {"who", "words", "ask", "ref"}:
                return Problem("unknown keys", "a turn has who, words, ask and ref", place)
            if turn["who"] == "tool":
                if turn.get("ref") not in open_refs:
                    return Problem("nobody asked", "a tool answers an ask", place)
                open_refs.remove(turn["ref"])
                continue
            if open_refs:
                return Problem("asks are open", "tools answer before anybody speaks", place)
            asks = turn.get("ask", [])
            if any(not isinstance(ask["with"], dict) for ask in asks):
                return Problem("no object", "an ask has its arguments in an object", place)
            open_refs = [ask["ref"] for ask in asks]
        return None

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        said = "".join(part.text for part in reply.parts if isinstance(part, Text))
        return _json({"words": said, "ask": _asks(reply, ledger), **_over(reply)})

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        lines: list[dict[str, Any]] = []
        for part in reply.parts:
            if isinstance(part, Text):
                lines += [{"words": piece} for piece in pieces(part.text, reply.fragments)]
        lines += [{"ask": [ask]} for ask in _asks(reply, ledger)]
        return [_json(line) + b"\n" for line in [*lines, _over(reply)]]

    def refusal(self, failure: Failure) -> Refusal:
        return Refusal(400, _json({"error": failure.message}))

    def models(self, names: Sequence[str], request: Request) -> bytes:
        return _json({"models": list(names)})


def _asks(reply: Reply, ledger: Ledger) -> list[dict[str, Any]]:
    return [
        {"ref": part.id or ledger.new_id("ref-"), "tool": part.name, "with": part.arguments}
        for part in reply.parts
        if isinstance(part, Call)
    ]


def _over(reply: Reply) -> dict[str, Any]:
    tokens = reply.tokens
    cost = {} if tokens is None else {"cost": {"in": tokens.input, "out": tokens.output}}
    return {"over": reply.ending, **cost}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
