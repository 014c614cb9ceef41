"""The application's config: found, read, checked, and substituted.

`model` says what a file may hold, `files` finds and reads it, `folders` judges one that lies in a
folder by its `contents` and by what an `untrusted` one may add, `values` says what it means,
`placeholders` fills in the environment, and `check` says whether the plugins there are can do it.
"""

from __future__ import annotations

from agent_host.config.files import find_config, load_config, parse_config
from agent_host.config.placeholders import substitute
from agent_host.config.values import Layers, LoadedConfig

__all__ = [
    "Layers",
    "LoadedConfig",
    "find_config",
    "load_config",
    "parse_config",
    "substitute",
]
