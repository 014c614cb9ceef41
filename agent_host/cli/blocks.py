"""Markdown that comes in pieces, cut into blocks that can be printed once and for good.

A block is given out when nothing that may still come can change how it looks. It must not know how
blocks are drawn, nor where the text comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from agent_hookspecs.values import dataclass

__all__ = ["Block", "BlockSplitter"]

#: A block of code is given out in pieces of so many lines, for nobody wants to wait for 500.
CODE_LINES = 20
#: How a line of code looks depends on those before it, but not on all: each piece has to be drawn.
CODE_CONTEXT = 60
#: A paragraph longer than this is cut, for a text without empty lines must come to an end too.
MAX_CHARACTERS = 8_000

_FENCE = re.compile(r"(?P<indent> *)(?P<mark>`{3,}|~{3,}(?!~))(?P<info>[^`]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_ITEM = re.compile(r" {0,1}([-*+]|\d{1,9}[.)])\s+\S")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text. Code has a ``language``, and ``first`` of its lines came before.

    ``is_joined`` says that no empty line stands between the block and the one before it.
    """

    kind: Literal["markdown", "code"]
    text: str
    language: str = ""
    first: int = 0
    is_joined: bool = False


class BlockSplitter:
    """Takes text as it comes and gives the blocks that are complete. Each character counts once."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._lines: list[str] = []
        self._size = 0
        self._is_item = False
        self._follows_item = False
        #: Empty lines after a list item, of which only the next line says what they mean.
        self._gap = 0
        self._fence: re.Match[str] | None = None
        #: A fence inside a list item: its lines belong to the item.
        self._inner_fence: re.Match[str] | None = None
        self._printed = 0

    @property
    def tail(self) -> str:
        """What has come and is in no block yet."""
        return "\n".join([*self._lines[self._printed :], "".join(self._line)])

    def add_text(self, text: str) -> list[Block]:
        """The blocks that this text completes."""
        *lines, rest = text.split("\n")
        found: list[Block] = []
        for line in lines:
            self._line.append(line)
            found += self._take_line("".join(self._line).rstrip("\r"))
            self._line.clear()
        if rest:
            self._line.append(rest)
        return found

    def end(self) -> list[Block]:
        """Whatever is left: the text is over."""
        found = list(self._take_line("".join(self._line))) if self._line else []
        self._line.clear()
        found += self._end_block()
        self._fence = None
        self._follows_item = False
        return found

    def _take_line(self, line: str) -> Iterator[Block]:
        if self._fence is not None:
            yield from self._take_code(line, self._fence)
            return
        if self._inner_fence is not None:
            self._add(line)
            if _closes(line, self._inner_fence):
                self._inner_fence = None
            return
        if not line.strip():
            if self._is_item:
                self._gap += 1
            else:
                yield from self._end_block()
                self._follows_item = False
            return
        fence = _FENCE.match(line)
        belongs = self._is_item and (line.startswith(("  ", "\t")) or not self._gap)
        if fence and not (self._is_item and fence["indent"] >= "  "):
            yield from self._end_block()
            self._fence = fence
        elif _ITEM.match(line):
            yield from self._end_block()
            self._is_item = True
            self._add(line)
        elif _HEADING.match(line):
            yield from self._end_block()
            yield Block("markdown", line)
        elif belongs or not self._is_item:
            if self._gap:
                self._lines += [""] * self._gap
                self._gap = 0
            if fence:
                self._inner_fence = fence
            self._add(line)
            if self._size > MAX_CHARACTERS:
                yield from self._end_block()
        else:
            yield from self._end_block()
            self._follows_item = False
            self._add(line)

    def _take_code(self, line: str, fence: re.Match[str]) -> Iterator[Block]:
        if _closes(line, fence):
            yield from self._end_block()
            self._fence = None
            return
        indent = len(fence["indent"])
        self._lines.append(line[indent:] if line[:indent].isspace() else line)
        if len(self._lines) - self._printed >= CODE_LINES:
            yield self._code_block(fence)
            self._printed = len(self._lines)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)

    def _end_block(self) -> Iterator[Block]:
        if self._fence is not None:
            if len(self._lines) > self._printed or not self._printed:
                yield self._code_block(self._fence)
            self._is_item = False
        elif self._lines:
            joined = self._is_item and self._follows_item
            yield Block("markdown", "\n".join(self._lines), is_joined=joined)
            # Items of one list stand together, unless an empty line is between them.
            self._follows_item = self._is_item and not self._gap
        self._lines, self._size, self._printed, self._gap = [], 0, 0, 0
        self._is_item = False
        self._inner_fence = None

    def _code_block(self, fence: re.Match[str]) -> Block:
        """The lines that are new, below the latest of those that were given out."""
        words = fence["info"].split()
        known = min(self._printed, CODE_CONTEXT)
        return Block(
            "code",
            "\n".join(self._lines[self._printed - known :]),
            language=words[0] if words else "",
            first=known,
            is_joined=self._printed > 0,
        )


def _closes(line: str, fence: re.Match[str]) -> bool:
    mark = line.strip()
    return bool(mark) and set(mark) == {fence["mark"][0]} and len(mark) >= len(fence["mark"])
