"""A config file as text that can be changed: a value set, everything else left as it was.

TOML keeps its comments and its order. It must not know what the values mean: whoever writes a
document has it checked first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from agent_hookspecs.errors import ConfigError
from agent_host.places import config_folder, own_config_file
from agent_host.private import make_private_folder, replace_private

__all__ = ["ConfigDocument", "own_document_file", "split_key", "write_document"]

_HEAD = "# Your own config of agent-host; agent-host config schema says what it may hold.\n"


def own_document_file() -> Path:
    """The user's own config file, or where it would be."""
    return Path(own_config_file() or os.path.join(config_folder(), "config.toml"))


def split_key(key: str) -> list[str]:
    """The steps of a dotted key; a step with a dot stands in quotes: ``providers."a.b".model``."""
    steps = [""]
    quoted = False
    for letter in key:
        if letter == '"':
            quoted = not quoted
        elif letter == "." and not quoted:
            steps.append("")
        else:
            steps[-1] += letter
    if quoted or not all(steps):
        raise ConfigError(
            f"{key!r} is no key",
            key=key,
            hint='write it with dots, such as agents.default.model or providers."my one".model',
        )
    return steps


class ConfigDocument:
    """The text of a config file, which may not exist yet."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self._is_toml = file.suffix == ".toml"
        try:
            if self._is_toml:
                self._root: Any = import_module("tomlkit").parse(text)
            else:
                self._root = json.loads(text or "{}")
        except ValueError as error:
            kind = "TOML" if self._is_toml else "JSON"
            raise ConfigError(
                f"{file} is not {kind}: {error}", file=str(file), hint="run: agent-host config edit"
            ) from error

    @classmethod
    def read(cls, file: Path) -> ConfigDocument:
        """What is in the file; a new document if there is none."""
        try:
            return cls(file, file.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            # Nothing is lost: it is made when it is written.
            return cls(file, _HEAD if file.suffix == ".toml" else "{}")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{file} cannot be read: {error}", file=str(file), hint="check who may read it"
            ) from error

    @property
    def values(self) -> dict[str, Any]:
        """The values, as plain data."""
        found: dict[str, Any] = self._root.unwrap() if self._is_toml else self._root
        return found

    @property
    def text(self) -> str:
        if self._is_toml:
            return str(import_module("tomlkit").dumps(self._root))
        return json.dumps(self._root, indent=2, ensure_ascii=False) + "\n"

    def set(self, steps: Sequence[str], value: Any, comment: str = "") -> None:
        """Set a value; sections that are missing are made, with a comment of their own in TOML."""
        place, *_ = self._walk(steps[:-1])
        name = steps[-1]
        is_new = name not in place
        if self._is_toml and comment and is_new:
            place.add(import_module("tomlkit").comment(comment))
        place[name] = value

    def add_comment(self, steps: Sequence[str], text: str) -> None:
        """Put a line into a section that only people read; JSON has none."""
        if self._is_toml:
            (place,) = self._walk(steps)
            place.add(import_module("tomlkit").comment(text))

    def remove(self, steps: Sequence[str]) -> bool:
        """Take a value out; False if it is not there."""
        place: Any = self._root
        for step in steps[:-1]:
            place = place.get(step)
            if not isinstance(place, Mapping):
                return False
        return place.pop(steps[-1], None) is not None

    def _walk(self, steps: Sequence[str]) -> tuple[Any]:
        place: Any = self._root
        for number, step in enumerate(steps):
            if step not in place:
                place[step] = self._new_section(is_last=number == len(steps) - 1)
            place = place[step]
            if not isinstance(place, Mapping):
                where = ".".join(steps[: number + 1])
                raise ConfigError(
                    f"{where} is no section", key=where, file=str(self.file), hint="name its parent"
                )
        return (place,)

    def _new_section(self, *, is_last: bool) -> Any:
        # A section that only holds others needs no heading of its own.
        return import_module("tomlkit").table(is_super_table=not is_last) if self._is_toml else {}


def write_document(file: Path, text: str) -> None:
    """Replace the file in one step: the user's own for them alone, another with the mode it had."""
    make_private_folder(file.parent)
    mode = None
    if file.exists() and os.path.realpath(file.parent) != os.path.realpath(config_folder()):
        mode = file.stat().st_mode & 0o777
    replace_private(file, text.encode())
    if mode is not None:
        file.chmod(mode)
