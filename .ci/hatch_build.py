"""Puts into an sdist the files of this repository that a distribution has not in its own folder.

The licence stands once, at the root, and every other distribution has a link to it. A wheel gets
the text by itself, but an sdist would get the link, which leads nowhere outside the repository.
This file is such a link too, so that an sdist can be made from an unpacked one. Helpers that tests
share with others are named in the ``pyproject.toml``, and lie beside the tests in the sdist.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FollowLinks(BuildHookInterface[Any]):
    """Replaces every link among the files beside the package by what it leads to; adds helpers."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        included = build_data["force_include"]
        included = {os.path.realpath(path): included[path] for path in included}
        here = Path(__file__).resolve().parent
        # In an unpacked sdist the helpers are among the tests.
        if here.name == ".ci":
            for helper in self.config.get("helpers", []):
                included[str(here.parent / helper)] = f"tests/{Path(helper).name}"
        build_data["force_include"] = included
