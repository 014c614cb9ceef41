"""Finds, reads and checks config files.

One JSON or TOML file, of the working folder or the user's own. A file that merely lies in the
working folder is somebody else's until the user trusts what is there.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact, remember_secrets
from agent_host.config.contents import read_contents
from agent_host.config.placeholders import check_placeholders, config_error
from agent_host.config.untrusted import add_untrusted, refuse_untrusted
from agent_host.config.values import LoadedConfig
from agent_host.places import find_config_file, find_folder_file, own_config_file
from agent_host.redaction import named_secrets
from agent_host.trust import Contents, compare_contents, read_trusted

__all__ = [
    "MAX_CONFIG_BYTES",
    "find_config",
    "is_trusted",
    "load_config",
    "parse_config",
    "read_folder",
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
    raw = _read_bytes(found)
    config = parse_config(_decode(raw, found), found)
    own = _own_config()
    if file is not None or found == own:
        return config
    trusted, difference = read_trusted(found.parent), None
    if trusted is not None:
        difference = compare_contents(trusted, read_contents(config, raw))
        if not difference:
            return config
    refuse_untrusted(config, found, difference)
    joined = add_untrusted(_load_own(own), config)
    if difference is None:
        return joined
    ended = f"{found} is no longer what you have trusted: {difference.describe()}"
    way_out = "it only adds names until you run: agent-host config trust"
    return replace(joined, warnings=(f"{ended}; {way_out}", *joined.warnings))


def read_folder(folder: Path) -> Contents:
    """What there is to trust in a folder: its config and what that loads."""
    found = find_folder_file(folder)
    if found is None:
        raise ConfigError(
            f"{folder} has no config to trust",
            file=str(folder),
            hint="name the folder in which the agent-host.json or agent-host.toml lies",
        )
    file = Path(found)
    raw = _read_bytes(file)
    return read_contents(parse_config(_decode(raw, file), file), raw)


def is_trusted(folder: Path) -> bool:
    """Whether what lies in a folder is what the user has trusted."""
    trusted = read_trusted(folder)
    try:
        return trusted is not None and not compare_contents(trusted, read_folder(folder))
    except ConfigError:  # Nothing is lost: loading the config raises it too.
        return False


def _load_own(own: Path | None) -> LoadedConfig:
    return parse_config(_decode(_read_bytes(own), own), own) if own else LoadedConfig()


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
