"""All skills that there are for some settings: found once, and the same while anybody uses them.

What a model was told of a skill and what it reads of it belong together, and trust was given to
what was there. So a library does not change: a file that has changed since is refused. Nothing here
knows models or terminals.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from weakref import WeakValueDictionary

from agent_host_skills.documents import (
    MANIFEST,
    SERVERS,
    Manifest,
    Server,
    read_manifest,
    read_servers,
)
from agent_host_skills.package import OutsideError, Package, describe_os_error
from agent_host_skills.problems import Problem
from agent_host_skills.skill import SKILL_FILE, Skill, read_skill
from agent_host_skills.sources import Source, find_sources, user_folder

__all__ = ["FoundPackage", "FoundSkill", "Library", "Shelf", "find_library", "open_library"]

#: How many skills are read, whether or not they are valid, and how many names of one folder.
MAX_SKILLS = 1_000
MAX_NAMES = 5_000


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill and where it came from; ``winner`` is the folder of the one that counts instead."""

    skill: Skill
    source: Source
    winner: str | None = None


@dataclass(frozen=True, slots=True)
class FoundPackage:
    """An Agent Plugins package: what it says of itself, its skills and its servers."""

    manifest: Manifest
    path: str
    source: Source
    skills: tuple[str, ...]
    servers: tuple[Server, ...]


@dataclass(slots=True)
class Shelf:
    """What was found in one folder, or in several."""

    skills: list[FoundSkill] = field(default_factory=list)
    packages: list[FoundPackage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _read: int = 0

    def add_folder(self, source: Source) -> None:
        """Add a folder: a package, a skill, or a folder of such."""
        package = Package(source.path)
        try:
            names = _names(package)
            if MANIFEST in names:
                self._add_package(package, names, source)
            elif SKILL_FILE in names:
                name = os.path.basename(os.path.abspath(source.path))
                self._add_skill(package, (), source, name)
            else:
                self._add_children(package, names, source)
        except OSError as error:
            hint = "name a folder that is there" if source.kind == "config" else ""
            what = describe_os_error(error)
            self.problems.append(Problem(source.path, what, hint, lost="source"))

    def _add_children(self, parent: Package, names: Sequence[str], source: Source) -> None:
        before = len(self.skills), len(self.packages), len(self.problems)
        for name in names:
            if name.startswith("."):
                continue
            path = parent.path((name,))
            try:
                if parent.kind((name,)) != "folder":
                    continue
                child = Package(path)
                inside = _names(child)
                if MANIFEST in inside:
                    self._add_package(child, inside, source)
                elif SKILL_FILE in inside:
                    self._add_skill(child, (), source, name)
                else:
                    self._tell_near_miss(path, inside)
            except OutsideError as error:
                hint = "name the folder that it leads to in skills_folders"
                self.problems.append(Problem(path, describe_os_error(error), hint, lost="skill"))
            except OSError as error:
                self.problems.append(Problem(path, describe_os_error(error), lost="skill"))
        after = len(self.skills), len(self.packages), len(self.problems)
        if before == after and source.kind != "user":
            what = "has neither skills nor packages in it"
            hint = f"a skill is a folder with {SKILL_FILE}, a package one with {MANIFEST}"
            self.problems.append(Problem(source.path, what, hint, lost="source"))

    def _add_package(self, package: Package, names: Sequence[str], source: Source) -> None:
        manifest, problems = read_manifest(package)
        self.problems += problems
        if manifest is None:
            return
        added = [*self._package_skills(package, source, manifest)] if "skills" in names else []
        servers, problems = read_servers(package) if SERVERS in names else ([], [])
        self.problems += problems
        self.packages.append(
            FoundPackage(manifest, package.root, source, tuple(added), tuple(servers))
        )

    def _package_skills(
        self, package: Package, source: Source, manifest: Manifest
    ) -> Iterator[str]:
        place = ("skills",)
        try:
            kind = package.kind(place)
            if kind != "folder":
                what = "is no folder" if kind else "is a link that leads nowhere"
                self.problems.append(Problem(package.path(place), what, lost="skills"))
                return
            names = _names(package, place)
        except OSError as error:
            what = describe_os_error(error)
            self.problems.append(Problem(package.path(place), what, lost="skills"))
            return
        for name in names:
            folder = (*place, name)
            if name.startswith("."):
                continue
            try:
                if package.kind(folder) != "folder":
                    continue
                inside = _names(package, folder)
                if SKILL_FILE not in inside:
                    self._tell_near_miss(package.path(folder), inside)
                elif self._add_skill(package, folder, source, name, manifest.name):
                    yield name
            except OSError as error:
                what = describe_os_error(error)
                self.problems.append(Problem(package.path(folder), what, lost="skill"))

    def _add_skill(
        self,
        package: Package,
        folder: tuple[str, ...],
        source: Source,
        name: str,
        plugin: str | None = None,
    ) -> bool:
        self._read += 1
        if self._read > MAX_SKILLS:
            if self._read == MAX_SKILLS + 1:
                what = f"and what follows is left out: {MAX_SKILLS} skills are enough"
                self.problems.append(Problem(package.path(folder), what, lost="skill"))
            return False
        skill, problems = read_skill(package, folder, name, plugin)
        self.problems += problems
        if skill is None:
            return False
        self.skills.append(FoundSkill(skill, source))
        return True

    def _tell_near_miss(self, path: str, names: Sequence[str]) -> None:
        for name in names:
            if name.casefold() in (SKILL_FILE.casefold(), MANIFEST, SERVERS):
                what = "is not read"
                hint = f"a skill has a file that is called {SKILL_FILE} exactly"
                if name.casefold() == SERVERS:
                    hint = f"a package has a {MANIFEST} beside it"
                self.problems.append(Problem(os.path.join(path, name), what, hint, lost="skill"))


def _names(package: Package, folder: tuple[str, ...] = ()) -> list[str]:
    """The names in a folder as they are written, sorted; a huge folder is refused."""
    with os.scandir(package.path(package.resolve(folder))) as entries:
        names = [entry.name for entry in islice(entries, MAX_NAMES + 1)]
    if len(names) > MAX_NAMES:
        raise OSError(errno.E2BIG, f"has more than {MAX_NAMES} names in it")
    return sorted(names)


class Library:
    """The skills that count, by name, and everything else that was found."""

    def __init__(self, folders: Sequence[str], patterns: Sequence[str] | None) -> None:
        self.sources, problems = find_sources(folders)
        shelf = Shelf(problems=problems)
        for source in self.sources:
            shelf.add_folder(source)
        self.packages = tuple(shelf.packages)
        self.problems = tuple(shelf.problems)
        self.skills: dict[str, FoundSkill] = {}
        self.shadowed: list[FoundSkill] = []
        self.switched_off: list[FoundSkill] = []
        for found in shelf.skills:
            name = found.skill.name
            if patterns is not None and not any(fnmatchcase(name, each) for each in patterns):
                self.switched_off.append(found)
            elif name in self.skills:
                winner = self.skills[name].skill.path
                self.shadowed.append(FoundSkill(found.skill, found.source, winner))
            else:
                self.skills[name] = found
        self.skills = dict(sorted(self.skills.items()))
        self._lock = threading.Lock()
        self._told: set[str] = set()

    def is_first(self, topic: str) -> bool:
        """Whether nobody has asked about this topic before, who then tells of it."""
        with self._lock:
            is_new = topic not in self._told
            self._told.add(topic)
            return is_new

    def describe_losses(self) -> str:
        """In a few words what is left out, and what is hidden by what; empty if nothing is."""
        lost = [problem for problem in self.problems if problem.lost]
        parts = []
        if lost:
            first = lost[0]
            key = f"{first.key}: " if first.key else ""
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            parts.append(f"left out: {first.file}: {key}{first.message}{more}")
        if self.shadowed:
            first_hidden = self.shadowed[0]
            more = f" and {len(self.shadowed) - 1} more" if len(self.shadowed) > 1 else ""
            parts.append(f"{first_hidden.skill.path} is hidden by {first_hidden.winner}{more}")
        return "; ".join(parts)


_Key = tuple[tuple[str, ...], "tuple[str, ...] | None", str, str]
_shared: WeakValueDictionary[_Key, Library] = WeakValueDictionary()
_lock = threading.Lock()


def open_library(folders: Sequence[str], patterns: Sequence[str] | None) -> Library:
    """The library for these settings: that of somebody who uses it now, or a new one."""
    key = _key(folders, patterns)
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Library(folders, patterns)
        return found


def find_library(folders: Sequence[str], patterns: Sequence[str] | None) -> Library | None:
    """The library for these settings if somebody uses it."""
    with _lock:
        return _shared.get(_key(folders, patterns))


def _key(folders: Sequence[str], patterns: Sequence[str] | None) -> _Key:
    # Relative folders, and the user's own, mean others elsewhere.
    wanted = None if patterns is None else tuple(patterns)
    return tuple(folders), wanted, os.getcwd(), user_folder()
