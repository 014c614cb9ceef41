"""The file that says which keys there are, and has those that no keyring has: read and checked.

Imported when a key is needed, because it brings pydantic. What stands in it is never repeated in a
message. It must not know keyrings.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from agent_hookspecs.errors import ConfigError
from agent_host.checking import pydantic_alone
from agent_host.private import write_private

__all__ = ["Key", "read_keys", "write_keys"]

#: Without waiting for what is no file.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_Name = Annotated[str, Field(min_length=1)]


with pydantic_alone():

    class Key(BaseModel):
        """One key: the provider that it is for, where it is, and what it is if it is here."""

        model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

        provider: _Name
        place: Literal["keyring", "file"]
        key: _Name | None = Field(default=None, repr=False)

        @model_validator(mode="after")
        def _has_key(self) -> Key:
            if (self.place == "file") != (self.key is not None):
                raise ValueError("the file has the keys whose place it is, and no others")
            return self

    class _File(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid")

        keys: dict[_Name, Key]

    _FILE = TypeAdapter(_File)


def read_keys(file: Path) -> dict[str, Key]:
    """The keys by name; none if there is no file."""
    try:
        with open(os.open(file, _READ), "rb") as handle:
            _check_file(file, os.fstat(handle.fileno()))
            raw = handle.read()
    except FileNotFoundError:
        # Nothing is lost: there are no keys yet.
        return {}
    except OSError as error:
        raise _file_error(
            file, f"cannot be read: {error.strerror}", "see who may read it"
        ) from error
    try:
        return _FILE.validate_json(raw).keys
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "it"
        # Not what stands there, which may be a key.
        raise _file_error(
            file, f"is not as we write it, at {where}", "correct it, or delete it and set keys anew"
        ) from None


def write_keys(file: Path, keys: Mapping[str, Key]) -> None:
    """Replace the file, readable by its owner alone."""
    described = {name: key.model_dump(exclude_none=True) for name, key in sorted(keys.items())}
    write_private(file, {"keys": described})


def _check_file(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _file_error(file, "is no regular file", "delete it and set keys anew")
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        raise _file_error(file, "has keys in it, and others may use it", f"run: chmod 600 {file}")


def _file_error(file: Path, what: str, hint: str) -> ConfigError:
    return ConfigError(f"{file} {what}", file=str(file), hint=hint)
