"""Writes the tier that a package reaches into a ``conformance.json``, sealed by hashes.

Owns how a run of suites becomes such a file: what they found of each plugin, what the type checker
says of the package, and what earlier runs on other Pythons have found of the same files. What each
tier asks of a package, and the hashes, are the host's, which reads the file where the kit is not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent_hookspecs import API_VERSION
from agent_hookspecs.descriptor import QualityTier
from agent_hookspecs.errors import AgentError
from agent_host import __version__ as host_version
from agent_host.plugins.bundle import Bundle
from agent_host.plugins.inspect.about import about_bundle
from agent_host.plugins.inspect.conformance import (
    CONFORMANCE_NAME,
    Conformance,
    Judgement,
    TriedPlugin,
    digest_folder,
    is_sealed,
    judge_package,
    read_conformance,
    write_conformance,
)
from agent_host_testing._version import __version__
from agent_host_testing.report import CheckResult, CheckResults, count_left_out
from agent_host_testing.suites.loading import catalog_of
from agent_host_testing.tiers import tier_of

__all__ = ["TierWriter", "check_types"]

_RANKS: tuple[QualityTier | None, ...] = (None, "bronze", "silver", "gold")
#: A type checker that has found nothing after this long is not waited for.
_SECONDS = 600


class TierWriter(CheckResults):
    """Writes the file at the end of a run, if the package has reached a tier."""

    def __init__(self, file: str) -> None:
        super().__init__()
        path = Path(file)
        self._file = path / CONFORMANCE_NAME if path.is_dir() else path
        self._said: list[str] = []

    def pytest_sessionfinish(self) -> None:
        try:
            self._said = [*self._write()]
        except (AgentError, LookupError, OSError) as error:
            # Nothing is lost: the summary tells it.
            said = error.explain() if isinstance(error, AgentError) else str(error)
            self._said = [f"no {CONFORMANCE_NAME} was written: {said}"]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("tier")
        for line in self._said:
            terminalreporter.write_line(line)

    def _write(self) -> Iterator[str]:
        bundle = _only_bundle(self.results)
        folder = Path(bundle.file).parent
        found = self._with_earlier(
            Conformance(
                distribution=bundle.distribution,
                version=bundle.version,
                contract=API_VERSION,
                host=host_version,
                kit=__version__,
                pythons=(f"{sys.version_info[0]}.{sys.version_info[1]}",),
                types="" if (objection := check_types(folder)) else _checker(),
                plugins=self._tried(),
                files=digest_folder(folder),
            )
        )
        if objection:
            yield f"types: {objection}"
        judged = _judge(found, bundle)
        if judged.tier is None:
            yield f"no tier is reached, so no {CONFORMANCE_NAME} was written"
        else:
            write_conformance(self._file, found.model_copy(update={"tier": judged.tier}))
            yield f"{judged.tier}, on Python {', '.join(found.pythons)}: written to {self._file}"
        following = dict(pairwise(_RANKS)).get(judged.tier)
        yield from (f"{following} lacks: {each}" for each in judged.lacks)

    def _tried(self) -> dict[str, TriedPlugin]:
        """What the suites found, by plugin; of one that has several, all must have passed."""
        tried: dict[str, TriedPlugin] = {}
        for suite in dict.fromkeys(result.suite for result in self.results):
            mine = [result for result in self.results if result.suite == suite]
            first = mine[0]
            outcomes = self.outcomes(suite, first.role)
            # Types are looked at once, for the whole package.
            tier = tier_of(outcomes, left_out=count_left_out(mine))
            counts = [status for statuses in outcomes.values() for status in statuses]
            found = TriedPlugin(
                tier=tier.reached or None,
                passed=counts.count("passed"),
                failed=counts.count("failed"),
                skipped=counts.count("skipped"),
                not_claimed=counts.count("not claimed"),
                lacks=tier.missing,
            )
            key = f"{first.role}:{first.plugin}"
            tried[key] = _worse(tried[key], found, add=True) if key in tried else found
        return tried

    def _with_earlier(self, found: Conformance) -> Conformance:
        """With what the file at hand says of the same files on other Pythons."""
        if not self._file.is_file():
            return found
        earlier = read_conformance(self._file)
        same = ("files", "contract", "host", "kit")
        if (
            earlier is None
            or not is_sealed(earlier)
            or any(getattr(earlier, key) != getattr(found, key) for key in same)
            or earlier.pythons == found.pythons
        ):
            return found
        plugins = {**earlier.plugins}
        for key, tried in found.plugins.items():
            plugins[key] = _worse(plugins[key], tried) if key in plugins else tried
        pythons = sorted({*earlier.pythons, *found.pythons}, key=_by_number)
        return found.model_copy(
            update={
                "pythons": tuple(pythons),
                "plugins": plugins,
                "types": found.types and earlier.types,
            }
        )


def _judge(found: Conformance, bundle: Bundle) -> Judgement:
    assert bundle.descriptor is not None, "a bundle without a descriptor has no folder"
    return judge_package(found, bundle.descriptor, about_bundle(bundle), Path(bundle.file).parent)


def _worse(one: TriedPlugin, other: TriedPlugin, *, add: bool = False) -> TriedPlugin:
    """The lower tier of both, and all that either lacks; ``add`` counts the checks of both."""
    counts = ("passed", "failed", "skipped", "not_claimed")
    lower = min(one.tier, other.tier, key=_RANKS.index)
    lacks = [each for tried in (one, other) if tried.tier == lower for each in tried.lacks]
    return TriedPlugin(
        tier=lower,
        lacks=tuple(dict.fromkeys(lacks)),
        **{key: getattr(other, key) + (getattr(one, key) if add else 0) for key in counts},
    )


def _only_bundle(results: Sequence[CheckResult]) -> Bundle:
    """The package that the suites are about, as the host finds it."""
    packages = dict.fromkeys((each.package, each.folder) for each in results)
    if not packages:
        raise LookupError("no conformance suite was run")
    if len(packages) > 1:
        named = ", ".join(name or "a suite that names no package" for name, _ in packages)
        raise LookupError(f"the suites are about several packages: {named}")
    ((package, folder),) = packages
    for record in catalog_of((package,), folder=folder) if package else ():
        if record.bundle.descriptor is not None and record.bundle.file:
            return record.bundle
    raise LookupError(
        f"package {package!r} has no descriptor" if package else "the suite names no package"
    )


def check_types(folder: Path) -> str:
    """What a strict type checker has against a package; empty: nothing.

    It is checked in a copy of its own, so that no settings around it make the checker mild.
    """
    if find_spec("mypy") is None:
        return "not checked, because mypy is not installed here"
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, folder.name)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
        command += ["--cache-dir", os.devnull, "--package", folder.name]
        try:
            done = subprocess.run(
                command,
                cwd=place,
                env={**os.environ, "MYPYPATH": place},
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Nothing is lost: the caller tells it.
            return f"mypy has not ended after {_SECONDS} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "" if not done.returncode else lines[0] if lines else "mypy failed"


def _checker() -> str:
    from importlib.metadata import version

    return f"mypy {version('mypy')} --strict"


def _by_number(python: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", python)]
