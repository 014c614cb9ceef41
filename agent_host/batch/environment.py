"""What is installed where a worker is opened, so that every worker answers lines in the same way.

It must not know which machines there are, nor what becomes of a difference.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from importlib_metadata import PackageNotFoundError, version

from agent_host.distributions.drift import lock_file
from agent_host.places import config_folder
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.discover import discover

__all__ = ["find_environment"]

#: What answers lines besides plugins.
_OWN = ("agent-host-core", "agent-hookspecs")


def find_environment() -> dict[str, str]:
    """The versions of Python, the host and all that announces plugins, and a digest of the lock."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in _OWN:
        with suppress(PackageNotFoundError):
            # Nothing is lost: it is missing in what is compared.
            found[name] = version(name)
    for bundle in discover():
        if bundle.distribution:
            found[canonical_name(bundle.distribution)] = bundle.version
    file = lock_file(Path(config_folder()))
    if file.is_file():
        found[file.name] = sha256(file.read_bytes()).hexdigest()[:16]
    return found
