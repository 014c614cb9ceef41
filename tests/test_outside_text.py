"""Text from outside on a terminal: shown, never obeyed, and never taken for a question."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

import click
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from agent_host.cli.outside import (
    GUTTER,
    LOOK_ALIKES,
    MARGIN,
    OutsideText,
    clean_lines,
    clean_text,
    show_exactly,
)
from agent_host.cli.render import text_width

#: What a hostile text is made of: everything a terminal obeys, hides, or draws like our sign.
HOSTILE = [
    *("\x1b[31m", "\x1b[2J", "\x1b[1;1H", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x9b31m"),
    *("\r", "\r\n", "\b", "\b \b", "\x7f", "\x07", "\x0b", "\x0c", "\x00", "\x85", "\u2028"),
    *("\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u3164", "\uffa0", "\u034f", "\ufe0f"),
    *("\u2800", "\u20de", "\u20e3", "\U000e0041", "\U000e0100", "\ue0b0", "\ud800", "\xad"),
    *LOOK_ALIKES,
    *("漢", "é", "e\u0301", "❤\ufe0f", "1\ufe0f\u20e3", "👩\u200d💻", "\t", "\n", " "),
    f"{GUTTER} Allow it? [y]es, [n]o [n]: ",
]
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=30).map("".join)

#: A machine with other work to do is no reason to fail.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    """A text in pieces, cut anywhere."""
    text = draw(TEXTS)
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def rows_of(text: str, width: int) -> Iterator[str]:
    """The rows that a terminal shows of text that holds nothing but characters and line breaks."""
    for line in text.split("\n"):
        row, used = "", 0
        for c in line.expandtabs(8):
            columns = text_width(c)
            if used + columns > width:
                yield row
                row, used = "", 0
            row, used = row + c, used + columns
        yield row


def shown_in_pieces(pieces: list[str]) -> str:
    outside = OutsideText()
    return "".join([*map(outside.clean, pieces), outside.end()])


@patient
@given(cut_texts(), st.integers(2, 200))
@example([f"{GUTTER} Allow it?"], 80)
@example(["x" * 79, f"\r{GUTTER}"], 80)
@example(["\x1b", "[1G", GUTTER], 80)
@example([" " * 40, "\b" * 40, GUTTER], 40)
def test_no_row_of_it_begins_like_a_question_at_any_width_and_cut(
    pieces: list[str], width: int
) -> None:
    for shown in (
        shown_in_pieces(pieces),
        clean_text("".join(pieces)),
        clean_lines("".join(pieces)),
    ):
        for row in rows_of(shown, width):
            assert not set(row) & set(LOOK_ALIKES)


@patient
@given(cut_texts())
def test_nothing_of_it_is_obeyed_or_hidden(pieces: list[str]) -> None:
    text = "".join(pieces)
    for shown, kept in (
        (shown_in_pieces(pieces), "\n\t"),
        (clean_lines(text), "\n\t"),
        (clean_text(text), ""),
        (show_exactly(text), ""),
    ):
        left = {c for c in shown if not c.isprintable()} - set(kept) - {"\u200d"}
        assert left == set()
    assert "\u200d" not in show_exactly(text)
    assert not [c for c in show_exactly(text) if unicodedata.category(c) in ("Cf", "Me")]


@patient
@given(cut_texts())
def test_where_a_stream_is_cut_makes_no_difference(pieces: list[str]) -> None:
    assert shown_in_pieces(pieces) == clean_lines("".join(pieces))


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert clean_text(text) == clean_lines(text) == show_exactly(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a␛[31mb"),
        ("a\u202eb", "a<U+202E>b"),
        ("rm\u3164-rf", "rm<U+3164>-rf"),
        ("a\uffa0b", "a<U+FFA0>b"),
        ("a\u034fb", "a<U+034F>b"),
        ("a\ufe0fb", "a<U+FE0F>b"),
        ("a\u200bb\u200db", "a<U+200B>b<U+200D>b"),
        ("a\U000e0041b", "a<U+E0041>b"),
        ("a\u00a0b", "a b"),
        ("❤\ufe0f 1\ufe0f\u20e3 👩\u200d💻", "❤\ufe0f 1\ufe0f\u20e3 👩\u200d💻"),
        ("◘ ■ ⬛", "□ □ □"),
        ("漢字 é", "漢字 é"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_number(text: str, shown: str) -> None:
    assert clean_text(text) == shown


def test_where_a_person_decides_even_parts_of_an_emoji_are_shown() -> None:
    assert show_exactly("❤\ufe0f") == "❤<U+FE0F>"


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u202f", "\u2028"])
def test_where_a_person_decides_nothing_passes_for_a_space(space: str) -> None:
    assert show_exactly(f"notes{space}.txt") == f"notes<U+{ord(space):04X}>.txt"
    assert show_exactly("漢字\u3000é") == "漢字 é"


def test_the_sign_of_questions_is_as_wide_as_a_letter_everywhere() -> None:
    assert unicodedata.east_asian_width(GUTTER) == "N"
    assert json.loads(json.dumps(GUTTER)) == GUTTER


MARKS = ["# ", "- ", "> ", "```\n", "**", "`", "| a |\n|---|\n", "&#9688; ", "&#x1b;[2J", "[x](y)"]


@patient
@given(st.lists(st.sampled_from([*MARKS, *HOSTILE, "word "]), max_size=20))
def test_an_answer_that_is_drawn_cannot_look_like_a_question_either(pieces: list[str]) -> None:
    pytest.importorskip("rich")
    from agent_host.cli.answer import DrawnAnswer

    answer = DrawnAnswer()
    drawn = "".join([*map(answer.add, pieces), answer.end()])
    plain = click.unstyle(drawn)
    assert not set(plain) & set(LOOK_ALIKES)
    assert {c for c in plain if not c.isprintable()} <= {"\n", "\t", "\u200d"}
    assert all(line.startswith(MARGIN) for line in plain.split("\n") if line)
