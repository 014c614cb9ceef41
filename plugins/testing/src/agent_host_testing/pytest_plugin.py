"""What pytest loads in every run in which the kit is installed; it must cost next to nothing.

It knows the kit's options, and how outcomes of checks are shown: a failure in its own words, what
is not claimed in one line for each suite. It imports nothing of the kit unless a report is asked
for, so it knows checks by the names that their reports carry.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_VIOLATION = ("Violation", "agent_host_testing")
_NOT_CLAIMED = "not claimed: "
_UNEXPECTED = "conformance_unexpected"
#: What other settings of the same plugin change; a quick run asks the rest only once.
_OF_SETTINGS = ("claims", "knobs", "reasoning", "settings")
#: What a quick run has left out: how many checks, by what they are about.
_LEFT_OUT = pytest.StashKey["dict[str, int]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("agent-host", "conformance of plugins of Agent Host")
    group.addoption(
        "--conformance-report",
        metavar="FILE",
        help="write what conformance suites found to FILE as JSON, beside it as a page",
    )
    group.addoption(
        "--conformance-tier",
        metavar="FILE",
        help="write the tier that the package reaches, sealed by hashes, to FILE; a wheel carries "
        "it as the conformance.json of the package",
    )
    group.addoption(
        "--corpus",
        metavar="PATH",
        help="the folder with recorded traffic that replay checks read",
    )
    group.addoption(
        "--corpus-thorough",
        action="store_true",
        help="play recorded sessions in every way in which they can arrive, not in two of them",
    )
    group.addoption(
        "--quick",
        action="store_true",
        help="leave out the checks of conformance suites that take long, while you write",
    )


def pytest_configure(config: pytest.Config) -> None:
    report, tier = (config.getoption(f"conformance_{what}") for what in ("report", "tier"))
    # With xdist the workers run the tests, and the process that controls them writes the report.
    if hasattr(config, "workerinput"):
        return
    if report:
        from agent_host_testing.report import ConformanceReport

        config.pluginmanager.register(ConformanceReport(report), "conformance_report")
    if tier:
        from agent_host_testing.tier_file import TierWriter

        config.pluginmanager.register(TierWriter(tier), "conformance_tier")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    suites = {suite for item in items if isinstance(suite := getattr(item, "cls", None), type)}
    again = {suite for suite in suites if any(_tries_again(suite, each) for each in suites)}
    left_out = {item: why for item in items if (why := _why_left_out(item, again))}
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
        counts = config.stash.setdefault(_LEFT_OUT, {})
        for why in left_out.values():
            counts[why] = counts.get(why, 0) + 1


def _tries_again(suite: type, other: type) -> bool:
    """Whether a suite is another one for the same plugin, with other settings."""
    same = getattr(suite, "plugin", None) == getattr(other, "plugin", None)
    return same and suite is not other and issubclass(suite, other)


def _why_left_out(item: pytest.Item, again: set[type]) -> str:
    """What a quick run leaves out with this check; empty if it is run."""
    contract = getattr(getattr(item, "function", None), "contract", None)
    if contract is None:
        return ""
    if contract.slow:
        return str(contract.capability)
    suite = getattr(item, "cls", None)
    if suite not in again or contract.capability in _OF_SETTINGS:
        return ""
    return f"what {suite.__name__} asks again of the same plugin"


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Show a violation in its own words alone: what led to it is not the author's."""
    error = call.excinfo
    if error is not None and (error.typename, error.type.__module__) == _VIOLATION:
        report = pytest.TestReport.from_item_and_call(item, call)
        report.longrepr = error.getrepr(style="value", chain=False)
        return report
    return None


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """What is not claimed is neither counted nor listed among the skipped, but has a mark."""
    return ("", "-", "not claimed") if _reason(report) else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell each finding whole once: a single cause may turn all checks of a suite red."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    told: dict[str, str] = {}
    for report in reporter.stats.get("failed", []) if reporter else ():
        finding = _finding(report)
        if finding and finding in told:
            report.longrepr = f"{finding}\n  the same as in {told[finding]}, which tells it whole"
        elif finding:
            told[finding] = "::".join(report.nodeid.split("::")[-2:])


def _finding(report: Any) -> str:
    """The first line of a violation; empty for failures of others."""
    crash = getattr(report.longrepr, "reprcrash", None)
    kind, _, words = (crash.message if crash else "").partition(": ")
    return words.partition("\n")[0] if kind == ".".join(reversed(_VIOLATION)) else ""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = terminalreporter.stats.get("", [])
    for line in (*_not_claimed_lines(reports), *_unexpected_lines(terminalreporter.stats)):
        terminalreporter.write_line(line)
    if counts := terminalreporter.config.stash.get(_LEFT_OUT, {}):
        told = "; ".join(f"{what} ({count})" for what, count in counts.items())
        terminalreporter.write_line(f"left out by --quick: {told}")


def _reason(report: Any) -> str:
    """Why a check was not claimed; empty if it was."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    reason = words.removeprefix("Skipped: ")
    if report.outcome != "skipped" or not reason.startswith(_NOT_CLAIMED):
        return ""
    return str(reason.removeprefix(_NOT_CLAIMED))


def _not_claimed_lines(reports: Iterable[Any]) -> Iterator[str]:
    """One line for each suite, with how many checks each reason has ended."""
    suites: dict[str, dict[str, int]] = {}
    for report in reports:
        if reason := _reason(report):
            counts = suites.setdefault(_suite(report), {})
            counts[reason] = counts.get(reason, 0) + 1
    for suite, counts in suites.items():
        told = "; ".join(f"{reason} ({count})" for reason, count in counts.items())
        yield f"not claimed by {suite}: {told}"


def _unexpected_lines(stats: dict[str, list[Any]]) -> Iterator[str]:
    for report in stats.get("passed", []):
        for name, claims in report.user_properties:
            if name == _UNEXPECTED and claims:
                told = ", ".join(claims)
                yield f"not expected of {_suite(report)}, but claimed: {told}; add it to 'expects'"


def _suite(report: Any) -> str:
    return str(report.nodeid.split("::")[-2])
