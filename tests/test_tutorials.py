"""The tutorials are true: each is walked through as it is written, from template to wheel."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from documented import ROOT, TUTORIALS, blocks, changed, commands, same_output
from workshop import Workshop

NEEDED = (
    *("agent_host_testing", "agent_host_openai_compatible"),
    *("cookiecutter", "editables", "hatchling", "pip"),
)
LACKING = [name for name in NEEDED if find_spec(name) is None]
KINDS = ("provider", "extension", "feature", "tool")
WALKS = [page for page in TUTORIALS if blocks(page)]


@pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}")
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_tutorial_leads_where_it_says(page: Path, tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    for block in blocks(page):
        workshop.follow(block)


def test_a_change_must_fit_exactly_once() -> None:
    assert changed("a\nb\n\nc\n", " a\n-b\n+B\n@@\n+d\n c\n") == "a\nB\n\nd\nc\n"
    for source in ("a\n", "b\nb\n"):
        with pytest.raises(AssertionError, match="not once"):
            changed(source, "-b\n+c\n")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("one\ntwo\n", "one  \ntwo\n", True),
        ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n", True),
        ("one\n…\n", "one\n", True),
        ("took … s\n", "took 0.3 s\n", True),
        ("took … s\n", "took\n0.3 s\n", False),
        ("one\n", "one\ntwo\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_output_is_compared_line_by_line(expected: str, printed: str, same: bool) -> None:
    assert same_output(expected, printed) is same


def test_there_is_a_tutorial_for_every_role() -> None:
    assert sorted(page.stem for page in WALKS) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tutorial_goes_all_the_way(kind: str) -> None:
    page = ROOT / "docs" / "tutorials" / f"{kind}.md"
    lines = [command.line for block in blocks(page, "console") for command in commands(block)]
    for step in (
        "agent-host plugins new",
        "python -m pip install .*-e",
        "python -m pytest",
        "agent-host plugins (info|explain)",
        r"agent-host plugins validate \.",
        "python -m pip wheel",
        "agent-host plugins validate agent-host-",
    ):
        assert any(re.search(step, line) for line in lines), f"{page.name} has no {step}"
    assert "](publishing.md)" in page.read_text("utf-8")
