"""Servers that others have written, as the registries have them, by both transports.

They lie in the folder that ``AGENT_HOST_MCP_SERVERS`` names: ``node_modules`` of npm, and a virtual
environment ``python``. CONTRIBUTING.md says how they get there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import application, approve, home, require

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

INSTALL = (
    "npm install @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem "
    "and pip install mcp-server-git mcp-server-time, in the folder AGENT_HOST_MCP_SERVERS"
)


def npm(name: str) -> str:
    return installed("node_modules", ".bin", f"mcp-server-{name}")


def pypi(name: str) -> str:
    return installed("python", "bin", f"mcp-server-{name}")


def installed(*parts: str) -> str:
    place = os.environ.get("AGENT_HOST_MCP_SERVERS", "")
    program = Path(place, *parts)
    require(bool(place) and program.exists(), INSTALL)
    return str(program)


def said(described: dict[str, Any], *calls: str) -> list[str]:
    """What each call of a server comes to."""
    approve(one=described)
    with application(one=described) as app:
        return [app.run(f"/call mcp_one__{call}").text for call in calls]


def test_the_filesystem_server_reads_and_writes(tmp_path: Path) -> None:
    place = tmp_path / "files"
    place.mkdir()
    file = place / "a.txt"
    written, read, outside = said(
        {"command": npm("filesystem"), "args": [str(place)]},
        f'write_file {{"path": "{file}", "content": "some words"}}',
        f'read_text_file {{"path": "{file}"}}',
        'read_text_file {"path": "/etc/hosts"}',
    )
    assert file.read_text() == "some words"
    assert "some words" in read
    assert "denied" in outside
    assert "Success" in written


def test_the_everything_server_shows_a_picture() -> None:
    described = {"command": npm("everything")}
    approve(one=described)
    with application(one=described) as app:
        assert "The sum of 1 and 2 is 3." in app.run('/call mcp_one__get-sum {"a": 1, "b": 2}').text
        with app.stream("/call mcp_one__get-tiny-image {}") as stream:
            (result,) = [event for event in stream if event["type"] == "tool_result"]
        kinds = [part["type"] for part in result["message"]["toolResult"]["content"]]
        assert "image" in kinds


def test_the_everything_server_works_over_http() -> None:
    with serving([npm("everything"), "streamableHttp"]) as port:
        (told,) = said({"url": f"http://127.0.0.1:{port}/mcp"}, 'echo {"message": "hello"}')
    assert "Echo: hello" in told


def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    git = shutil.which("git")
    require(git is not None, "git")
    assert git is not None
    subprocess.run([git, "init", "-q", str(tmp_path / "repo")], check=True)
    repo = str(tmp_path / "repo")
    (told,) = said(
        {"command": pypi("git"), "args": ["--repository", repo]},
        f'git_status {{"repo_path": "{repo}"}}',
    )
    assert "No commits yet" in told


def test_the_time_server_tells_the_time() -> None:
    (told,) = said({"command": pypi("time")}, 'get_current_time {"timezone": "UTC"}')
    assert '"timezone": "UTC"' in told


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = subprocess.Popen(
        command,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                threading.Event().wait(0.05)
        yield port
    finally:
        process.kill()
        process.wait()
