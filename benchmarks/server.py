"""A fake model server that costs nothing to speak of: every answer is rendered once, then sent.

It runs in a process of its own, on a core of its own where the system allows that, so that its work
is not in anybody's numbers. The path says what to answer: ``/<content>/<count>/<transfer>/…``.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["running"]

_ROOT = Path(__file__).resolve().parent.parent
_CHUNK = {
    "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWx",
    "object": "chat.completion.chunk",
    "created": 1734567890,
    "model": "gpt-4o-2024-08-06",
    "service_tier": "default",
    "system_fingerprint": "fp_44709d6fcb",
    "usage": None,
}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 2000, "total_tokens": 2020}


def _delta(content: str, number: int) -> dict[str, Any]:
    if content == "text":
        return {"content": f" token {number}"}
    if content == "reasoning":
        return {"reasoning_content": f" token {number}"}
    function = {"arguments": f'"k{number}": {number},'}
    if number:
        return {"tool_calls": [{"index": 0, "function": function}]}
    begun = {"name": "write_file", "arguments": "{"}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": begun}]}


def _events(content: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        choice = {"index": 0, "delta": _delta(content, number), "finish_reason": None}
        yield _event({**_CHUNK, "choices": [choice]})
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    if content == "tools":
        last["delta"] = {"tool_calls": [{"index": 0, "function": {"arguments": '"end": 0}'}}]}
    yield _event({**_CHUNK, "choices": [last]})
    yield _event({**_CHUNK, "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % json.dumps(chunk, separators=(",", ":")).encode()


@cache
def _answer(content: str, count: int, transfer: str) -> bytes:
    if content == "whole":
        message = {"role": "assistant", "content": "token " * count}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({**_CHUNK, "choices": [choice], "usage": _USAGE}).encode()
        return _with_length("application/json", body)
    events = list(_events(content, count))
    if transfer == "length":
        return _with_length("text/event-stream", b"".join(events))
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in [*events, b""])
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + pieces
    )


def _with_length(kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _converse(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    unread = b""
    with sock, contextlib.suppress(OSError):
        while True:
            while b"\r\n\r\n" not in unread:
                data = sock.recv(65536)
                if not data:
                    return
                unread += data
            head, _, unread = unread.partition(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line[15:])
            while length > len(unread):
                length -= len(unread)
                unread = sock.recv(1 << 20)
                if not unread:
                    return
            unread = unread[length:]
            _, content, count, transfer, *_ = head.split(b" ", 2)[1].decode().split("/")
            sock.sendall(_answer(content, int(count), transfer))


def _serve() -> None:
    with contextlib.suppress(AttributeError, OSError):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-1:])
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=_converse, args=(sock,), daemon=True).start()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """A server in a process of its own; gives its URL and ends it afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server"],
        cwd=_ROOT,
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
    _serve()
