"""What pytest loads in every run in which the kit is installed; it must cost next to nothing.

It knows three options and imports nothing of the kit unless one of them is given.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("agent-host", "conformance of plugins of Agent Host")
    group.addoption(
        "--conformance-report",
        metavar="FILE",
        help="write what conformance suites found as JSON to FILE, and a table to the terminal",
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


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("conformance_report")
    # With xdist the workers run the tests, and the process that controls them writes the report.
    if file and not hasattr(config, "workerinput"):
        from agent_host_testing.report import ConformanceReport

        config.pluginmanager.register(ConformanceReport(file), "conformance_report")
