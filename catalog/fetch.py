"""Wheels of distributions that are named, from the index that pip is configured for.

Only wheels are fetched, because building one runs what is built; and nothing that they need.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import InvalidVersion, Version

from catalog.wheels import WheelError

__all__ = ["fetch_wheel", "find_versions"]

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_LAST_LINES = 3


def fetch_wheel(name: str, folder: Path) -> Path:
    """The newest wheel of a distribution, in a folder."""
    if not _NAME.fullmatch(name):
        raise WheelError(f"{name!r} is no wheel, no folder and no name of a distribution")
    # A folder for each, so that what was fetched before is not taken for it.
    place = Path(tempfile.mkdtemp(dir=folder))
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(place)]
    _ask_pip("download", *options, "--", name)
    (wheel,) = place.glob("*.whl")
    return wheel


def find_versions(name: str) -> list[str]:
    """The versions that the index has."""
    listed = _LISTED.search(_ask_pip("index", "versions", "--", name))
    found = []
    for text in listed[1].split(", ") if listed else ():
        try:
            found.append(str(Version(text)))
        except InvalidVersion:
            # Nothing is lost: what is no version cannot be asked for.
            continue
    return found


def _ask_pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()][-_LAST_LINES:]
        raise WheelError(f"{arguments[-1]} cannot be had: {' '.join(lines)}")
    return done.stdout
