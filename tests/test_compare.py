"""The same cases to several models: what is checked, how it is reported, and replaying it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from agent_host import AgentApplication
from agent_host.comparison import CasesError, CheckedAnswer, compare, junit_report, load_cases
from agent_host.comparison.cases import Check
from agent_host.comparison.checks import look_at
from agent_host.comparison.page import render_page
from batching import repeating_server
from making import run_host
from scripted import app_with, saying, scripted

CASES = """
repeat = 2

[[targets]]
name = "plain"
model = "echo/echo-1"

[[targets]]
name = "thinking"
model = "echo/echo-reasoner"

[variants.one]
[variants.two]
seed = 2

[[cases]]
name = "greeting"
prompt = "Hello there"
checks = [{ contains = "Hello" }, { lacks = "Bye" }, { regex = "^h.*e$", ignore_case = true }]

[[cases]]
name = "JSON"
prompt = '{"n": 1}'
checks = [{ output_schema = { type = "object", required = ["n"] } }]
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    file = tmp_path / "cases.toml"
    file.write_text(CASES, encoding="utf-8")
    return file


def answers_to(file: Path) -> list[CheckedAnswer]:
    with AgentApplication({"allowed_plugins": ["echo"]}, store=False) as app:
        return compare(app, load_cases(file))


def test_every_case_goes_to_every_target_with_every_variant_as_often_as_said(cases: Path) -> None:
    answers = answers_to(cases)
    assert len(answers) == 2 * 2 * 2 * 2
    assert {answer.column for answer in answers} == {
        "plain (one)", "plain (two)", "thinking (one)", "thinking (two)",
    }  # fmt: skip
    assert all(answer.passed for answer in answers), answers


def result(text: str = "", **more: Any) -> Any:
    return {"id": None, "line": 1, "status": "succeeded", "text": text, **more}


def calling(name: str, arguments: str) -> Any:
    return result(tool_calls=[{"id": "c", "function": {"name": name, "arguments": arguments}}])


@pytest.mark.parametrize(
    ("check", "answer", "reason"),
    [
        ({"contains": "Paris"}, result("It is Paris."), ""),
        ({"contains": "paris"}, result("It is Paris."), "not in the text"),
        ({"contains": "paris", "ignore_case": True}, result("It is PARIS."), ""),
        ({"lacks": "Rome"}, result("Rome"), "it is in the text"),
        ({"equals": "Paris"}, result(" Paris\n"), ""),
        ({"equals": "Paris"}, result("Paris."), "another"),
        ({"regex": r"\d{4}"}, result("in 1999"), ""),
        ({"regex": r"^\d{4}$"}, result("in 1999"), "does not match"),
        ({"output_schema": {"type": "array"}}, result("[1]"), ""),
        ({"output_schema": {"type": "array"}}, result("{}"), "must be array"),
        ({"output_schema": {"type": "array"}}, result("no"), "no JSON"),
        ({"tool": "read"}, calling("read", "{}"), ""),
        ({"tool": "read"}, calling("write", "{}"), "it called write"),
        ({"tool": "read"}, result("no"), "no tool"),
        ({"tool": "read", "arguments": {"a": 1}}, calling("read", '{"a": 1, "b": 2}'), ""),
        ({"tool": "read", "arguments": {"a": 1}}, calling("read", '{"a": 2}'), 'with {"a": 2}'),
        ({"tool": "read", "arguments": {"a": 1}}, calling("read", "{"), "with {"),
    ],
)
def test_a_check_says_why_it_does_not_pass(check: Any, answer: Any, reason: str) -> None:
    finding = look_at(Check(**check), answer)
    assert finding.passed is (reason == "")
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[[targets]]", "[[target]]"), "targets is missing"),
        (('name = "thinking"', 'name = "plain"'), "two targets are called 'plain'"),
        (('prompt = "Hello there"', ""), "not one of prompt and messages"),
        (('{ contains = "Hello" }', "{ }"), "nothing to check"),
        (('{ contains = "Hello" }', '{ contains = "H", equals = "H" }'), "contains and equals"),
        (('{ contains = "Hello" }', '{ contians = "H" }'), "contians"),
        (('"^h.*e$"', '"("'), "cannot be used"),
        (('{ contains = "Hello" }', '{ judge = "Is it kind?" }'), "there is none"),
        (('{ contains = "Hello" }', '{ contains = "H", arguments = {} }'), "arguments of no tool"),
        (("repeat = 2", "repeat ="), "is no TOML"),
    ],
)
def test_a_file_that_is_wrong_says_where(
    cases: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in CASES
    cases.write_text(CASES.replace(*change), encoding="utf-8")
    with pytest.raises(CasesError, match=r"cases\.toml") as caught:
        load_cases(cases)
    assert message in caught.value.message
    assert caught.value.hint


def test_a_judge_is_asked_and_what_it_says_stands_in_the_report(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    # The judge repeats what it is asked, which is no verdict.
    content = {
        "targets": [{"model": "echo/echo-1"}],
        "judge": {"model": "echo/echo-1"},
        "cases": [{"name": "a", "prompt": "Hi", "checks": [{"judge": "Is it kind?"}]}],
    }
    file.write_text(json.dumps(content))
    (answer,) = answers_to(file)
    assert not answer.passed
    assert "the judge gave no verdict" in answer.findings[0].reason


def test_an_answer_passes_if_the_judge_says_so(tmp_path: Path) -> None:
    def script(history: list[Any]) -> Any:
        asked = history[-1]["content"]
        if "<criterion>" not in asked:
            return saying("Hello, dear.")
        assert "Hello, dear." in asked
        return saying('{"passed": true, "reason": "It says dear."}')

    file = tmp_path / "cases.json"
    content = {
        "targets": [{"provider": "scripted"}],
        "judge": {"provider": "scripted"},
        "cases": [{"name": "a", "prompt": "Hi", "checks": [{"judge": "Is it kind?"}]}],
    }
    file.write_text(json.dumps(content))
    with app_with(scripted(script, get_tags=lambda self, config: [])) as app:
        (answer,) = compare(app, load_cases(file))
    assert answer.passed, answer
    assert answer.findings[0].reason == "It says dear."


HOSTILE = "<script>alert(1)</script>\x1b[31m\x00 & ]]>"


def hostile_answers() -> list[CheckedAnswer]:
    fault = look_at(Check(contains="x<y"), result(HOSTILE))
    failed: Any = {**result(), "status": "failed", "error": {"type": "E", "message": HOSTILE}}
    return [
        CheckedAnswer("a<b", "t1", "", 1, result("one two three"), ()),
        CheckedAnswer("a<b", "t2", "", 1, result(HOSTILE), (fault,)),
        CheckedAnswer("c", "t1", "", 1, result(HOSTILE), (fault,)),
        CheckedAnswer("c", "t2", "", 1, failed, ()),
    ]


def test_junit_has_a_suite_for_each_target_and_a_test_for_each_case() -> None:
    root = ElementTree.fromstring(junit_report(hostile_answers()))
    suites = {suite.get("name"): suite for suite in root}
    assert [*suites] == ["t1", "t2"]
    assert suites["t1"].get("failures") == suites["t2"].get("errors") == "1"
    assert [test.get("name") for test in suites["t2"]] == ["a<b", "c"]
    failure = suites["t2"][0].find("failure")
    assert failure is not None
    assert "x<y" in str(failure.get("message"))


def test_a_page_shows_answers_as_text_and_marks_where_they_differ() -> None:
    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tags: list[str] = []

        def handle_starttag(self, tag: str, attributes: Any) -> None:
            self.tags.append(tag)

    page = render_page(hostile_answers())
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags
    assert reader.tags.count("td") == 4
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    answers = [
        CheckedAnswer("a", "t1", "", 1, result("one two three"), ()),
        CheckedAnswer("a", "t2", "", 1, result("one 2 three"), ()),
    ]
    assert "one <mark>2</mark> three" in render_page(answers)


def test_a_page_says_how_an_answer_ended_that_is_not_whole() -> None:
    refused = result("")
    refused.update(finish="refusal", refusal="I will not.")
    page = render_page([CheckedAnswer("a", "t1", "", 1, refused, ())])
    assert "(refusal)" in page
    assert "I will not." in page


def test_the_command_writes_reports_and_its_exit_code_says_whether_all_passed(
    cases: Path, tmp_path: Path
) -> None:
    words = ["compare", "cases.toml", "--junit", "j.xml", "--page", "p.html"]
    places: dict[str, Any] = {"cwd": tmp_path, "home": tmp_path / "home"}
    run = run_host(*words, **places)
    assert run.code == 0, run.err
    assert "passed 2/2" in run.out
    assert (tmp_path / "p.html").read_text("utf-8").startswith("<!doctype html>")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().tag == "testsuites"
    cases.write_text(CASES.replace('contains = "Hello"', 'contains = "Goodbye"'))
    run = run_host("compare", "cases.toml", "--json", "--repeat", "1", **places)
    assert run.code == 1
    assert run.json["passed"] is False
    assert len(run.json["answers"]) == 8


def test_a_recorded_comparison_is_replayed_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "cases.toml").write_text(
        'targets = [{ provider = "main" }]\nrepeat = 2\n'
        '[[cases]]\nname = "a"\nprompt = "Hi"\nchecks = [{ contains = "You said Hi." }]\n'
    )
    words = ["compare", "cases.toml", "--config", "c.json", "--json"]
    places: dict[str, Any] = {"cwd": tmp_path, "home": tmp_path / "home"}
    with repeating_server() as server:
        server.describe_in(tmp_path)
        live = run_host(*words, "--record", "tape", **places)
    assert live.code == 0, live.err
    assert run_host(*words, "--replay", "tape", **places) == live
    (tmp_path / "cases.toml").write_text(
        'targets = [{ provider = "main" }]\n[[cases]]\nname = "a"\nprompt = "Ho"\n'
    )
    missed = run_host(*words, "--replay", "tape", **places)
    assert missed.code == 1
    error = missed.json["answers"][0]["error"]
    assert error["type"] == "ReplayMissError"
    assert '"Hi", and is "Ho" now' in error["difference"]
