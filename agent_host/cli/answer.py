"""The answer of a run drawn as Markdown, for a terminal that a run shares with others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from agent_host.cli.blocks import Block, BlockSplitter
from agent_host.cli.outside import MARGIN
from agent_host.cli.paper import can_draw, draw_block
from agent_host.cli.render import is_terminal, terminal_width

__all__ = ["DrawnAnswer", "can_show_drawings"]


def can_show_drawings() -> bool:
    """Whether the answer goes to a terminal that can show more than lines."""
    simple = os.environ.get("TERM", "") in ("dumb", "unknown")
    return is_terminal(sys.stdout) and not simple and can_draw()


class DrawnAnswer:
    """The text of an answer as blocks, each given out when it is complete."""

    def __init__(self) -> None:
        self._splitter = BlockSplitter()
        self._needs_gap = False
        #: A block ends its line.
        self.has_begun = False

    def add(self, piece: str) -> str:
        """What to print now."""
        return self._draw(self._splitter.add_text(piece))

    def end(self) -> str:
        """What is left to print before something else comes."""
        drawn = self._draw(self._splitter.end())
        self._needs_gap = False
        return drawn

    def _draw(self, blocks: Iterable[Block]) -> str:
        drawn: list[str] = []
        for block in blocks:
            drawn += ["\n"] if self._needs_gap and not block.is_joined else []
            lines = draw_block(block, terminal_width() - len(MARGIN)).rstrip("\n").split("\n")
            drawn += [f"{MARGIN}{line}".rstrip() + "\n" for line in lines]
            self._needs_gap = True
        return "".join(drawn)
