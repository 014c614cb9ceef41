"""A config that lies in a folder: whether the user has trusted it, and what it may say otherwise.

It is somebody else's until the user trusts what is there, and again when that has changed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent_hookspecs.errors import ConfigError
from agent_host.config.contents import read_contents
from agent_host.config.files import read_config
from agent_host.config.untrusted import add_untrusted, refuse_untrusted
from agent_host.config.values import LoadedConfig
from agent_host.places import find_folder_file
from agent_host.trust import Contents, compare_contents, read_trusted

__all__ = ["is_trusted", "judge_config", "read_folder"]


def judge_config(config: LoadedConfig, raw: bytes, own: Path | None) -> LoadedConfig:
    """A folder's config if it is trusted, else the user's ``own`` with what it may add to that.

    It is refused if it says something that needs trust.
    """
    file = config.file
    assert file is not None, "it lies in a folder"
    trusted, difference = read_trusted(file.parent), None
    if trusted is not None:
        difference = compare_contents(trusted, read_contents(config, raw))
        if not difference:
            return config
    refuse_untrusted(config, file, difference)
    joined = add_untrusted(read_config(own)[0] if own else LoadedConfig(), config)
    if difference is None:
        return joined
    ended = f"{file} is no longer what you have trusted: {difference.describe()}"
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
    return read_contents(*read_config(Path(found)))


def is_trusted(folder: Path) -> bool:
    """Whether what lies in a folder is what the user has trusted."""
    trusted = read_trusted(folder)
    try:
        return trusted is not None and not compare_contents(trusted, read_folder(folder))
    except ConfigError:  # Nothing is lost: loading the config raises it too.
        return False
