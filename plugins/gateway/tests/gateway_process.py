"""A gateway on a real socket in front of the provider that needs none, for tests."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import uvicorn

from agent_hookspecs.store import SessionStore
from agent_host import AgentApplication
from agent_host_gateway.keys import Keys
from agent_host_gateway.serving import LimitedProtocol, is_open_to_all, make_app

__all__ = ["DOORS", "Answered", "ask", "minimal_body", "opened_store", "running_gateway"]

DOORS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


def minimal_body(door: str, text: str = "Hello", model: str = "echo/echo-1") -> dict[str, Any]:
    """The smallest request that a door answers."""
    said = [{"role": "user", "content": text}]
    if door == "responses":
        return {"model": model, "input": text}
    return {"model": model, "messages": said, **({"max_tokens": 9} if door == "messages" else {})}


@contextmanager
def running_gateway(
    config: dict[str, Any] | str | None = None,
    *,
    protocol: type[LimitedProtocol] = LimitedProtocol,
    **app: Any,
) -> Iterator[str]:
    """A gateway of this config in a thread; gives its address as ``host:port``."""
    application = AgentApplication(config or {}, **app)
    is_open = is_open_to_all("127.0.0.1", Keys(application.open_store()))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(application, is_open=is_open),
            http=protocol,
            ws="none",
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=10,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the gateway has ended before it began"
            time.sleep(0.005)
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@contextmanager
def opened_store(config: dict[str, Any] | str | None = None) -> Iterator[SessionStore]:
    """The store in which a gateway of this config has its keys."""
    with AgentApplication(config or {}) as application:
        yield application.open_store()


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def told(self) -> str:
        """What an error says."""
        return str(self.body["error"]["message"])


def ask(
    address: str,
    path: str,
    body: Any = None,
    *,
    key: str | None = None,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answered:
    """Send a request, a body of bytes as it is."""
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    own = {"content-type": "application/json"} if sent is not None else {}
    if key is not None:
        own["authorization"] = f"Bearer {key}"
    connection = HTTPConnection(address, timeout=30)
    try:
        verb = method or ("GET" if sent is None else "POST")
        connection.request(verb, path, sent, {**own, **(headers or {})})
        response = connection.getresponse()
        lower = {name.lower(): value for name, value in response.getheaders()}
        return Answered(response.status, lower, response.read().decode())
    finally:
        connection.close()
