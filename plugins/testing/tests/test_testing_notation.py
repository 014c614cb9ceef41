"""The notation of the formats' rules: what each of its words lets pass, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agent_host_testing.formats
from agent_host_testing.formats.checks import Node, first_problem
from agent_host_testing.formats.notation import Rules

RULES = Rules("openai_api", dict.fromkeys(("few strings", "function schema", "custom format"), str))
FILES = sorted(Path(agent_host_testing.formats.__file__).parent.glob("rules/*.json"))


def problem(rule: Any, value: Any) -> str:
    """Where and why a value is refused; empty if it is not."""
    found = first_problem(RULES.compile(rule), Node(value))
    return "" if found is None else f"{found.place}: {found.message}"


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("any", [None, 1, "a", {}], []),
        ("text", ["", "a"], [None, 1, []]),
        ("flag", [True, False], [None, 0, "true"]),
        ("object", [{}, {"a": 1}], [None, [], "{}"]),
        ("object text", ["{}"], ["[]", "{", {}, None]),
        ("number 0..1", [0, 0.5, 1], [-0.1, 1.1, True, "0"]),
        ("integer 1..", [1, 10**9], [0, 1.5, None]),
        ("integer ..3", [-5, 3], [4]),
        ("=a|b", ["a", "b"], ["A", "c", None]),
        ("~A|B", ["a", "B"], ["c"]),
        ("function name", ["a-b_1"], ["a b", ""]),
        (["text"], [[], ["a"]], [["a", 1], "a", None]),
        ([1, "text"], [["a"]], [[]]),
        (["names", "text"], [[], ["a"]], ["a"]),
        ({"a": "text"}, [{}, {"a": ""}], [{"a": None}, {"b": ""}, []]),
        ({"a!": "text"}, [{"a": ""}], [{}, {"a": None}]),
        ({"a?": "text"}, [{}, {"a": None}], [{"a": 1}]),
        ({"a": "text", "*": "flag"}, [{"a": "", "b": True}], [{"b": 1}, {"a": True}]),
        ({"@": "named", "a": "text"}, [{}], [[]]),
        ({"&": "named", "b": "text"}, [{"name": "n", "b": ""}], [{"b": ""}, {"name": "n", "c": 1}]),
        ({"text or": ["text"]}, ["a", ["a"]], [1, None]),
        (
            {"by type": {"a": {"x!": "text"}, "b": "named", "c": "any"}},
            [{"type": "a", "x": ""}, {"type": "b", "name": "n"}, {"type": "c", "y": 1}],
            [{}, {"type": "d"}, {"type": "a"}, {"type": "b", "x": ""}],
        ),
    ],
)
def test_a_rule_lets_pass_what_it_says(rule: Any, right: list[Any], wrong: list[Any]) -> None:
    assert [value for value in right if problem(rule, value)] == []
    assert [value for value in wrong if not problem(rule, value)] == []


def test_a_refusal_says_where() -> None:
    rule = {"a": [{"b?": {"c!": "text"}}]}
    assert (
        problem(rule, {"a": [{}, {"b": {"c": 1}}]}) == "a[1].b.c: expected a string, got a number"
    )
    assert problem(rule, {"a": [{"d": 1}]}) == "a[0].d: unknown field 'd'"


def test_a_field_may_need_another() -> None:
    asked = Node({"stream_options": {}, "stream": True})
    assert first_problem(RULES.check_needs, asked) is None
    found = first_problem(RULES.check_needs, Node({"stream_options": {}, "stream": False}))
    assert found is not None
    assert (found.place, found.message) == ("stream_options", "no stream is asked for")


@pytest.mark.parametrize("word", ["texts", "integers 1..", {"a": "function"}])
def test_a_word_that_means_nothing_is_found_at_once(word: Any) -> None:
    with pytest.raises(ValueError, match="there is no rule"):
        RULES.compile(word)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_has_rules_and_nothing_unknown(file: Path) -> None:
    data = json.loads(file.read_text("utf-8"))
    assert data["rules"]
    assert data.keys() <= {"include", "patterns", "needs", "rules"}
