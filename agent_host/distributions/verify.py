"""Whether an environment is what its lock says, file by file.

Every file that a locked distribution lists is read and compared with its hash there, the list
itself with the lock; what Python runs at every start must belong to somebody. Reads, changes
nothing, imports nothing of it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importlib_metadata import PackageNotFoundError, distribution, distributions

from agent_hookspecs.values import dataclass
from agent_host.distributions.contents import digest_contents, is_starter, record_of
from agent_host.distributions.environment import Environment
from agent_host.distributions.pins import Pin

if TYPE_CHECKING:
    from agent_host.distributions.attestations import Attested

__all__ = ["Deviation", "find_forgeries", "verify_environment"]

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that is not as the lock says; ``file`` is empty if it is a whole distribution."""

    distribution: str
    message: str
    file: str = ""


def verify_environment(environment: Environment, locked: Mapping[str, Pin]) -> Iterator[Deviation]:
    """All that is not as it should be."""
    for name, pin in sorted(locked.items()):
        try:
            found: Any = distribution(name)
        except PackageNotFoundError:
            # Nothing is lost: it is told.
            yield Deviation(name, f"{pin.version} is missing")
            continue
        if found.version != pin.version:
            yield Deviation(name, f"is {found.version}, locked is {pin.version}")
        elif pin.contents and digest_contents(found) != pin.contents and not _is_editable(found):
            yield Deviation(name, f"{pin.version} is another build than the one that is locked")
        yield from _verify_files(name, found, environment)
    yield from _find_starters(environment)


def find_forgeries(locked: Mapping[str, Pin], attested: Iterable[Attested]) -> Iterator[Deviation]:
    """What attestations that do not hold, or are of somebody else than the lock says, prove."""
    for each in attested:
        wanted = locked[each.distribution].publisher
        if each.state == "failed":
            message = f"the attestation of {each.version} does not hold: {each.reason}"
            yield Deviation(each.distribution, message)
        elif each.state == "verified" and wanted and each.publisher != wanted:
            message = f"is attested by {each.publisher}, locked is {wanted}"
            yield Deviation(each.distribution, message)


def _is_editable(found: Any) -> bool:
    return bool(getattr(getattr(found.origin, "dir_info", None), "editable", False))


def _verify_files(name: str, found: Any, environment: Environment) -> Iterator[Deviation]:
    prefix = os.path.realpath(environment.prefix)
    for listed, hashed in record_of(found):
        path = os.path.normpath(str(found.locate_file(listed)))
        if not Path(os.path.realpath(path)).is_relative_to(prefix):
            yield Deviation(name, "lies outside of the environment", path)
            continue
        method, _, expected = hashed.partition("=")
        if not expected or listed.endswith(".pyc"):
            continue
        try:
            actual = _digest(path, method)
        except (OSError, ValueError) as error:
            yield Deviation(name, f"cannot be read: {error}", path)
            continue
        if actual != expected and _digest_as_installed(path, method) != expected:
            yield Deviation(name, "is not the file that was installed", path)


def _digest(path: str, method: str) -> str:
    digest = hashlib.new(method)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return _encode(digest.digest())


def _digest_as_installed(path: str, method: str) -> str:
    """As if the interpreter of a script had no options, which pipx adds to those it shows."""
    if os.path.dirname(path) != sysconfig.get_path("scripts"):
        return ""
    with open(path, "rb") as file:
        first, _, rest = file.read(_PIECE).partition(b"\n")
    digest = hashlib.new(method, first.split(b" ")[0] + b"\n" + rest)
    return _encode(digest.digest())


def _encode(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _find_starters(environment: Environment) -> Iterator[Deviation]:
    """Files that Python runs at every start, and that no distribution lists."""
    listed = {
        os.path.normpath(str(each.locate_file(path)))
        for each in distributions()
        for path, _ in record_of(each)
        if is_starter(path)
    }
    for folder in environment.folders[:-1] or environment.folders:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if is_starter(entry.name) and os.path.normpath(entry.path) not in listed:
                message = "is run by Python whenever it starts, and no distribution lists it"
                if entry.name not in _OF_ENVIRONMENTS:
                    yield Deviation("", message, entry.path)


#: What those that make environments put there by themselves.
_OF_ENVIRONMENTS = ("_virtualenv.pth", "pipx_shared.pth", "distutils-precedence.pth")
