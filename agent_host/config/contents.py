"""What a config in a folder consists of, as digests: the file itself and all that it loads.

Those are the files of its ``path:`` sources, the programs of the folder that print keys, and the
folders inside it from which plugins load, such as skills. A ``git+`` source is known by the commit
that stands in the config. What the digests are for is not known here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Final

from agent_hookspecs.errors import ConfigError
from agent_host.config.placeholders import substitute
from agent_host.config.values import FOLDERS_SUFFIX, LoadedConfig
from agent_host.redaction import mask_config
from agent_host.trust import Contents

__all__ = ["MAX_TRUSTED_BYTES", "MAX_TRUSTED_FILES", "read_contents"]

#: More than any plugin has; whoever names a folder with more has named too much.
MAX_TRUSTED_FILES: Final = 5000
MAX_TRUSTED_BYTES: Final = 64 << 20

#: Through links, as an import goes, but without waiting for what is no file.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_PIECE = 1 << 20
#: Where the interpreter keeps what it has compiled.
_COMPILED = "__pycache__"


def read_contents(config: LoadedConfig, raw: bytes) -> Contents:
    """The contents of a config that was read from a folder, as these bytes."""
    assert config.file is not None, "only what lies in a folder is trusted"
    digests = {config.file.name: hashlib.sha256(raw).hexdigest()}
    digests |= _Digests(config.file.parent.resolve()).of_config(config)
    masked = mask_config(config.values)
    return Contents(
        digests,
        tuple(json.dumps(masked, indent=2, sort_keys=True).splitlines()),
        hashlib.sha256(repr([*_hidden_values(config.values, masked)]).encode()).hexdigest(),
    )


def _hidden_values(value: Any, shown: Any) -> Iterator[str]:
    """What stands where a mask is shown."""
    if isinstance(value, Mapping) and isinstance(shown, Mapping):
        for key in sorted(value):
            yield from _hidden_values(value[key], shown.get(key))
    elif isinstance(value, (list, tuple)) and isinstance(shown, (list, tuple)):
        for item, other in zip(value, shown, strict=False):
            yield from _hidden_values(item, other)
    elif value != shown:
        yield repr(value)


class _Digests:
    """Digests of files by their paths from a folder, of a bounded number of files and bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, str] = {}
        self._bytes_left = MAX_TRUSTED_BYTES

    def of_config(self, config: LoadedConfig) -> dict[str, str]:
        for number, source in enumerate(config.loader_settings().sources):
            kind, _, value = source.partition(":")
            if kind == "path" and value:
                path = Path(config.folder, os.path.expanduser(value)).resolve()
                key = f"plugins[{number}]"
                if path.suffix == ".py" and path.is_file():
                    # It can import whatever lies beside it.
                    self._add_folder(path.parent, key, only_modules=True)
                else:
                    self._add_folder(path, key, only_modules=False)
        for file in _key_programs(config, self._folder):
            self._add_file(str(file), "api_key_command")
        for key, folder in _loaded_folders(config, self._folder):
            self._add_folder(folder, key, only_modules=False)
        return self._found

    def _add_folder(self, folder: Path, key: str, *, only_modules: bool) -> None:
        seen: set[tuple[int, int]] = set()
        for place, folders, files in os.walk(folder, followlinks=True):
            status = os.stat(place)
            identity = status.st_dev, status.st_ino
            # Links may lead in a circle. What is hidden cannot be imported, and often changes.
            wanted = [n for n in folders if not n.startswith(".") and n.isidentifier()]
            others = [] if only_modules else [n for n in folders if not n.startswith(".")]
            folders[:] = [] if identity in seen else sorted({*wanted, *others})
            seen.add(identity)
            for name in sorted(files):
                is_module = name.endswith(tuple(all_suffixes()))
                if is_module or not (only_modules or name.startswith(".")):
                    self._add_file(os.path.join(place, name), key)

    def _add_file(self, path: str, key: str) -> None:
        name = os.path.relpath(path, self._folder)
        digest = self._digest(path, key)
        if digest is None:
            return
        self._found[name] = digest
        if len(self._found) > MAX_TRUSTED_FILES:
            raise self._too_much(key, f"{MAX_TRUSTED_FILES} files")

    def _digest(self, path: str, key: str) -> str | None:
        """None for what the interpreter has compiled by itself, which it compares with its source.

        What cannot be read cannot be imported either, and is told from what can.
        """
        try:
            with open(os.open(path, _READ), "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return "no file"
                is_compiled = os.path.basename(os.path.dirname(path)) == _COMPILED
                digest = hashlib.sha256()
                piece = file.read(_PIECE)
                # Those that are used without a look at the time of their source say so.
                if is_compiled and path.endswith(".pyc") and piece[4:8] == bytes(4):
                    return None
                while piece:
                    self._bytes_left -= len(piece)
                    if self._bytes_left < 0:
                        raise self._too_much(key, f"{MAX_TRUSTED_BYTES >> 20} MiB")
                    digest.update(piece)
                    piece = file.read(_PIECE)
                return digest.hexdigest()
        except OSError as error:
            return f"unreadable: {error.strerror}"

    def _too_much(self, key: str, limit: str) -> ConfigError:
        return ConfigError(
            f"{key} loads more than {limit}, which is more than can be trusted",
            key=key,
            hint="let it name a folder that holds the plugin and nothing else",
        )


def _key_programs(config: LoadedConfig, folder: Path) -> Iterator[Path]:
    """The files of the folder that are run, or read by what is run, to get a key."""
    for section in _sections(config):
        command = section.get("api_key_command") or ()
        for argument in _split(command) if isinstance(command, str) else command:
            if isinstance(argument, str):
                path = Path(folder, os.path.expanduser(argument))
                if "\0" not in argument and path.is_file() and _is_inside(path, folder):
                    yield path


def _loaded_folders(config: LoadedConfig, folder: Path) -> Iterator[tuple[str, Path]]:
    """The folders of the folder from which plugins load, with the settings that name them.

    What lies elsewhere is not the folder's to change.
    """
    for section in _sections(config):
        for key, value in section.items():
            if not key.endswith(FOLDERS_SUFFIX) or not isinstance(value, list):
                continue
            try:
                filled = substitute(value, config.env, key, config.file)
            except ConfigError:
                # Nothing is lost: a run fails for the same placeholder, and says so.
                continue
            for each in filled:
                if isinstance(each, str) and each and "\0" not in each:
                    path = Path(folder, os.path.expanduser(each))
                    if _is_inside(path, folder):
                        yield key, path


def _sections(config: LoadedConfig) -> list[Mapping[str, Any]]:
    """The parts of a config that have settings of requests."""
    values = config.values
    return [
        values.get("request_defaults", {}),
        *values.get("providers", {}).values(),
        *values.get("agents", {}).values(),
    ]


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        # Nothing is lost: the command cannot be run, and whoever wants its key is told.
        return []


def _is_inside(path: Path, folder: Path) -> bool:
    return Path(os.path.abspath(path)).is_relative_to(folder)
