"""Reads what a wheel says of itself: metadata, entry points, descriptors, sources.

A wheel is a stranger's archive. Only files whose names are known beforehand are read, each up to a
limit, and all of it stays data. It must not know what a catalog looks like.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from pathlib import Path
from zipfile import BadZipFile, Path as ArchivePath, ZipFile

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from agent_hookspecs.descriptor import DESCRIPTOR_NAME, Descriptor, Entry
from agent_hookspecs.errors import DescriptorError
from agent_host.plugins.descriptor import MAX_BYTES, decode_descriptor
from agent_host.plugins.discover import CLASS_PATH, GROUP
from agent_host.plugins.inspect.conformance import digest_files

__all__ = ["Announced", "Wheel", "WheelError", "open_wheel"]

#: A larger file of metadata or source is a mistake or an attack on memory.
_MAX_FILE = 2 << 20
_MAX_FILES = 100_000
_PIECE = 1 << 20
_MAX_HASHED = 256 << 20
_PACKAGE = re.compile(r"\w+(\.\w+)*")


class WheelError(Exception):
    """A file that is no wheel that can be read; the message says why."""


@dataclass(frozen=True)
class Announced:
    """What an entry point of our group leads to: a descriptor, or the ``problem`` with it."""

    name: str
    descriptor: Descriptor | None
    problem: str = ""
    #: The folder of the descriptor in the wheel.
    folder: str = ""


@contextmanager
def open_wheel(path: Path) -> Iterator[Wheel]:
    """A wheel for as long as the block lasts."""
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
        with ZipFile(path) as archive:
            yield Wheel(path, str(name), version, archive)
    except InvalidWheelFilename as error:
        raise WheelError(str(error)) from None
    except (OSError, BadZipFile, NotImplementedError, RuntimeError, zlib.error) as error:
        raise WheelError(f"{path.name} cannot be read: {error}") from None


class Wheel:
    """An open wheel; name and version are those of the file, as installers take them."""

    def __init__(self, path: Path, name: str, version: Version, archive: ZipFile) -> None:
        self.path = path
        self.name = name
        self.version = version
        self._archive = archive
        names = archive.namelist()
        if len(names) > _MAX_FILES:
            raise WheelError(f"{path.name} has {len(names)} files")
        self._names = {*names}
        folders = {name.split("/")[0] for name in names if ".dist-info/" in name}
        if len(folders) != 1:
            raise WheelError(f"{path.name} has {len(folders)} dist-info folders, not one")
        self._info = folders.pop()

    def read(self, name: str, limit: int = _MAX_FILE) -> bytes | None:
        """A file, at most its first ``limit`` bytes; None if there is none.

        What the archive says of sizes is not believed.
        """
        if name not in self._names:
            return None
        with self._archive.open(name) as file:
            return file.read(limit)

    def sha256(self) -> str:
        digest = hashlib.sha256()
        with open(self.path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return digest.hexdigest()

    def metadata(self) -> tuple[Message, str]:
        """The headers of the metadata, and the long text below them."""
        raw = self.read(f"{self._info}/METADATA")
        if raw is None:
            raise WheelError(f"{self.path.name} has no METADATA")
        raw = raw.replace(b"\r\n", b"\n")
        headers = BytesHeaderParser().parsebytes(raw)
        body = raw.partition(b"\n\n")[2].decode("utf-8", "replace").strip()
        return headers, body or str(headers.get("Description") or "")

    def announced(self) -> Iterator[Announced]:
        """What the wheel announces to the host."""
        raw = self.read(f"{self._info}/entry_points.txt") or b""
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        # Names of entry points are not all small letters.
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        try:
            parser.read_string(raw.decode("utf-8"))
        except (configparser.Error, UnicodeDecodeError) as error:
            yield Announced("", None, f"its entry points cannot be read: {error}")
            return
        points = dict(parser[GROUP]) if parser.has_section(GROUP) else {}
        for name, value in points.items():
            yield self._read_announced(name, value)

    def _read_announced(self, name: str, value: str) -> Announced:
        if CLASS_PATH.fullmatch(value):
            return Announced(name, Descriptor((Entry.of_class(value),)))
        if not _PACKAGE.fullmatch(value):
            return Announced(name, None, f"its entry point {value!r:.80} is no package")
        file = f"{value.replace('.', '/')}/{DESCRIPTOR_NAME}"
        raw = self.read(file, MAX_BYTES + 1)
        if raw is None:
            return Announced(name, None, f"it has no {file}")
        try:
            descriptor = decode_descriptor(raw, file)
            return Announced(name, descriptor, folder=file.rpartition("/")[0])
        except DescriptorError as error:
            return Announced(name, None, error.explain())

    def digest_package(self, folder: str) -> str:
        """The hash of the files below a folder, as ``conformance.json`` has it."""
        hashes = []
        for name in sorted(self._names):
            if name.startswith(f"{folder}/") and not name.endswith("/"):
                hashes.append((name.removeprefix(f"{folder}/"), self._hash(name)))
        return digest_files(hashes)

    def _hash(self, name: str) -> str:
        digest = hashlib.sha256()
        left = _MAX_HASHED
        with self._archive.open(name) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                left -= len(piece)
                if left < 0:
                    raise WheelError(f"{self.path.name}: {name} is too large to look at")
        encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        return f"sha256={encoded}"

    def folder_of(self, name: str) -> ArchivePath:
        """A folder in the wheel, to look for files in."""
        return ArchivePath(self._archive, f"{name}/")

    def source_of(self, module: str) -> str | None:
        """The text of a module of the wheel; None if it has none."""
        if not _PACKAGE.fullmatch(module):
            return None
        place = module.replace(".", "/")
        raw = self.read(f"{place}.py") or self.read(f"{place}/__init__.py")
        return None if raw is None else raw.decode("utf-8", "replace")
