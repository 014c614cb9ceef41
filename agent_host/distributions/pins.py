"""Distributions at one version with their hashes, and the lock that holds them (``pylock.toml``).

The form is PEP 751's, so that other tools can read it. It is written for one environment: of
each distribution there is the one file that this environment takes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from agent_hookspecs.values import dataclass
from agent_host.distributions.drift import load_toml
from agent_host.distributions.errors import LockError, OtherPythonError
from agent_host.plugins.bundle import canonical_name
from agent_host.private import make_private_folder, replace_private

__all__ = ["Pin", "read_lock", "write_lock"]

_TOOL = "agent-host"


@dataclass(frozen=True, slots=True)
class Pin:
    """A distribution at one version. ``url`` leads to its wheel, its folder or its repository.

    A ``wheel`` is one that an index offers, an ``archive`` one that was named by its address.
    ``contents`` is a digest of the hashes that its wheel lists; ``uploaded`` is known if installer
    or index told it. ``publisher`` is who attests the wheel, the last that was verified.
    """

    name: str
    version: str
    kind: Literal["wheel", "archive", "folder", "git"]
    url: str
    sha256: str = ""
    commit: str = ""
    subdirectory: str = ""
    uploaded: datetime | None = None
    yanked: str = ""
    contents: str = ""
    publisher: str = ""

    @property
    def requirement(self) -> str:
        """As a person asks for exactly this."""
        if self.kind == "wheel":
            return f"{self.name}=={self.version}"
        return self.address

    @property
    def address(self) -> str:
        """As a requirement that says where it is."""
        if self.kind == "git":
            below = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
            return f"{self.name} @ git+{self.url}@{self.commit}{below}"
        return f"{self.name} @ {self.url}"

    @property
    def is_on_index(self) -> bool:
        """Whether an index on the network offers it."""
        return self.kind == "wheel" and urlsplit(self.url).scheme in ("http", "https")

    @property
    def hash_option(self) -> str:
        """What follows in a requirements file; what is built here has no hash."""
        return f" --hash=sha256:{self.sha256}" if self.sha256 else ""


def write_lock(file: Path, pins: Iterable[Pin]) -> None:
    """Write the lock, in the order of names, so that a change shows as itself."""
    head = {
        "lock-version": "1.0",
        "requires-python": f"=={sys.version_info[0]}.{sys.version_info[1]}.*",
        "created-by": _TOOL,
    }
    lines = ["# Made by agent-host plugins lock, for agent-host plugins sync.", *_write_keys(head)]
    for pin in sorted(pins, key=lambda pin: pin.name):
        lines += ["", "[[packages]]", *_write_keys(_package_table(pin))]
    make_private_folder(file.parent)
    replace_private(file, "\n".join([*lines, ""]).encode())


def _package_table(pin: Pin) -> dict[str, Any]:
    table: dict[str, Any] = {"name": pin.name, "version": pin.version}
    if pin.kind == "git":
        table["vcs"] = {"type": "git", "url": pin.url, "commit-id": pin.commit}
        if pin.subdirectory:
            table["vcs"]["subdirectory"] = pin.subdirectory
    elif pin.kind == "folder":
        table["directory"] = {"path": unquote(urlsplit(pin.url).path)}
    else:
        file: dict[str, Any] = {"url": pin.url, "hashes": {"sha256": pin.sha256}}
        if pin.uploaded is not None:
            file["upload-time"] = pin.uploaded
        if pin.kind == "archive":
            table["archive"] = file
        else:
            table["wheels"] = [{"name": unquote(os.path.basename(urlsplit(pin.url).path))} | file]
    own = {"contents": pin.contents, "publisher": pin.publisher}
    if any(own.values()):
        table["tool"] = {_TOOL: {key: value for key, value in own.items() if value}}
    return table


def _write_keys(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key} = {_write_value(value)}" for key, value in table.items())


def _write_value(value: Any) -> str:
    """As TOML, whose texts are those of JSON but for one character."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_write_keys(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_lock(file: Path) -> dict[str, Pin]:
    """The pins of a lock by their names; none if there is no lock."""
    try:
        document = load_toml(file)
    except FileNotFoundError:
        # Nothing is lost: nothing is locked yet.
        return {}
    except (OSError, ValueError) as error:
        raise LockError(
            f"{file} cannot be read: {error}",
            file=str(file),
            hint="delete it, and make it anew with agent-host plugins lock",
        ) from None
    return _select_pins(document, str(file))


def _select_pins(document: Mapping[str, Any], file: str) -> dict[str, Pin]:
    """The pins of a lock's document, whoever made it; of several wheels the one that fits here."""
    from packaging.pylock import Pylock, PylockSelectError, PylockValidationError

    try:
        lock = Pylock.from_dict(document)
    except PylockValidationError as error:
        raise LockError(
            f"{file} is no lock: {error}",
            file=file,
            hint="make it anew with agent-host plugins lock",
        ) from None
    try:
        selected = [*lock.select()]
    except PylockSelectError as error:
        versions = {canonical_name(each.name): str(each.version or "") for each in lock.packages}
        raise OtherPythonError(
            f"{file} is for another Python: {error}", file=file, versions=versions
        ) from None
    pins = [_read_pin(package, artefact) for package, artefact in selected]
    return {pin.name: pin for pin in pins}


def _read_pin(package: Any, artefact: Any) -> Pin:
    from packaging.pylock import PackageArchive, PackageDirectory, PackageVcs

    name, version = canonical_name(package.name), str(package.version or "")
    own = (package.tool or {}).get(_TOOL) or {}
    contents = str(own.get("contents") or "")
    if isinstance(artefact, PackageVcs):
        return Pin(
            name,
            version,
            "git",
            artefact.url or "",
            commit=artefact.commit_id,
            subdirectory=artefact.subdirectory or "",
            contents=contents,
        )
    if isinstance(artefact, PackageDirectory):
        return Pin(name, version, "folder", Path(artefact.path).absolute().as_uri())
    url = artefact.url or Path(artefact.path).absolute().as_uri()
    return Pin(
        name,
        version,
        "archive" if isinstance(artefact, PackageArchive) else "wheel",
        url,
        sha256=artefact.hashes.get("sha256", ""),
        uploaded=artefact.upload_time,
        contents=contents,
        publisher=str(own.get("publisher") or ""),
    )
