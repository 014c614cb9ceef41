"""What people see: tables, marks and errors, made without a library so that listing stays quick."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

__all__ = [
    "print_error",
    "print_json",
    "print_pairs",
    "print_table",
    "print_text",
    "printable",
    "state_mark",
    "styled",
]

_STATE_COLOURS = {
    "loaded": "green",
    "discovered": "green",
    "gated": "yellow",
    "disabled": "yellow",
    "incompatible": "red",
    "failed": "red",
}

#: A column narrower than this is no pleasure to read.
#: A first column wider than this makes way for the others where there is little room.
_SHORT = 28
_READABLE = 30


def printable(text: object) -> str:
    """Foreign text without anything that could move the cursor or recolour the terminal."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(
        " " if character.isspace() else character if _harmless(character) else "�"
        for character in text
    )


def _harmless(character: str) -> bool:
    return unicodedata.category(character)[0] != "C"


def styled(text: str, **how: Any) -> str:
    """Coloured or bold, unless the user wants none of it; pipes are seen to elsewhere."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **how)


def state_mark(state: str) -> str:
    return styled(state, fg=_STATE_COLOURS.get(state))


def print_json(document: Mapping[str, object]) -> None:
    """A line for each value, and for each item of a list: short to read, quick to write.

    Everything but ASCII is escaped, because JSON lets through what a terminal obeys.
    """
    members = [f"  {json.dumps(key)}: {_json_value(value)}" for key, value in document.items()]
    click.echo("{\n" + ",\n".join(members) + "\n}")


def _json_value(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    items = ",\n".join(f"    {json.dumps(item)}" for item in value)
    return f"[\n{items}\n  ]"


def print_error(message: str, hint: str = "") -> None:
    click.echo(f"{styled('error:', fg='red', bold=True)} {printable(message)}", err=True)
    if hint:
        click.echo(f"{styled('hint:', fg='cyan')} {printable(hint)}", err=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Left-aligned columns as wide as their content; the last one wraps at the terminal's edge.

    A text too long for what room is left there gets lines of its own, under the others; so does,
    above the others, a first one that would push them off the edge.
    """
    cells = [list(row) for row in rows]
    widths = [
        max(map(_width, (heading, *(row[column] for row in cells))))
        for column, heading in enumerate(headings)
    ]
    if _columns() - sum(width + 2 for width in widths[:-1]) < _SHORT:
        short = [width for row in cells if (width := _width(row[0])) <= _SHORT]
        widths[0] = max([_width(headings[0]), *short])
    room = _columns() - sum(width + 2 for width in widths[:-1])
    _print_row([styled(heading, bold=True) for heading in headings], widths)
    for row in cells:
        if _width(row[0]) > widths[0]:
            click.echo(row[0])
            row[0] = ""
        if room >= _READABLE or _fits(row[-1], room):
            _print_row(row, widths)
        else:
            _print_row([*row[:-1], ""], widths)
            print_text(row[-1], indent=4)


def _fits(text: str, room: int) -> bool:
    lines = _wrapped(text, room)
    return len(lines) <= 2 and all(_width(line) <= room for line in lines)


def print_text(text: str, *, indent: int = 0, first: str = "") -> None:
    """Text wrapped at the terminal's edge; ``first`` stands in the indent of its first line."""
    lead = first + " " * (indent - _width(first))
    for line in _wrapped(text, _columns() - indent):
        click.echo(f"{lead}{line}".rstrip())
        lead = " " * indent


def _print_row(row: Sequence[str], widths: Sequence[int]) -> None:
    lead = "".join(
        text + " " * (width - _width(text) + 2)
        for text, width in zip(row[:-1], widths[:-1], strict=True)
    )
    print_text(row[-1], indent=_width(lead), first=lead)


def _columns() -> int:
    # Late, because scripts that read JSON need not wait for it.
    import shutil

    return shutil.get_terminal_size().columns


def _width(text: str) -> int:
    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain
    )


def _wrapped(text: str, room: int) -> list[str]:
    if _width(text) <= room:
        return [text]
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and _width(lines[-1]) + 1 + _width(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def print_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """A label and a value a line; empty values are left out."""
    known = [(label, str(value)) for label, value in pairs if value not in ("", None, (), [], {})]
    width = max((len(label) for label, _ in known), default=0)
    for label, value in known:
        _print_row([styled(label, bold=True), value], [width, 0])
