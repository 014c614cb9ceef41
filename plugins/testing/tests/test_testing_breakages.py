"""The table of breakages: each can be made, names checks that exist, and all checks are named.

Making them takes minutes and is a command of its own; that they still can be made is here.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest
from breakages.breakage import PLUGINS, Breakage, Change, Suite, add
from breakages.command import PARTS, choose_part, main
from breakages.kinds import KINDS
from breakages.record import BEGIN, END, record_run, share_seen, table
from breakages.running import Result
from breakages.table import BREAKAGES, SUITES

from agent_host_testing import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    SessionStoreConformance,
    ToolConformance,
)
from agent_host_testing.suites.checking import Conformance, checks_of

#: The classes of suites that are not of providers.
ROLES: dict[str, type[Conformance]] = {
    "TestEchoReasoning": ExtensionConformance,
    "TestEchoTranscript": FeatureConformance,
    "TestFiles": ToolConformance,
}
_TOOLS = ("TestFindTools", "TestMcp", "TestShell", "TestSkillReader", "TestWeb")
_FEATURES = ("TestCompaction", "TestManyTools", "TestSkills")


def suite_class(suite: Suite) -> type[Conformance]:
    if suite.distribution == "repairs":
        return FeatureConformance
    if suite.distribution == "postgres":
        return SessionStoreConformance
    roles = {
        **ROLES,
        **dict.fromkeys(_TOOLS, ToolConformance),
        **dict.fromkeys(_FEATURES, FeatureConformance),
    }
    return roles.get(suite.name, ProviderConformance)


def breakage(*red: str, name: str = "breaks", kind: str = "knobs") -> Breakage:
    return Breakage("echo", SUITES[0], name, kind, "It is.", red, ())


def result(made: Breakage, *problems: str) -> Result:
    return Result(made, {}, problems, 1.0)


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


def test_every_package_is_broken_in_several_ways() -> None:
    broken = [each.distribution for each in BREAKAGES]
    packages = {path.parent.parent.name for path in PLUGINS.glob("*/src/agent_host_*")}
    # Those have no suite of the kit yet that could judge them.
    assert {*broken} == packages - {"gateway", "otel", "prices", "ray", "testing"}
    assert min(broken.count(each) for each in {*broken}) >= 6


def test_there_are_many_breakages_and_every_kind_has_some() -> None:
    assert len(BREAKAGES) >= 250
    assert {each.kind for each in BREAKAGES} == {*KINDS}


def test_most_of_what_the_kit_promises_it_names_checks_for() -> None:
    assert share_seen(BREAKAGES, {each.name for each in BREAKAGES}) >= 0.9


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
        (("test_a[x]",), ["test_a[x]", "test_a[y]"], []),
        (("test_a[x]",), ["test_a[y]"], ["test_a[x] stays green"]),
        (("test_a", "test_b"), ["test_a"], ["test_b stays green"]),
        (("test_a",), ["test_ab"], ["test_a stays green"]),
        (("test_a",), [], ["test_a stays green"]),
        ((), ["test_a"], ["test_a turns red"]),
    ],
)
def test_what_failed_is_compared_with_what_should(
    red: tuple[str, ...], failed: list[str], problems: list[str]
) -> None:
    assert breakage(*red).judge(failed) == problems


def test_the_parts_of_a_rotation_are_everything_once() -> None:
    parts = [choose_part(BREAKAGES, part) for part in range(1, PARTS + 1)]
    assert sorted(each.name for part in parts for each in part) == sorted(
        each.name for each in BREAKAGES
    )
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_table_counts_what_the_kit_sees_and_what_it_promises() -> None:
    known = [
        breakage("test_a", name="seen"),
        breakage("test_a", name="missed"),
        breakage("file.py::test_b", name="tested"),
        breakage("file.py::test_b", name="beyond", kind="the vendor's own"),
    ]
    lines = [*table(known, {"seen", "tested", "beyond"})]
    assert (
        "There are 4 breakages of 1 packages. Of the 3 that the kit promises to see, it" in lines[0]
    )
    assert "alone sees 1 (33%)" in lines[0]
    assert lines[-2].endswith("| 3 | 1 | 1 |")
    assert lines[-1].endswith("The kit does not promise it. | 1 | 0 | 1 |")


def test_a_whole_run_is_written_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    known = [breakage("test_a", name="one"), breakage("test_a", name="two")]
    with pytest.raises(ValueError, match="only a whole run is recorded; two"):
        record_run(page, [result(known[0])], known)
    record_run(page, [result(known[0]), result(known[1], "test_a stays green")], known)
    text = page.read_text("utf-8")
    assert text.startswith(f"before\n{BEGIN}\n\nThere are 2 breakages")
    assert "old" not in text
    assert text.endswith(f"{END}\nafter\n")


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "chat-runs-half-calls"]) == 0
    told = capsys.readouterr().out
    assert "chat-runs-half-calls: A stream that ends inside a call" in told
    assert "test_truncated_calls" in told
    assert main(["--only", "no-such-breakage"]) == 2
    assert "there is no breakage no-such-breakage" in capsys.readouterr().err
