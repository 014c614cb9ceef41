"""Where skills come from: folders that the config names, the user's own, and installed packages.

A distribution announces a folder of one of its packages by an entry point of the group
``agent_host.skills``. It is located by metadata; nothing of it is imported. What lies in a folder
is not known here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from typing import Literal

from agent_host_skills.problems import Problem

__all__ = ["GROUP", "Source", "data_folder", "find_sources", "user_folder"]

GROUP = "agent_host.skills"

_PACKAGE = re.compile(r"\w+(\.\w+)*")
_APP = "agent-host"


@dataclass(frozen=True, slots=True)
class Source:
    """A folder, and who has named it: the config, the user by putting skills there, or a package.

    ``label`` is what people know it by.
    """

    kind: Literal["config", "user", "distribution"]
    label: str
    path: str


def find_sources(folders: Iterable[str]) -> tuple[list[Source], list[Problem]]:
    """All sources, those that count more first; and what is wrong with some."""
    found = [
        Source("config", folder, os.path.abspath(os.path.expanduser(folder))) for folder in folders
    ]
    own = user_folder()
    if os.path.isdir(own):
        found.append(Source("user", own, own))
    problems: list[Problem] = []
    found += _installed_sources(problems)
    return found, problems


def user_folder() -> str:
    """The folder ``skills`` beside the user's config."""
    return os.path.join(_place("XDG_CONFIG_HOME", ".config"), "skills")


def data_folder() -> str:
    """Where what is worth keeping lies."""
    return _place("XDG_DATA_HOME", os.path.join(".local", "share"))


def _place(variable: str, on_unix: str) -> str:
    """A folder of the user's; the host has the same rule, and a test compares the two."""
    moved = os.environ.get("AGENT_HOST_HOME")
    if moved:
        return os.path.abspath(moved)
    named = os.environ.get(variable)
    # A relative one is invalid by the specification of these variables.
    if named and os.path.isabs(named):
        return os.path.join(named, _APP)
    if os.name == "nt" and (base := os.environ.get("LOCALAPPDATA")):
        return os.path.join(base, _APP)
    if sys.platform == "darwin":
        on_unix = os.path.join("Library", "Application Support")
    return os.path.join(os.path.expanduser("~"), on_unix, _APP)


def _installed_sources(problems: list[Problem]) -> Iterator[Source]:
    """What installed distributions announce, by their names; the first of a name counts."""
    seen: set[str] = set()
    found: list[Source] = []
    # No folder is called so, and the finder of folders would give up all others for it.
    for distribution in distributions(path=[each for each in sys.path if "\0" not in each]):
        try:
            text = distribution.read_text("entry_points.txt") or ""
            name = distribution.metadata["Name"] if GROUP in text else ""
            if not name or (key := re.sub(r"[-_.]+", "-", name).lower()) in seen:
                continue
            seen.add(key)
            points = [each for each in distribution.entry_points if each.group == GROUP]
            for point in points:
                place = _locate(distribution, point.value)
                if place is not None:
                    found.append(Source("distribution", name, place))
                else:
                    what = f"{name} announces the skills {point.value!r}, which is no folder of it"
                    problems.append(
                        Problem(name, what, "reinstall it, or tell its author", lost="source")
                    )
        except Exception as error:
            # Metadata is foreign input: whatever is wrong with it costs its distribution alone.
            what = f"its metadata cannot be read: {type(error).__name__}"
            problems.append(Problem(_root(distribution), what, "reinstall it", lost="source"))
    yield from sorted(found, key=lambda source: (source.label.lower(), source.path))


def _locate(distribution: Distribution, package: str) -> str | None:
    """The folder of a package, where it is installed or where an editable install leads to."""
    if not _PACKAGE.fullmatch(package):
        return None
    first, *rest = package.split(".")
    place = str(distribution.locate_file("/".join([first, *rest])))
    if os.path.isdir(place):
        return place
    # A package at the top is found without importing anything.
    spec = PathFinder.find_spec(first)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        inside = os.path.join(folder, *rest)
        if os.path.isdir(inside):
            return inside
    return None


def _root(distribution: Distribution) -> str:
    try:
        return str(distribution.locate_file(""))
    except Exception:
        # Nothing is lost: the problem is told without the place.
        return "an installed distribution"
