"""The suites: every check says what it asks and where; `breakages` shows when each turns red."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_host_testing
from agent_host_testing import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
    Violation,
)
from agent_host_testing.suites.checking import Conformance, checks_of, contract_of

ROOT = Path(__file__).resolve().parents[3]
SUITES: list[type[Conformance]] = [
    ProviderConformance,
    ExtensionConformance,
    FeatureConformance,
    ToolConformance,
]


def checks() -> list[Any]:
    return [
        pytest.param(suite, name, id=f"{suite.__name__}.{name}")
        for suite in SUITES
        for name in checks_of(suite)
    ]


def headings(page: Path) -> Iterator[str]:
    """The anchors of a page, as they are made from its headings."""
    for line in page.read_text("utf-8").splitlines():
        if found := re.match(r"#+ (.*)", line):
            yield re.sub(r"[^\w\- ]", "", found[1].lower()).replace(" ", "-")


def test_public_names_are_those_of_their_modules() -> None:
    for name in agent_host_testing.__all__:
        assert getattr(agent_host_testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        agent_host_testing.nothing  # noqa: B018


@pytest.mark.parametrize(("suite", "name"), checks())
def test_every_check_says_what_it_asks_and_where(suite: type[Conformance], name: str) -> None:
    contract = contract_of(getattr(suite, name))
    assert contract is not None
    assert contract.sentence.endswith(".")
    page, _, anchor = contract.where.partition("#")
    if not (ROOT / "docs").exists():
        pytest.skip("the docs are not here")
    assert anchor in headings(ROOT / page), f"{page} has no heading for #{anchor}"


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_of_a_suite_is_a_check(suite: type[Conformance]) -> None:
    methods = [name for name in dir(suite) if name.startswith("test")]
    assert sorted(methods) == sorted(checks_of(suite))


def test_a_suite_that_says_too_little_is_told_so() -> None:
    class TestNothing(ToolConformance):
        plugin = "x"

    suite = TestNothing()
    suite.servers = []
    with pytest.raises(Violation, match="must say its 'package'"):
        suite.test_effects()


def test_a_plugin_that_is_not_there_is_told_with_those_that_are() -> None:
    class TestElsewhere(ToolConformance):
        package = "agent_host_echo"
        plugin = "elsewhere"

    suite = TestElsewhere()
    suite.servers = []
    with pytest.raises(Violation, match="has no tool 'elsewhere'; there is provider:echo"):
        suite.test_descriptor_equals_code()
