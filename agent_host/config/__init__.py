"""The application's config: found, read, checked, and substituted.

`model` says what a file may hold, `files` finds and reads it, `contents` says of which files it
consists, `untrusted` what a stranger's may add, `values` what it means, `placeholders` fills in the
environment, and `check` says whether the plugins there are can do it.
"""

from __future__ import annotations

from agent_host.config.files import find_config, load_config, parse_config, read_folder
from agent_host.config.placeholders import substitute
from agent_host.config.values import Layers, LoadedConfig

__all__ = [
    "Layers",
    "LoadedConfig",
    "find_config",
    "load_config",
    "parse_config",
    "read_folder",
    "substitute",
]
