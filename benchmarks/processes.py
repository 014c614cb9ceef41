"""Fresh processes, timed from outside: until they end, or until they say their first line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.surroundings import environment

__all__ = ["Place", "place"]

LIST = ["plugins", "list", "--json"]
_CLI = "import sys; from agent_host.cli import main; sys.exit(main())"


class Place:
    """A folder of its own for processes: where they start, and where their index is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Processes start here, which puts it on their path; so nothing is ever written into it.
        self.cwd = folder / "cwd"
        self.cwd.mkdir()
        then = time.time() - 3600
        os.utime(self.cwd, (then, then))

    def environment(self, home: str = "home", trees: Sequence[Path] = ()) -> dict[str, str]:
        """Where the user's folders are, and what is on the path besides what is installed."""
        known = [
            os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p
        ]
        path = os.pathsep.join([*known, *map(str, trees)])
        return {
            **environment(),
            **({"PYTHONPATH": path} if path else {}),
            "AGENT_HOST_HOME": str(self.folder / home),
        }

    def timed(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        python: str = sys.executable,
    ) -> float:
        """Seconds until the process has ended."""
        started = time.perf_counter()
        self.output(arguments, environment, python)
        return time.perf_counter() - started

    def output(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        python: str = sys.executable,
    ) -> str:
        return subprocess.run(
            [python, *arguments],
            env=dict(environment),
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def until_first_line(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        python: str = sys.executable,
    ) -> float:
        """Seconds until the process says something."""
        started = time.perf_counter()
        with subprocess.Popen(
            [python, *arguments],
            env=dict(environment),
            cwd=self.cwd,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            taken = time.perf_counter() - started
        if not line.strip() or process.returncode:
            raise RuntimeError(f"a process said {line!r} and ended with {process.returncode}")
        return taken

    def cli(self, *arguments: str) -> list[str]:
        """What runs the command line as its console script does."""
        return ["-c", _CLI, *arguments]

    def warm(self, environment: Mapping[str, str]) -> None:
        """List until the index is written, which takes while something on the path is young."""
        cache = Path(environment["AGENT_HOST_HOME"], "cache")
        deadline = time.monotonic() + 30
        while not list(cache.glob("index/*.json")):
            if time.monotonic() > deadline:
                raise RuntimeError("the index is not written: something on sys.path keeps changing")
            self.timed(self.cli(*LIST), environment)

    def indexes(self) -> dict[str, int]:
        """When each index was written: a warm one is written once."""
        return {
            str(path): path.stat().st_mtime_ns for path in self.folder.glob("warm*/cache/index/*")
        }


@contextlib.contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield Place(Path(folder).resolve())
