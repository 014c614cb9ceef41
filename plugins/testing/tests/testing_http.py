"""A client that shows what is on the wire: sockets for bytes, http.client for everything else."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

from agent_host_testing.server import FakeServer

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Received:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """The decoded ``data:`` of each server-sent event, the end marker as it is."""
        blocks = self.body.decode().split("\n\n")
        data = [
            line.removeprefix("data: ")
            for block in blocks
            for line in block.split("\n")
            if line.startswith("data: ")
        ]
        return [text if text == "[DONE]" else json.loads(text) for text in data]


def connect(server: FakeServer) -> http.client.HTTPConnection:
    host, port = server.url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def ask(
    server: FakeServer,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    connection: http.client.HTTPConnection | None = None,
) -> Received:
    """One request: a POST of the body as JSON, or a GET without one."""
    line = connection or connect(server)
    try:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        line.request("GET" if data is None else "POST", path, data, headers or {})
        response = line.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Received(response.status, names, response.read())
    finally:
        if connection is None:
            line.close()


def chat(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A request to chat completions; a message that is text is the user's."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return {"model": "m", "messages": said or [{"role": "user", "content": "hi"}], **fields}


def raw_exchange(server: FakeServer, body: Any, path: str = CHAT) -> tuple[bytes, list[bytes], str]:
    """All bytes that come back, the reads in which they came, and how it ended: eof or reset."""
    host, port = server.url.removeprefix("http://").split(":")
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n"
    reads: list[bytes] = []
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(head.encode() + b"connection: close\r\n\r\n" + data)
        try:
            while read := line.recv(1 << 16):
                reads.append(read)
        except ConnectionResetError:
            return b"".join(reads), reads, "reset"
    return b"".join(reads), reads, "eof"
