"""Finds, reads and checks config files.

One JSON or TOML file, of the working folder or the user's own. A file that merely lies in the
working folder is somebody else's until the user trusts that folder.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import redact, remember_secrets
from agent_host.config.placeholders import check_placeholders, config_error
from agent_host.config.untrusted import refuse_untrusted
from agent_host.config.values import AppConfig
from agent_host.places import find_config_file, own_config_file
from agent_host.redaction import named_secrets
from agent_host.trust import is_trusted

__all__ = ["find_config", "load_config", "parse_config"]

#: Where people keep keys: what stands there is never repeated in a message.
_CONFIDENTIAL = re.compile(r"(env|providers|agents|request_defaults)\b")


def find_config(folder: Path | None = None) -> Path | None:
    """The working folder's config if there is one, else the user's own, else None."""
    found = find_config_file(folder)
    return None if found is None else Path(found)


def _own_config() -> Path | None:
    found = own_config_file()
    return None if found is None else Path(found)


def load_config(file: Path | None = None, *, folder: Path | None = None) -> AppConfig:
    """The config in ``file``, or whichever `find_config` finds.

    A file the caller names is theirs. One that was found in a folder that is not trusted is
    refused as soon as it says something that needs trust; otherwise it adds to the user's own,
    whose policy stays in force.
    """
    found = file or find_config(folder)
    if found is None:
        return AppConfig()
    config = parse_config(_read_file(found), found)
    own = _own_config()
    if file is not None or found == own or is_trusted(found.parent):
        return config
    refuse_untrusted(config, found)
    return _join_configs(parse_config(_read_file(own), own) if own else AppConfig(), config)


def _join_configs(own: AppConfig, other: AppConfig) -> AppConfig:
    """The user's own config with the agents and aliases of another."""
    values = dict(own.values)
    for key in ("providers", "agents"):
        if key in other.values:
            values[key] = {**values.get(key, {}), **other.values[key]}
    if "denied_plugins" in other.values:
        values["denied_plugins"] = [
            *values.get("denied_plugins", ()),
            *other.values["denied_plugins"],
        ]
    return AppConfig(values, other.file, own.folder)


def parse_config(values: object, file: Path | None = None) -> AppConfig:
    """Check decoded values; a `ConfigError` names file, key and what would be right."""
    if values == {}:
        # Nothing can be wrong with it, and a process without a config has no use for pydantic.
        return AppConfig({}, file)
    from agent_host.config.model import check_config

    problem = check_config(values)
    if problem is not None:
        hidden = problem.quotes and _CONFIDENTIAL.match(problem.where)
        what = f"{problem.where} has a value of the wrong kind" if hidden else redact(problem.what)
        raise config_error(what, problem.where, file, problem.remedy)
    assert isinstance(values, dict)
    check_placeholders(values, file)
    remember_secrets(named_secrets(values))
    return AppConfig(values, file)


def _read_file(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8-sig")
        return _parse_toml(text) if file.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        hint = "correct the file; agent-host config schema says what it may hold"
        match error:
            case OSError():
                hint = "check its path and who may read it"
                what = f"cannot be read: {error.strerror or error}"
            case RecursionError():
                what = "is nested too deeply"
            case UnicodeDecodeError():
                what = f"is not UTF-8: {error}"
            case _:
                what = f"is not {'TOML' if file.suffix == '.toml' else 'JSON'}: {error}"
        raise ConfigError(f"{file} {what}", file=str(file), hint=hint) from error


def _parse_toml(text: str) -> Any:
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
