"""Draws the pictures of `agent-host chat` in docs/pictures: real screens of a real conversation.

A model that is played from here answers; a terminal emulator shows what came of it, and rich draws
that. Run it with ``python docs/capture.py`` when the screens have changed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from model_server import ModelServer, model_server  # noqa: E402
from person import Person, at_terminal  # noqa: E402

DIM = re.compile(rb"\x1b\[((?:\d+;)*)2((?:;\d+)*)m")
PICTURES = ROOT / "docs" / "pictures"

ANSWER = """\
There are **two** ways:

1. Keep the list sorted, and use `bisect`.
2. Use a heap, which does it for you:

```python
import heapq

def smallest(items: list[int], count: int) -> list[int]:
    return heapq.nsmallest(count, items)  # O(n log count)
```

| way | insert | smallest |
|---|---|---|
| sorted list | O(n) | O(1) |
| heap | O(log n) | O(1) |
"""
THOUGHT = (
    "The user wants the smallest items again and again. A heap is the usual answer, but a sorted "
    "list is simpler when there are few insertions. I should show both and say when to use which, "
    "with a short example that can be run as it is. And a table, for comparing is what they want."
)


def talk(person: Person, model: ModelServer) -> None:
    person.see_line()
    person.enter("How do I get the smallest items of a list, often?")
    model.answer(ANSWER, reasoning=THOUGHT, input=412, output=173)
    person.see("173 out")
    person.see_line()


def work(person: Person, model: ModelServer) -> None:
    person.see_line()
    person.enter("Say in notes.txt that we meet on Friday.")
    content = "Agenda\nWe meet on Friday.\nBring tea.\n"
    model.call("write_file", {"path": "notes.txt", "content": content})
    person.see_last("[n]:")


def queue(person: Person, model: ModelServer) -> None:
    person.see_line()
    person.enter("Tell me about heaps, at length.")
    model.say("## Heaps\n\nA heap is a tree in which every node is smaller than its children, and ")
    person.see("  Heaps\n")
    person.see("children")
    person.enter("And in C?")
    person.see("queued: And in C?")


def main() -> None:
    for name, play, columns, rows, theme in (
        ("chat", talk, 80, 34, DIMMED_MONOKAI),
        ("chat-light", talk, 80, 34, DEFAULT_TERMINAL_THEME),
        ("chat-narrow", talk, 40, 46, DIMMED_MONOKAI),
        ("chat-approval", work, 80, 22, DIMMED_MONOKAI),
        ("chat-queue", queue, 80, 12, DIMMED_MONOKAI),
    ):
        (PICTURES / f"{name}.svg").write_text(capture(play, columns, rows, theme), "utf-8")


def capture(
    play: Callable[[Person, ModelServer], None], columns: int, rows: int, theme: TerminalTheme
) -> str:
    with tempfile.TemporaryDirectory() as folder, model_server() as model:
        place = Path(folder)
        model.describe_in(place, allowed_plugins=["like_pkg", "files"])
        (place / "notes.txt").write_text("Agenda\nWe meet on Monday.\nBring tea.\n", "utf-8")
        with at_terminal("chat", "--config", "c.json", cwd=place, columns=columns, rows=rows) as it:
            play(it, model)
            return draw(it, columns, rows, theme)


def draw(person: Person, columns: int, rows: int, theme: TerminalTheme) -> str:
    screen = pyte.Screen(columns, rows)
    # The emulator knows no dim text; grey comes near.
    pyte.ByteStream(screen).feed(DIM.sub(b"\x1b[\\g<1>90\\g<2>m", person.raw))
    console = Console(record=True, width=columns, file=StringIO(), color_system="standard")
    for row in range(max(at for at, text in enumerate(screen.display) if text.strip()) + 1):
        line = Text()
        for column in range(columns):
            cell = screen.buffer[row][column]
            line.append(cell.data, style_of(cell))
        line.rstrip()
        console.print(line, soft_wrap=True)
    drawn = console.export_svg(title="agent-host chat", theme=theme, unique_id="chat")
    # The fonts that whoever looks at it has are good enough: nothing is to be fetched for it.
    drawn = re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)
    # Some viewers drop spaces at the ends of a text, even those that must not be broken.
    return drawn.replace("<svg ", '<svg xml:space="preserve" ', 1)


def style_of(cell: Any) -> Style:
    colour = {"default": None, "brown": "yellow", "brightblack": "bright_black"}
    return Style(
        color=colour.get(cell.fg, cell.fg),
        bold=cell.bold or None,
        italic=cell.italics or None,
        underline=cell.underscore or None,
        reverse=cell.reverse or None,
    )


if __name__ == "__main__":
    main()
