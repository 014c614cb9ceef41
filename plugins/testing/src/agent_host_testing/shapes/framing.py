"""Shapes 39 to 45: how the same answer can be cut into lines, events and reads."""

from __future__ import annotations

from collections.abc import Iterator

from agent_host_testing.shapes.shape import Outcome, Sent, Shape
from agent_host_testing.shapes.speech import SPEECHES, TEXT, Speech, frame_documents
from agent_host_testing.shapes.tool_deltas import CHAT

__all__ = ["SHAPES"]

_OUTCOME = Outcome(text=TEXT)


def _shape(number: int, variant: str, title: str, speech: Speech, body: bytes) -> Shape:
    name = f"{number}-{variant}-{speech.format}"
    return Shape(number, name, title, speech.format, (Sent(body),), _OUTCOME)


def _stream(speech: Speech, end: bytes = b"\n") -> bytes:
    marker = b"data: %s%s%s" % (speech.done, end, end) if speech.done else b""
    return frame_documents(speech, speech.said, end) + marker


def _any_framing(speech: Speech) -> Iterator[Shape]:
    plain = _stream(speech)
    yield _shape(39, "line-ends", "Unicode line ends inside strings", speech, plain)
    yield _shape(40, "crlf", "lines end in CRLF", speech, _stream(speech, b"\r\n"))
    yield _shape(40, "bom", "a byte order mark at the start", speech, b"\xef\xbb\xbf" + plain)
    unfinished = frame_documents(speech, speech.said).rstrip(b"\n")
    yield _shape(40, "no-end", "nothing after the last event", speech, unfinished)
    yield _shape(43, "reads", "cut anywhere, and all at once", speech, plain)


def _lines_only(speech: Speech) -> Iterator[Shape]:
    mixed = b"\r\n".join([speech.said[0], b"\n".join(speech.said[1:]), b""])
    yield _shape(40, "mixed", "line ends of both kinds, and empty lines", speech, b"\n" + mixed)


def _events_only(speech: Speech) -> Iterator[Shape]:
    plain = _stream(speech)
    yield _shape(40, "cr", "lines end in CR", speech, _stream(speech, b"\r"))
    ends = (b"\r\n", b"\n", b"\r")
    mixed = b"".join(
        frame_documents(speech, (document,), ends[number % 3])
        for number, document in enumerate(speech.said)
    )
    yield _shape(40, "mixed", "line ends of all kinds", speech, mixed)
    no_space = plain.replace(b"data: ", b"data:").replace(b"event: ", b"event:")
    yield _shape(41, "no-space", "no space after the colon", speech, no_space)
    several = plain.replace(b'","', b'",\ndata: "')
    yield _shape(41, "several", "several data lines in one event", speech, several)
    bare = b"data:\n\nid: 7\n\nretry: 10\n\nid: 8\n: ping\n"
    yield _shape(41, "bare", "empty data, and blocks without any", speech, bare + plain)
    kept = b"data: : keepalive\n\n" + plain.replace(b"}\n\n", b"}\n\ndata: : keepalive\n\n")
    yield _shape(42, "keepalive", "a comment as data", speech, kept)


def _chat_only(speech: Speech) -> Iterator[Shape]:
    events = frame_documents(speech, speech.said)
    yield _shape(44, "missing", "no [DONE]", speech, events)
    more = events + b"data: [DONE]\n\n" + frame_documents(speech, speech.said[1:2]) + b"garbage"
    yield _shape(44, "more", "more bytes after [DONE]", speech, more)
    spaces = events + b"data: [DONE]  \n\n"
    yield _shape(44, "spaces", "spaces after [DONE]", speech, spaces)
    for variant, chunk in (
        ("empty", b'{"id":"c1","choices":[]}'),
        ("null-choice", b'{"id":"c1","choices":[null]}'),
        ("null-choices", b'{"id":"c1","choices":null}'),
        ("no-choices", b'{"id":"c1"}'),
        ("null-delta", b'{"id":"c1","choices":[{"index":0,"delta":null}]}'),
        ("null-content", b'{"id":"c1","choices":[{"index":0,"delta":{"content":null}}]}'),
    ):
        around = frame_documents(speech, (chunk, speech.said[0], chunk, *speech.said[1:]))
        title = f"a chunk {chunk.decode()}"
        yield _shape(45, variant, title, speech, around + b"data: [DONE]\n\n")
    whole = speech.whole.replace(
        b'"message":', b'"delta":{"role":"assistant","content":""},"message":'
    )
    title = "a whole message beside an empty delta"
    yield Shape(45, "45-message", title, CHAT, (Sent(whole),), _OUTCOME, stream=False)


def _shapes() -> Iterator[Shape]:
    for speech in SPEECHES:
        yield from _any_framing(speech)
        yield from _lines_only(speech) if speech.lines else _events_only(speech)
        if speech.format == CHAT:
            yield from _chat_only(speech)


SHAPES: tuple[Shape, ...] = tuple(_shapes())
