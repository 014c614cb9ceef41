"""Scripts as JSON: the same words as in `script` and `faults`, for servers that stand alone.

A script is an array of answers:

    [
      {"say": "hello"},
      {"call": "weather", "arguments": {"city": "Bern"}, "id": "call_1"},
      {"parts": [{"thought": "hm", "signature": "abc", "redacted": false},
                 {"text": "so", "signature": "def"},
                 {"call": "f", "arguments": "{\\"raw\\": 1}", "freeform": false},
                 {"picture": "<base64>", "media_type": "image/png"},
                 {"search": "the weather", "cut": false}],
       "finish": "length", "fragments": 5,
       "tokens": {"input": 11, "output": 7, "cached_input": 0, "reasoning": 0},
       "failure": {"kind": "overloaded", "message": "sorry"}},
      {"failure": {"kind": "rate_limit", "message": "slow", "headers": {"retry-after": "1"}}},
      {"raw": ["<html>"], "status": 502, "headers": {"content-type": "text/html"}}
    ]

``say``, ``call`` and ``parts`` may all have ``tokens`` (null for none), ``finish``, ``fragments``
and a ``failure`` in which a stream ends. Every answer may have a ``fault``, or an array of them:

    {"reset": {"after": 10}}            {"truncate": {"after": -1, "tidy": true}}
    {"stall": {"head": false}}          {"split": {"at": [3, 9], "every": 7}}
    {"wrong_length": {"by": 5}}         {"drip": {"seconds": 0.01, "size": 16}}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from agent_host_testing.faults import Drip, Fault, Reset, Split, Stall, Truncate, WrongLength
from agent_host_testing.formats.checks import Node, Refused, one_of
from agent_host_testing.formats.notation import Rules
from agent_host_testing.script import (
    Answer,
    Call,
    Failure,
    FailureKind,
    Finish,
    Part,
    Picture,
    Raw,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
)

__all__ = ["ScriptError", "load_script", "read_script"]

Line = tuple[Answer, tuple[Fault, ...]]


class ScriptError(ValueError):
    """A script file that cannot be used; says where and why."""


def load_script(path: str | Path) -> list[Line]:
    """The answers and faults of the file. Raises ScriptError."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ScriptError(f"{path}: this is no JSON: {error}") from None
    try:
        return read_script(value)
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from None


def read_script(value: Any) -> list[Line]:
    """The answers and faults of a decoded script. Raises ScriptError."""
    try:
        return [_line(node) for node in Node(value, "script").items()]
    except Refused as refused:
        problem = refused.problem
        raise ScriptError(f"{problem.place}: {problem.message}; {problem.rule}") from None


_RULES = Rules(
    "script",
    {"failure kind": one_of(*get_args(FailureKind)), "finish": one_of(*get_args(Finish))},
)
_ANSWERS = ("parts", "say", "call", "raw", "failure")
_CALL = ("call", "arguments", "id", "signature", "freeform")
_MAKERS: dict[str, Callable[..., Part]] = {
    "text": Text,
    "thought": Thought,
    "call": Call,
    "picture": Picture,
    "search": Search,
}


def _kind(node: Node, kinds: tuple[str, ...], what: str) -> str:
    """The one of these fields that says what the object is; the first, if it has several."""
    found = [kind for kind in kinds if kind in node.fields()]
    if not found:
        node.refuse(f"this is no {what}", f"a {what} has one of {', '.join(kinds)}")
    return found[0]


def _line(node: Node) -> Line:
    kind = _kind(node, _ANSWERS, "answer")
    faults = node.child("fault")
    several = faults.items() if isinstance(faults.value, list) else [faults]
    applied = tuple(_fault(fault) for fault in several if fault.value is not None)
    return _answer(node, kind), applied


def _answer(node: Node, kind: str) -> Answer:
    _RULES[f"{kind} answer"](node)
    if kind == "raw":
        chunks = tuple(chunk.encode() for chunk in node.value["raw"])
        return Raw(chunks, node.value.get("status", 200), node.value.get("headers", {}))
    if kind == "failure":
        return Failure(**node.value["failure"])
    if kind == "parts":
        return _reply(node, tuple(_part(part) for part in node.child("parts").items()))
    if kind == "say":
        return _reply(node, (Text(node.value["say"]),))
    own = {name: value for name, value in node.value.items() if name in _CALL}
    return _reply(node, (_part(Node(own, node.place)),))


def _part(node: Node) -> Part:
    kind = _kind(node, tuple(_MAKERS), "part")
    _RULES[f"{kind} part"](node)
    rest = {name: value for name, value in node.value.items() if name != kind}
    return _MAKERS[kind](node.value[kind], **rest)


def _reply(node: Node, parts: tuple[Part, ...]) -> Reply:
    options: dict[str, Any] = {
        name: node.value[name] for name in ("finish", "fragments") if name in node.value
    }
    if "tokens" in node.value:
        options["tokens"] = None if node.value["tokens"] is None else Tokens(**node.value["tokens"])
    if "failure" in node.value:
        options["failure"] = Failure(**node.value["failure"])
    return Reply(parts, **options)


_FAULTS: dict[str, Callable[..., Fault]] = {
    "reset": Reset,
    "stall": Stall,
    "truncate": Truncate,
    "wrong_length": WrongLength,
    "split": Split,
    "drip": Drip,
}


def _fault(node: Node) -> Fault:
    kind = _kind(node, tuple(_FAULTS), "fault")
    _RULES[f"{kind} fault"](node)
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in node.value[kind].items()
    }
    return _FAULTS[kind](**options)
