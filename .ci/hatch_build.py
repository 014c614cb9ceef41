"""Puts into an sdist the files that a distribution of this repository only links to.

The licence stands once, at the root, and every other distribution has a link to it. A wheel gets
the text by itself, but an sdist would get the link, which leads nowhere outside the repository.
This file is such a link too, so that an sdist can be made from an unpacked one.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FollowLinks(BuildHookInterface[Any]):
    """Replaces every link among the files beside the package by what it leads to."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        included = build_data["force_include"]
        build_data["force_include"] = {os.path.realpath(path): included[path] for path in included}
