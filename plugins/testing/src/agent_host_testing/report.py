"""The report of a test run: which capabilities of which plugins passed, failed or are not claimed.

Owns the counting, the JSON and the table on the terminal; the page is `report_page`'s, the tiers
are those of `tiers`. It sees only pytest's reports, so that it works the same when tests run in
other processes; it must not know what any check does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host_testing._version import __version__
from agent_host_testing.report_page import page_of
from agent_host_testing.suites.checking import PROPERTY
from agent_host_testing.suites.claims import NOT_CLAIMED
from agent_host_testing.tiers import Status, tier_of

__all__ = ["CheckResult", "CheckResults", "ConformanceReport", "count_left_out"]

#: What a cell of the table says if its checks have more than one outcome: the first that occurs.
_WORST_FIRST: tuple[Status, ...] = ("failed", "skipped", "passed", "not claimed")
#: What the JSON says of each check.
_REPORTED = (
    *("check", "case", "capability", "claim", "status", "seconds"),
    *("reason", "sentence", "where"),
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check of one plugin ended; ``reason`` says why unless it passed.

    ``claim`` is the tag that it is about, if it is about one. ``of`` is how many checks its suite
    has, ``typed`` whether the package has types, ``folder`` where it is if it is not installed.
    """

    suite: str
    plugin: str
    role: str
    order: int
    capability: str
    check: str
    case: str
    status: Status
    sentence: str
    where: str
    claim: str = ""
    of: int = 0
    package: str = ""
    folder: str = ""
    typed: bool | None = None
    reason: str = ""
    seconds: float = 0.0


class CheckResults:
    """A pytest plugin that collects the results of checks."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._results: dict[str, CheckResult] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        about = next((value for name, value in report.user_properties if name == PROPERTY), None)
        if not isinstance(about, dict):
            return
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        # A check that passes can still fail when it is cleaned up; the other way it stays failed.
        if report.when == "call" or report.outcome != "passed":
            known = self._results.get(report.nodeid)
            if known is None or known.status == "passed":
                self._results[report.nodeid] = _result(report, about)

    @property
    def results(self) -> list[CheckResult]:
        """What is known so far, in a fixed order."""
        roles = [*PLUGIN_ROLES, "store", "engine"]
        timed = (replace(r, seconds=self._seconds[node]) for node, r in self._results.items())
        return sorted(
            timed,
            key=lambda r: (roles.index(r.role), r.suite, r.order, r.case),
        )

    def _capabilities(self, role: str) -> list[str]:
        return list(dict.fromkeys(r.capability for r in self.results if r.role == role))

    def _statuses(self, suite: str, capability: str) -> list[Status]:
        return [
            result.status
            for result in self.results
            if result.suite == suite and result.capability == capability
        ]

    def outcomes(self, suite: str, role: str) -> dict[str, list[Status]]:
        """By capability, how the checks of a suite ended."""
        return {
            capability: statuses
            for capability in self._capabilities(role)
            if (statuses := self._statuses(suite, capability))
        }


class ConformanceReport(CheckResults):
    """Writes the results of checks down at the end."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = Path(file)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        report = self.to_dict()
        self._file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        self._page.write_text(page_of(report), encoding="utf-8")

    @property
    def _page(self) -> Path:
        """Where the page is written: beside the JSON."""
        return self._file.with_name(f"{self._file.stem}.md")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("conformance")
        for line in self.table(shutil.get_terminal_size().columns):
            terminalreporter.write_line(line)
        for name, suite in self.to_dict()["suites"].items():
            tier = suite["tier"]["reached"] or "no tier yet"
            terminalreporter.write_line(f"{_head(name)}: {tier}, in {suite['seconds']:.1f} s")
        terminalreporter.write_line(f"written to {self._file} and {self._page}")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        suites: dict[str, dict[str, Any]] = {}
        for result in self.results:
            suite = suites.setdefault(
                result.suite,
                {"plugin": result.plugin, "role": result.role, "capabilities": {}, "checks": []},
            )
            fields = asdict(result)
            suite["checks"].append({key: fields[key] for key in _REPORTED})
        for name, suite in suites.items():
            mine = [result for result in self.results if result.suite == name]
            outcomes = self.outcomes(name, suite["role"])
            suite["capabilities"] = {each: _worst(found) for each, found in outcomes.items()}
            suite["claims"] = _claims(mine)
            suite["seconds"] = sum(result.seconds for result in mine)
            left_out = count_left_out(mine)
            suite["tier"] = asdict(tier_of(outcomes, left_out=left_out, typed=mine[0].typed))
        counts = dict.fromkeys(_WORST_FIRST, 0)
        for result in self.results:
            counts[result.status] += 1
        seconds = sum(suite["seconds"] for suite in suites.values())
        return {"kit": __version__, "counts": counts, "seconds": seconds, "suites": suites}

    def table(self, columns: int = 100) -> Iterator[str]:
        """Capabilities down, suites across, each role by itself and no wider than ``columns``."""
        if not self._results:
            yield "no conformance suite was run"
        for role in dict.fromkeys(result.role for result in self.results):
            suites = dict.fromkeys(r.suite for r in self.results if r.role == role)
            first = max(map(len, (*self._capabilities(role), role)))
            for block in _blocks([*suites], columns - first):
                yield from self._block(role, block, first)

    def _block(self, role: str, suites: list[str], first: int) -> Iterator[str]:
        yield _line(role, first, [(_head(suite), suite) for suite in suites])
        for capability in self._capabilities(role):
            cells = [(_cell(self._statuses(suite, capability)), suite) for suite in suites]
            yield _line(capability, first, cells)


def count_left_out(results: Sequence[CheckResult]) -> int:
    """How many checks of one suite were not run."""
    return results[0].of - len({result.check for result in results})


def _result(report: pytest.TestReport, about: dict[str, Any]) -> CheckResult:
    suite, _, name = report.nodeid.rpartition("::")
    status, reason = _outcome(report)
    return CheckResult(
        suite=suite,
        plugin=about["plugin"],
        role=about["role"],
        order=about["order"],
        capability=about["capability"],
        check=about["check"],
        case=name.removeprefix(about["check"]).strip("[]"),
        status=status,
        sentence=about["sentence"],
        where=about["where"],
        claim=about["claim"],
        of=about["of"],
        package=about["package"],
        folder=about["folder"],
        typed=about["typed"],
        reason=reason,
    )


def _outcome(report: pytest.TestReport) -> tuple[Status, str]:
    if report.outcome == "passed":
        return "passed", ""
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        return "failed", str(crash.message if crash else report.longrepr)
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = words.removeprefix("Skipped: ")
    if reason.startswith(NOT_CLAIMED):
        return "not claimed", reason.removeprefix(NOT_CLAIMED)
    return "skipped", reason


def _claims(results: list[CheckResult]) -> dict[str, bool]:
    """The tags that checks are about, and whether the plugin claims each."""
    claims: dict[str, bool] = {}
    for result in results:
        if result.claim:
            held = result.status != "not claimed"
            claims[result.claim] = claims.get(result.claim, False) or held
    return dict(sorted(claims.items()))


def _worst(statuses: list[Status]) -> Status:
    return next(status for status in _WORST_FIRST if status in statuses)


def _cell(statuses: list[Status]) -> str:
    if not statuses:
        return "-"
    worst = _worst(statuses)
    return f"FAILED {statuses.count('failed')}/{len(statuses)}" if worst == "failed" else worst


def _head(suite: str) -> str:
    return suite.rpartition("::")[2].removeprefix("Test")


def _width(suite: str) -> int:
    return max(len(_head(suite)), len("not claimed")) + 2


def _blocks(suites: list[str], columns: int) -> Iterator[list[str]]:
    """The suites in groups that fit beside one another."""
    block: list[str] = []
    for suite in suites:
        if block and sum(map(_width, (*block, suite))) > columns:
            yield block
            block = []
        block.append(suite)
    yield block


def _line(name: str, first: int, cells: list[tuple[str, str]]) -> str:
    return (f"{name:{first}}" + "".join(f"  {t:{_width(s) - 2}}" for t, s in cells)).rstrip()
