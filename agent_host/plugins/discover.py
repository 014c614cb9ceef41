"""Finds installed plugin packages by their metadata alone.

Reads entry points of group ``agent_host.plugins`` and the descriptors they point at. Nothing of a
plugin is imported: a package is located in its distribution, then by its import spec, then by the
project folder an editable install points at.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Descriptor, Entry
from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.values import dataclass
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.contents import content_of
from agent_host.plugins.descriptor import MAX_BYTES, decode_descriptor, read_descriptor

if TYPE_CHECKING:
    from importlib_metadata import Distribution

__all__ = ["GROUP", "MetadataFolder", "discover", "metadata_folders", "top_level_spec"]

GROUP = "agent_host.plugins"

#: What pip leaves behind when an uninstall was cut short begins with "~" and is no distribution.
_METADATA_FOLDER = re.compile(r"(?P<name>[^~].*?)(-.*)?\.(dist-info|egg-info)")
_CLASS_PATH = re.compile(r"[\w.]+:\w+")
_PACKAGE = re.compile(r"\w+(\.\w+)*")
#: No honest metadata comes near.
_MAX_METADATA = 1 << 26


@dataclass(frozen=True, slots=True)
class MetadataFolder:
    """The folder with the metadata of one installed distribution."""

    name: str
    path: str


def metadata_folders(search_path: Sequence[str]) -> Iterator[MetadataFolder]:
    """The metadata folders on a search path; of a distribution's several the first one counts."""
    seen: set[str] = set()
    for root in search_path:
        for folder in _folders_in(root):
            if folder.name not in seen:
                seen.add(folder.name)
                yield folder


def _folders_in(root: str) -> Iterator[MetadataFolder]:
    try:
        with os.scandir(root or ".") as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except (OSError, ValueError):
        return
    for name in names:
        match = _METADATA_FOLDER.fullmatch(name)
        if match is not None:
            yield MetadataFolder(_normalised(match["name"]), os.path.join(root, name))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def discover(search_path: Sequence[str] | None = None) -> list[Bundle]:
    """Every announced package on the search path, broken ones included."""
    path = sys.path if search_path is None else search_path
    bundles: list[Bundle] = []
    seen: set[str] = set()
    for root in path:
        for name, distribution, announced in _distributions_in(root):
            if name not in seen:
                seen.add(name)
                if GROUP.encode() in announced:
                    bundles += _bundles_of(distribution, name, announced)
    return bundles


class _Metadata(Protocol):
    """What is asked of a distribution, as importlib_metadata answers it."""

    def read_text(self, filename: str, /) -> str | None:
        """A file of the metadata; None if there is none."""

    def locate_file(self, path: str, /) -> Any:
        """Where a file of the distribution would be."""


class _Installed:
    """A distribution in a folder: of all that are looked at, nearly every one."""

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, filename: str) -> bytes | None:
        try:
            return content_of(f"{self._folder}{os.sep}{filename}", _MAX_METADATA)
        except OSError:
            return None

    def read_text(self, filename: str, /) -> str | None:
        content = self.read(filename)
        return None if content is None else content.decode()

    def locate_file(self, path: str, /) -> str:
        return os.path.join(os.path.dirname(self._folder), path)


def _distributions_in(root: str) -> Iterator[tuple[str, _Metadata, bytes]]:
    """The distributions in a folder or archive, and the file with their entry points."""
    if os.path.isfile(root):
        yield from _archived(root)
    for folder in _folders_in(root):
        distribution = _Installed(folder.path)
        yield folder.name, distribution, distribution.read("entry_points.txt") or b""


def _archived(archive: str) -> Iterator[tuple[str, _Metadata, bytes]]:
    from importlib_metadata import distributions

    try:
        for found in distributions(path=[archive]):
            distribution = cast("Distribution", found)
            announced = (distribution.read_text("entry_points.txt") or "").encode()
            yield _normalised(_identity(distribution, archive)[0]), distribution, announced
    except Exception:
        # Any file may stand on sys.path; one that is no archive, or a broken one, holds nothing.
        return


def _bundles_of(distribution: _Metadata, name: str, announced: bytes) -> list[Bundle]:
    try:
        name, version = _identity(distribution, name)
        return [
            _bundle(distribution, name, version, *point) for point in _points(announced.decode())
        ]
    except Exception as error:
        # Metadata is foreign input; whatever is wrong with it concerns this distribution alone.
        said = ": ".join(map(str, error.args))
        problem = f"the entry points of {name} cannot be read: {said} (reinstall it)"
        return [Bundle(name, "installed", name, distribution=name, problem=problem)]


def _points(announced: str) -> Iterator[tuple[str, str]]:
    """The entry points of our group: names and values."""
    group = ""
    for line in map(str.strip, announced.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif group == GROUP and line and not line.startswith("#"):
            name, equals, value = map(str.strip, line.partition("="))
            if not equals:
                raise ValueError(f"there is no = in {line!r}")
            yield name, value


def _identity(distribution: _Metadata, fallback: str) -> tuple[str, str]:
    """Name and version from the header, which is a hundred times cheaper than parsing it whole."""
    header = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    known: dict[str, str] = {}
    for line in header.splitlines():
        key, _, value = line.partition(":")
        if not line or len(known) == 2:
            break
        if key in ("Name", "Version"):
            known[key] = value.strip()
    return known.get("Name", fallback), known.get("Version", "")


def _bundle(distribution: _Metadata, name: str, version: str, bundle: str, value: str) -> Bundle:
    known: dict[str, Any] = {
        "name": bundle,
        "origin": "installed",
        "source": value,
        "distribution": name,
        "version": version,
    }
    if _CLASS_PATH.fullmatch(value):
        return Bundle(**known, descriptor=Descriptor((Entry(value),)))
    try:
        file, descriptor = _locate(distribution, value)
    except DescriptorError as error:
        return Bundle(**known, file=error.file or "", problem=error.explain())
    return Bundle(**known, file=file, descriptor=descriptor)


def _locate(distribution: _Metadata, package: str) -> tuple[str, Descriptor]:
    if not _PACKAGE.fullmatch(package):
        raise DescriptorError(
            f"the entry point's value {package!r} is no package",
            hint="let it name the package with the descriptor, or a class as package.module:Class",
        )
    parts = package.split(".")
    in_place: Any = distribution.locate_file("/".join([*parts, DESCRIPTOR_NAME]))
    if _is_file(in_place):
        return str(in_place), read_descriptor(in_place)
    expected = str(in_place)
    spec = top_level_spec(parts[0])
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder, *parts[1:], DESCRIPTOR_NAME)
        if file.is_file():
            return str(file), read_descriptor(file)
        archived = _read_archived(spec, str(file))
        if archived is not None:
            return str(file), decode_descriptor(archived, str(file))
        expected = str(file)
    for project in _project_folders(distribution):
        file = project.joinpath(*parts, DESCRIPTOR_NAME)
        if file.is_file():
            return str(file), read_descriptor(file)
    raise DescriptorError(
        f"package {package!r} has no {DESCRIPTOR_NAME}",
        file=expected,
        hint="include it as package data, or let the entry point name a class",
    )


def _is_file(path: Any) -> bool:
    """Whether it is a file, on disk or, as importlib_metadata finds it, in an archive."""
    try:
        return os.path.isfile(path) if isinstance(path, str) else bool(path.is_file())
    except OSError:
        return False


def top_level_spec(package: str) -> ModuleSpec | None:
    """Where a top-level package would be imported from; imports nothing."""
    try:
        return find_spec(package)
    except Exception:
        # Import hooks are foreign code; one that fails has found nothing.
        return None


def _read_archived(spec: ModuleSpec | None, file: str) -> bytes | None:
    """A file of a package inside an archive, through the archive's own loader."""
    get_data = getattr(spec.loader if spec else None, "get_data", None)
    if get_data is None:
        return None
    try:
        data: bytes = get_data(file)
    except OSError:
        return None
    return data[: MAX_BYTES + 1]


def _project_folders(distribution: _Metadata) -> Iterable[Path]:
    try:
        url = urlsplit(json.loads(distribution.read_text("direct_url.json") or "{}")["url"])
    except (ValueError, KeyError, TypeError):
        return
    if url.scheme == "file":
        root = Path(unquote(url.path))
        yield root
        yield root / "src"
