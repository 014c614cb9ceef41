"""What a breakage is: exact changes to one bundled package, and the checks that must see it.

Owns how changes are made to a copy of the sources. It must not know how checks are run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from breakages.kinds import KINDS

__all__ = ["PLUGINS", "Breakage", "Change", "Suite", "add", "change_descriptor"]

#: Where the bundled packages are, with their tests.
PLUGINS = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Change:
    """The one place where ``old`` stands in a file of the package becomes ``new``.

    Without ``old`` it is put at the end of the file.
    """

    file: str
    old: str
    new: str

    def apply(self, text: str) -> str:
        """The text with the change; a ValueError if there is not exactly one place for it."""
        if not self.old:
            return f"{text}\n\n{self.new}"
        places = text.count(self.old)
        if places != 1 or self.old == self.new:
            raise ValueError(f"{self.old!r} is {places} times in {self.file}, instead of once")
        return text.replace(self.old, self.new)


def add(file: str, code: str) -> Change:
    """Code at the end of a module, such as another method for a class in it."""
    return Change(file, "", code)


def change_descriptor(old: str, new: str) -> Change:
    """A change of the package's descriptor."""
    return Change("agent_plugin.json", old, new)


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite of a bundled plugin: the folder of its distribution, test file and class."""

    distribution: str
    file: str
    name: str

    @property
    def path(self) -> Path:
        return PLUGINS / self.distribution / "tests" / f"{self.file}.py"


@dataclass(frozen=True, slots=True)
class Breakage:
    """A mistake in the package of a distribution, of a kind that has a row in `KINDS`.

    ``red`` are the checks that must fail; what else does is not asked. A check is named by its
    method, or with the case in brackets if only that one fails. What the kit does not see is named
    by a test of the distribution, as ``file.py::test``.
    """

    distribution: str
    suite: Suite
    name: str
    kind: str
    sentence: str
    red: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def package(self) -> str:
        """The import package that is broken."""
        return f"agent_host_{self.distribution.replace('-', '_')}"

    @property
    def sources(self) -> Path:
        return PLUGINS / self.distribution / "src" / self.package

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests of the distribution that are named, if no checks are."""
        return tuple(name for name in self.red if "::" in name)

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that are named, each with its case if it has one."""
        return tuple(name for name in self.red if "::" not in name)

    @property
    def is_promised(self) -> bool:
        """Whether the kit alone has to see it."""
        return KINDS[self.kind].promised

    def make(self, package: Path) -> None:
        """Break the copy of the package in that folder."""
        for change in self.changes:
            file = package / change.file
            file.write_text(change.apply(file.read_text("utf-8")), encoding="utf-8")

    def judge(self, failed: Iterable[str]) -> list[str]:
        """What is wrong with the checks that failed, each named with its case in brackets."""
        failed = list(failed)
        if not self.red:
            return [f"{name} turns red" for name in failed]
        unseen = [name for name in self.red if not any(_covers(name, each) for each in failed)]
        return [f"{name} stays green" for name in unseen]


def _covers(name: str, failed: str) -> bool:
    return failed == name or failed.partition("[")[0] == name
