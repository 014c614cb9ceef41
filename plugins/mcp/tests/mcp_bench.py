"""What the tests share: servers to start, an application that may call them, what is left over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_host import AgentApplication
from agent_host_mcp.approvals import Approvals
from agent_host_mcp.connections import Connections
from agent_host_mcp.servers import Limits, Server, read_servers

SERVERS = Path(__file__).parent / "servers"


def plain(how: str = "well", place: Path | None = None) -> dict[str, Any]:
    """The config of the server that is quick to start."""
    more = [str(place)] if place is not None else []
    return {"command": sys.executable, "args": [str(SERVERS / "plain.py"), how, *more]}


def modern(mode: str = "auto") -> dict[str, Any]:
    """The config of the SDK's own server."""
    return {"command": sys.executable, "args": [str(SERVERS / "modern.py"), "stdio"], "mode": mode}


def servers_of(**described: dict[str, Any]) -> list[Server]:
    return [*read_servers({"mcp": {"servers": described}})]


def server_of(described: dict[str, Any], name: str = "one") -> Server:
    (server,) = servers_of(**{name: described})
    return server


@contextmanager
def connections(**limits: Any) -> Iterator[Connections]:
    made = Connections(Limits(**limits), lambda server, tools: None)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def serving(port: int) -> Iterator[str]:
    """The address of a server of the SDK."""
    process = subprocess.Popen([sys.executable, SERVERS / "modern.py", "http", str(port)])
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                threading.Event().wait(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        # It would wait for whoever listens to it.
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def folder() -> Path:
    """The folder that is the plugin's own in this home."""
    return Path(os.environ["AGENT_HOST_HOME"], "plugins", "mcp")


def approve(**described: dict[str, Any]) -> None:
    """Approve servers as they are now."""
    with connections() as made:
        for server in servers_of(**described):
            opened = made.open(server).result()
            Approvals(str(folder())).approve(server, opened.tools.values(), opened.prompts.values())


def config_of(policy: str = "allow", **described: dict[str, Any]) -> dict[str, Any]:
    return {
        "providers": {"main": {"provider": "echo"}},
        "request_defaults": {"mcp": {"servers": described}},
        "tools": {"effects": {"execute": policy}} if policy else {},
    }


def application(policy: str = "allow", **described: dict[str, Any]) -> AgentApplication:
    return AgentApplication(config_of(policy, **described))


def owned_processes() -> set[int]:
    """Everything that is alive and was started, at whatever distance, by a server of ours."""
    return set(_find_marked(os.environ["AGENT_HOST_HOME"]))


def _find_marked(home: str) -> Iterator[int]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path("/proc", name, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(each.startswith(b"AGENT_HOST_MCP_SERVER=") for each in environment) and any(
            each == f"TEST_HOME={home}".encode() for each in environment
        ):
            yield int(name)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("agent-host-mcp")}


def require(found: bool, what: str) -> None:
    """Skip a test whose program is missing; where CI runs, that is a failure."""
    if found:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own."""
    place = tmp_path / "home"
    monkeypatch.setenv("AGENT_HOST_HOME", str(place))
    return place


def warnings_of(answer: Any) -> list[str]:
    """What the plugin has to say to whoever runs the request."""
    return [each["message"] for each in answer.warnings if each.get("plugin") == "mcp"]


Asked = list[tuple[str, tuple[str, ...]]]


def answering(*answers: str) -> tuple[Asked, Callable[[Any], str]]:
    """An ``ask`` that gives these answers in turn, and what it was asked."""
    asked: Asked = []
    left = [*answers]

    def ask(question: Any) -> str:
        asked.append((question.shown["question"], tuple(question.shown["choices"])))
        return left.pop(0)

    return asked, ask
