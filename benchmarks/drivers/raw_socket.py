"""A floor: a bare socket, HTTP read just well enough for the fake server, ``json.loads``."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

from benchmarks.cases import WIRES, Case, body_of
from benchmarks.drivers.splitting import Lines

_READ = 65536


class Driver:
    speaks = tuple(WIRES)

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        assert parts.port is not None
        self.sock = socket.create_connection((parts.hostname, parts.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _ask(self, case: Case) -> tuple[bytes, bytes]:
        """The head of the answer and what came after it in the same reads."""
        body = json.dumps(body_of(case)).encode()
        head = f"POST {case.url('')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sock.sendall(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.sock.recv(_READ)
        found, _, rest = data.partition(b"\r\n\r\n")
        return found, rest

    def stream(self, case: Case) -> int:
        head, data = self._ask(case)
        lines = Lines(WIRES[case.wire].framing)
        seen = 0
        chunked = b"chunked" in head
        length = 0 if chunked else int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        unread = b""
        while True:
            if chunked:
                pieces, unread, ended = read_chunks(unread + data)
            else:
                pieces, length = data, length - len(data)
                ended = length <= 0
            for value in lines.feed(pieces):
                json.loads(value)
                seen += 1
            if ended:
                return seen
            data = self.sock.recv(_READ)

    def request(self, case: Case) -> int:
        head, body = self._ask(case)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.sock.recv(_READ)
        json.loads(body)
        return len(body)


def read_chunks(data: bytes) -> tuple[bytes, bytes, bool]:
    """The bodies of the whole chunks in ``data``, what follows them, and whether it was the end."""
    bodies: list[bytes] = []
    at = 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            break
        size = int(data[at:end], 16)
        if len(data) < end + 4 + size:
            break
        if not size:
            return b"".join(bodies), b"", True
        bodies.append(data[end + 2 : end + 2 + size])
        at = end + 4 + size
    return b"".join(bodies), data[at:], False
