"""The prompt language: what each kind of line is read as."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agent_host_echo.prompt import Call, End, Fail, Line, Refuse, Text, Think, parse


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("hello  world ", Text("hello  world ")),
        ("", Text("")),
        ("/think first look, then leap", Think("first look, then leap")),
        ('/call add {"a": 1}', Call("add", '{"a": 1}')),
        ("/call patch *** some  free text", Call("patch", "*** some  free text")),
        ("/call add", Call("add", "")),
        ("/repeat 3 ab cd", Text("ab cd ab cd ab cd")),
        ("/refuse I would rather not", Refuse("I would rather not")),
        ("/end length", End("length")),
        ("/fail rate_limit slow down", Fail("rate_limit", "slow down")),
        ("/fail cut", Fail("cut", "")),
        ("/call add {}\r", Call("add", "{}")),
    ],
)
def test_a_line_is_read_as(line: str, meaning: Line) -> None:
    assert parse(line) == [meaning]


@pytest.mark.parametrize(
    "line",
    [
        "/unknown thing",
        "/think",
        "/thinking aloud",
        "/call",
        "/repeat many words",
        "/repeat 0 words",
        "/repeat 1000000 words",
        "/refuse",
        "/end",
        "/end in two words",
        "/fail nicely please",
        " /call add {}",
        "say /think aloud",
    ],
)
def test_a_line_that_is_no_directive_is_text(line: str) -> None:
    assert parse(line) == [Text(line)]


def test_nothing_is_read_below_a_failure() -> None:
    assert parse("before\n/fail server oops\nafter\n/call add {}") == [
        Text("before"),
        Fail("server", "oops"),
    ]


@given(st.lists(st.text().filter(lambda line: not line.startswith("/") and "\n" not in line)))
def test_text_is_kept_as_it_is(lines: list[str]) -> None:
    read = parse("\n".join(lines))
    assert "\n".join(line.text for line in read if isinstance(line, Text)) == "\n".join(lines)
