"""Network connections of an event loop, in the form in which the HTTP library uses them.

The library's own go through a layer that serves several kinds of event loops, and that costs more
for each read and write than the read or write. What goes wrong is raised as the library's errors,
by which it tells what to do. Nothing here knows HTTP or the deadlines of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar, cast

from agent_host.threads import in_thread

__all__ = ["AsyncNetworkStream", "connected"]

T = TypeVar("T")

#: So much may wait to be read before the server has to wait.
_MOST_UNREAD: Final = 256 * 1024
#: A second address is tried if the first does not answer within this time.
_NEXT_ADDRESS_SECONDS: Final = 0.25


async def connected(
    errors: Any, host: str, port: int, timeout: float | None = None
) -> AsyncNetworkStream:
    """A TCP connection; ``errors`` is the library's module that has its errors."""
    return await _within(timeout, _connected(errors, host, port), errors)


async def _connected(errors: Any, host: str, port: int) -> AsyncNetworkStream:
    loop = asyncio.get_running_loop()
    try:
        # Of an address nothing is asked that could take time.
        numeric = socket.AI_NUMERICHOST
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=numeric)
    except socket.gaierror:
        looked_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        # Nobody else waits for a name server, which may be silent for minutes.
        addresses = await in_thread(looked_up, needed=False)
    sock = await _quickest([_reached(loop, *address) for address in addresses])
    _, stream = await loop.create_connection(lambda: AsyncNetworkStream(errors, sock), sock=sock)
    return stream


async def _quickest(attempts: Iterable[Coroutine[Any, Any, socket.socket]]) -> socket.socket:
    """The first of several addresses to be reached; each gets a moment before the next is tried.

    The loop has a way to do this, but leaves sockets open if it is cancelled.
    """
    waiting = list(attempts)
    under_way: set[asyncio.Task[socket.socket]] = set()
    failure: BaseException = OSError("the host has no address")
    try:
        while waiting or under_way:
            if waiting:
                under_way.add(asyncio.ensure_future(waiting.pop(0)))
            over, under_way = await asyncio.wait(
                under_way,
                timeout=_NEXT_ADDRESS_SECONDS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in over:
                error = task.exception()
                if error is None:
                    under_way |= over - {task}
                    return task.result()
                failure = error
        raise failure
    finally:
        for attempt in waiting:
            attempt.close()
        for task in under_way:
            _give_up(task)


async def _reached(
    loop: asyncio.AbstractEventLoop, family: int, kind: int, protocol: int, name: str, address: Any
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


class AsyncNetworkStream(asyncio.Protocol):
    """One connection. One task may read while another writes."""

    def __init__(self, errors: Any, sock: socket.socket, *, encrypted: bool = False) -> None:
        self._errors = errors
        self._socket = sock
        self._encrypted = encrypted
        self._unread: list[bytes] = []
        self._size = 0
        self._ended = False
        self._lost: Exception | None = None
        self._closed = self._aborted = False
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._may_write = True

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._beneath = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._unread.append(data)
        self._size += len(data)
        if self._size > _MOST_UNREAD:
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> bool:
        self._ended = True
        _wake(self._reader)
        # Whoever has said everything may still listen, but not with TLS, where the loop warns.
        return not self._encrypted

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = self._closed = True
        self._lost = exc
        if exc is not None and not self._encrypted:
            rescued, ended = _left_in(self._socket)
            self._unread += rescued
            if rescued and ended:
                # So it was a send that failed. That says nothing of what there is to read.
                self._lost = None
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        _wake(self._writer)

    # What the library asks for.

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come, at most ``max_bytes``; nothing at the end."""
        if not self._unread and not self._ended:
            waiting = self._reader = asyncio.get_running_loop().create_future()
            await _woken(waiting, timeout, self._errors.ReadTimeout)
        if self._unread:
            return self._taken(max_bytes)
        if self._lost is not None:
            raise self._errors.ReadError(str(self._lost)) from self._lost
        if self._aborted:
            raise self._errors.ReadError("the connection is closed")
        return b""

    def _taken(self, max_bytes: int) -> bytes:
        data = self._unread[0] if len(self._unread) == 1 else b"".join(self._unread)
        self._unread = [data[max_bytes:]] if len(data) > max_bytes else []
        before, self._size = self._size, max(len(data) - max_bytes, 0)
        if before > _MOST_UNREAD >= self._size and not self._closed:
            self._transport.resume_reading()
        return data[:max_bytes]

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send, and wait while much is unsent."""
        if not buffer:
            return
        if not self._is_over():
            self._transport.write(buffer)
            if not self._may_write and not self._is_over():
                waiting = self._writer = asyncio.get_running_loop().create_future()
                await _woken(waiting, timeout, self._errors.WriteTimeout)
        if self._is_over():
            raise self._errors.WriteError(str(self._lost or "the connection is closed"))

    def _is_over(self) -> bool:
        """Whether there is no use in writing; the loop tells of a failed send only later."""
        return self._closed or self._beneath.is_closing()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        """The same connection, encrypted."""
        inner = AsyncNetworkStream(self._errors, self._socket, encrypted=True)
        try:
            if self._unread:
                # It is no part of a handshake, but the loop would wait for more.
                raise self._errors.ConnectError("the server does not speak TLS")
            shaking_hands = asyncio.get_running_loop().start_tls(
                self._transport, inner, ssl_context, server_hostname=server_hostname
            )
            transport = await _within(timeout, _transport(shaking_hands), self._errors)
        except BaseException:
            self._transport.abort()
            raise
        inner.connection_made(transport)
        inner._beneath = self._transport
        _let_rescue(self._transport.get_protocol(), self._socket)
        return inner

    async def aclose(self) -> None:
        """Close the socket at once."""
        self.abort()
        # The loop closes it after those who are ready now have had their turn.
        await asyncio.sleep(0)

    def abort(self) -> None:
        self._aborted = self._closed = self._ended = True
        self._transport.abort()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._ended or bool(self._unread) or _readable(self._transport)
        return self._transport.get_extra_info(info)


def _left_in(sock: socket.socket) -> tuple[list[bytes], bool]:
    """What had come when a send failed, and whether it is all that will come.

    The loop drops it together with the socket, but it may well be the answer that says why the
    server would not read on.
    """
    came: list[bytes] = []
    try:
        while data := sock.recv(_MOST_UNREAD):
            came.append(data)
    except OSError:
        return came, False
    return came, True


def _let_rescue(tls: Any, sock: socket.socket) -> None:
    """Let the loop's TLS layer, too, have what had come when a send failed."""

    def connection_lost(exc: Exception | None) -> None:
        # First of all, or the two would keep each other alive.
        del tls.connection_lost
        for data in _left_in(sock)[0] if exc is not None else ():
            if isinstance(tls, asyncio.BufferedProtocol):
                memoryview(tls.get_buffer(len(data)))[: len(data)] = data
                tls.buffer_updated(len(data))
            else:
                tls.data_received(data)
        tls.connection_lost(exc)

    # One that refuses, as that of another kind of loop may, does without.
    with contextlib.suppress(AttributeError):
        tls.connection_lost = connection_lost


async def _transport(starting: Coroutine[Any, Any, asyncio.Transport | None]) -> asyncio.Transport:
    transport = await starting
    if transport is None:
        raise ConnectionAbortedError("the connection was closed during the TLS handshake")
    return transport


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


async def _woken(
    waiting: asyncio.Future[None], timeout: float | None, error: type[Exception]
) -> None:
    if timeout is None:
        return await waiting
    timer = asyncio.get_running_loop().call_later(timeout, _expire, waiting, error)
    try:
        await waiting
    finally:
        timer.cancel()


def _expire(waiting: asyncio.Future[None], error: type[Exception]) -> None:
    if not waiting.done():
        waiting.set_exception(error())


async def _within(timeout: float | None, work: Coroutine[Any, Any, T], errors: Any) -> T:
    """What connecting comes to; one that nobody waits for any more is given up."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=timeout)
    except asyncio.CancelledError:
        _give_up(task)
        raise
    if not task.done():
        _give_up(task)
        raise errors.ConnectTimeout
    try:
        return task.result()
    except OSError as error:
        raise errors.ConnectError(str(error)) from error


def _give_up(task: asyncio.Future[Any]) -> None:
    if not task.done():
        task.cancel()
        task.add_done_callback(_give_up)
    elif not task.cancelled() and task.exception() is None:
        # It was made nevertheless.
        made = task.result()
        (made.close if isinstance(made, socket.socket) else made.abort)()


def _readable(transport: asyncio.BaseTransport) -> bool:
    """Whether something has come of which the loop has not told yet."""
    number = transport.get_extra_info("socket").fileno()
    if number < 0:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))
