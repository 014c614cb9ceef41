"""The places of the host that no tool may touch, as every tool's config names them.

`agent_hookspecs.protection` says what a tool makes of them. What they hold is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from agent_host.places import NAMES_IN_FOLDER, places

__all__ = ["PROTECTED", "protected_paths"]

#: The key under which tools find them.
PROTECTED: Final = "protected_paths"


def protected_paths(more: Iterable[str | os.PathLike[str]] = ()) -> list[str]:
    """The user's folders, the names of configs in any folder, and what an application adds."""
    folders = [folder for folder in places().values() if folder is not None]
    added = [os.path.abspath(os.path.expanduser(path)) for path in more]
    return [*dict.fromkeys([*folders, *added]), *NAMES_IN_FOLDER]
