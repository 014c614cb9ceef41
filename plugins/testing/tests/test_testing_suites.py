"""The suites: every check says what it asks and where; `breakages` shows when each turns red."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agent_host_testing
from agent_host_testing import (
    BatchEngineConformance,
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    SessionStoreConformance,
    ToolConformance,
)
from agent_host_testing.suites.checking import Conformance, checks_of, contract_of

ROOT = Path(__file__).resolve().parents[3]
SUITES: list[type[Conformance]] = [
    ProviderConformance,
    ExtensionConformance,
    FeatureConformance,
    ToolConformance,
    SessionStoreConformance,
    BatchEngineConformance,
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


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("plugin = 'x'", "TestThis must say its 'package' and its 'plugin'"),
        (
            "package, plugin = 'agent_host_echo', 'elsewhere'",
            "TestThis: package 'agent_host_echo' has no tool 'elsewhere'; there is provider:echo",
        ),
        (
            "package, plugin = 'no_such_package', 'x'",
            "TestThis: package 'no_such_package' has no tool 'x'; there is nothing "
            "(package 'no_such_package' cannot be found on sys.path",
        ),
    ],
)
def test_a_suite_about_nothing_is_told_so_once(tmp_path: Path, said: str, problem: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_this.py").write_text(
        "from agent_host_testing import ToolConformance\n\n\n"
        f"class TestThis(ToolConformance):\n    {said}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "300"},
        check=False,
    )
    assert done.returncode == 1
    assert problem in done.stdout
    assert re.search(r"^\d+ skipped, 1 error in", done.stdout, re.MULTILINE), done.stdout
