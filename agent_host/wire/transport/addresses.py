"""Connects a socket of an event loop to the quickest of a host's addresses, within its time.

It knows neither TLS nor HTTP.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterable
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from agent_host.threads import in_thread

__all__ = ["await_until", "connect_socket"]

#: A second address is tried if the first does not answer within this time.
_NEXT_ADDRESS_SECONDS: Final = 0.25


class _Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closable)


async def await_until(limit: float | None, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` comes to; one that nobody waits for any more is given up."""
    task = asyncio.ensure_future(work)
    try:
        timeout = None if limit is None else max(limit - monotonic(), 0)
        await asyncio.wait((task,), timeout=timeout)
        if not task.done():
            raise TimeoutError
    except BaseException:
        _discard(task)
        raise
    return task.result()


async def connect_socket(host: str, port: int) -> socket.socket:
    """A socket that is connected to ``host``; whoever awaits it may be cancelled."""
    try:
        # Of an address nothing is asked that could take time.
        numeric = socket.AI_NUMERICHOST
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=numeric)
    except socket.gaierror:
        # Nothing is lost: what is no address is looked up as a name.
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        # Nobody else waits for a name server, which may be silent for minutes.
        addresses = await in_thread(look_up, needed=False)
    if len(addresses) == 1:
        return await _connect_address(*addresses[0])
    return await _connect_first([_connect_address(*address) for address in addresses])


async def _connect_first(attempts: Iterable[Coroutine[Any, Any, socket.socket]]) -> socket.socket:
    """The first socket to be connected; each attempt gets a moment before the next begins.

    The loop has a way to do this, but leaves sockets open if it is cancelled.
    """
    waiting = list(attempts)
    running: set[asyncio.Task[socket.socket]] = set()
    failure: BaseException = OSError("the host has no address")
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(waiting.pop(0)))
            ended, running = await asyncio.wait(
                running,
                timeout=_NEXT_ADDRESS_SECONDS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in ended:
                error = task.exception()
                if error is None:
                    running |= ended - {task}
                    return task.result()
                failure = error
        raise failure
    finally:
        for attempt in waiting:
            attempt.close()
        for task in running:
            _discard(task)


async def _connect_address(
    family: int, kind: int, protocol: int, name: str, address: Any
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def _discard(task: asyncio.Future[T]) -> None:
    """End an attempt of which nobody wants the result; that is closed if there is one."""
    if not task.done():
        task.cancel()
        task.add_done_callback(_discard)
    elif not task.cancelled() and task.exception() is None:
        task.result().close()
