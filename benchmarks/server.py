"""A fake model server that costs nothing to speak of: every answer is rendered once, then sent.

It runs in a process of its own, on a core of its own where the system allows that, so that its work
is not in anybody's numbers. The beginning of a path says what to answer, its end in which format:
``/<content>/<count>/<transfer>/v1/messages``. What the words mean stands in `cases`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from benchmarks.cores import pin, server_core
from benchmarks.formats import anthropic, chat, google, ollama, responses
from benchmarks.formats.pieces import as_json
from benchmarks.limits import lift_file_limit

__all__ = ["ROOT", "answer_to", "parts_of", "running"]

ROOT = Path(__file__).resolve().parent.parent

#: How many events an HTTP chunk holds, by the name of the transfer.
_TOGETHER = {"each": 1, "paced": 1, "idle": 1, "several": 8}
#: How long after one another the chunks of a paced stream are sent, in seconds.
_PACE = 0.001
#: How much of an idle stream is sent before it falls silent.
_IDLE_EVENTS = 8

_ANSWERS = {
    "/chat/completions": chat,
    "/responses": responses,
    "/messages": anthropic,
    ":streamGenerateContent": google,
    ":generateContent": google,
    "/api/chat": ollama,
}
_LISTINGS = {"/v1/models": chat, "/v1beta/models": google, "/api/show": ollama}


def answer_to(path: str) -> bytes:
    """The whole response to a request for the path, head and body."""
    return b"".join(parts_of(path))


@cache
def parts_of(path: str) -> tuple[bytes, ...]:
    """The same in the parts that are sent at one time: only a paced stream has more than one."""
    place = path.partition("?")[0]
    for ending, described in _LISTINGS.items():
        if place.endswith(ending):
            return (_with_length("200 OK", "application/json", as_json(described.listing())),)
    for ending, rendered in _ANSWERS.items():
        if place.endswith(ending):
            _, content, count, transfer, *_ = place.split("/")
            if content == "whole":
                body = as_json(rendered.whole(int(count)))
                return (_with_length("200 OK", "application/json", body),)
            kind = "application/x-ndjson" if rendered is ollama else "text/event-stream"
            return _streamed(kind, list(rendered.events(content, int(count))), transfer)
    return (_with_length("404 Not Found", "text/plain", f"nothing is at {path}".encode()),)


def _streamed(kind: str, events: Sequence[bytes], transfer: str) -> tuple[bytes, ...]:
    if transfer == "length":
        return (_with_length("200 OK", kind, b"".join(events)),)
    size = _TOGETHER[transfer]
    bodies = [b"".join(events[at : at + size]) for at in range(0, len(events), size)]
    # Without the empty chunk at the end the stream stays open.
    pieces = bodies[:_IDLE_EVENTS] if transfer == "idle" else [*bodies, b""]
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%s\r\n" % (len(each), each) for each in pieces]
    if transfer == "paced":
        # The end comes with the last event, as it does from a server that has nothing more to say.
        return (head.encode() + chunks[0], *chunks[1:-2], b"".join(chunks[-2:]))
    return (head.encode() + b"".join(chunks),)


def _with_length(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Conversation(asyncio.Protocol):
    """Requests of one connection, one after the other; only their paths are read."""

    def __init__(self) -> None:
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while self._unread:
            head, found, rest = self._unread.partition(b"\r\n\r\n")
            length = _length(head) if found else 0
            if not found or len(rest) < length:
                return
            self._unread = rest[length:]
            first, *others = parts_of(head.split(b" ", 2)[1].decode())
            self._transport.write(first)
            if others:
                self._send_later(iter(others), asyncio.get_running_loop().time() + _PACE)

    def _send_later(self, parts: Iterator[bytes], when: float) -> None:
        """Send a part at that time, and each further one in its turn, until the client is gone."""

        def send() -> None:
            part = next(parts, None)
            if part is not None and not self._transport.is_closing():
                self._transport.write(part)
                self._send_later(parts, when + _PACE)

        asyncio.get_running_loop().call_at(when, send)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    # It listens anew, by default with a queue that a thousand clients at once would overflow.
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Conversation, sock=listener, backlog=4096)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    await server.serve_forever()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """A server in a process of its own; gives its URL and ends it afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


if __name__ == "__main__":
    pin(server_core())
    lift_file_limit()
    asyncio.run(_serve())
