"""A PostgreSQL server of the tests' own, which speaks through a socket in its folder alone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["PostgresServer", "running_server"]

_MISSING = "PostgreSQL is missing: apt-get install postgresql"
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 60
# What is tested is the death of clients and servers, not that of the machine.
fsync = off
"""


class PostgresServer:
    """A server in a folder of its own; it can be stopped and started."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://tester@/postgres?host={self._folder}"

    def create(self) -> None:
        if os.getuid() == 0:
            # The server refuses to run as root.
            shutil.chown(self._folder, _unprivileged_user())
        self._run("initdb", "-D", self._data, "-U", "tester", "-A", "trust", "-E", "UTF8", "-N")
        settings = _SETTINGS.format(folder=self._folder)
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write(settings)

    def start(self) -> None:
        self._control("start", "-l", self._folder / "log")

    def stop(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self._control("stop", "-m", "immediate")

    def _control(self, command: str, *options: str | Path) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", command, *options)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["runuser", "-u", _unprivileged_user(), "--", *command]
        output = self._folder / "output"
        # Not a pipe: the server would hold it open for as long as it runs.
        with output.open("a") as file:
            done = subprocess.run(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(output.read_text("utf-8", "replace"))


def _unprivileged_user() -> str:
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _find_programs() -> Path | None:
    found = shutil.which("pg_ctl")
    if found is not None and Path(found).with_name("initdb").exists():
        return Path(found).parent
    # Debian keeps them away from the path.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return versions[-1].parent if versions else None


def running_server() -> Iterator[PostgresServer]:
    """For a fixture: a server that runs until the tests are over."""
    programs = _find_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    # Not in pytest's own folder, whose name is too long for a socket and which nobody else may see.
    folder = Path(tempfile.mkdtemp(prefix="agent-host-pg-"))
    server = PostgresServer(programs, folder)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
