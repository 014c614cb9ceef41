"""A workspace with the tool in it, and how commands are run there."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_host_shell.plugin import ShellTools
from agent_host_shell.sandbox import Bubblewrap, NoSandboxError


class Shell:
    """The tool with its settings. What was reported of the last command is in ``reports``."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        self.plugin = ShellTools()
        self.state = self.plugin.init({"root": str(root), **settings})
        self.reports: list[str] = []

    def start(self, command: str, *, cancelled: Callable[[], bool] = bool, **more: Any) -> Any:
        payload = {"command": command, **more}
        return self.plugin.execute_tool(
            "run_command", payload, self.state, {"cancelled": cancelled}
        )

    def result(self, command: str, **more: Any) -> dict[str, Any]:
        return self.finish(self.start(command, **more))

    def finish(self, running: Any) -> dict[str, Any]:
        self.reports = []
        while True:
            try:
                self.reports.append(next(running))
            except StopIteration as end:
                found: dict[str, Any] = end.value
                return found

    def run(self, command: str, **more: Any) -> str:
        """What the model is told of a command."""
        text: str = self.result(command, **more)["text"]
        return text


class Mark(str):
    """An argument by which processes are found: so many seconds to sleep, like no others."""

    __slots__ = ()

    def require_gone(self) -> None:
        """Wait until no process has it, but for those that are over."""
        deadline = time.monotonic() + 10
        while any(self.encode() in _arguments(folder) for folder in Path("/proc").iterdir()):
            assert time.monotonic() < deadline, "something goes on for nobody"
            threading.Event().wait(0.02)


def _arguments(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
    except OSError:
        # Nothing is lost: the process has ended meanwhile.
        return b""


@pytest.fixture
def mark() -> Mark:
    return Mark(f"1{uuid.uuid4().int % 10**9:09d}")


@pytest.fixture(scope="session")
def bubblewrap() -> Bubblewrap:
    """The sandbox of this system; where it is not installed tests are skipped, and fail in CI.

    A system that forbids it is not at fault: no package would mend that.
    """
    try:
        return Bubblewrap.find()
    except NoSandboxError as error:
        if os.environ.get("CI") == "true" and "is not installed" in str(error):
            pytest.fail(f"CI has to have a sandbox: {error}")
        pytest.skip(str(error))


@pytest.fixture
def open_shell(bubblewrap: Bubblewrap) -> Iterator[Callable[..., Shell]]:
    """Makes a tool for a folder; it is closed when the test is over."""
    with ExitStack() as stack:

        def make(root: Path, **settings: Any) -> Shell:
            shell = Shell(root, **settings)
            stack.callback(shell.plugin.close, shell.state)
            return shell

        yield make


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def shell(open_shell: Callable[..., Shell], workspace: Path) -> Shell:
    return open_shell(workspace)
