"""What a docstring says of a function and of its parameters, in the three common styles.

Google, NumPy and Sphinx. Pure text: it must not know what the function is or what becomes of it.
"""

from __future__ import annotations

import re

__all__ = ["read_docstring"]

_GOOGLE = re.compile(r"(?:args|arguments|parameters|params)\s*:", re.IGNORECASE)
_GOOGLE_ENTRY = re.compile(r"(\w+)(?:\s*\(.*?\))?\s*:(.*)")
_NUMPY = re.compile(r"(?:other )?parameters", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_UNDERLINE = re.compile(r"-{3,}|={3,}")
_SPHINX_ENTRY = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\w+)\s*:(.*)"
)
_SPHINX_FIELD = re.compile(r":\w+[^:]*:")


def read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph as one line, and what the docstring says of each parameter."""
    lines = doc.splitlines()
    first: list[str] = []
    for place, line in enumerate(lines):
        if not line.strip() or _begins_section(lines, place):
            break
        first.append(line.strip())
    return " ".join(first), _notes(lines)


def _begins_section(lines: list[str], place: int) -> bool:
    return (
        _GOOGLE.fullmatch(lines[place].strip()) is not None
        or _SPHINX_FIELD.match(lines[place].strip()) is not None
        or _is_underlined(lines, place)
    )


def _is_underlined(lines: list[str], place: int) -> bool:
    return place + 1 < len(lines) and _UNDERLINE.fullmatch(lines[place + 1].strip()) is not None


def _notes(lines: list[str]) -> dict[str, str]:
    notes: dict[str, str] = {}
    for place, line in enumerate(lines):
        text = line.strip()
        if _GOOGLE.fullmatch(text):
            notes |= _entries(lines, place + 1, _indent(line) + 1, _GOOGLE_ENTRY)
        elif _NUMPY.fullmatch(text) and _is_underlined(lines, place):
            notes |= _entries(lines, place + 2, _indent(line), _NUMPY_ENTRY)
        elif _SPHINX_ENTRY.fullmatch(text):
            notes |= _entries(lines, place, _indent(line), _SPHINX_ENTRY)
    return notes


def _entries(lines: list[str], start: int, least: int, entry: re.Pattern[str]) -> dict[str, str]:
    """The entries of a section whose lines are indented by ``least`` or more."""
    notes: dict[str, str] = {}
    names: list[str] = []
    indent: int | None = None
    for place in range(start, len(lines)):
        line = lines[place]
        if not line.strip():
            continue
        if _indent(line) < least or _is_underlined(lines, place):
            break
        indent = _indent(line) if indent is None else indent
        match = entry.fullmatch(line.strip()) if _indent(line) <= indent else None
        if match:
            names = [name.strip() for name in match[1].split(",")]
            text = match[2].strip() if entry.groups > 1 else ""
        elif _indent(line) > indent:
            text = line.strip()
        else:
            names, text = [], ""
        for name in names:
            notes[name] = f"{notes.get(name, '')} {text}".strip()
    return {name: note for name, note in notes.items() if note}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
