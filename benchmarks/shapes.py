"""Answers without end, in every framing and every wire format: what a hostile server may send.

One table for the benchmark, which measures what they take, and for the test, which holds it with
lower limits. An answer is a beginning and pieces by their number, which differ where what is kept
of them is told apart by names or places. It must not know how answers are served or read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

__all__ = ["ANSWERS", "PROVIDERS", "Answer"]

#: The provider and model of each wire format; those of bare framings are made for the purpose.
PROVIDERS: dict[str, tuple[str, str]] = {
    "chat": ("custom", "gpt-5-mini"),
    "responses": ("openai", "gpt-5-mini"),
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "google": ("google", "gemini-2.5-flash"),
    "ollama": ("ollama", "qwen3:4b"),
    "cohere": ("cohere", "command-a-03-2025"),
}

_TEN_KB = "word " * 2000
#: What leaves nothing behind but what came last.
_REPLACED = {"usage", "pings", "ends", "items that begin", "items of one place"}

#: A piece by its number, for a host that takes events of at most so many bytes.
Piece = Callable[[int, int], bytes]


class Answer(NamedTuple):
    """An answer without end: how it begins, and what comes again and again.

    ``wire`` is a format or a bare framing. Of one that says nothing, and of which nothing is kept,
    a part ``is_enough``.
    """

    wire: str
    what: str
    beginning: bytes
    piece: Piece
    is_enough: bool = False

    def pieces(self, event_bytes: int) -> Iterator[bytes]:
        """The bytes of the answer, piece by piece, for ever."""
        yield self.beginning
        for number in count():
            yield self.piece(number, event_bytes)


# What stands around an event in each framing, and what every framing can be sent.

_AROUND = {"sse": (b"data: ", b"\n\n"), "ndjson": (b"", b"\n"), "json-array": (b"", b",")}
_FRAMINGS = {**dict.fromkeys(PROVIDERS, "sse"), "ollama": "ndjson"}


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _event(wire: str, data: bytes) -> bytes:
    before, after = _AROUND[_FRAMINGS.get(wire, wire)]
    return before + data + after


def _chunk(text: str) -> bytes:
    return _encode({"choices": [{"index": 0, "delta": {"content": text}}]})


def _filled(before: bytes, filling: bytes, after: bytes) -> Callable[[int], bytes]:
    """JSON of about as many bytes as an event may have."""

    def make(event_bytes: int) -> bytes:
        return before + filling * ((event_bytes - 1000) // len(filling)) + after

    return make


#: Large events: what takes the longest, or the most memory, to be made of their bytes.
_LARGE: dict[str, Callable[[int], bytes]] = {
    "lists": _filled(b'{"choices":[],"more":[', b"[],", b"0]}"),
    "objects": _filled(b'{"choices":[],"more":[', b'{"":0},', b"0]}"),
    "texts": _filled(b'{"choices":[],"more":[', b'"ab",', b"0]}"),
    "numbers": _filled(b'{"choices":[],"more":[', b"1e9,", b"0]}"),
    "long numbers": _filled(b'{"choices":[],"more":[', b"9" * 4200 + b",", b"0]}"),
    "one number": _filled(b'{"choices":[],"more":', b"9", b"}"),
    "depth": _filled(b"", b"[", b""),
    "line breaks in a text": _filled(b'{"choices":[{"delta":{"content":"', b"\\n", b'"}}]}'),
    "halves of emojis": _filled(b'{"choices":[{"delta":{"content":"', b"\\ud83d", b'"}}]}'),
    "emojis": _filled(b'{"choices":[{"delta":{"content":"', "😀".encode(), b'"}}]}'),
    "a picture": _filled(b'{"choices":[{"delta":{"content":"', b"QUJD", b'"}}]}'),
}


def _keys(share: int) -> Callable[[int], bytes]:
    return lambda size: _encode({f"{number:x}": 0 for number in range(size // share)})


def _just_below(filling: bytes, share: int) -> Callable[[int], bytes]:
    """An event that has about as many values as one may have."""
    return lambda size: b'{"choices":[],"more":[' + filling * (size // share) + b"0]}"


_LARGE |= {
    "keys": _keys(12),
    "as many keys as may be": _keys(360),
    "as many lists as may be": _just_below(b"[],", 360),
    "as many objects as may be": _just_below(b'{"":0},', 480),
    "as many texts as may be": _just_below(b'"ab",', 120),
    "as many numbers as may be": _just_below(b"1e9,", 120),
}


#: Those that are enough where framings differ in nothing but what stands around an event.
_LARGEST = {what: _LARGE[what] for what in ("lists", "a picture", "as many keys as may be")}


def _again(piece: bytes) -> Piece:
    return lambda number, event_bytes: piece


def _large(wire: str, make: Callable[[int], bytes]) -> Piece:
    return lambda number, event_bytes: _event(wire, make(event_bytes))


def _numbered(wire: str, make: Callable[[int], Any]) -> Piece:
    return lambda number, event_bytes: _event(wire, _encode(make(number)))


def _bare() -> Iterator[Answer]:
    word = _chunk("word ")
    opening = word[: word.index(b"word ")]
    for wire in _AROUND:
        beginning = b"[" if wire == "json-array" else b""

        for what, data in {
            "short events": word,
            "pages": _chunk(_TEN_KB),
            "nothing": b"{}",
        }.items():
            again = _again(_event(wire, data))
            yield Answer(wire, what, beginning, again, is_enough=what == "nothing")
        before = beginning + _AROUND[wire][0] + opening
        yield Answer(wire, "an event that does not end", before, _again(b"word "))
        for what, make in _LARGE.items() if wire == "sse" else _LARGEST.items():
            yield Answer(wire, f"large events: {what}", beginning, _large(wire, make))
    yield Answer("json", "a document that does not end", opening, _again(b"word "))
    yield Answer("json", "a document of escapes", opening, _again(b"\\n" * 100))
    yield Answer("json", "a document of lists", b"[", _again(b"[],"))
    yield Answer("json-array", "brackets", b"[", _again(b"["))
    for what, line in {
        "comments": b": still here\n\n",
        "line breaks": b"\n",
        "carriage returns": b"\r",
        "names of events": b"event: ping\n",
        "ids": b"id: 1\nretry: 5\n\n",
        "lines of one event": b"data:\n",
        "lines that are no JSON": b"data: x\n",
    }.items():
        yield Answer("sse", what, b"", _again(line), is_enough=True)
    yield Answer("sse", "a name that grows", b"event: ", _again(b"name"))
    yield Answer("sse", "a comment that grows", b":", _again(b"name"))
    yield Answer("ndjson", "line breaks", b"", _again(b"\n"), is_enough=True)


# What each wire format has of its own: an event by its number.


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def _call(number: int, **more: Any) -> dict[str, Any]:
    return _delta(tool_calls=[{"index": number, "function": {"name": f"t{number}"}, **more}])


def _block(number: int | None, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": number, "content_block": block}


def _grown(number: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": number, "delta": {"type": kind, **delta}}


def _parts(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "index": 0, **more}]}


def _item(number: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": number, "item": item}


def _said(**message: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", **message}}


def _piece(kind: str, number: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": number, "delta": {"message": message}}


def _either(number: int, *values: Any) -> Any:
    return values[number % len(values)]


_TOKEN = {"token": "ab", "logprob": -0.5, "bytes": [97, 98]}
_CITED = {"type": "char_location", "cited_text": "", "document_index": 0}

_EVENTS: dict[str, dict[str, Callable[[int], Any]]] = {
    "chat": {
        "text": lambda n: _delta(content="ab"),
        "pages": lambda n: _delta(content=_TEN_KB),
        "reasoning": lambda n: _delta(reasoning_content=_TEN_KB),
        "reasoning blocks": lambda n: _delta(reasoning_details=[{"index": n}]),
        "places of a reasoning block": lambda n: _delta(
            reasoning_details=[{"id": "a", "index": n}]
        ),
        "calls": _call,
        "calls without an index": lambda n: _delta(
            tool_calls=[{"function": {"name": f"t{n}"}}] * 50
        ),
        "keys of a call": lambda n: _call(0, **{f"key{n}": n}),
        "names of a call that grow": lambda n: _delta(
            tool_calls=[{"index": 0, "id": "c", "function": {"name": "n" * (n % 5000)}}]
        ),
        "parts": lambda n: _delta(content=[{"type": "image_url"}] * 20),
        "thinking parts": lambda n: _delta(
            content=[
                {"type": "thinking", "thinking": [{"type": "x"}]},
                {"type": "text", "text": ""},
            ]
        ),
        "annotations": lambda n: _delta(annotations=[{"type": "url_citation", "n": n}] * 20),
        "keys of a delta": lambda n: _delta(**{f"key{n}": n}),
        "keys of a chunk": lambda n: {"choices": [], f"key{n}": n},
        "log probabilities": lambda n: {
            "choices": [{"index": 0, "delta": {}, "logprobs": {"content": [_TOKEN] * 20}}]
        },
        "usage": lambda n: {"choices": [], "usage": {f"key{n}": n}},
        "text, then the whole again": lambda n: _either(
            n, _delta(content=_TEN_KB), {"choices": [{"message": {"content": "ab"}}]}
        ),
        "text after the end": lambda n: {
            "choices": [{"index": 0, "delta": {"content": "ab"}, "finish_reason": "length"}]
        },
        "text, then blocks, then lists": lambda n: _either(
            n,
            *[_delta(content=_TEN_KB)] * 9,
            _delta(reasoning_details=[{"index": n}], more=[[]] * 9),
        ),
    },
    "responses": {
        "text": lambda n: {"type": "response.output_text.delta", "delta": "ab"},
        "pages": lambda n: {"type": "response.output_text.delta", "delta": _TEN_KB},
        "items": lambda n: _item(n, type="message"),
        "items of one place": lambda n: _item(0, type="message", content=[{}] * 20),
        "items that begin": lambda n: {"type": "response.output_item.added", "item": {"type": "x"}},
        "calls": lambda n: _item(n, type="function_call", name=f"t{n}", arguments="{}"),
        "annotations": lambda n: {
            "type": "response.output_text.annotation.added",
            "annotation": {"n": n},
        },
        "summaries": lambda n: {"type": "response.reasoning_summary_text.delta", "delta": _TEN_KB},
        "text and ends": lambda n: _either(
            n,
            {"type": "response.output_text.delta", "delta": _TEN_KB},
            {"type": "response.completed", "response": {}},
        ),
        "items and ends": lambda n: _either(
            n, _item(n, type="message"), {"type": "response.completed", "response": {"output": []}}
        ),
        "bodies": lambda n: {"output": [{"type": "message"}] * 9},
    },
    "anthropic": {
        "text": lambda n: _grown(0, "text_delta", text="ab"),
        "pages": lambda n: _grown(0, "text_delta", text=_TEN_KB),
        "thinking": lambda n: _grown(0, "thinking_delta", thinking=_TEN_KB),
        "blocks": lambda n: _block(n, type="text"),
        "blocks of one place": lambda n: _block(0, type="text"),
        "blocks without a place": lambda n: _block(None, type="text"),
        "deltas of blocks that never began": lambda n: _grown(n, "text_delta", text=""),
        "citations": lambda n: _grown(0, "citations_delta", citation=_CITED),
        "keys of a block": lambda n: _grown(0, "unknown_delta", **{f"key{n}": "a"}),
        "lists of a block": lambda n: _grown(0, "unknown_delta", **{f"key{n}": [[]] * 9}),
        "keys of a message": lambda n: {"type": "message_delta", "delta": {f"key{n}": n}},
        "keys of a usage": lambda n: {"type": "message_delta", "usage": {f"key{n}": n}},
        "messages": lambda n: {"type": "message_start", "message": {"content": [{}] * 20}},
        "pings": lambda n: {"type": "ping"},
    },
    "google": {
        "text": lambda n: _parts({"text": "ab"}),
        "pages": lambda n: _parts({"text": _TEN_KB}),
        "text parts": lambda n: _parts(*[{"text": "ab"}, {"text": "ab", "thought": True}] * 50),
        "texts at once": lambda n: _parts(*[{"text": "ab"}] * 100),
        "pictures": lambda n: _parts(*[{"inlineData": {}}] * 50),
        "signatures": lambda n: _parts(*[{"text": "", "thoughtSignature": "ab"}] * 20),
        "calls": lambda n: _parts(*[{"functionCall": {"name": "t"}}] * 20),
        "keys of a candidate": lambda n: _parts(**{f"key{n}": n}),
        "safety ratings": lambda n: _parts({"text": "a"}, safetyRatings=[{"category": "a"}] * 20),
        "usage": lambda n: {"candidates": [], "usageMetadata": {"totalTokenCount": n, f"k{n}": []}},
        "text after the end": lambda n: _parts({"text": _TEN_KB}, finishReason="MAX_TOKENS"),
        "lists of chunks": lambda n: [_parts({"text": "ab"})] * 20,
    },
    "ollama": {
        "text": lambda n: _said(content="ab"),
        "pages": lambda n: _said(content=_TEN_KB),
        "thinking": lambda n: _said(thinking=_TEN_KB),
        "images": lambda n: _said(images=["ab"] * 50),
        "calls": lambda n: _said(tool_calls=[{"function": {"name": "t", "arguments": {}}}] * 20),
        "calls without a name": lambda n: _said(tool_calls=[{}] * 50),
        "keys of a message": lambda n: _said(**{f"key{n}": n}),
        "ends": lambda n: {"done": True, "eval_count": n, f"key{n}": n},
    },
    "cohere": {
        "text": lambda n: _piece("content-delta", 0, content={"text": "ab"}),
        "pages": lambda n: _piece("content-delta", 0, content={"text": _TEN_KB}),
        "blocks": lambda n: _piece("content-delta", n, content={"text": "a"}),
        "citations": lambda n: _piece("citation-start", n, citations={"start": n, "sources": []}),
        "plans": lambda n: _piece("tool-plan-delta", n, tool_plan=_TEN_KB),
        "calls": lambda n: _piece("tool-call-start", n, tool_calls={"function": {"name": f"t{n}"}}),
        "usage": lambda n: {"type": "message-end", "delta": {"usage": {f"key{n}": {}}}},
    },
}


def _formats() -> Iterator[Answer]:
    for wire, events in _EVENTS.items():
        for what, make in events.items():
            piece = _numbered(wire, make)
            yield Answer(wire, what, b"", piece, is_enough=what in _REPLACED)


ANSWERS = (*_bare(), *_formats())
