"""A raw-socket HTTP server for tests: a function plays the server, request by request.

It speaks exactly the bytes it is told to, so that resets, stalls, cuts and drips are real ones.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        self._unread = b""

    def request(self) -> Request | None:
        """The next request; None when the client has closed the connection."""
        try:
            while b"\r\n\r\n" not in self._unread:
                data = self.sock.recv(65536)
                if not data:
                    return None
                self._unread += data
            head, self._unread = self._unread.split(b"\r\n\r\n", 1)
            line, *rest = head.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (h.partition(":") for h in rest)
            }
            length = int(headers.get("content-length", "0"))
            while len(self._unread) < length:
                data = self.sock.recv(65536)
                if not data:
                    return None
                self._unread += data
        except OSError:
            return None
        body, self._unread = self._unread[:length], self._unread[length:]
        return Request(line, headers, body)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def answer(self, body: bytes, *, status: str = "200 OK", headers: str = "") -> None:
        self.send(f"HTTP/1.1 {status}\r\n{headers}".encode("latin-1"))
        self.send(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def begin(self, headers: str = "") -> None:
        """The head of an answer in chunked encoding."""
        self.send(f"HTTP/1.1 200 OK\r\n{headers}Transfer-Encoding: chunked\r\n\r\n".encode())

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def gone(self, timeout: float) -> bool:
        """Whether the client closes its end within ``timeout`` seconds."""
        try:
            ready, _, _ = select.select([self.sock], [], [], timeout)
            if not ready:
                return False
            data = self.sock.recv(65536)
            self._unread += data
            return data == b""
        except (OSError, ValueError):
            return True

    def stall(self) -> None:
        """Say nothing until the client goes away."""
        while not self.gone(5.0):
            continue

    def drip(self, piece: bytes, every: float) -> None:
        """Send ``piece`` again and again until the client goes away."""
        while not self.gone(every):
            self.send(piece)

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


@dataclass
class Server:
    url: str
    host: str
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    #: Set when some client has closed its connection to us.
    client_gone: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def serve(
    play: Callable[[Peer, Request], None], tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """A server on a free port; ``play`` is called for every request, a thread per connection."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    port = listener.getsockname()[1]
    scheme = "http" if tls is None else "https"
    server = Server(f"{scheme}://127.0.0.1:{port}", f"127.0.0.1:{port}")
    open_sockets: set[socket.socket] = set()
    threads: list[threading.Thread] = []
    lock = threading.Lock()

    def converse(sock: socket.socket, number: int) -> None:
        try:
            if tls is not None:
                sock = tls.wrap_socket(sock, server_side=True)
            with lock:
                open_sockets.add(sock)
            peer = Peer(sock, number)
            while (request := peer.request()) is not None:
                server.requests.append(request)
                play(peer, request)
                if sock.fileno() == -1 or peer.gone(0):
                    break
            server.client_gone.set()
        except OSError:
            server.client_gone.set()
        finally:
            with lock:
                open_sockets.discard(sock)
            sock.close()

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            server.connections += 1
            thread = threading.Thread(target=converse, args=(sock, server.connections))
            thread.start()
            threads.append(thread)

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)
        with lock:
            remaining = list(open_sockets)
        for sock in remaining:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for the loopback address, and a context for servers that use it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            key,
            "-out",
            cert,
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context
