"""What a person is shown of a call: chosen and ordered by the host, whatever the model does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_hookspecs.store.values import Question
from agent_host.agent.policy import Approval, ToolUse
from agent_host.agent.preview import NO_PREVIEW, Preview, ShownChange
from agent_host.cli.approval import WORDS, Row, Rows, approval_rows, question_rows, read_word
from agent_host.cli.outside import LOOK_ALIKES
from agent_host.cli.render import text_width

#: A machine with other work to do is no reason to fail.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def rows_of(
    payload: Any,
    *,
    width: int = 78,
    room: int | None = 20,
    parameters: tuple[str, ...] = (),
    preview: Preview = NO_PREVIEW,
    note: str = "",
) -> Rows:
    use = ToolUse("c1", "write_file", "write", "some-dist", payload)
    return approval_rows(Approval(use, use.digest, preview, parameters, note), width, room)


def texts(rows: Rows) -> list[str]:
    return [row.text for row in rows.rows]


def test_tool_effect_and_target_come_first_in_whatever_order_a_model_writes() -> None:
    payload = {"content": "x\n" * 400, "mode": "w", "path": "/home/me/.bashrc"}
    shown = rows_of(payload)
    assert texts(shown)[:3] == [
        "write_file (some-dist) wants to write something:",
        "  path: /home/me/.bashrc",
        "  mode: w",
    ]
    assert shown.is_folded
    for _ in range(10):
        mixed = list(payload.items())
        random.shuffle(mixed)
        assert rows_of(dict(mixed)) == shown


def test_a_line_of_sixty_thousand_characters_is_folded_by_rows_and_its_size_is_told() -> None:
    shown = rows_of({"content": "x" * 60_120, "path": "a"}, width=80)
    assert len(shown.rows) <= 24
    (fold,) = [row for row in texts(shown) if "…" in row]
    assert "more rows, 60,120 characters; v shows all" in fold
    assert texts(shown)[1] == "  path: a"


def test_a_long_target_shows_its_end_too() -> None:
    shown = rows_of({"path": "/a" * 3000 + "/.ssh/authorized_keys"})
    assert any(row.endswith("/.ssh/authorized_keys") for row in texts(shown))


def test_many_arguments_do_not_push_the_target_away() -> None:
    payload = {f"a{number}": "x" for number in range(500)} | {"url": "http://evil"}
    shown = rows_of(payload)
    assert texts(shown)[1] == "  url: http://evil"
    assert "494 more (" in " ".join(texts(shown))


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    shown = rows_of({"c": 1, "a": 2, "b": 3, "0": 4}, parameters=("b", "c", "a"))
    assert texts(shown)[1:] == ["  b: 3", "  c: 1", "  a: 2", "  0: 4"]


def test_what_cannot_be_seen_is_seen() -> None:
    shown = rows_of({"command": "ls\u3164\u202e\u200b\ufe0f\u2028; rm\x1b[8m -rf ◘"})
    assert texts(shown)[1] == "  command: ls<U+3164><U+202E><U+200B><U+FE0F><U+2028>; rm␛[8m -rf □"


def test_the_difference_is_shown_in_place_of_a_long_text() -> None:
    change: ShownChange = {
        "path": "a.py",
        "change": "updated",
        "diff": "@@ -1,2 +1,2 @@\n same\n-old\n+new",
        "added": 1,
        "removed": 1,
    }
    shown = rows_of({"path": "a.py", "content": "same\nnew\n"}, preview=Preview((change,)))
    assert [(row.kind, row.text) for row in shown.rows[1:]] == [
        ("target", "  path: a.py"),
        ("target", "  M a.py (+1 -1)"),
        ("place", "  @@ -1,2 +1,2 @@"),
        ("text", "   same"),
        ("removed", "  -old"),
        ("added", "  +new"),
        ("note", "  … 1 more (content), 16 characters; v shows all"),
    ]
    assert "    new" in texts(rows_of({"content": "same\nnew\n"}, room=None))


def test_that_there_is_no_preview_is_told_with_the_reason() -> None:
    shown = rows_of({"path": "a"}, preview=Preview(problem="it took longer than 5 s"))
    assert "  no preview: it took longer than 5 s" in texts(shown)


def test_a_question_of_a_tool_is_cleaned_and_bounded() -> None:
    shown = {"name": "save", "question": "a\x1b[2J\n" * 5000, "choices": ["x", "◘"], "payload": {}}
    rows = question_rows(Question(id="1", kind="question", shown=shown, digest=""), 40)
    assert len(rows) < 130
    assert rows[0] == Row("title", "save asks:")
    assert rows[1] == Row("target", "  a␛[2J")
    assert Row("value", "  one of: x, □") in rows


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(["path", "command", "url", "content"]) | st.text(max_size=60)
PAYLOADS = st.dictionaries(NAMES, VALUES, max_size=30) | st.text(max_size=3000)


@patient
@given(PAYLOADS, st.integers(16, 200), st.randoms())
def test_rows_fit_are_few_and_do_not_depend_on_the_order_of_keys(
    payload: Any, width: int, shuffle: random.Random
) -> None:
    shown = rows_of(payload, width=width)
    assert len(shown.rows) <= 70
    assert shown.rows[0].kind == "title"
    everything = rows_of(payload, width=width, room=None)
    assert not everything.is_folded
    for row in (*shown.rows, *everything.rows):
        assert text_width(row.text) <= width
        assert row.text.isprintable()
        assert not set(row.text) & set(LOOK_ALIKES)
    if isinstance(payload, dict):
        mixed = list(payload.items())
        shuffle.shuffle(mixed)
        assert rows_of(dict(mixed), width=width) == shown


@pytest.mark.parametrize("word", WORDS)
def test_words_are_taken_however_they_are_written(word: str) -> None:
    for text in WORDS[word]:  # type: ignore[index]
        for typed in (text, text.upper(), f"  {text.title()} \n", f"\t{text}\r\n"):
            assert read_word(typed) == word


@pytest.mark.parametrize("typed", ["maybe", "yy", "y n", "1", "ye", "true", "\u3164", "ｙ"])
def test_anything_else_is_no_answer(typed: str) -> None:
    assert read_word(typed) is None


@pytest.mark.parametrize("typed", ["", "\n", "   \n"])
def test_nothing_at_all_is_a_no(typed: str) -> None:
    assert read_word(typed) == "deny"
