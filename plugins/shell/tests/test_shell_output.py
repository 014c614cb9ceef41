"""However output comes in pieces, what is kept and told of it is the same, and no more."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from agent_host_shell.output import Output, show_bytes

PIECES = st.lists(st.binary(max_size=40) | st.text(max_size=20).map(str.encode), max_size=20)


@given(PIECES, st.integers(1, 60))
def test_pieces_do_not_matter(pieces: list[bytes], limit: int) -> None:
    whole, parts = Output(limit), Output(limit)
    whole.feed(b"".join(pieces))
    for piece in pieces:
        parts.feed(piece)
    assert whole.text() == parts.text()
    assert whole.size == parts.size == sum(map(len, pieces))


@given(PIECES, st.integers(1, 60))
def test_nothing_is_lost_in_silence(pieces: list[bytes], limit: int) -> None:
    output = Output(limit)
    for piece in pieces:
        output.feed(piece)
    data = b"".join(pieces)
    text = output.text()
    if len(data) <= limit:
        assert text == show_bytes(data)
        return
    found = re.search(r"\[truncated: (\d+) of (\d+) bytes are left out here", text)
    assert found is not None
    left_out, size = map(int, found.groups())
    assert size == len(data)
    # A character that the cut goes through is left out as a whole.
    assert size - limit <= left_out <= size - limit + 3


@given(st.text(min_size=1, max_size=200), st.integers(1, 100))
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    output = Output(limit)
    output.feed(text.encode())
    shown = output.text()
    if len(text.encode()) > limit:
        head, tail = re.split(r"\n\[truncated: [^]]*\]\n", shown, maxsplit=1)
        assert show_bytes(text.encode()).startswith(head)
        assert show_bytes(text.encode()).endswith(tail)


@given(PIECES)
def test_news_are_what_was_said(pieces: list[bytes]) -> None:
    output = Output(10)
    said = ""
    for piece in pieces:
        output.feed(piece)
        said += output.take_news()
    assert said == "".join(map(show_bytes, pieces))
    assert output.take_news() == ""


def test_of_much_news_the_end_is_told_and_how_much_is_not() -> None:
    output = Output(10)
    for _ in range(7):
        output.feed(b"x" * 3000)
    told = output.take_news()
    assert told == f"[17000 bytes are not shown]\n{'x' * 4000}"


@given(st.binary())
def test_whatever_is_shown_is_text_without_controls(data: bytes) -> None:
    shown = show_bytes(data)
    shown.encode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", shown)
