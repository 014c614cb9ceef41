"""What is installed where a worker is opened, so that every worker answers lines in the same way.

It must not know which machines there are, nor what becomes of a difference.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

from agent_host.distributions.drift import lock_file
from agent_host.places import config_folder
from agent_host.plugins.bundle import canonical_name
from agent_host.plugins.discover import GROUP

__all__ = ["find_environment"]

#: What answers lines besides plugins.
_OWN = frozenset({"agent-host-core", "agent-hookspecs"})


def find_environment() -> dict[str, str]:
    """The versions of Python, the host and all that announces plugins, and a digest of the lock."""
    from importlib_metadata import distributions

    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for each in distributions():
        name = canonical_name(each.name)
        if name in _OWN or any(point.group == GROUP for point in each.entry_points):
            # The first of a name is the one that is imported.
            found.setdefault(name, each.version)
    file = lock_file(Path(config_folder()))
    if file.is_file():
        found[file.name] = sha256(file.read_bytes()).hexdigest()[:16]
    return found
