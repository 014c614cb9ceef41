"""The rules of the Agent Skills format: what is a skill, and what is told of what is none."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from skills_made import look, messages, write_skill

from agent_host_skills.frontmatter import MAX_HEAD, HeadError, parse_head, split_head


def test_a_skill_has_all_its_fields(tmp_path: Path) -> None:
    head = (
        "name: pdf-forms\n"
        "description: >\n  Fills forms.\n  Use it for PDFs.\n"
        "license: Apache-2.0\n"
        'compatibility: "Requires git: any version"\n'
        "metadata:\n  author: example\n  version: 1.0\n"
        "allowed-tools: Bash(git:*) Read\n"
    )
    shelf = look(write_skill(tmp_path, head=head).parent)
    (found,) = shelf.skills
    skill = found.skill
    assert shelf.problems == []
    assert (skill.name, skill.description) == ("pdf-forms", "Fills forms. Use it for PDFs.")
    assert skill.compatibility == "Requires git: any version"
    assert skill.metadata == {"author": "example", "version": "1.0"}
    assert (skill.license, skill.allowed_tools) == ("Apache-2.0", "Bash(git:*) Read")


@pytest.mark.parametrize("text", ["\ufeff---\n", "---\r\n", "--- \n"])
def test_a_mark_and_foreign_line_ends_do_no_harm(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    head = text + "name: plain\ndescription: Plain.\n---\nDo it.\n"
    (folder / "SKILL.md").write_bytes(head.replace("\n", text[-2:].lstrip("- \ufeff")).encode())
    assert [found.skill.name for found in look(tmp_path).skills] == ["plain"]


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("description: Fills.\n", "name is missing"),
        ("name: pdf-forms\n", "description is missing"),
        ("name: pdf-forms\ndescription:\n", "description is empty"),
        ("name: pdf-forms\ndescription: [a]\n", "description is no text"),
        ("name: PDF-Forms\ndescription: F.\n", "name is not of lower-case letters"),
        ("name: -pdf\ndescription: F.\n", "name is not of lower-case letters"),
        ("name: pdf--forms\ndescription: F.\n", "name is not of lower-case letters"),
        ("name: pdf_forms\ndescription: F.\n", "name is not of lower-case letters"),
        ("name: \u0440df-forms\ndescription: F.\n", "name is not of lower-case letters"),
        ("name: other\ndescription: F.\n", "name is not the name of the skill's folder"),
        (f"name: {'a' * 65}\ndescription: F.\n", "name has 65 characters"),
        (f"name: pdf-forms\ndescription: {'d' * 1025}\n", "description has 1025 characters"),
        ("name: pdf-forms\ndescription: F.\ncompatibility: ''\n", "compatibility has 0"),
        (
            f"name: pdf-forms\ndescription: F.\ncompatibility: {'c' * 501}\n",
            "compatibility has 501 characters",
        ),
        ("name: pdf-forms\ndescription: F.\nmetadata: text\n", "metadata is no mapping"),
        ("name: pdf-forms\ndescription: F.\nmetadata: {a: [b]}\n", "metadata is no mapping"),
        ("name: pdf-forms\ndescription: F.\nlicense: [MIT]\n", "license is no text"),
        ("- name\n", "has no fields"),
        ("name\n", "has no fields"),
        ("", "has no fields"),
        ("name: pdf-forms\nname: pdf-forms\n", "has the field 'name' twice"),
        ("name: pdf-forms\ndescription: when: now\n", "is not YAML"),
        ("name: pdf-forms\ndescription: 'open\n", "is not YAML"),
        ("name: pdf-forms\n\tdescription: F.\n", "is not YAML"),
    ],
)
def test_what_breaks_a_rule_costs_the_skill_and_is_told(
    tmp_path: Path, head: str, told: str
) -> None:
    write_skill(tmp_path, head=head)
    write_skill(tmp_path, "sound")
    shelf = look(tmp_path)
    assert [found.skill.name for found in shelf.skills] == ["sound"]
    assert f"{told}" in messages(shelf)
    assert "[skill]" in messages(shelf)


def test_limits_are_inclusive(tmp_path: Path) -> None:
    name = "a" * 64
    write_skill(tmp_path, name, f"name: {name}\ndescription: {'d' * 1024}\n")
    assert [found.skill.name for found in look(tmp_path).skills] == [name]


def test_several_problems_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    head = f"name: Wrong\nlicense: [a]\ndescription: {'d' * 2000}\ncolour: red\n"
    write_skill(tmp_path, head=head)
    problems = {each.key: each.line for each in look(tmp_path).problems}
    assert problems == {"name": 2, "license": 3, "description": 4, "colour": 5}


def test_an_unknown_field_is_told_and_costs_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path, head="name: pdf-forms\ndescription: F.\nargument-hint: x\n")
    shelf = look(tmp_path)
    assert len(shelf.skills) == 1
    assert "argument-hint is no field of a skill []" in messages(shelf)


@pytest.mark.parametrize(
    "text", ["", "no head", "---\nname: a\n", "----\nname: a\n----\n", "--- x\n---\n", "\n---\n"]
)
def test_a_file_without_a_whole_head_is_no_skill(tmp_path: Path, text: str) -> None:
    (write_skill(tmp_path) / "SKILL.md").write_text(text, encoding="utf-8")
    shelf = look(tmp_path)
    assert shelf.skills == []
    assert "'---'" in messages(shelf)


def test_dashes_inside_a_value_do_not_end_the_head(tmp_path: Path) -> None:
    write_skill(tmp_path, head="name: pdf-forms\ndescription: a --- b\n", body="---\nrest\n")
    (found,) = look(tmp_path).skills
    assert found.skill.description == "a --- b"


def test_only_the_exact_name_of_the_file_counts(tmp_path: Path) -> None:
    folder = write_skill(tmp_path)
    (folder / "SKILL.md").rename(folder / "skill.md")
    shelf = look(tmp_path)
    assert shelf.skills == []
    assert "skill.md  is not read" in messages(shelf)


def test_skills_are_not_looked_for_deeper_down(tmp_path: Path) -> None:
    write_skill(tmp_path / "group")
    shelf = look(tmp_path)
    assert shelf.skills == []
    assert "has neither skills nor packages" in messages(shelf)


def test_a_long_body_is_advised_against(tmp_path: Path) -> None:
    write_skill(tmp_path, body="line\n" * 600)
    shelf = look(tmp_path)
    assert len(shelf.skills) == 1
    assert [problem.advice for problem in shelf.problems] == [True]


def test_hidden_characters_of_a_body_are_told_with_their_line(tmp_path: Path) -> None:
    write_skill(tmp_path, body="one\ntwo \U000e0041\n")
    (problem,) = look(tmp_path).problems
    assert problem.advice
    assert (problem.line, "U+E0041" in problem.message) == (6, True)


@given(st.text(alphabet=string.printable + "é\u202e&*!{}[]:#|>'\"%@`", max_size=300))
@settings(max_examples=300, deadline=None)
def test_whatever_stands_in_a_head_gives_texts_or_a_typed_error(text: str) -> None:
    try:
        head = parse_head(text)
    except HeadError:
        return
    assert all(isinstance(key, str) for key in head.fields)
    assert head.fields.keys() == head.lines.keys()


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_whatever_a_file_says_it_is_split_or_refused(text: str) -> None:
    try:
        head, body = split_head(text)
    except HeadError:
        return
    assert text.startswith("---")
    assert len(head) <= MAX_HEAD
    assert text.endswith(body)
