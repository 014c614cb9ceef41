"""What rich draws, as text that a terminal can be given.

Nothing of rich is imported before something is drawn. Whatever text a drawing has is cleaned once
more here, after Markdown was read, so that no character from outside is ever obeyed: only the
colours are ours. It must not know what is drawn, nor who looks at it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from agent_host.cli.outside import clean_lines, clean_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.markdown import Markdown
    from rich.segment import Segment
    from rich.syntax import Syntax
    from rich.text import Text

    from agent_host.cli.blocks import Block

__all__ = ["can_draw", "draw", "draw_block", "draw_diff", "make_text"]

#: The colours that can be read on light and on dark ground; the terminal says what they are.
_STYLES = {
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold italic",
    "markdown.h5": "italic",
    "markdown.h6": "italic dim",
    "markdown.block_quote": "italic",
    "markdown.item.bullet": "bold",
    "markdown.item.number": "bold",
    "markdown.link": "underline",
    "markdown.link_url": "underline",
    "markdown.hr": "dim",
    "markdown.table.header": "bold",
    "markdown.table.border": "dim",
}


def can_draw() -> bool:
    """Whether rich is installed; looked up without importing it."""
    from importlib.util import find_spec

    return find_spec("rich") is not None


def draw(drawn: RenderableType, width: int, *, lines: slice | None = None) -> str:
    """A drawing as lines that end with a line break, and with no spaces before it."""
    console = _console(max(width, 1), bool(os.environ.get("NO_COLOR")))
    rows = console.render_lines(drawn, pad=False)
    chosen = rows if lines is None else rows[lines]
    return "".join(f"{_to_text(row, console)}\n" for row in chosen)


def draw_block(block: Block, width: int) -> str:
    """A block of an answer."""
    if block.kind == "markdown":
        return draw(_read_markdown(block.text), width).strip("\n") + "\n"
    code = draw(_make_code(block.text, block.language, width, block.first), width)
    # Something has to tell code from text where there are no colours.
    return code if block.first else _draw_rule(block.language, width) + code


def _draw_rule(language: str, width: int) -> str:
    return draw(make_text((f"── {language}" if language else "──", "dim")), width)


def draw_diff(lines: Iterable[str], width: int) -> str:
    """The lines of a difference, by their first characters."""
    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "cyan"}
    shown = [Text(clean_text(line), styles.get(line[:1], "dim")) for line in lines]
    return draw(Text("\n").join(shown), width)


def make_text(*parts: tuple[str, str]) -> Text:
    """Text in pieces, each with its style; what looks like markup in it is text."""
    from rich.text import Text

    return Text.assemble(*((_clean(text), style) for text, style in parts))


def _clean(text: str) -> str:
    return clean_lines(text).expandtabs(4)


@lru_cache(maxsize=8)
def _console(width: int, no_colour: bool) -> Console:
    from io import StringIO

    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=StringIO(),
        width=width,
        force_terminal=True,
        color_system=None if no_colour else "standard",
        theme=Theme(_STYLES),
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _to_text(row: list[Segment], console: Console) -> str:
    # Where colours are not wanted, no other dress is either.
    system = _color_system().STANDARD if console.color_system else None
    pieces = [(clean_text(each.text), each.style) for each in row if not each.control]
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
    if system is None:
        return "".join(text for text, _ in pieces)
    return "".join(
        style.update_link(None).render(text, color_system=system) if style else text
        for text, style in pieces
    )


def _color_system() -> Any:
    from rich.color import ColorSystem

    return ColorSystem


def _read_markdown(text: str) -> Markdown:
    return _markdown_class()(_clean(text))


@lru_cache(maxsize=1)
def _markdown_class() -> type[Markdown]:
    """Markdown as we want it read and drawn; made when first needed, for rich must be imported."""
    from markdown_it import MarkdownIt
    from rich.markdown import CodeBlock, Heading, Markdown, TableElement
    from rich.padding import Padding
    from rich.table import Table

    class LeftHeading(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class PlainCode(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            yield Padding(_make_code(code, self.lexer_name, options.max_width - 2, 0), (0, 0, 0, 2))

    class WholeTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                # A long word goes on in the next line: what is cut off cannot be read anywhere.
                for column in table.columns if isinstance(table, Table) else ():
                    column.overflow = "fold"
                yield table

    class SafeMarkdown(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": LeftHeading,
            "table_open": WholeTable,
            "fence": PlainCode,
            "code_block": PlainCode,
        }

        def __init__(self, markup: str) -> None:
            super().__init__("", hyperlinks=False)
            self.markup = markup
            # What rich would leave out is text: HTML, and where a picture comes from.
            reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
            self.parsed = reader.disable(["image", "html_block", "html_inline"]).parse(markup)

    return SafeMarkdown


def _make_code(code: str, language: str, width: int, first: int) -> Syntax:
    from rich.syntax import Syntax

    count = code.count("\n") + 1
    return Syntax(
        _clean(code),
        language or "text",
        theme=_code_theme(),
        word_wrap=True,
        code_width=max(width, 1),
        background_color="default",
        line_range=(first + 1, count),
    )


@lru_cache(maxsize=1)
def _code_theme() -> Any:
    """Colours of code, out of those that the terminal itself defines."""
    from pygments.token import (  # type: ignore[import-untyped]
        Comment,
        Keyword,
        Name,
        Number,
        Operator,
        String,
        Token,
    )
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme

    colours = {
        Token: "",
        Comment: "dim italic",
        Keyword: "magenta",
        Operator.Word: "magenta",
        Name.Function: "blue",
        Name.Class: "blue",
        Name.Builtin: "cyan",
        Name.Decorator: "cyan",
        Name.Tag: "blue",
        Name.Attribute: "cyan",
        Number: "cyan",
        String: "green",
    }
    return ANSISyntaxTheme({token: Style.parse(style) for token, style in colours.items()})
