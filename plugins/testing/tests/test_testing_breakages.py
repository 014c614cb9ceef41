"""The table of breakages: each can be made, names checks that exist, and all checks are named."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest
from breakages.breakage import TESTS, Breakage, Change, suite_file
from breakages.command import main
from breakages.table import BREAKAGES

from agent_host_testing import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
)
from agent_host_testing.suites.checking import Conformance, checks_of

PACKAGES = sorted({each.package for each in BREAKAGES})
ROLES: dict[str, type[Conformance]] = {
    "reference_extension": ExtensionConformance,
    "reference_feature": FeatureConformance,
    "reference_tool": ToolConformance,
}


def suite_of(package: str) -> type[Conformance]:
    return ROLES.get(package, ProviderConformance)


def breakage(**options: Any) -> Breakage:
    known: dict[str, Any] = {"package": "p", "name": "n", "sentence": "It is.", "changes": ()}
    return Breakage(**{**known, **options})


@pytest.mark.parametrize("each", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_applies_once_and_leaves_python(each: Breakage, tmp_path: Path) -> None:
    package = tmp_path / each.package
    shutil.copytree(TESTS / "reference" / each.package, package)
    each.make(package)
    ast.parse((package / "plugin.py").read_text("utf-8"))


@pytest.mark.parametrize("each", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_names_checks_of_its_suite(each: Breakage) -> None:
    assert each.red
    checks = checks_of(suite_of(each.package))
    assert {name.partition("[")[0] for name in each.red} <= {*checks}
    assert each.sentence.endswith(".")


def test_names_of_breakages_are_unique() -> None:
    names = [each.name for each in BREAKAGES]
    assert len(names) == len({*names})


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_a_suite(package: str) -> None:
    assert f'package = "{package}"' in suite_file(package).read_text("utf-8")


def test_every_check_is_named_by_some_breakage() -> None:
    named = {
        f"{suite_of(each.package).__name__}.{name.partition('[')[0]}"
        for each in BREAKAGES
        for name in each.red
    }
    suites: list[type[Conformance]] = [ProviderConformance, *ROLES.values()]
    there = {f"{suite.__name__}.{name}" for suite in suites for name in checks_of(suite)}
    # What every package is asked is the same code in all suites.
    common = {"test_descriptor_equals_code", "test_import_does_no_work"}
    unnamed = {each for each in there - named if each.partition(".")[2] not in common}
    assert unnamed == set()


def test_most_breakages_turn_one_check_red() -> None:
    assert sum(len(each.red) == 1 for each in BREAKAGES) > 0.8 * len(BREAKAGES)


@pytest.mark.parametrize("text", ["nothing", "once once"])
def test_a_change_that_does_not_fit_exactly_once_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="instead of once"):
        Change("once", "never").applied(text)


@pytest.mark.parametrize(
    ("red", "failed", "problems"),
    [
        (("test_a",), ["test_a"], []),
        (("test_a",), ["test_a[x]", "test_a[y]"], []),
        (("test_a[x]",), ["test_a[x]", "test_a[y]"], ["test_a[y] turns red too"]),
        (("test_a", "test_b"), ["test_a"], ["test_b stays green"]),
        (("test_a",), ["test_ab"], ["test_a stays green", "test_ab turns red too"]),
        (("test_a",), [], ["test_a stays green"]),
    ],
)
def test_what_failed_is_compared_with_what_should(
    red: tuple[str, ...], failed: list[str], problems: list[str]
) -> None:
    assert breakage(red=red).judge(failed) == problems


def test_shapes_are_run_for_breakages_that_are_about_them() -> None:
    assert breakage(red=("test_wire_shape[19]",)).with_shapes
    assert not breakage(red=("test_text",)).with_shapes


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "chat-runs-half-calls"]) == 0
    told = capsys.readouterr().out
    assert "chat-runs-half-calls: A stream that ends inside a call" in told
    assert "test_truncated_calls" in told
    assert main(["--only", "no-such-breakage"]) == 2
    assert "there is no breakage no-such-breakage" in capsys.readouterr().err
