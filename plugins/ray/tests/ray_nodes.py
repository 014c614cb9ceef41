"""Nodes of a Ray cluster on this machine, begun by its command as a person would, and killed."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["RayNodes", "ray_nodes"]

_COMMAND = Path(sysconfig.get_path("scripts")) / "ray"


class RayNodes:
    """A cluster; the first node is its head. ``address`` is where it is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.address = f"127.0.0.1:{server.getsockname()[1]}"

    def add(self, cpus: int) -> subprocess.Popen[str]:
        """Begin a node, and wait until it is there."""
        place = (
            ["--address", self.address]
            if self._processes
            else ["--head", "--port", self.address.rpartition(":")[2], "--temp-dir",
                  str(self._folder), "--include-dashboard", "false", "--disable-usage-stats"]
        )  # fmt: skip
        words = [
            *(sys.executable, str(_COMMAND), "start", *place, "--block"),
            *("--num-cpus", str(cpus), "--node-ip-address", "127.0.0.1"),
            *("--object-store-memory", "100000000"),
        ]
        # Workers import what tests send them.
        here = str(Path(__file__).parent)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": here}
        process = subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "runtime started" in line:
                return process
        raise AssertionError("".join(said))

    def kill(self, node: subprocess.Popen[str]) -> None:
        """End a node as a cut cable would."""
        self._processes.remove(node)
        _kill(node)

    def close(self) -> None:
        """End all nodes, the head last."""
        while self._processes:
            _kill(self._processes.pop())


def _kill(node: subprocess.Popen[str]) -> None:
    # All at once: workers have groups of their own, and outlive their node for a while.
    for process in [node.pid, *_processes_below(node.pid)]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    node.communicate()


def _processes_below(process: int) -> list[int]:
    found = []
    for file in Path("/proc", str(process), "task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *_processes_below(child)]
    return found


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    # Not in the folder of the tests: names of sockets are short.
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    nodes = RayNodes(folder)
    # Nodes and whoever connects to them have it from the environment, and nothing of the user's.
    mine = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        yield nodes
    finally:
        nodes.close()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)
