"""The table of breakages: each can be made, names checks that exist, and all checks are named.

Making them takes minutes and is a command of its own; that they still can be made is here.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest
from breakages.breakage import IN_REAL_BYTES, PLUGINS, Breakage, Change, Suite, add
from breakages.command import main
from breakages.table import BREAKAGES, SUITES

from agent_host_testing import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
)
from agent_host_testing.suites.checking import Conformance, checks_of

#: The classes of suites that are not of providers.
ROLES: dict[str, type[Conformance]] = {
    "TestEchoReasoning": ExtensionConformance,
    "TestEchoTranscript": FeatureConformance,
    "TestFiles": ToolConformance,
}


def suite_class(suite: Suite) -> type[Conformance]:
    return ROLES.get(suite.name, ProviderConformance)


def breakage(*red: str) -> Breakage:
    return Breakage("echo", SUITES[0], "breaks", "It is.", red, ())


@pytest.mark.parametrize("each", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_applies_once_and_leaves_code(each: Breakage, tmp_path: Path) -> None:
    package = tmp_path / each.package
    shutil.copytree(each.sources, package)
    each.make(package)
    assert each.changes
    for change in each.changes:
        text = (package / change.file).read_text("utf-8")
        (json.loads if change.file.endswith(".json") else ast.parse)(text)


@pytest.mark.parametrize("each", BREAKAGES, ids=lambda each: each.name)
def test_a_breakage_names_checks_or_tests_that_are_there(each: Breakage) -> None:
    assert each.red
    assert each.sentence.endswith(".")
    checks = checks_of(suite_class(each.suite))
    for name in each.red:
        file, _, test = name.partition("::")
        if test:
            tests = PLUGINS / each.distribution / "tests" / file
            assert f"def {test}(" in tests.read_text("utf-8")
        else:
            assert name.partition("[")[0] in checks
    assert len(each.tests) in (0, len(each.red)), "checks and tests are not run together"


def test_names_of_breakages_are_unique() -> None:
    names = [each.name for each in BREAKAGES]
    assert len(names) == len({*names})


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_suite_is_there(suite: Suite) -> None:
    assert f"class {suite.name}(" in suite.path.read_text("utf-8")


def test_every_check_is_named_by_some_breakage() -> None:
    named = {
        f"{suite_class(each.suite).__name__}.{name.partition('[')[0]}"
        for each in BREAKAGES
        for name in each.red
    }
    suites: list[type[Conformance]] = [ProviderConformance, *ROLES.values()]
    there = {f"{suite.__name__}.{name}" for suite in suites for name in checks_of(suite)}
    # What every package is asked is the same code in all suites.
    common = {
        "test_descriptor_equals_code",
        "test_hooks_are_spelt_right",
        "test_import_does_no_work",
    }
    unnamed = {each for each in there - named if each.partition(".")[2] not in common}
    assert unnamed == set()


def test_every_provider_is_broken_in_several_ways() -> None:
    broken = [each.distribution for each in BREAKAGES]
    packages = {path.parent.parent.name for path in PLUGINS.glob("*/src/agent_host_*")}
    # The repairs are features, whose checks the echo package is broken for.
    assert {*broken} == packages - {"repairs", "testing"}
    assert min(broken.count(each) for each in {*broken}) >= 6


def test_most_breakages_turn_one_check_red() -> None:
    # Real bytes say once more what some other check asks.
    checks = [
        [name for name in each.red if name.partition("[")[0] not in IN_REAL_BYTES]
        for each in BREAKAGES
    ]
    assert sum(len(names) <= 1 for names in checks) > 0.8 * len(BREAKAGES)


@pytest.mark.parametrize("text", ["nothing", "once once"])
def test_a_change_that_does_not_fit_exactly_once_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="instead of once"):
        Change("a.py", "once", "never").apply(text)


def test_code_can_be_added_to_a_file() -> None:
    assert add("a.py", "b = 2\n").apply("a = 1\n") == "a = 1\n\n\nb = 2\n"


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
    assert breakage(*red).judge(failed) == problems


@pytest.mark.parametrize(
    ("red", "left_out"),
    [
        (("test_text",), ("test_wire_shape", "test_recording")),
        (("test_wire_shape[19]",), ("test_recording",)),
        (("test_recording[cited]",), ("test_wire_shape",)),
        ((), ("test_wire_shape",)),
    ],
)
def test_shapes_and_recordings_are_run_for_breakages_that_name_them(
    red: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    assert breakage(*red).left_out == left_out


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "chat-runs-half-calls"]) == 0
    told = capsys.readouterr().out
    assert "chat-runs-half-calls: A stream that ends inside a call" in told
    assert "test_truncated_calls" in told
    assert main(["--only", "no-such-breakage"]) == 2
    assert "there is no breakage no-such-breakage" in capsys.readouterr().err
