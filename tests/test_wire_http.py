"""The transport over real sockets: sync and async, with each supported HTTP library."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import gzip
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_hookspecs.errors import (
    ConfigError,
    ConnectionFailedError,
    InvalidRequestError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    StreamCutError,
    TransportError,
)
from agent_host.core import AgentCore
from agent_host.wire.client import AsyncWireClient, WireClient
from agent_host.wire.deadlines import Timeouts
from agent_host.wire.failures import failure
from agent_host.wire.framing import framing
from agent_host.wire.request import WireRequest
from agent_host.wire.responses import AsyncResponse, Response
from loopback import Peer, Request, make_certificate, serve
from openai_like import OpenAiLike

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

QUICK = Timeouts(connect=1.0, first_byte=1.0, idle=1.0, total=2.0)
NO_HTTPX2 = pytest.mark.skipif(not find_spec("httpx2"), reason="httpx2 is not installed")
LIBRARIES = ["httpx", pytest.param("httpx2", marks=NO_HTTPX2)]


class SyncWire:
    """The blocking transport behind the same few verbs as `AsyncWire`."""

    def __init__(self, library: str) -> None:
        self.transport = WireClient(library=library)
        self.injected: Any = None

    def fetch(self, request: WireRequest) -> tuple[Response, bytes]:
        response = self.transport.open(request)
        return response, b"".join(response.chunks())

    def read(self, request: WireRequest, limit: int) -> bytes:
        return self.transport.open(request).read(limit)

    def begin_and_close(self, request: WireRequest) -> bytes:
        response = self.transport.open(request)
        first = next(response.chunks())
        response.close()
        response.close()
        return first

    def begin_and_abandon(self, request: WireRequest) -> None:
        for _ in self.transport.open(request).chunks():
            break

    def inject(self, client: Any) -> None:
        self.transport = WireClient(client)
        self.injected = client

    def close(self) -> None:
        self.transport.close()
        if self.injected is not None:
            self.injected.close()


class AsyncWire:
    """The asynchronous transport, driven by a loop of its own."""

    def __init__(self, library: str) -> None:
        self.transport = AsyncWireClient(library=library)
        self.injected: Any = None
        self.loop = asyncio.new_event_loop()

    def run(self, work: Awaitable[Any]) -> Any:
        async def bounded() -> Any:
            return await asyncio.wait_for(work, 10)

        return self.loop.run_until_complete(bounded())

    def fetch(self, request: WireRequest) -> tuple[AsyncResponse, bytes]:
        async def work() -> tuple[AsyncResponse, bytes]:
            response = await self.transport.open(request)
            return response, b"".join([data async for data in response.chunks()])

        return self.run(work())  # type: ignore[no-any-return]

    def read(self, request: WireRequest, limit: int) -> bytes:
        async def work() -> bytes:
            return await (await self.transport.open(request)).read(limit)

        return self.run(work())  # type: ignore[no-any-return]

    def begin_and_close(self, request: WireRequest) -> bytes:
        async def work() -> bytes:
            response = await self.transport.open(request)
            first = await response.chunks().__anext__()
            await response.aclose()
            await response.aclose()
            return first

        return self.run(work())  # type: ignore[no-any-return]

    def begin_and_abandon(self, request: WireRequest) -> None:
        async def work() -> None:
            begun = asyncio.Event()

            async def reading() -> None:
                async for _ in (await self.transport.open(request)).chunks():
                    begun.set()

            task = asyncio.create_task(reading())
            await begun.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        self.run(work())

    def inject(self, client: Any) -> None:
        self.transport = AsyncWireClient(client)
        self.injected = client

    def close(self) -> None:
        self.loop.run_until_complete(self.transport.aclose())
        if self.injected is not None:
            self.loop.run_until_complete(self.injected.aclose())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


Wire = SyncWire | AsyncWire


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[SyncWire, AsyncWire], ids=["sync", "async"])
def wire(request: pytest.FixtureRequest, library: str) -> Iterator[Wire]:
    made: Wire = request.param(library)
    yield made
    made.close()


def get(url: str, timeouts: Timeouts = QUICK) -> WireRequest:
    return WireRequest("GET", url, {}, None, timeouts)


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> WireRequest:
    return WireRequest("POST", url, headers or {}, body, QUICK)


def hello(peer: Peer, request: Request) -> None:
    peer.answer(b"hello", headers="X-Request-Id: r1\r\n")


# --- what is sent and what comes back -------------------------------------------------------------


def test_answer_has_status_headers_version_and_body(wire: Wire) -> None:
    with serve(hello) as server:
        response, body = wire.fetch(get(server.url))
    assert (response.status, body, response.http_version) == (200, b"hello", "HTTP/1.1")
    assert response.headers["x-REQUEST-id"] == "r1"


def test_dict_is_sent_as_compact_utf8_json_once(wire: Wire) -> None:
    body = {"text": "é😀", "list": [1, None]}
    with serve(hello) as server:
        wire.fetch(post(server.url + "/v1/x?y=1", body, {"Authorization": "Bearer k "}))
        (sent,) = server.requests
    assert sent.line == "POST /v1/x?y=1 HTTP/1.1"
    assert sent.body == '{"text":"é😀","list":[1,null]}'.encode()
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["authorization"] == "Bearer k"
    assert sent.headers["user-agent"].startswith("agent-host/")
    assert sent.headers["accept-encoding"] == "gzip, deflate"


def test_head_and_body_of_a_request_come_in_one_piece(wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        came: list[bytes] = []

        def play() -> None:
            peer = listener.accept()[0]
            with peer:
                for _ in range(2):
                    came.append(peer.recv(65536))
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=play)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert wire.fetch(post(url, {"a": 1}))[1] == b"ok"
        assert wire.fetch(get(url))[1] == b"ok"
        thread.join(5)
    assert [data.partition(b"\r\n\r\n")[2] for data in came] == [b'{"a":1}', b""]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "GET", "DELETE"])
def test_server_that_waits_for_a_body_is_told_that_there_is_none(wire: Wire, method: str) -> None:
    with serve(hello) as server:
        wire.fetch(WireRequest(method.lower(), server.url, {}, None, QUICK))
        (sent,) = server.requests
    assert sent.line == f"{method} / HTTP/1.1"
    assert sent.headers["host"] == server.url.removeprefix("http://")
    assert sent.headers.get("content-length") == (None if method in ("GET", "DELETE") else "0")


def test_lone_surrogates_are_escaped_not_fatal(wire: Wire) -> None:
    with serve(hello) as server:
        wire.fetch(post(server.url, {"a": "é\ud83d!"}))
        (sent,) = server.requests
    assert sent.body == '{"a":"é\\ud83d!"}'.encode()
    assert json.loads(sent.body) == {"a": "é\ud83d!"}


def test_bytes_and_headers_of_the_request_are_sent_as_they_are(wire: Wire) -> None:
    with serve(hello) as server:
        wire.fetch(post(server.url, b"\x00raw", {"User-Agent": "mine", "Content-Type": "x/y"}))
        (sent,) = server.requests
    assert (sent.body, sent.headers["user-agent"]) == (b"\x00raw", "mine")
    assert sent.headers["content-type"] == "x/y"


@pytest.mark.parametrize("body", [{"a": float("nan")}, {"a": object()}], ids=["nan", "object"])
def test_body_that_is_not_json_is_refused_before_sending(wire: Wire, body: Any) -> None:
    with pytest.raises(InvalidRequestError, match="JSON"):
        wire.fetch(post("http://127.0.0.1:9", body))


@pytest.mark.parametrize("value", ["sk-verysecret\n", "sk-verysecret\u2026", "sk-verysecret\xe9"])
def test_header_with_a_forbidden_character_is_refused_without_quoting_it(
    wire: Wire, value: str
) -> None:
    with pytest.raises(InvalidRequestError, match="authorization") as caught:
        wire.fetch(post("http://127.0.0.1:9", {}, {"authorization": value}))
    assert "verysecret" not in caught.value.explain()
    assert caught.value.__cause__ is None


def test_connection_is_kept_alive_and_used_again(wire: Wire) -> None:
    with serve(hello) as server:
        for _ in range(3):
            assert wire.fetch(get(server.url))[1] == b"hello"
        assert server.connections == 1


def test_connection_that_the_server_closed_at_rest_is_not_used_again(wire: Wire) -> None:
    closed = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        hello(peer, request)
        peer.sock.shutdown(socket.SHUT_RDWR)
        closed.set()

    with serve(play) as server:
        for number in range(1, 4):
            closed.clear()
            assert wire.fetch(get(server.url))[1] == b"hello"
            assert server.connections == number
            assert closed.wait(5)


def in_one_piece(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def in_chunks(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("written", [in_one_piece, in_chunks])
@pytest.mark.parametrize(
    "surplus",
    [b"\r\n", b"garbage", in_one_piece(b"injected")],
    ids=["line-break", "garbage", "answer"],
)
def test_surplus_after_an_answer_is_not_the_answer_to_the_next_request(
    wire: Wire, surplus: bytes, written: Callable[[bytes], bytes]
) -> None:
    with serve(lambda peer, _: peer.send(written(b"hello") + surplus)) as server:
        for number in range(1, 4):
            assert wire.fetch(get(server.url))[1] == b"hello"
            assert server.connections == number


def test_surplus_that_comes_at_rest_is_not_the_answer_to_the_next_request(wire: Wire) -> None:
    read, sent = threading.Event(), threading.Event()

    def play(peer: Peer, request: Request) -> None:
        hello(peer, request)
        assert read.wait(5)
        peer.send(in_one_piece(b"injected"))
        sent.set()

    with serve(play) as server:
        for number in range(1, 3):
            read.clear()
            sent.clear()
            assert wire.fetch(get(server.url))[1] == b"hello"
            assert server.connections == number
            read.set()
            assert sent.wait(5)


def test_no_more_than_a_hundred_connections_are_kept_at_rest(library: str) -> None:
    with serve(hello) as server:
        transport = WireClient(library=library)
        for opened in (102, 104):
            responses = [transport.open(get(server.url)) for _ in range(102)]
            assert server.connections == opened
            assert {response.read(99) for response in responses} == {b"hello"}
        transport.close()


def test_closing_the_transport_ends_what_is_under_way(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(b"first")
        gone.append(peer.gone(5))

    gone: list[bool] = []
    with serve(play) as server:
        if isinstance(wire, SyncWire):
            chunks = wire.transport.open(get(server.url)).chunks()
            assert next(chunks) == b"first"
            wire.transport.close()
            with pytest.raises(StreamCutError):
                next(chunks)
        else:
            transport = wire.transport

            async def work() -> None:
                chunks = (await transport.open(get(server.url))).chunks()
                assert await chunks.__anext__() == b"first"
                await transport.aclose()
                with pytest.raises(StreamCutError):
                    await chunks.__anext__()

            wire.run(work())
    assert gone == [True]


@pytest.mark.parametrize("begun", [True, False], ids=["body", "headers"])
def test_closing_the_transport_wakes_a_blocked_reader(library: str, begun: bool) -> None:
    arrived, gone = threading.Event(), threading.Event()
    outcome: list[Exception] = []

    def play(peer: Peer, request: Request) -> None:
        if begun:
            # Its end is that of the connection, for which this one must not be taken.
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        else:
            arrived.set()
        if peer.gone(20):
            gone.set()

    def reading() -> None:
        try:
            for _ in transport.open(get(server.url, Timeouts(idle=30))).chunks():
                arrived.set()
        except StreamCutError as exc:
            outcome.append(exc)

    with serve(play) as server:
        transport = WireClient(library=library)
        thread = threading.Thread(target=reading)
        thread.start()
        assert arrived.wait(5)
        transport.close()
        assert gone.wait(5)
        thread.join(5)
        (error,) = outcome
        assert isinstance(error, TransportError)
        assert "our side" in error.message
        assert not error.retryable


@pytest.mark.parametrize("begun", [True, False], ids=["body", "headers"])
def test_closing_the_transport_ends_the_tasks_that_wait(library: str, begun: bool) -> None:
    arrived = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        if begun:
            peer.send(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        arrived.set()
        peer.stall()

    async def work() -> None:
        transport = AsyncWireClient(library=library)

        async def reading() -> None:
            async for _ in (await transport.open(get(server.url, Timeouts(idle=30)))).chunks():
                read.set()

        read = asyncio.Event()
        task = asyncio.create_task(reading())
        assert await asyncio.to_thread(arrived.wait, 5)
        if begun:
            await read.wait()
        await transport.aclose()
        with pytest.raises(StreamCutError, match="our side") as caught:
            await asyncio.wait_for(task, 5)
        assert not caught.value.retryable
        assert await asyncio.to_thread(server.client_gone.wait, 5)

    with serve(play) as server:
        asyncio.run(work())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n0\r\n\r\n",
    ],
    ids=["close", "1.0", "length and chunks"],
)
def test_connection_that_does_not_stay_is_not_used_again(wire: Wire, answer: bytes) -> None:
    with serve(lambda peer, _: peer.send(answer)) as server:
        for number in (1, 2):
            assert wire.fetch(get(server.url))[1] == b"hello"
            assert server.connections == number
        assert server.client_gone.wait(1)


def test_informational_answers_are_passed_over(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
        hello(peer, request)

    with serve(play) as server:
        for _ in range(2):
            response, body = wire.fetch(get(server.url))
            assert (response.status, body, response.headers.get("link")) == (200, b"hello", None)
        assert server.connections == 1


def test_answer_to_head_has_no_body(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")

    with serve(play) as server:
        for _ in range(2):
            response, body = wire.fetch(WireRequest("HEAD", server.url, {}, None, QUICK))
            assert (body, response.headers["content-length"]) == (b"", "5")
        assert server.connections == 1


def test_head_without_end_is_refused(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
        peer.drip(b"x" * 10_000, every=0)

    with serve(play) as server, pytest.raises(ProtocolError, match="too large"):
        wire.fetch(get(server.url))


@pytest.mark.parametrize("method", ["GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "G\u00c9T", ""])
def test_method_that_is_none_is_not_sent(wire: Wire, method: str) -> None:
    with serve(hello) as server:
        with pytest.raises(ProtocolError):
            wire.fetch(WireRequest(method, server.url, {}, None, QUICK))
        assert not server.requests


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_address_of_version_six_is_reached(wire: Wire) -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("needs IPv6")

    def answer() -> None:
        sock, _ = listener.accept()
        peer = Peer(sock, 1)
        asked = peer.request()
        assert asked is not None
        hosts.append(asked.headers["host"])
        peer.answer(b"hello")
        sock.close()

    hosts: list[str] = []
    with listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=answer)
        thread.start()
        assert wire.fetch(get(f"http://[::1]:{port}/"))[1] == b"hello"
        thread.join(5)
    assert hosts == [f"[::1]:{port}"]


def test_silent_address_leaves_time_for_the_next(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        server = stack.enter_context(serve(hello))
        found = (full.getsockname(), ("127.0.0.1", int(server.url.rpartition(":")[2])))
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in found]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        transport = WireClient(library=library)
        response = transport.open(get("http://two.invalid", Timeouts(connect=1.0)))
        assert response.read(99) == b"hello"
        transport.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_connections_are_not_shared_with_a_process_that_was_forked_off() -> None:
    program = """
import os, sys
from agent_host.wire.client import WireClient
from agent_host.wire.request import WireRequest
wire, url = WireClient(), sys.argv[1]
streamed = wire.open(WireRequest("GET", url + "/stream", {})).chunks()
assert next(streamed) == b"first"
assert wire.open(WireRequest("GET", url + "/parent", {})).read(99) == b"hello"
child = os.fork()
if not child:
    assert wire.open(WireRequest("GET", url + "/child", {})).read(99) == b"hello"
    wire.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert wire.open(WireRequest("GET", url + "/parent", {})).read(99) == b"hello"
wire.open(WireRequest("GET", url + "/go", {})).read(99)
assert next(streamed) == b"second", "the child has not closed it"
wire.close()
"""
    go_on = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        seen.append((request.line.split()[1], peer.number))
        if "/stream" in request.line:
            peer.begin()
            peer.chunk(b"first")
            go_on.wait(10)
            peer.chunk(b"second")
            peer.stall()
        else:
            if "/go" in request.line:
                go_on.set()
            hello(peer, request)

    seen: list[tuple[str, int]] = []
    with serve(play) as server:
        subprocess.run(
            [sys.executable, "-c", program, server.url],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=60,
            check=True,
        )
    assert seen == [("/stream", 1), ("/parent", 2), ("/child", 3), ("/parent", 2), ("/go", 2)]


def test_no_cookie_is_carried_to_the_next_request(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b"", headers="Set-Cookie: who=me\r\n")

    with serve(play) as server:
        wire.fetch(get(server.url))
        wire.fetch(get(server.url))
        assert "cookie" not in server.requests[1].headers


def test_redirect_is_an_answer_and_is_not_followed(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b"", status="307 Temporary Redirect", headers="Location: /other\r\n")

    with serve(play) as server:
        response, body = wire.fetch(post(server.url, {}, {"authorization": "Bearer k"}))
        assert len(server.requests) == 1
    assert isinstance(failure(response.status, response.headers, body, "acme"), ProtocolError)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate", "two gzip members"])
def test_compressed_body_is_decoded(wire: Wire, coding: str) -> None:
    text = b"some text, " * 50_000
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "raw deflate": raw.compress(text) + raw.flush(),
        "two gzip members": gzip.compress(text[:99]) + gzip.compress(text[99:]),
    }[coding]
    name = "gzip" if "gzip" in coding else "deflate"

    def play(peer: Peer, request: Request) -> None:
        peer.begin(f"Content-Encoding: {name}\r\n")
        peer.chunk(packed[:20])
        peer.chunk(packed[20:])
        peer.send(b"0\r\n\r\n")

    with serve(play) as server:
        assert wire.fetch(get(server.url))[1] == text


def test_compressed_body_that_is_cut_or_broken_is_an_error(wire: Wire) -> None:
    bodies = iter([gzip.compress(b"x" * 999)[:-9], b"no gzip at all"])

    def play(peer: Peer, request: Request) -> None:
        peer.answer(next(bodies), headers="Content-Encoding: gzip\r\n")

    with serve(play) as server:
        with pytest.raises(StreamCutError):
            wire.fetch(get(server.url))
        with pytest.raises(ProtocolError):
            wire.fetch(get(server.url))


def test_coding_nobody_asked_for_is_a_protocol_error(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b"x", headers="Content-Encoding: br\r\n")

    with serve(play) as server, pytest.raises(ProtocolError, match="'br'"):
        wire.fetch(get(server.url))


def test_read_is_bounded(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.drip(b"3e8\r\n" + b"x" * 1000 + b"\r\n", every=0)

    with serve(play) as server:
        assert wire.read(get(server.url), 2500) == b"x" * 2500
        assert server.client_gone.wait(1)


def test_bytes_come_as_they_are_sent(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(b"first")
        peer.stall()

    with serve(play) as server:
        assert wire.begin_and_close(get(server.url)) == b"first"


# --- what goes wrong ------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_refused_connection_names_the_host_and_nothing_secret(wire: Wire) -> None:
    port = free_port()
    url = f"http://user:pass@127.0.0.1:{port}/path?key=hidden"
    with pytest.raises(ConnectionFailedError, match=f"127.0.0.1:{port}") as caught:
        wire.fetch(get(url))
    assert caught.value.retryable
    assert caught.value.__cause__ is not None
    for secret in ("pass", "hidden", "user"):
        assert secret not in caught.value.message


def test_next_address_of_a_host_is_tried_when_one_refuses(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        refusing = unused.getsockname()

    def resolved(*_: Any, flags: int = 0, **__: Any) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        found = (refusing, ("127.0.0.1", int(server.url.rpartition(":")[2])))
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in found]

    async def work() -> bytes:
        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        transport = AsyncWireClient(library=library)
        body = await (await transport.open(get("http://two.invalid"))).read(99)
        await transport.aclose()
        return body

    with serve(hello) as server:
        assert asyncio.run(work()) == b"hello"


def test_names_are_looked_up_while_the_threads_of_the_loop_are_busy(library: str) -> None:
    done = threading.Event()

    async def work() -> bytes:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        slow = loop.run_in_executor(None, done.wait)
        transport = AsyncWireClient(library=library)
        try:
            url = server.url.replace("127.0.0.1", "localhost")
            return await (await transport.open(get(url))).read(99)
        finally:
            await transport.aclose()
            done.set()
            await slow

    with serve(hello) as server:
        assert asyncio.run(work()) == b"hello"


def test_a_program_ends_while_a_name_is_looked_up() -> None:
    program = """
import asyncio, socket, threading
from agent_host.wire.transport.addresses import connect_socket

begun = threading.Event()
numeric = socket.getaddrinfo

def never(*args, flags=0, **more):
    if flags:
        return numeric(*args, flags=flags, **more)
    begun.set()
    threading.Event().wait()

socket.getaddrinfo = never

async def main():
    task = asyncio.create_task(connect_socket("host.invalid", 80))
    while not begun.is_set():
        await asyncio.sleep(0)
    task.cancel()

asyncio.run(main())
"""
    subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=30,
        check=True,
    )


def test_unknown_host_is_a_failed_connection(wire: Wire) -> None:
    with pytest.raises(ConnectionFailedError, match=r"host\.invalid"):
        wire.fetch(get("http://host.invalid/"))


@pytest.mark.parametrize(
    "url", ["ftp://h/", "h/path", "http://", "http://[bad/", "http://h:99999/"]
)
def test_address_that_is_no_url_is_not_retried(wire: Wire, url: str) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        wire.fetch(get(url))
    assert not caught.value.retryable


def test_plain_text_where_tls_is_expected_is_a_failed_connection(wire: Wire) -> None:
    def answer_in_plain_text() -> None:
        sock, _ = listener.accept()
        with sock:
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            Peer(sock, 1).stall()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_in_plain_text)
        thread.start()
        with pytest.raises(ConnectionFailedError):
            wire.fetch(get(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        thread.join(2)


def reset_at_once(peer: Peer) -> None:
    peer.reset()


def reset_in_the_body(peer: Peer) -> None:
    peer.begin()
    peer.chunk(b"data: {}\n\n")
    # The client has the first part when it says so; a reset would overtake it otherwise.
    peer.gone(0.05)
    peer.reset()


def close_without_answer(peer: Peer) -> None:
    peer.sock.close()


def short_body(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
    peer.sock.close()


def cut_in_a_chunk(peer: Peer) -> None:
    peer.begin()
    peer.send(b"ff\r\nhello")
    peer.sock.close()


def cut_between_chunks(peer: Peer) -> None:
    peer.begin()
    peer.chunk(b"hello")
    peer.sock.close()


@pytest.mark.parametrize(
    "fault",
    [
        reset_at_once,
        reset_in_the_body,
        close_without_answer,
        short_body,
        cut_in_a_chunk,
        cut_between_chunks,
    ],
)
def test_answer_that_stops_is_a_cut_stream(wire: Wire, fault: Callable[[Peer], None]) -> None:
    with serve(lambda peer, request: fault(peer)) as server:
        with pytest.raises(StreamCutError, match=server.host) as caught:
            wire.fetch(get(server.url))
        assert caught.value.retryable
        assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["not HTTP", "bad chunk"],
)
def test_malformed_http_is_a_protocol_error(wire: Wire, answer: bytes) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(answer)
        peer.stall()

    with serve(play) as server, pytest.raises(ProtocolError, match=server.host) as caught:
        wire.fetch(get(server.url))
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("status", "headers", "kind", "wait"),
    [
        ("429 Too Many Requests", "Retry-After: 7\r\n", RateLimitError, 7.0),
        ("429 Too Many Requests", "retry-after-ms: 1500\r\n", RateLimitError, 1.5),
        ("529 Overloaded", "Retry-After: Tue, 14 Nov 2000 22:14:20 GMT\r\n", OverloadedError, 0.0),
        ("529 Overloaded", "Retry-After: soon\r\n", OverloadedError, None),
    ],
)
def test_refusal_over_the_wire_becomes_a_typed_error(
    wire: Wire, status: str, headers: str, kind: type[Exception], wait: float | None
) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b'{"error":{"message":"not now"}}', status=status, headers=headers)

    with serve(play) as server:
        response, body = wire.fetch(get(server.url))
    error = failure(response.status, response.headers, body, "acme")
    assert type(error) is kind
    assert error.retry_after == wait
    assert "not now" in error.message


def test_web_page_with_status_200_is_described(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b"<html><title>Log in</title></html>", headers="Content-Type: text/html\r\n")

    with serve(play) as server:
        response, body = wire.fetch(get(server.url))
    machine = framing("sse")
    assert machine.decode(body) + machine.flush() == []
    error = machine.no_event_error(response.headers.get("content-type", ""))
    assert error is not None
    assert "'Log in'" in error.message


def test_line_of_ten_megabytes_comes_through(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b'data: {"a":"' + b"x" * 10_000_000 + b'"}\n\n')

    with serve(play) as server:
        body = wire.fetch(get(server.url, Timeouts()))[1]
    machine = framing("sse")
    pieces = [body[start : start + 4096] for start in range(0, len(body), 4096)]
    ((chunk, _),) = [event for piece in pieces for event in machine.decode(piece)]
    assert len(chunk["a"]) == 10_000_000


# --- time -----------------------------------------------------------------------------------------


def silent(peer: Peer) -> None:
    peer.stall()


def dripping_headers(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    peer.drip(b"x", every=0.02)


def silent_body(peer: Peer) -> None:
    peer.begin()
    peer.chunk(b"hello")
    peer.stall()


def dripping_body(peer: Peer) -> None:
    peer.begin()
    peer.drip(b"1\r\nx\r\n", every=0.02)


def flooding_body(peer: Peer) -> None:
    peer.begin()
    peer.drip(b"3e8\r\n" + b"x" * 1000 + b"\r\n", every=0)


@pytest.mark.parametrize("reused", [False, True], ids=["new", "reused"])
@pytest.mark.parametrize(
    ("fault", "timeouts", "phase"),
    [
        (silent, Timeouts(first_byte=0.15), "first_byte"),
        (silent, Timeouts(total=0.15), "total"),
        (dripping_headers, Timeouts(first_byte=0.15), "first_byte"),
        (dripping_headers, Timeouts(total=0.15), "total"),
        (silent_body, Timeouts(idle=0.15), "idle"),
        (silent_body, Timeouts(idle=5, total=0.15), "total"),
        (dripping_body, Timeouts(idle=5, total=0.2), "total"),
        (flooding_body, Timeouts(idle=5, total=0.2), "total"),
    ],
)
def test_nothing_outlasts_its_timeout(
    wire: Wire, fault: Callable[[Peer], None], timeouts: Timeouts, phase: str, reused: bool
) -> None:
    def play(peer: Peer, request: Request) -> None:
        if "/warm" in request.line:
            peer.answer(b"warm")
        else:
            fault(peer)

    with serve(play) as server:
        if reused:
            wire.fetch(get(server.url + "/warm"))
        start = time.monotonic()
        with pytest.raises(RequestTimeoutError, match=server.host) as caught:
            wire.fetch(get(server.url, timeouts))
        assert time.monotonic() - start < 0.9
        assert caught.value.phase == phase
        assert server.connections == 1
        assert server.client_gone.wait(1)


def test_connect_timeout_has_its_phase(wire: Wire) -> None:
    with contextlib.ExitStack() as stack:
        # A listener whose queue is full does not answer further connections.
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(RequestTimeoutError) as caught:
            wire.fetch(get(url, Timeouts(connect=0.2, first_byte=0.2)))
        assert time.monotonic() - start < 0.9
        assert caught.value.phase == "connect"


def test_server_that_does_not_read_the_request_is_timed_out(wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        request = WireRequest("POST", url, {}, b"x" * 20_000_000, Timeouts(first_byte=0.2))
        with pytest.raises(RequestTimeoutError) as caught:
            wire.fetch(request)
        assert caught.value.phase == "first_byte"


def test_time_for_the_first_byte_does_not_run_on_in_the_body(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.gone(0.3)
        peer.chunk(b"x")
        peer.send(b"0\r\n\r\n")

    with serve(play) as server:
        assert wire.fetch(get(server.url, Timeouts(first_byte=0.15, idle=None)))[1] == b"x"


def test_slow_stream_within_its_limits_is_left_alone(wire: Wire) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        for _ in range(8):
            peer.gone(0.03)
            peer.chunk(b"x")
        peer.send(b"0\r\n\r\n")

    with serve(play) as server:
        assert wire.fetch(get(server.url, Timeouts(idle=0.2, first_byte=0.2)))[1] == b"x" * 8


# --- closing --------------------------------------------------------------------------------------


def endless(peer: Peer, request: Request) -> None:
    peer.begin()
    peer.chunk(b"first")
    peer.stall()


@pytest.mark.parametrize("how", ["begin_and_close", "begin_and_abandon"])
def test_server_sees_an_early_end_at_once_and_the_connection_is_not_reused(
    wire: Wire, how: str
) -> None:
    with serve(endless) as server:
        getattr(wire, how)(get(server.url))
        assert server.client_gone.wait(0.1)
        wire.begin_and_close(get(server.url))
        assert server.connections == 2


def test_close_from_another_thread_wakes_a_blocked_reader(library: str) -> None:
    transport = WireClient(library=library)
    with serve(endless) as server:
        response = transport.open(get(server.url, Timeouts(idle=30)))
        got_first = threading.Event()
        outcome: list[Exception] = []

        def reading() -> None:
            try:
                for _ in response.chunks():
                    got_first.set()
            except StreamCutError as exc:
                outcome.append(exc)

        thread = threading.Thread(target=reading)
        thread.start()
        assert got_first.wait(1)
        start = time.monotonic()
        response.close()
        assert server.client_gone.wait(0.1)
        thread.join(1)
        assert not thread.is_alive()
        assert time.monotonic() - start < 0.5
        (error,) = outcome
        assert isinstance(error, TransportError)
        assert not error.retryable
        transport.close()


def test_close_of_a_body_without_length_is_not_taken_for_its_end(library: str) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        peer.stall()

    transport = WireClient(library=library)
    with serve(play) as server:
        response = transport.open(get(server.url))
        chunks = response.chunks()
        assert next(chunks) == b"first"
        closer = threading.Timer(0.05, response.close)
        closer.start()
        with pytest.raises(StreamCutError, match="our side"):
            next(chunks)
        closer.join()
        transport.close()


def test_aclose_from_another_task_wakes_a_blocked_reader(library: str) -> None:
    async def work() -> None:
        transport = AsyncWireClient(library=library)
        response = await transport.open(get(server.url, Timeouts(idle=30)))
        begun = asyncio.Event()

        async def reading() -> None:
            async for _ in response.chunks():
                begun.set()

        task = asyncio.create_task(reading())
        await begun.wait()
        await response.aclose()
        with pytest.raises(StreamCutError, match="our side"):
            await asyncio.wait_for(task, 1)
        assert await asyncio.to_thread(server.client_gone.wait, 0.1)
        await transport.aclose()

    with serve(endless) as server:
        asyncio.run(work())


def test_cancelling_before_the_headers_closes_the_socket(library: str) -> None:
    arrived = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        arrived.set()
        peer.stall()

    async def work() -> None:
        transport = AsyncWireClient(library=library)
        task = asyncio.create_task(transport.open(get(server.url, Timeouts())))
        assert await asyncio.to_thread(arrived.wait, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_gone.wait, 0.1)
        await transport.aclose()

    with serve(play) as server:
        asyncio.run(work())


def test_reading_after_the_end_or_after_close(library: str) -> None:
    transport = WireClient(library=library)
    with serve(hello) as server:
        response = transport.open(get(server.url))
        assert b"".join(response.chunks()) == b"hello"
        response.close()
        # The pooled connection was not harmed by closing a finished response.
        assert transport.open(get(server.url)).read(99) == b"hello"
        assert server.connections == 1
        unread = transport.open(get(server.url))
        unread.close()
        with pytest.raises(StreamCutError):
            next(unread.chunks())
        transport.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_three_hundred_cancelled_streams_leak_nothing(wire: Wire) -> None:
    def resources() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(b"first")
        peer.stall()

    with serve(play) as server:
        wire.begin_and_abandon(get(server.url))
    before = resources()
    with serve(play) as server:
        for number in range(300):
            if number % 2:
                wire.begin_and_abandon(get(server.url))
            else:
                wire.begin_and_close(get(server.url))
        assert server.connections == 300
    files, threads = resources()
    assert files <= before[0]
    assert threads <= before[1]


def test_a_hundred_streams_at_once(library: str) -> None:
    gate = threading.Barrier(101)

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        gate.wait(5)
        peer.chunk(request.line.encode())
        peer.send(b"0\r\n\r\n")

    async def work() -> list[bytes]:
        transport = AsyncWireClient(library=library)

        async def one(number: int) -> bytes:
            response = await transport.open(get(f"{server.url}/{number}", Timeouts()))
            return await response.read(1000)

        reading = [asyncio.create_task(one(number)) for number in range(100)]
        await asyncio.to_thread(gate.wait, 5)
        bodies = await asyncio.gather(*reading)
        await transport.aclose()
        return bodies

    with serve(play) as server:
        assert asyncio.run(work()) == [f"GET /{n} HTTP/1.1".encode() for n in range(100)]


def test_answer_that_is_left_early_leaves_no_generator_to_the_event_loop(library: str) -> None:
    left: list[str] = []

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(b"first")
        peer.stall()

    async def work() -> None:
        sys.set_asyncgen_hooks(finalizer=lambda generator: left.append(repr(generator)))
        transport = AsyncWireClient(library=library)
        response = await transport.open(get(server.url))
        chunks = response.chunks()
        assert await chunks.__anext__() == b"first"
        await chunks.aclose()  # type: ignore[attr-defined]
        await transport.aclose()
        del response, chunks
        gc.collect()

    with serve(play) as server:
        asyncio.run(work())
    assert left == []


def test_closing_the_transport_closes_answers_that_nobody_has_any_more(library: str) -> None:
    async def work() -> None:
        transport = AsyncWireClient(library=library)
        await transport.open(get(server.url, Timeouts(idle=30)))
        gc.collect()
        await transport.aclose()
        assert await asyncio.to_thread(server.client_gone.wait, 5)

    with serve(endless) as server:
        asyncio.run(work())


# --- clients --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_transport_may_be_used_from_one_event_loop_after_another(library: str) -> None:
    async def work(transport: AsyncWireClient) -> bytes:
        return await (await transport.open(get(server.url))).read(99)

    with serve(hello) as server:
        transport = AsyncWireClient(library=library)
        assert [asyncio.run(work(transport)) for _ in range(3)] == [b"hello"] * 3
        assert len(transport._loops) == 1, "clients of loops that ended are let go"
        # Loops that ended before `aclose` leave their idle connections to the collector.
        del transport
        gc.collect()


def test_injected_client_is_used_and_left_open(library: str) -> None:
    module = pytest.importorskip(library)
    with serve(hello) as server:
        with module.Client(headers={"x-mine": "yes"}) as client:
            transport = WireClient(client)
            assert transport.open(get(server.url)).read(99) == b"hello"
            transport.close()
            assert not client.is_closed

        async def work() -> None:
            async with module.AsyncClient(headers={"x-mine": "yes"}) as client:
                transport = AsyncWireClient(client)
                assert await (await transport.open(get(server.url))).read(99) == b"hello"
                await transport.aclose()
                assert not client.is_closed

        asyncio.run(work())
        assert [sent.headers["x-mine"] for sent in server.requests] == ["yes", "yes"]


def test_injected_client_without_sockets_works(library: str) -> None:
    module = pytest.importorskip(library)
    with module.Client(
        transport=module.MockTransport(lambda request: module.Response(200, content=b"canned"))
    ) as client:
        assert WireClient(client).open(get("https://h/")).read(99) == b"canned"


@pytest.fixture
def injected(wire: Wire, library: str) -> Wire:
    """The transport with a client of the library's own, as a user might bring one."""
    module = pytest.importorskip(library)
    wire.inject((module.Client if isinstance(wire, SyncWire) else module.AsyncClient)())
    return wire


@pytest.mark.parametrize(
    "fault",
    [reset_at_once, close_without_answer, short_body, cut_in_a_chunk, cut_between_chunks],
)
def test_injected_client_reports_a_cut_as_ours_do(
    injected: Wire, fault: Callable[[Peer], None]
) -> None:
    with serve(lambda peer, request: fault(peer)) as server:
        with pytest.raises(StreamCutError, match=server.host) as caught:
            injected.fetch(get(server.url))
        assert caught.value.retryable


def test_injected_client_reports_what_is_no_http_as_ours_do(injected: Wire) -> None:
    with (
        serve(lambda peer, _: peer.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")) as server,
        pytest.raises(ProtocolError, match=server.host) as caught,
    ):
        injected.fetch(get(server.url))
    assert not caught.value.retryable


def test_injected_client_reports_a_refused_connection_as_ours_do(injected: Wire) -> None:
    port = free_port()
    with pytest.raises(ConnectionFailedError, match=f"127.0.0.1:{port}") as caught:
        injected.fetch(get(f"http://127.0.0.1:{port}/?key=hidden"))
    assert caught.value.retryable
    assert "hidden" not in caught.value.message


@pytest.mark.parametrize(
    ("fault", "timeouts", "phase"),
    [
        (silent, Timeouts(first_byte=0.15), "first_byte"),
        (silent, Timeouts(total=0.15), "total"),
        (silent_body, Timeouts(idle=0.15), "idle"),
        (silent_body, Timeouts(idle=5, total=0.15), "total"),
        (dripping_body, Timeouts(idle=5, total=0.2), "total"),
    ],
)
def test_injected_client_is_timed_out(
    injected: Wire, fault: Callable[[Peer], None], timeouts: Timeouts, phase: str
) -> None:
    with serve(lambda peer, request: fault(peer)) as server:
        start = time.monotonic()
        with pytest.raises(RequestTimeoutError, match=server.host) as caught:
            injected.fetch(get(server.url, timeouts))
        assert time.monotonic() - start < 0.9
        assert caught.value.phase == phase
        assert server.client_gone.wait(1)


@pytest.mark.parametrize("begun", [True, False], ids=["body", "headers"])
def test_wait_of_an_injected_client_is_ended_from_another_thread(library: str, begun: bool) -> None:
    module = pytest.importorskip(library)
    arrived = threading.Event()
    outcome: list[Exception] = []

    def play(peer: Peer, request: Request) -> None:
        if begun:
            peer.begin()
            peer.chunk(b"first")
        arrived.set()
        peer.stall()

    def reading() -> None:
        try:
            for _ in transport.open(get(server.url, Timeouts(idle=30))).chunks():
                arrived.set()
        except StreamCutError as exc:
            outcome.append(exc)

    with serve(play) as server, module.Client() as client:
        transport = WireClient(client)
        thread = threading.Thread(target=reading)
        thread.start()
        assert arrived.wait(5)
        transport.close()
        thread.join(5)
        (error,) = outcome
        assert isinstance(error, TransportError)
        assert not error.retryable


@pytest.mark.parametrize("proxied", [False, True])
def test_credentials_in_the_address_are_sent_unless_the_request_has_its_own(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    with serve(hello) as server:
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", server.url)
        url = server.url.replace("://", "://me:p%40ss@")
        wire.fetch(get(url))
        wire.fetch(post(url, {}, {"Authorization": "Bearer k"}))
        basic = "Basic " + base64.b64encode(b"me:p@ss").decode()
        found = [request.headers["authorization"] for request in server.requests]
        assert found == [basic, "Bearer k"]
        assert {request.headers["host"] for request in server.requests} == {server.host}


@pytest.mark.parametrize("how", ["environment", "injected"])
def test_query_of_a_request_is_not_logged(
    wire: Wire,
    library: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = pytest.importorskip(library)
    caplog.set_level("INFO", logger=library)
    with serve(hello) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        if how == "injected":
            kind = module.Client if isinstance(wire, SyncWire) else module.AsyncClient
            wire.inject(kind())
        wire.fetch(get("http://me:hidden@model.invalid/v1?key=hidden&sig=hidden"))
        assert "http://model.invalid/v1 " in caplog.text
        assert "hidden" not in caplog.text
        with module.Client() as client:
            client.get("http://model.invalid/v1?mine")
        assert "http://model.invalid/v1?mine " in caplog.text, "what others ask is not our business"


def test_proxy_of_the_environment_is_used(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(hello) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        assert wire.fetch(get("http://model.invalid/v1"))[1] == b"hello"
        assert server.requests[0].line == "GET http://model.invalid/v1 HTTP/1.1"


def test_plain_http_does_not_read_the_certificates(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with serve(hello) as server:
        assert wire.fetch(get(server.url))[1] == b"hello"
    with pytest.raises(ConfigError, match="HTTP client"):
        wire.fetch(get("https://127.0.0.1:9/"))


def test_unknown_library_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="curl"):
        WireClient(library="curl").open(get("http://127.0.0.1:9/"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_tls_streams_close_and_time_out_like_plain_ones(
    wire: Wire, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    def play(peer: Peer, request: Request) -> None:
        if "/hello" in request.line:
            peer.answer(b"hello")
        else:
            endless(peer, request)

    with serve(play, tls=context) as server:
        assert wire.fetch(get(server.url + "/hello"))[1] == b"hello"
        assert wire.fetch(get(server.url + "/hello"))[1] == b"hello"
        assert server.connections == 1
        with pytest.raises(RequestTimeoutError) as caught:
            wire.fetch(get(server.url, Timeouts(idle=5, total=0.2)))
        assert caught.value.phase == "total"
        server.client_gone.clear()
        assert wire.begin_and_close(get(server.url)) == b"first"
        assert server.client_gone.wait(0.1)


@pytest.mark.parametrize("polite", [True, False])
def test_tls_body_without_length_ends_with_the_connection(
    wire: Wire,
    certificate: tuple[Path, ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    polite: bool,
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        if polite:
            with contextlib.suppress(OSError):
                peer.sock.unwrap()  # type: ignore[attr-defined]
        peer.sock.close()

    with serve(play, tls=context) as server:
        assert wire.fetch(get(server.url))[1] == b"all of it"
    assert not caplog.records, "it is no cause for a warning"


def test_surplus_that_a_tls_socket_holds_back_is_not_the_answer_to_the_next_request(
    wire: Wire, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    # The first read ends where the answer does, and TLS has decrypted what follows already.
    body = b"x" * (4096 - len(in_one_piece(b"x" * 4000)) + 4000)
    assert len(in_one_piece(body)) == 4096

    def play(peer: Peer, request: Request) -> None:
        peer.send(in_one_piece(body) + in_one_piece(b"injected"))

    with serve(play, tls=context) as server:
        for _ in range(3):
            assert wire.fetch(get(server.url))[1] == body


@contextlib.contextmanager
def refusing(tls: ssl.SSLContext | None) -> Iterator[str]:
    """A server that refuses a request as soon as it has its headers, and reads no further."""

    def refuse() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            # Or the answer may still wait to be sent when the connection is reset.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                sock = tls.wrap_socket(sock, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head and (data := sock.recv(1000)):
                head += data
            answer = b"Content-Length: 6\r\nConnection: close\r\n\r\nno key"
            sock.sendall(b"HTTP/1.1 401 No\r\n" + answer)
            sock.close()

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=refuse)
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_refusal_of_a_large_upload_is_read_though_sending_it_fails(
    wire: Wire,
    certificate: tuple[Path, ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    secure: bool,
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    upload = b"x" * 3_000_000
    with refusing(context if secure else None) as url:
        for _ in range(10):
            response, body = wire.fetch(post(url, upload))
            assert (response.status, body) == (401, b"no key")
    assert not caplog.records, "nothing is written to a connection that is lost"


def test_answer_that_comes_before_all_was_sent_is_read(library: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1000)
                sock.sendall(b"HTTP/1.1 413 Large\r\nContent-Length: 5\r\n\r\nlarge")
                Peer(sock, 1).gone(10)
                done.wait(10)

        async def work() -> tuple[int, bytes]:
            transport = AsyncWireClient(library=library)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            response = await transport.open(post(url, b"x" * 30_000_000))
            body = await response.read(99)
            await transport.aclose()
            return response.status, body

        done = threading.Event()
        thread = threading.Thread(target=refuse)
        thread.start()
        assert asyncio.run(work()) == (413, b"large")
        done.set()
        thread.join(5)


def certificates_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which certificates are read from now on."""
    threads: list[int] = []
    load = ssl.SSLContext.load_verify_locations

    def spied(*args: Any, **named: Any) -> None:
        threads.append(threading.get_ident())
        load(*args, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", spied)
    return threads


def test_certificates_are_not_read_in_the_thread_of_an_event_loop(
    library: str, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async def work() -> None:
        transport = AsyncWireClient(library=library)
        opened = [transport.open(get(server.url)) for _ in range(3)]
        assert [await each.read(99) for each in await asyncio.gather(*opened)] == [b"hello"] * 3
        await transport.aclose()

    with serve(hello, tls=context) as server:
        threads = certificates_read(monkeypatch)
        asyncio.run(work())
    assert len(threads) == 1, "once for all who wait"
    assert threads != [threading.get_ident()]


def test_warming_up_reads_the_certificates_for_both_ways_of_asking(
    library: str, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async def work(core: AgentCore) -> None:
        await core.awarm_up({"base_url": "http://127.0.0.1"})
        assert not threads, "plain HTTP does without"
        await core.awarm_up({"base_url": server.url})
        assert len(threads) == 1
        assert threads != [threading.get_ident()]
        response = await core.async_wire.open(get(server.url))
        assert await response.read(99) == b"hello"
        core.warm_up({"base_url": server.url})
        assert core.wire.open(get(server.url)).read(99) == b"hello"
        await core.aclose()

    with serve(hello, tls=context) as server:
        threads = certificates_read(monkeypatch)
        core = AgentCore(http=library)
        core.register_provider(OpenAiLike)
        asyncio.run(work(core))
    assert len(threads) == 1


def test_close_of_a_tls_stream_wakes_a_blocked_reader(
    library: str, certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    transport = WireClient(library=library)
    with serve(endless, tls=context) as server:
        response = transport.open(get(server.url, Timeouts(idle=30)))
        chunks = response.chunks()
        assert next(chunks) == b"first"
        closer = threading.Timer(0.05, response.close)
        closer.start()
        with pytest.raises(StreamCutError, match="our side"):
            next(chunks)
        closer.join()
        assert server.client_gone.wait(0.1)
        transport.close()


def test_untrusted_certificate_is_not_retried(
    wire: Wire, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    with (
        serve(hello, tls=certificate[1]) as server,
        pytest.raises(ConnectionFailedError, match="CERTIFICATE") as caught,
    ):
        wire.fetch(get(server.url))
    assert not caught.value.retryable
    assert "SSL_CERT_FILE" in caught.value.hint


def test_tls_handshake_that_stalls_is_timed_out(wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(RequestTimeoutError) as caught:
            wire.fetch(get(url, Timeouts(connect=0.2)))
        assert caught.value.phase == "connect"
        assert time.monotonic() - start < 0.9


def test_importing_the_module_does_not_import_an_http_library() -> None:
    program = (
        "import sys, agent_host.wire.client;"
        "heavy = {'httpx', 'httpx2', 'httpcore', 'anyio', 'ssl', 'asyncio', 'pydantic_core'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("library", LIBRARIES)
def test_our_transport_is_used_where_no_proxy_is_named(library: str) -> None:
    program = f"""
import sys
from agent_host.wire.client import WireClient
from agent_host.wire.request import WireRequest
wire = WireClient(library={library!r})
assert wire.open(WireRequest("GET", sys.argv[1], {{}})).read(99) == b"hello"
wire.close()
print(sorted({{"httptools", "httpcore", "httpcore2", "h11", "asyncio"}} & set(sys.modules)))
"""
    with serve(hello) as server:
        done = subprocess.run(
            [sys.executable, "-c", program, server.url],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "localhost"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.strip() == "['httptools']"
