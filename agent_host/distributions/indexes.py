"""Which package indexes the installers are configured for, by their own files and variables.

What an index has is not known here. Addresses may hold passwords.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_host.distributions.drift import load_toml

__all__ = ["read_pip_indexes", "read_uv_indexes"]

_PYPI = "https://pypi.org/simple"
#: A line of pip's configuration: a table and a key, and a value in quotes.
_CONFIGURED = re.compile(r"^([\w:-]*\.[\w-]+)='(.*)'$", re.MULTILINE)


def read_pip_indexes(listed: str) -> list[str]:
    """From what ``pip config list`` prints; a variable weighs most, then a command's own table."""
    told = dict(_CONFIGURED.findall(listed))

    def find(key: str, usual: str) -> list[str]:
        named = (told.get(f"{table}.{key}") for table in (":env:", "install", "global"))
        return next((text for text in named if text), usual).split()

    return [*find("index-url", _PYPI), *find("extra-index-url", "")]


def read_uv_indexes() -> list[str]:
    """From uv's variables and files; those beside the usual one stand first, as for uv."""
    more: list[str] = []
    usual: list[str] = []
    for variable, found in (
        ("UV_INDEX", more),
        ("UV_EXTRA_INDEX_URL", more),
        ("UV_DEFAULT_INDEX", usual),
        ("UV_INDEX_URL", usual),
    ):
        # An index may have a name before its address.
        found += [each.rpartition("=")[2] for each in os.environ.get(variable, "").split()]
    for settings in _uv_settings():
        for table in (settings.get("pip", {}), settings):
            more += table.get("extra-index-url", [])
            usual += [table["index-url"]] if "index-url" in table else []
        for index in settings.get("index", []):
            (usual if index.get("default") else more).append(str(index.get("url")))
    return [*dict.fromkeys([*more, *(usual[:1] or [_PYPI])])]


def _uv_settings() -> Iterator[Mapping[str, Any]]:
    """The files of the user and of the system, or the one that a variable names."""
    named = os.environ.get("UV_CONFIG_FILE")
    if os.environ.get("UV_NO_CONFIG"):
        return
    own = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for file in [named] if named else [f"{own}/uv/uv.toml", "/etc/uv/uv.toml"]:
        try:
            yield load_toml(Path(file))
        except (OSError, ValueError):
            # Nothing is lost: uv says what is wrong with its files.
            continue
