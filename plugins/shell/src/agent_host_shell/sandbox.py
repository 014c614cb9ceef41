"""The ways to run a command: in bubblewrap's sandbox, or without one.

Owns the arguments of bubblewrap and the trial that says whether it works here. What is hidden is
decided by the view, when to end a command by the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from agent_hookspecs import ToolError
from agent_host_shell.view import View

__all__ = ["Bubblewrap", "NoSandboxError", "Sandboxed", "Unsandboxed", "make_environment"]

#: Not the search path: the workspace may be on it, and what lies there is a model's to write.
_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_SHELLS = ("bash", "sh")
#: Bytes that each of a command's scratch folders may hold; they are in memory.
_SCRATCH_BYTES = 1 << 29
_TRIAL_SECONDS = 10

#: What is passed on of the environment: where programs are, who one is, and how to speak.
_KEPT = (
    *("PATH", "USER", "LOGNAME", "TZ", "LANG", "LANGUAGE"),
    *("LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
)


class NoSandboxError(Exception):
    """There is no sandbox on this system, and why."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Bubblewrap as it is installed; ``options`` are those that not every version has."""

    program: str
    options: frozenset[str]

    @classmethod
    def find(cls) -> Bubblewrap:
        """The one of this system, after it has made a sandbox; a `NoSandboxError` otherwise."""
        if sys.platform != "linux":
            raise NoSandboxError("bubblewrap is for Linux")
        program = _find_program("bwrap")
        if program is None:
            raise NoSandboxError("bubblewrap is not installed (apt-get install bubblewrap)")
        text = _output_of([program, "--help"])
        newer = ("--size", "--disable-userns")
        found = cls(program, frozenset(each for each in newer if f"{each} " in text))
        _output_of(
            [
                *found._begin(network=False),
                "--ro-bind",
                "/",
                "/",
                *_KERNEL,
                "--",
                "/bin/sh",
                "-c",
                ":",
            ]
        )
        return found

    def words(self, view: View, network: bool, status: int) -> list[str]:
        """Its arguments for a view, up to the command."""
        return [
            *self._begin(network=network),
            *("--json-status-fd", str(status)),
            *("--ro-bind", "/", "/"),
            *_KERNEL,
            *self._scratch(view.scratch),
            *("--dir", view.home),
            *_each("--ro-bind", (*(_name_service() if network else ()), *view.readable)),
            *("--bind", view.root, view.root),
            *_each("--ro-bind", view.fixed),
            *self._scratch(view.hidden_folders, "--remount-ro"),
            *(word for path in view.hidden_files for word in ("--ro-bind", os.devnull, path)),
            *("--remount-ro", "/dev", "--chdir", view.root),
            "--",
        ]

    def _begin(self, *, network: bool) -> Iterator[str]:
        yield from (self.program, "--unshare-user", "--unshare-all")
        if network:
            yield "--share-net"
        # Not the terminal of the host, and no longer than the host.
        yield from ("--new-session", "--die-with-parent", "--cap-drop", "ALL")
        if "--disable-userns" in self.options:
            yield "--disable-userns"

    def _scratch(self, folders: Iterable[str], then: str = "") -> Iterator[str]:
        for folder in folders:
            if "--size" in self.options:
                yield from ("--size", str(_SCRATCH_BYTES))
            yield from ("--tmpfs", folder)
            if then:
                yield from (then, folder)


#: What the kernel shows, of the sandbox alone.
_KERNEL = ("--dev", "/dev", "--proc", "/proc")


def _each(option: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from (option, path, path)


def _name_service() -> Iterator[str]:
    """Where names are looked up may be said in a folder that is hidden."""
    place = os.path.realpath("/etc/resolv.conf")
    if os.path.isfile(place):
        yield place


def _find_program(name: str) -> str | None:
    places = (os.path.join(folder, name) for folder in _FOLDERS)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def _output_of(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={},
            cwd="/",
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSandboxError(f"bubblewrap does not work here: {error}") from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        said = (text.strip().splitlines() or ["it said nothing"])[-1]
        raise NoSandboxError(f"bubblewrap does not work here: {said}")
    return text


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """A command in a sandbox."""

    bubblewrap: Bubblewrap
    view: View
    network: bool
    environment: Mapping[str, str]
    command: str
    is_sandboxed = True

    @property
    def folder(self) -> str:
        return self.view.root

    def words(self, status: int) -> list[str]:
        begin = self.bubblewrap.words(self.view, self.network, status)
        return [*begin, _shell(), "-c", self.command]


@dataclass(frozen=True, slots=True)
class Unsandboxed:
    """A command without a sandbox, under a process that ends whatever it started."""

    folder: str
    environment: Mapping[str, str]
    command: str
    is_sandboxed = False

    def words(self, status: int) -> list[str]:
        if not sys.executable:
            raise ToolError("the command cannot be run: no Python interpreter was found")
        program = files("agent_host_shell").joinpath("supervising.py").read_text(encoding="utf-8")
        begin = [sys.executable, "-I", "-S", "-c", program, str(status)]
        return [*begin, _shell(), "-c", self.command]


def _shell() -> str:
    return next(filter(None, map(_find_program, _SHELLS)), "/bin/sh")


def make_environment(
    surroundings: Mapping[str, str], home: str, further: Iterable[str]
) -> dict[str, str]:
    """What a command gets of the host's environment: names that are known to be harmless."""
    kept = {name: surroundings[name] for name in (*_KEPT, *further) if name in surroundings}
    return {"PATH": os.defpath, **kept, "HOME": home, "TERM": "dumb", "SHELL": _shell()}
