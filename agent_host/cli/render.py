"""What people see: tables, marks and errors, made without a library so that listing stays quick."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click

from agent_host.cli.outside import clean_lines, clean_text

__all__ = [
    "is_one_place",
    "is_terminal",
    "print_error",
    "print_heading",
    "print_json",
    "print_json_value",
    "print_pairs",
    "print_table",
    "print_text",
    "print_traceback",
    "print_wrapped",
    "style_text",
    "terminal_width",
    "text_width",
    "wrap_text",
]

#: A first column wider than this makes way for the others where there is little room.
_SHORT = 28
#: A column narrower than this is no pleasure to read.
_READABLE = 30


def style_text(text: str, **how: Any) -> str:
    """Make text coloured or bold, unless the user wants none of it; click sees to pipes."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **how)


def print_heading(text: str) -> None:
    """Print what stands above a part of the output, after an empty line."""
    click.echo(f"\n{style_text(text, bold=True)}")


def print_json(document: Mapping[str, object]) -> None:
    """Print a line for each value, and for each item of a list: short to read, quick to write.

    Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
    """
    if not document:
        click.echo("{}")
        return
    members = [f"  {json.dumps(key)}: {_json_value(value)}" for key, value in document.items()]
    click.echo("{\n" + ",\n".join(members) + "\n}")


def print_json_value(value: object) -> None:
    """Print any value as JSON that people read."""
    click.echo(json.dumps(value, indent=2))


def _json_value(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    items = ",\n".join(f"    {json.dumps(item)}" for item in value)
    return f"[\n{items}\n  ]"


def print_error(message: str, hint: str = "") -> None:
    """Print an error and what to do about it, wrapped on a terminal and each a line elsewhere."""
    texts = [f"{style_text('error:', fg='red', bold=True)} {clean_text(message)}"]
    if hint:
        texts.append(f"{style_text('hint:', fg='cyan')} {clean_text(hint)}")
    for text in texts:
        print_wrapped(text)


def print_traceback(error: BaseException) -> None:
    """Print where an error comes from, the plugin's own frames included, if that is asked for."""
    if os.environ.get("AGENT_HOST_DEBUG"):
        # Here, because it brings logging, which a list can do without.
        from agent_hookspecs.logs import describe_traceback

        click.echo(clean_lines(describe_traceback(error)), err=True, nl=False)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sits there; a program may be started without the stream."""
    return stream is not None and stream.isatty()


def is_one_place() -> bool:
    """Whether standard output and standard error end up in the same terminal, file or pipe."""
    if is_terminal(sys.stdout) and is_terminal(sys.stderr):
        return True
    try:
        places = [os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr)]
    except (AttributeError, OSError, ValueError):
        # Nothing is lost: what is no file of the system is not shared with one.
        return False
    return os.path.samestat(*places)


def print_wrapped(text: str, *, err: bool = True) -> None:
    """Print text that must not be cut: wrapped on a terminal, and in one line elsewhere."""
    is_terminal = (sys.stderr if err else sys.stdout).isatty()
    lines = wrap_text(text, terminal_width()) if is_terminal else [text]
    click.echo("\n".join(lines), err=err)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns as wide as their content; the last one wraps at the terminal's edge.

    A text too long for what room is left there gets lines of its own, under the others; so does,
    above the others, a first one that would push them off the edge.
    """
    cells = [list(row) for row in rows]
    widths = [
        max(map(text_width, (heading, *(row[column] for row in cells))))
        for column, heading in enumerate(headings)
    ]
    between = sum(width + 2 for width in widths[1:-1])
    if terminal_width() - between - widths[0] - 2 < _SHORT:
        limit = min(_SHORT, terminal_width() - between)
        short = [width for row in cells if (width := text_width(row[0])) <= limit]
        widths[0] = max([text_width(headings[0]), *short])
    room = terminal_width() - between - widths[0] - 2
    shown = headings if text_width(headings[-1]) <= room else [*headings[:-1], ""]
    _print_row([heading and style_text(heading, bold=True) for heading in shown], widths)
    for row in cells:
        if text_width(row[0]) > widths[0]:
            click.echo(row[0])
            row[0] = ""
        if room >= _READABLE or text_width(row[-1]) <= room:
            _print_row(row, widths)
        else:
            _print_row([*row[:-1], ""], widths)
            print_text(row[-1], indent=4)


def print_text(text: str, *, indent: int = 0, first: str = "") -> None:
    """Print text, wrapped; ``first`` stands in the indent of its first line."""
    lead = first + " " * (indent - text_width(first))
    for line in wrap_text(text, terminal_width() - indent):
        click.echo(f"{lead}{line}".rstrip())
        lead = " " * indent


def _print_row(row: Sequence[str], widths: Sequence[int]) -> None:
    lead = "".join(
        text + " " * (width - text_width(text) + 2)
        for text, width in zip(row[:-1], widths[:-1], strict=True)
    )
    print_text(row[-1], indent=text_width(lead), first=lead)


def terminal_width() -> int:
    # It is imported late, because scripts that read JSON need not wait for it.
    import shutil

    return shutil.get_terminal_size().columns


def text_width(text: str) -> int:
    """How many columns a terminal needs for the text."""
    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain
    )


def wrap_text(text: str, room: int) -> list[str]:
    if text_width(text) <= room:
        return [text]
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and text_width(lines[-1]) + 1 + text_width(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def print_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print a label and a value a line; empty values are left out."""
    known = [(label, str(value)) for label, value in pairs if value not in ("", None, (), [], {})]
    width = max((len(label) for label, _ in known), default=0)
    for label, value in known:
        _print_row([style_text(label, bold=True), value], [width, 0])
