"""Finds, reads and checks config files: one JSON or TOML file, of a folder or the user's own.

What a file may say that merely lies in the working folder is for `folders` to judge.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact, remember_secrets
from agent_host.config.placeholders import check_placeholders, config_error
from agent_host.config.values import LoadedConfig
from agent_host.places import find_config_file, own_config_file
from agent_host.redaction import named_secrets

__all__ = [
    "MAX_CONFIG_BYTES",
    "find_config",
    "load_config",
    "parse_config",
    "read_config",
]

#: More than any config has; one that lies in a folder may be anybody's.
MAX_CONFIG_BYTES: Final = 4 << 20
#: Where people keep keys: what stands there is never repeated in a message.
_CONFIDENTIAL = re.compile(r"(env|providers|agents|request_defaults)\b")


def find_config(folder: Path | None = None) -> Path | None:
    """The working folder's config if there is one, else the user's own, else None."""
    found = find_config_file(folder)
    return None if found is None else Path(found)


def _own_config() -> Path | None:
    found = own_config_file()
    return None if found is None else Path(found)


def load_config(file: Path | None = None, *, folder: Path | None = None) -> LoadedConfig:
    """The config in ``file``, or whichever `find_config` finds.

    A file the caller names is theirs. One that was found in a folder that is not trusted is
    refused as soon as it says something that needs trust; otherwise it adds to the user's own,
    whose policy stays in force.
    """
    found = file or find_config(folder)
    if found is None:
        return LoadedConfig()
    config, raw = read_config(found)
    own = _own_config()
    if file is not None or found == own:
        return config
    # Here, because most configs are the user's own.
    from agent_host.config.folders import judge_config

    return judge_config(config, raw, own)


def read_config(file: Path) -> tuple[LoadedConfig, bytes]:
    """The config in a file, whoever it is from, and the bytes that it is."""
    raw = _read_bytes(file)
    return parse_config(_decode(raw, file), file), raw


def parse_config(values: object, file: Path | None = None) -> LoadedConfig:
    """Check decoded values; a `ConfigError` names file, key and what would be right."""
    if values == {}:
        # Nothing can be wrong with it, and a process without a config has no use for pydantic.
        return LoadedConfig({}, file)
    from agent_host.config.model import check_config

    problem = check_config(values)
    if problem is not None:
        hidden = problem.quotes and _CONFIDENTIAL.match(problem.where)
        what = f"{problem.where} has a value of the wrong kind" if hidden else redact(problem.what)
        raise config_error(what, problem.where, file, problem.remedy)
    assert isinstance(values, dict)
    check_placeholders(values, file)
    remember_secrets(named_secrets(values))
    return LoadedConfig(values, file)


def _read_bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as handle:
            raw = handle.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        what = f"{file} cannot be read: {error.strerror or error}"
        hint = "check its path and who may read it"
        raise ConfigError(what, file=str(file), hint=hint) from error
    if len(raw) > MAX_CONFIG_BYTES:
        raise ConfigError(
            f"{file} has more than {MAX_CONFIG_BYTES:,} bytes, which no config has",
            file=str(file),
            hint="name another file with --config, or delete this one",
        )
    return raw


def _decode(raw: bytes, file: Path) -> Any:
    try:
        text = raw.decode("utf-8-sig")
        return _parse_toml(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        match error:
            case RecursionError():
                what = "is nested too deeply"
            case UnicodeDecodeError():
                what = f"is not UTF-8: {error}"
            case _:
                what = f"is not {'TOML' if file.suffix == '.toml' else 'JSON'}: {error}"
        hint = "correct the file; agent-host config schema says what it may hold"
        raise ConfigError(f"{file} {what}", file=str(file), hint=hint) from error


def _parse_toml(text: str) -> Any:
    # With the line ends of a text file, as the file would have been opened.
    text = text.replace("\r\n", "\n")
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
