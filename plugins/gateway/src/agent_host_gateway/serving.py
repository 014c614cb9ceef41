"""A gateway as a process, or several: the application, uvicorn, and limits on heads of requests.

Imported when ``agent-host serve`` runs, because uvicorn and Starlette come with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agent_hookspecs import Config, ConfigError
from agent_hookspecs.logs import get_logger
from agent_host_gateway.access import Access
from agent_host_gateway.console.room import Console
from agent_host_gateway.doors import chat
from agent_host_gateway.keys import KeyList, Keys
from agent_host_gateway.refusals import Refused
from agent_host_gateway.server import Gateway, is_loopback
from agent_host_gateway.settings import Settings, read_settings
from agent_host_gateway.spending import Spending

__all__ = [
    "AppMaker",
    "LimitedProtocol",
    "is_open_to_all",
    "make_app",
    "own_config",
    "run_worker",
    "serve",
]

#: The provider that is always there: whom a run asks is of no interest here.
_ANY_PROVIDER = "echo"
_MAX_HEAD = 64 << 10
_HEAD_SECONDS = 15.0
_SHUTDOWN_SECONDS = 120
_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 2048
_LOOK_SECONDS = 0.5

log = get_logger(__name__)


def own_config(application: Any) -> Config:
    """The settings of the plugin ``gateway``, as it gets them in a run."""
    for tool in application.stack(provider=_ANY_PROVIDER).tools:
        if tool.plugin.name == "gateway":
            config: Config = tool.config
            return config
    raise ConfigError(
        "the plugin 'gateway' takes no part with this config",
        key="denied_plugins",
        hint="run: agent-host plugins explain",
    )


def is_open_to_all(host: str, keys: Keys) -> bool:
    """Whether nobody needs a key, as there is none; refuses that where others can get at it."""
    if keys.list():
        return False
    if not is_loopback(host):
        raise ConfigError(
            f"without keys the gateway listens on this machine alone, and not on {host!r}",
            key="host",
            hint="run: agent-host serve keys add NAME",
        )
    return True


def make_app(application: Any, *, is_open: bool) -> Starlette:
    """The gateway of an application, which it closes in the end."""
    config = own_config(application)
    settings: Settings = read_settings(config)
    keys = Keys(application.open_store())
    spending = Spending(application.open_store())
    access = Access(KeyList(keys), is_open=is_open)
    gateway = Gateway(application, settings, access, spending)
    console = Console(gateway, application)

    @asynccontextmanager
    async def live(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await console.close()
            await spending.close()
            await application.aclose()

    return Starlette(
        routes=[*gateway.routes(), *console.routes()],
        lifespan=live,
        exception_handlers={HTTPException: _refuse},
    )


async def _refuse(request: Request, error: Exception) -> Response:
    """What no route is for."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path[:200]
    refused = Refused(f"there is nothing for {request.method} at {path!r}", kind="not_found")
    return JSONResponse(chat.error_body(refused), status)


@dataclass(frozen=True, slots=True)
class AppMaker:
    """Makes the gateway in the process that is to serve it; it can be sent to another process."""

    open_application: Callable[..., Any]
    config_file: Path | None
    is_open: bool

    def __call__(self) -> Starlette:
        return make_app(self.open_application(self.config_file), is_open=self.is_open)


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose heads must not be endless, neither in size nor in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio does not see that it is TCP, and the body of an answer would wait for the
            # client to confirm the head, which takes 40 milliseconds.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = 0
        self._in_head = True
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._end_slow_head)

    def data_received(self, data: bytes) -> None:
        self._received = self._received + len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._received > _MAX_HEAD:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._in_head, self._received = True, 0
        self._timer.cancel()
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._end_slow_head)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._timer.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _end_slow_head(self) -> None:
        if self._in_head:
            self.transport.abort()


def serve(maker: AppMaker, host: str, port: int, workers: int) -> None:
    """Serve until somebody ends the process; streams that have begun are finished."""
    config = uvicorn.Config(maker, host=host, port=port)
    listener = config.bind_socket()
    if workers == 1:
        run_worker(maker, listener)
    else:
        _Workers(maker, listener, workers).run()


def run_worker(maker: AppMaker, listener: socket.socket) -> None:
    """Serve on a socket that is listened on already, in this process."""
    config = uvicorn.Config(
        maker,
        factory=True,
        http=LimitedProtocol,
        ws="none",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        backlog=_BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _run_beside_others(maker: AppMaker, listener: socket.socket) -> None:
    """`run_worker` in a process of its own, which ends with the one that has started it."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "it is called in a process that was started for it"

    def end_with_parent() -> None:
        parent.join()
        # Nobody else would: what was killed could not tell its workers.
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    run_worker(maker, listener)


class _Workers:
    """Processes that serve one socket and share nothing else; one that dies is replaced."""

    def __init__(self, maker: AppMaker, listener: socket.socket, count: int) -> None:
        self._start = partial(
            multiprocessing.get_context("spawn").Process,
            target=_run_beside_others,
            args=(maker, listener),
        )
        self._count = count
        self._ending = threading.Event()

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._ending.set())
        workers = [self._start() for _ in range(self._count)]
        for worker in workers:
            worker.start()
        while not self._ending.wait(_LOOK_SECONDS):
            for place, worker in enumerate(workers):
                if not worker.is_alive():
                    log.warning("worker_died", pid=worker.pid, code=worker.exitcode)
                    workers[place] = self._start()
                    workers[place].start()
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()
