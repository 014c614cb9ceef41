"""The installers of an environment: pip and uv, asked through their command lines.

An installer resolves, and lays out what would come where it can be looked at. It must not know why:
what is checked then, and how it comes to its place, is decided by whoever asks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from agent_hookspecs.logs import redact
from agent_hookspecs.values import dataclass
from agent_host.distributions.environment import Environment
from agent_host.distributions.errors import ConflictError, DistributionError, InstallerError
from agent_host.distributions.indexes import read_pip_indexes, read_uv_indexes
from agent_host.distributions.pins import Pin, read_lock
from agent_host.plugins.bundle import canonical_name

__all__ = ["Installer", "Outdated", "Resolving", "open_installer"]

#: As much of what an installer printed as a person can use.
_LAST_LINES = 20
_ONLY_WHEELS = ("--only-binary", ":all:")
#: What pip says in passing, before it comes to what went wrong.
_PASSING = (
    "Looking in",
    "Collecting ",
    "Obtaining dependency",
    "Downloading ",
    "Using cached ",
    "Processing ",
    "Requirement already satisfied",
    "Preparing metadata",
    "Getting requirements",
    "Installing build dependencies",
    "INFO: pip is looking",
)
_UNKNOWN = re.compile(
    r"satisfies the requirement (?P<pip>[^\s(]+).*\(from versions: none\)"
    r"|Because (?P<uv>\S+) was not found in the (package registry|provided package locations)"
)
_CONFLICTS = ("conflict", "no solution found", "resolutionimpossible")


#: Runs a command and gives what it printed.
Run = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Resolving:
    """What to resolve: requirements, within constraints.

    Of what an index offers wheels are taken alone, because building runs what is built. What comes
    from a folder or a repository is built: whoever names it wants that.
    """

    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outdated:
    """A distribution of which there is a newer version."""

    name: str
    version: str
    latest: str


class Installer(Protocol):
    """What can be asked of an installer.

    It changes nothing by itself: what it stages is put in its place when it was looked at.
    ``tells_age``: pins have the time at which they were uploaded, if the index has it.
    """

    tells_age: bool

    def resolve(self, asked: Resolving) -> dict[str, Pin]:
        """The distributions that fit, with all that they need, by name. Installs nothing."""

    def stage(self, pins: Sequence[Pin], folder: Path) -> None:
        """Install these and nothing else below a folder, as they would lie in the environment."""

    def find_outdated(self) -> list[Outdated]:
        """The installed distributions of which the index has newer versions."""

    def find_indexes(self) -> list[str]:
        """The indexes that it is configured for, the first first."""


def open_installer(environment: Environment, open_file: int | None = None) -> Installer:
    """The environment's installer. It holds on to ``open_file`` for as long as it runs."""
    run = partial(_run, open_file=open_file)
    return _Uv(environment, run) if environment.installer == "uv" else _Pip(environment, run)


class _Pip:
    tells_age = False

    def __init__(self, environment: Environment, run: Run) -> None:
        self._run = run
        self._pip = [environment.python, "-m", "pip", "--disable-pip-version-check", "--no-input"]

    def resolve(self, asked: Resolving) -> dict[str, Pin]:
        with tempfile.TemporaryDirectory() as folder:
            files = _write_files(folder, asked)
            report = Path(folder, "report.json")
            # Not quietly: of a conflict pip names both sides in passing only.
            command = [*self._pip, "install", "--dry-run", "--ignore-installed"]
            self._run([*command, "--report", str(report), *_ONLY_WHEELS, *files])
            document = json.loads(report.read_text(encoding="utf-8"))
        pins = [_read_reported(each) for each in document["install"]]
        return {pin.name: pin for pin in pins}

    def stage(self, pins: Sequence[Pin], folder: Path) -> None:
        # By name what an index offers, because an address would be remembered as where it is from.
        command = [*self._pip, "install", "--quiet", "--no-deps", "--no-warn-script-location"]
        # What is installed is none of its business, or it would uninstall that.
        command += ["--ignore-installed", "--prefix", str(folder)]
        hashed = [f"{pin.requirement}{pin.hash_option}" for pin in pins if pin.sha256]
        if hashed:
            with _requirements(hashed) as file:
                self._run([*command, *_ONLY_WHEELS, "-r", str(file)])
        # Of what is built here nobody knows a hash, and pip asks for those of all or of none.
        built = [pin.requirement for pin in pins if not pin.sha256]
        if built:
            self._run([*command, *built])

    def find_outdated(self) -> list[Outdated]:
        told = self._run([*self._pip, "list", "--outdated", "--format", "json"])
        return [_read_outdated(each) for each in json.loads(told)]

    def find_indexes(self) -> list[str]:
        return read_pip_indexes(self._run([*self._pip, "config", "list"]))


class _Uv:
    tells_age = True

    def __init__(self, environment: Environment, run: Run) -> None:
        self._run = run
        self._uv = [environment.uv, "--quiet", "--no-progress", "pip"]
        self._python = ["--python", environment.python]

    def resolve(self, asked: Resolving) -> dict[str, Pin]:
        with tempfile.TemporaryDirectory() as folder:
            requirements, *constraints = _write_files(folder, asked)[1::2]
            lock = Path(folder, "pylock.toml")
            command = [*self._uv, "compile", requirements, *self._python]
            command += [part for each in constraints for part in ("--constraints", each)]
            command += ["--format", "pylock.toml", "--output-file", str(lock), *_ONLY_WHEELS]
            self._run(command)
            return read_lock(lock)

    def stage(self, pins: Sequence[Pin], folder: Path) -> None:
        command = [*self._uv, "install", *self._python, "--no-deps", "--prefix", str(folder)]
        # A folder has changed though its pyproject.toml, at which alone uv looks, has not.
        command += [f"--refresh-package={pin.name}" for pin in pins if pin.kind == "folder"]
        with _requirements(f"{pin.requirement}{pin.hash_option}" for pin in pins) as file:
            self._run([*command, "-r", str(file)])

    def find_outdated(self) -> list[Outdated]:
        told = self._run([*self._uv, "list", *self._python, "--outdated", "--format", "json"])
        return [_read_outdated(each) for each in json.loads(told)]

    def find_indexes(self) -> list[str]:
        return read_uv_indexes()


def _run(command: Sequence[str], *, open_file: int | None) -> str:
    """What the installer prints, if it succeeds; it ends with us if we are interrupted."""
    environment = {**os.environ, "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    # In a group of its own, so that whatever it starts can be ended with it.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
        # Windows passes on no files by their numbers.
        pass_fds=() if open_file is None or sys.platform == "win32" else (open_file,),
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            _end_group(process.pid)
            raise
    if process.returncode:
        raise _read_failure(command, out + err)
    return out


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGTERM)
    except (AttributeError, ProcessLookupError):
        # Nothing is lost: it has ended by itself, or the system has no groups and ends it with us.
        return


def _read_failure(command: Sequence[str], said: str) -> InstallerError:
    lines = [line.rstrip() for line in redact(said).splitlines() if line.strip()]
    telling = [line for line in lines if not line.strip().startswith(_PASSING)]
    output = "\n".join((telling or lines)[-_LAST_LINES:])
    who = "uv" if "-m" not in command[:2] else "pip"
    unknown = _UNKNOWN.search(said)
    if unknown and "connection" not in said.lower():
        name = unknown["pip"] or unknown["uv"]
        return InstallerError(
            f"{who} finds no distribution {name} for this Python",
            output=output,
            hint="nothing was changed; check the name, which index your installer uses, and "
            "whether it can be reached",
        )
    if any(word in said.lower() for word in _CONFLICTS):
        return ConflictError(
            f"nothing fits all that is wanted; {who} says:\n{output}",
            output=output,
            hint="ask for another version of one of them, or remove one",
        )
    return InstallerError(
        f"{who} failed; it says:\n{output}",
        output=output,
        hint="nothing was changed; correct what it says, or try again if the index was not reached",
    )


def _write_files(folder: str, asked: Resolving) -> list[str]:
    """The options that name what is asked for, in files: command lines have a longest length."""
    options = []
    for option, lines in (("-r", asked.requirements), ("-c", asked.constraints)):
        if lines:
            file = Path(folder, f"{option[1]}.txt")
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            options += [option, str(file)]
    return options


@contextmanager
def _requirements(lines: Iterable[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield file


def _read_reported(reported: Mapping[str, Any]) -> Pin:
    """A distribution in pip's report."""
    about, found = reported["metadata"], reported["download_info"]
    name, version, url = canonical_name(about["name"]), about["version"], found["url"]
    if "vcs_info" in found:
        commit, below = found["vcs_info"]["commit_id"], found.get("subdirectory", "")
        return Pin(name, version, "git", url, commit=commit, subdirectory=below)
    if "dir_info" in found:
        return Pin(name, version, "folder", url)
    if not urlsplit(url).path.endswith(".whl"):
        raise DistributionError(
            f"of {name} {version} there is no wheel, only its source",
            hint="building it runs its code; if you trust it, build a wheel and name that",
        )
    kind: Any = "archive" if reported.get("is_direct") else "wheel"
    digest = found.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    yanked = "yes" if reported.get("is_yanked") else ""
    return Pin(name, version, kind, url, sha256=digest or _digest_of(url), yanked=yanked)


def _digest_of(url: str) -> str:
    """Of a wheel on this machine; pip tells the hash of what it downloads only."""
    path = Path(unquote(urlsplit(url).path))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_outdated(row: Mapping[str, str]) -> Outdated:
    return Outdated(canonical_name(row["name"]), row["version"], row["latest_version"])
