"""Reads descriptors from files, folders and archives without importing anything.

Whatever is wrong with a file becomes a `DescriptorError` that says what to do. What a descriptor
may say is the contract's business.
"""

from __future__ import annotations

import json
from typing import IO, Protocol

from agent_hookspecs.descriptor import Descriptor, parse_descriptor
from agent_hookspecs.errors import DescriptorError
from agent_host.plugins.contents import content_of

__all__ = ["MAX_BYTES", "decode_descriptor", "read_descriptor"]

#: No honest descriptor comes near; a larger file is a mistake or an attack on memory.
MAX_BYTES = 1 << 20


class _Readable(Protocol):
    """A file on disk or inside an archive."""

    def open(self, mode: str) -> IO[bytes]:
        """As `pathlib.Path.open`."""


def read_descriptor(path: str | _Readable) -> Descriptor:
    """Read and check one file."""
    try:
        if isinstance(path, str):
            raw = content_of(path, MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DescriptorError(
            f"{path} cannot be read: {error.strerror or error}",
            file=str(path),
            hint="reinstall the package, or check the file's permissions",
        ) from error
    return decode_descriptor(raw, str(path))


def decode_descriptor(raw: bytes, file: str) -> Descriptor:
    """Decode and check the content of ``file``."""
    if len(raw) > MAX_BYTES:
        raise DescriptorError(
            f"{file} is larger than {MAX_BYTES // 1024} KiB",
            file=file,
            hint="a descriptor lists plugin classes; keep data in other files",
        )
    try:
        # A file that began as UTF-16 or with a BOM is a common accident of editors.
        data = _DECODER.decode(raw.decode("utf-8-sig"))
    except RecursionError:
        raise DescriptorError(
            f"{file} is nested too deeply", file=file, hint="flatten it"
        ) from None
    except ValueError as error:
        raise DescriptorError(
            f"{file} is not JSON: {error}", file=file, hint="correct it, or reinstall the package"
        ) from error
    try:
        return parse_descriptor(data)
    except DescriptorError as error:
        raise DescriptorError(
            f"{file}: {error.message}", key=error.key, file=file, hint=error.hint
        ) from None


def _refuse_constant(name: str) -> None:
    """Python reads these, the rest of the world does not."""
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
