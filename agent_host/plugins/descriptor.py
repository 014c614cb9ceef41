"""Reads and checks descriptors from files, folders and archives without importing anything.

Whatever is wrong with a file becomes a `DescriptorError` that says what to do. The keys of an entry
are the contract's; here is the file around them, and what keys must not say together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import IO, Annotated, Any, Protocol

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter, ValidationError

from agent_hookspecs.descriptor import (
    DESCRIPTOR_NAME,
    ClassPath,
    Descriptor,
    Entry,
    FilledText,
    InFile,
    QualityTier,
    Text,
    WebAddress,
)
from agent_hookspecs.errors import DescriptorError
from agent_hookspecs.versions import contains
from agent_host.checking import CHOICE, find_problem, json_schema, pydantic_alone

__all__ = [
    "MAX_BYTES",
    "decode_descriptor",
    "descriptor_schema",
    "parse_descriptor",
    "read_descriptor",
]

#: No honest descriptor comes near; a larger file is a mistake or an attack on memory.
MAX_BYTES = 1 << 20

_SHORT, _FULL = f"{CHOICE}short", f"{CHOICE}full"
_AnyEntry = Annotated[
    Annotated[ClassPath, Field(description="Short form: the class alone."), Tag(_SHORT)]
    | Annotated[Entry, Tag(_FULL)],
    Discriminator(lambda value: _FULL if isinstance(value, dict) else _SHORT),
]


with pydantic_alone():

    class _File(BaseModel):
        """What stands in an ``agent_plugin.json``; further keys are for newer hosts."""

        schema_: Text = Field(default="", alias="$schema")
        api: FilledText = Field(
            default="", description="The contract versions it works with, such as >=1,<2."
        )
        subdirectory: FilledText = Field(
            default=".", description="Where the packages are, relative to the descriptor's folder."
        )
        homepage: WebAddress = Field(
            default="", description="Where it is presented, if its metadata do not say so."
        )
        documentation: WebAddress = Field(
            default="", description="Where it is explained, if its metadata do not say so."
        )
        issues: WebAddress = Field(
            default="", description="Where problems are told, if its metadata do not say so."
        )
        license: FilledText = Field(
            default="", description="Its licence as an SPDX expression, if its metadata have none."
        )
        tier: Annotated[QualityTier | None, InFile(QualityTier)] = Field(
            default=None, description="The tier of quality that its author claims."
        )
        entries: list[_AnyEntry] = Field(
            min_length=1, description="The plugin classes of the package."
        )

    _FILE = TypeAdapter(_File)


@cache
def descriptor_schema() -> dict[str, Any]:
    """The JSON Schema of the file, which the contract's package has for editors."""
    return json_schema(
        _FILE,
        DESCRIPTOR_NAME,
        "What a package offers to Agent Host, readable without importing it.",
    )


class _Readable(Protocol):
    """A file on disk or inside an archive."""

    def open(self, mode: str) -> IO[bytes]:
        """As `pathlib.Path.open`."""


def read_descriptor(path: _Readable) -> Descriptor:
    """Read and check one file."""
    try:
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


def parse_descriptor(data: object) -> Descriptor:
    """Check decoded JSON against the model; a `DescriptorError` names the key and what is right.

    Keys the model does not know become ``unknown_keys`` rather than an error, so that a package
    written for a newer contract can still be read.
    """
    try:
        file = _FILE.validate_python(data)
    except ValidationError as error:
        problem = find_problem(error, descriptor_schema())
        raise DescriptorError(
            problem.what, key=problem.where or None, hint=problem.remedy
        ) from None
    if file.api:
        _check_range(file.api)
    entries = [Entry.of_class(each) if isinstance(each, str) else each for each in file.entries]
    for number, entry in enumerate(entries):
        _check_entry(entry, f"entries[{number}]")
    assert isinstance(data, dict)
    return Descriptor(
        tuple(entries),
        file.api or None,
        file.subdirectory,
        tuple(_unknown_keys(data)),
        homepage=file.homepage,
        documentation=file.documentation,
        issues=file.issues,
        license=file.license,
        tier=file.tier,
    )


def _unknown_keys(document: Mapping[str, Any]) -> list[str]:
    known = {field.alias or name for name, field in _File.model_fields.items()}
    unknown = [str(key) for key in document if key not in known]
    for number, entry in enumerate(document["entries"]):
        if isinstance(entry, dict):
            unknown += [f"entries[{number}].{k}" for k in entry if k not in Entry.__match_args__]
    return unknown


def _check_range(api: str) -> None:
    try:
        contains(api, "0")
    except ValueError:
        raise DescriptorError(
            f"api is {api!r:.60}", key="api", hint="it must be a version range such as '>=1,<2'"
        ) from None


def _check_entry(entry: Entry, where: str) -> None:
    """Refuse keys that contradict each other."""
    needed = entry.required_plugins
    for side, others in (
        ("before", entry.before),
        ("after", entry.after),
        ("required_plugins", [each.removeprefix(f"{entry.role}:") for each in needed]),
    ):
        if entry.name in others:
            raise DescriptorError(
                f"{where}.{side} names the plugin itself, {entry.name!r}",
                key=f"{where}.{side}",
                hint="remove it",
            )
    if needed and entry.role == "provider":
        raise DescriptorError(
            f"{where}.required_plugins is not for providers, which are chosen by the user",
            key=f"{where}.required_plugins",
            hint="remove it, and let what needs the provider require its tag",
        )
    for key, value, role in (
        ("tools", entry.tools, "tool"),
        ("fallback", entry.fallback, "provider"),
        ("default_model", entry.default_model, "provider"),
        ("local_server", entry.local_server, "provider"),
    ):
        if value and entry.role != role:
            raise DescriptorError(
                f"{where}.{key} is for role {role!r}, but the entry has role {entry.role!r}",
                key=f"{where}.{key}",
                hint="remove it, or correct the role",
            )
