"""The cells of a matrix: which versions meet on which Python, and what came of it.

Pure: what is released is given, and whoever tries a cell is told what to install.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from agent_hookspecs.values import dataclass
from agent_host.distributions.errors import DistributionError
from agent_host.distributions.wanted import HOST
from agent_host.plugins.bundle import canonical_name

__all__ = [
    "CONTRACT",
    "KIT",
    "Cell",
    "Outcome",
    "Release",
    "Status",
    "choose_versions",
    "plan_cells",
]

CONTRACT: Final = "agent-hookspecs"
KIT: Final = "agent-host-testing"

Status = Literal["passed", "failed", "does not fit", "not tested"]


@dataclass(frozen=True, slots=True)
class Release:
    """A plugin as it was released: what its wheel says of itself.

    ``plugins`` are its plugins as package, role and name. ``problem`` says why it cannot be tried.
    """

    name: str
    version: str
    python: str
    requires: tuple[str, ...]
    extras: tuple[str, ...]
    plugins: tuple[tuple[str, str, str], ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination. ``host`` and ``contract`` are versions."""

    release: Release
    python: str
    host: str
    contract: str

    @property
    def title(self) -> str:
        return (
            f"{self.release.name} {self.release.version}, Python {self.python}, "
            f"host {self.host}, contract {self.contract}"
        )

    def find_misfit(self) -> str:
        """Why the metadata alone say that it cannot be; empty: nothing speaks against it."""
        release = self.release
        # A Python is named without its last number; the newest of those is meant.
        if release.python and not SpecifierSet(release.python).contains(f"{self.python}.99"):
            return f"needs Python {release.python}"
        where = {
            "extra": "",
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
        }
        for text in release.requires:
            needed = Requirement(text)
            wanted = {CONTRACT: self.contract, HOST: self.host}.get(canonical_name(needed.name))
            if (
                wanted is not None
                and (needed.marker is None or needed.marker.evaluate(where))
                and not needed.specifier.contains(wanted, prereleases=True)
            ):
                return f"needs {needed.name}{needed.specifier}, this is {wanted}"
        return ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a cell, and why. ``notes`` are what to know of a cell that passed, too.

    ``counts`` has how many tests passed, failed and were skipped.
    """

    cell: Cell
    status: Status
    reason: str = ""
    notes: tuple[str, ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0
    log: str = ""


def choose_versions(name: str, wanted: Iterable[str], released: Sequence[str]) -> list[str]:
    """The versions that words such as ``oldest`` and ``newest`` mean, each once."""
    stable = [each for each in released if not Version(each).is_prerelease] or [*released]
    ordered = sorted(stable, key=Version)
    if not ordered:
        raise DistributionError(
            f"there is no release of {name}", hint="name another index, or --find-links FOLDER"
        )
    words: Mapping[str, str] = {"oldest": ordered[0], "newest": ordered[-1]}
    chosen = []
    for word in wanted:
        version = words.get(word, word)
        if word not in words and version not in released:
            raise DistributionError(
                f"there is no release {version} of {name}",
                hint=f"say oldest, newest or one of: {', '.join(ordered)}",
            )
        chosen.append(version)
    return [*dict.fromkeys(chosen)]


def plan_cells(
    releases: Iterable[Release],
    pythons: Sequence[str],
    hosts: Sequence[str],
    contracts: Sequence[str],
) -> Iterator[Cell]:
    """All combinations, in the order in which a person would read them."""
    for release in releases:
        for python in pythons:
            for host in hosts:
                for contract in contracts:
                    yield Cell(release, python, host, contract)
