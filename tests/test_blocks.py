"""Markdown in pieces: blocks are given out once, in order, and never too early."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from agent_host.cli.blocks import CODE_CONTEXT, CODE_LINES, Block, BlockSplitter


def split(text: str, size: int = 3) -> list[Block]:
    splitter = BlockSplitter()
    found = [
        block
        for at in range(0, len(text), size)
        for block in splitter.add_text(text[at : at + size])
    ]
    return [*found, *splitter.end()]


def texts(blocks: Sequence[Block]) -> list[str]:
    return [block.text for block in blocks]


def test_paragraphs_headings_and_quotes_are_blocks() -> None:
    text = "# One\nTwo\nthree\n\n> four\n> five\n\n| a |\n|---|\n| b |\n"
    assert texts(split(text)) == ["# One", "Two\nthree", "> four\n> five", "| a |\n|---|\n| b |"]


def test_items_of_a_list_are_blocks_that_stand_together() -> None:
    blocks = split("- one\n  - below\n- two\nlazy\n\n  still two\n- three\n\nText")
    assert [(block.text, block.is_joined) for block in blocks] == [
        ("- one\n  - below", False),
        ("- two\nlazy\n\n  still two", True),
        ("- three", True),
        ("Text", False),
    ]


def test_code_inside_an_item_belongs_to_it() -> None:
    text = "1. First:\n   ```sh\n   a\n\n   b\n   ```\n2. Second"
    assert texts(split(text)) == ["1. First:\n   ```sh\n   a\n\n   b\n   ```", "2. Second"]


def test_long_code_is_given_out_in_pieces_that_know_what_came_before() -> None:
    lines = [f"x = {number}" for number in range(CODE_LINES + 5)]
    first, second = split("```python\n" + "\n".join(lines) + "\n```\n")
    assert (first.language, first.first, second.first) == ("python", 0, CODE_LINES)
    assert second.text.split("\n") == lines
    assert second.is_joined


def test_a_fence_is_closed_by_its_own_kind_alone() -> None:
    (block,) = split("~~~~\n```\n~~~\nend\n~~~~\n")
    assert (block.kind, block.text) == ("code", "```\n~~~\nend")


def test_what_has_come_and_is_in_no_block_is_the_tail() -> None:
    splitter = BlockSplitter()
    assert splitter.add_text("Begun\nand") == []
    assert splitter.tail == "Begun\nand"


def test_a_text_without_empty_lines_comes_to_an_end() -> None:
    splitter = BlockSplitter()
    assert sum(len(splitter.add_text("word " * 20 + "\n")) for _ in range(200)) >= 2


PIECES = st.sampled_from(
    ["# h\n", "- i\n", "1. n\n", "```\n", "~~~\n", "  x\n", "\n", "text\n", "> q\n", "| t |\n", "a"]
)


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 7))
def test_nothing_is_lost_and_how_it_is_cut_makes_no_difference(text: str, size: int) -> None:
    blocks = split(text, size)
    assert blocks == split(text, len(text) or 1)
    words = [word for block in blocks for word in block.text.split()[_repeated(block) :]]
    assert [word for word in words if "`" not in word and "~" not in word] == [
        word for word in text.split() if "`" not in word and "~" not in word
    ]


def _repeated(block: Block) -> int:
    """How many words of a piece of code were in the pieces before it."""
    return len("\n".join(block.text.split("\n")[: block.first]).split())


def test_the_longest_code_costs_no_more_than_its_lines() -> None:
    lines = ["x"] * 100 * CODE_LINES
    blocks = split("```\n" + "\n".join(lines) + "\n```\n", size=100)
    drawn = sum(len(block.text.split("\n")) for block in blocks)
    assert drawn <= len(blocks) * (CODE_CONTEXT + CODE_LINES)
    new = [line for block in blocks for line in block.text.split("\n")[block.first :]]
    assert new == lines


def test_a_line_that_is_nearly_a_fence_is_told_from_one_at_once() -> None:
    # So long that nobody would see the end if it were looked at from each of its characters.
    for line in ("```" + " " * 1_000_000 + "`", "~" * 1_000_000 + "`"):
        (block,) = split(line, size=len(line))
        assert block.kind == "markdown"
