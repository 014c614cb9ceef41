"""The patch language: from text to sections, and from a hunk and a file's lines to new lines.

Owns the grammar that models are given, the parser, and the search for the place where a hunk
belongs. Pure: it must not know files, only their names and lines. Every error says which file and
hunk is meant, what was expected and what is there instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_hookspecs import ToolArgumentsError, ToolError

__all__ = ["GRAMMAR", "AddFile", "DeleteFile", "Hunk", "Section", "UpdateFile", "apply", "parse"]

#: Every terminal is one whole line, told by how it begins.
GRAMMAR = r"""start: BEGIN section+ END
section: add | delete | update
add: ADD_FILE ADDED*
delete: DELETE_FILE
update: UPDATE_FILE (MOVE_TO first_hunk? | first_hunk | hunk) hunk*
first_hunk: change+ END_OF_FILE?
hunk: PLACE+ change+ END_OF_FILE?
change: CONTEXT | ADDED | REMOVED

BEGIN: /\*\*\* Begin Patch\n/
END: /\*\*\* End Patch\n?/
ADD_FILE: /\*\*\* Add File: [^\n]+\n/
DELETE_FILE: /\*\*\* Delete File: [^\n]+\n/
UPDATE_FILE: /\*\*\* Update File: [^\n]+\n/
MOVE_TO: /\*\*\* Move to: [^\n]+\n/
END_OF_FILE: /\*\*\* End of File\n/
PLACE: /@@( [^\n]+)?\n/
CONTEXT: / [^\n]*\n/
ADDED: /\+[^\n]*\n/
REMOVED: /-[^\n]*\n/
"""

_BEGIN, _END, _END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_ADD, _DELETE = "*** Add File: ", "*** Delete File: "
_UPDATE, _MOVE = "*** Update File: ", "*** Move to: "

# What unified diffs write after "@@"; line numbers go stale, so they are not used.
_LINE_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")
#: Comparisons that a hint on a hunk without a place may cost.
_HINT_EFFORT = 500_000


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines to find and what becomes of them.

    ``places`` are lines that come before, one after the other; ``changes`` are pairs of a sign
    (space, plus or minus) and a line.
    """

    places: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    at_end: bool = False

    @property
    def expected(self) -> list[str]:
        return [line for sign, line in self.changes if sign != "+"]

    def count(self, sign: str) -> int:
        return sum(each == sign for each, _ in self.changes)


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteFile:
    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    path: str
    hunks: tuple[Hunk, ...]
    move_to: str | None = None


Section = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> tuple[Section, ...]:
    """The sections of a patch; a `ToolArgumentsError` names the line that is wrong."""
    lines = text.strip("\r\n").split("\n")
    if all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    if lines[0].strip() != _BEGIN:
        raise _wrong(1, f"the first line must be '{_BEGIN}'", lines[0])
    if lines[-1].strip() != _END:
        raise _wrong(len(lines), f"the last line must be '{_END}'; is the patch complete?")
    sections = _Reader(lines[1:-1]).sections()
    if not sections:
        raise _wrong(len(lines), "the patch changes no file")
    return sections


def _wrong(number: int, what: str, line: str | None = None) -> ToolArgumentsError:
    found = "" if line is None else f", not {_quoted(line)}"
    return ToolArgumentsError(f"line {number} of the patch: {what}{found}")


class _Reader:
    """Goes through the lines between begin and end once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def _line(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    @property
    def _number(self) -> int:
        return self._at + 2

    def _take(self, start: str) -> str | None:
        """The rest of the current line if it begins so; then it is done with."""
        line = self._line
        if line is None or not line.startswith(start):
            return None
        self._at += 1
        return line[len(start) :].strip()

    def sections(self) -> tuple[Section, ...]:
        found: list[Section] = []
        while (line := self._line) is not None:
            if not line.strip():
                self._at += 1
            elif (path := self._take(_ADD)) is not None:
                found.append(AddFile(path, self._added()))
            elif (path := self._take(_DELETE)) is not None:
                found.append(DeleteFile(path))
            elif (path := self._take(_UPDATE)) is not None:
                found.append(self._update(path))
            else:
                wanted = f"expected '{_ADD}…', '{_UPDATE}…' or '{_DELETE}…'"
                raise _wrong(self._number, wanted, line)
        return tuple(found)

    def _added(self) -> tuple[str, ...]:
        lines = []
        while (line := self._line) is not None and line.startswith("+"):
            lines.append(line[1:])
            self._at += 1
        if line is not None and line.strip() and not line.startswith("***"):
            raise _wrong(self._number, "every line of an added file begins with '+'", line)
        return tuple(lines)

    def _update(self, path: str) -> UpdateFile:
        move_to = self._take(_MOVE)
        hunks = []
        self._skip_separators()
        while (line := self._line) is not None and not self._ends_section(line):
            hunks.append(self._hunk())
            self._skip_separators()
        if not hunks and move_to is None:
            raise _wrong(self._number, f"the update of '{path}' has no hunk")
        return UpdateFile(path, tuple(hunks), move_to)

    def _skip_separators(self) -> None:
        """Pass over empty lines if the section ends after them; elsewhere they are context."""
        at = self._at
        while at < len(self._lines) and not self._lines[at]:
            at += 1
        if at == len(self._lines) or self._ends_section(self._lines[at]):
            self._at = at

    @staticmethod
    def _ends_section(line: str) -> bool:
        return line.startswith((_ADD, _DELETE, _UPDATE))

    def _hunk(self) -> Hunk:
        places = []
        while (place := self._take("@@")) is not None:
            if place and not _LINE_NUMBERS.fullmatch(place):
                places.append(place)
        changes: list[tuple[str, str]] = []
        at_end = False
        while (line := self._line) is not None and not line.startswith(("@@", "***")):
            if line and line[0] not in " +-":
                raise _wrong(self._number, "a hunk's lines begin with ' ', '+', '-' or '@@'", line)
            # Blank context lines often lose the space that should stand before them.
            changes.append((line[0], line[1:]) if line else (" ", ""))
            self._at += 1
        if line is None or self._ends_section(line):
            # Empty lines here separate sections; as context they would say next to nothing.
            before = self._at
            while changes and not self._lines[before - 1]:
                before -= 1
                changes.pop()
        if line is not None and line.rstrip() == _END_OF_FILE:
            at_end = True
            self._at += 1
        elif line is not None and line.startswith("***") and not self._ends_section(line):
            raise _wrong(self._number, "this line is not part of the patch language", line)
        if not changes:
            raise _wrong(self._number, "the hunk has no lines", line)
        return Hunk(tuple(places), tuple(changes), at_end)


def apply(path: str, lines: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """The file's lines after all hunks; a `ToolError` if one has no place or more than one.

    Hunks stand in the order of the file. Lines are compared exactly and, if that finds nothing,
    without the white space at their ends. Context keeps the file's own white space; added lines
    get a carriage return if the file's lines have one.
    """
    done: list[str] = []
    at = 0
    returns = bool(lines) and all(line.endswith("\r") for line in lines[:-1] or lines)
    for number, hunk in enumerate(hunks, 1):
        where = f"hunk {number} of '{path}'"
        start = _place_of(where, hunk, lines, at)
        done += lines[at:start]
        at = start
        for sign, line in hunk.changes:
            if sign == "+":
                done.append(f"{line}\r" if returns and not line.endswith("\r") else line)
            else:
                if sign == " ":
                    done.append(lines[at])
                at += 1
    return [*done, *lines[at:]]


def _place_of(where: str, hunk: Hunk, lines: Sequence[str], start: int) -> int:
    """The index of the line at which the hunk begins, not before ``start``."""
    expected = hunk.expected
    first = _after_places(where, hunk.places, lines, start)
    if hunk.at_end:
        end = len(lines) - len(expected)
        if end >= first and any(_stands_at(lines, end, expected, each) for each in _READINGS):
            return end
        raise _no_place(where, "the end of the file", hunk, lines, max(first, end))
    if not expected:
        if hunk.places or not lines:
            return first
        raise _failed(where, "it only adds lines and does not say where; add a context line")
    for reading in _READINGS:
        # The context may begin with the very line that "@@" names; then it is meant there.
        if hunk.places and _stands_at(lines, first - 1, expected, reading):
            return first - 1
        found = _fitting(lines, expected, reading, first, 1 if hunk.places else 2)
        if len(found) > 1:
            numbers = " and ".join(str(index + 1) for index in found)
            raise _failed(
                where,
                f"its lines fit more than once, at lines {numbers}; add context lines, or a line "
                "'@@ ' with a line that comes before",
            )
        if found:
            return found[0]
    for reading in _READINGS:
        for index in _fitting(lines, expected, reading, 0, 1):
            raise _failed(
                where,
                f"its lines are found at line {index + 1} only, before the end of the previous "
                "hunk or of its '@@' line; put hunks in the order of the file, without overlap",
            )
    raise _no_place(where, "the file", hunk, lines, first)


def _after_places(where: str, places: Sequence[str], lines: Sequence[str], start: int) -> int:
    """The index after the last of ``places``; the first of them must be the only one."""
    for number, place in enumerate(places):
        found = [index for index in range(start, len(lines)) if lines[index].strip() == place]
        if not found:
            raise _failed(where, f"no line after line {start} is {_quoted(place)}, as '@@' says")
        if number == 0 and len(found) > 1:
            numbers = " and ".join(str(index + 1) for index in found[:2])
            raise _failed(
                where,
                f"'@@ {place}' fits lines {numbers}; put another '@@' line before it, with a line "
                "that occurs once",
            )
        start = found[0] + 1
    return start


def _exactly(line: str) -> str:
    return line


_Reading = Callable[[str], str]
#: How lines are read before they are compared, strictest first.
_READINGS: tuple[_Reading, ...] = (_exactly, str.rstrip)


def _stands_at(
    lines: Sequence[str], index: int, expected: Sequence[str], reading: _Reading
) -> bool:
    found = lines[index : index + len(expected)]
    return [*map(reading, found)] == [*map(reading, expected)]


def _fitting(
    lines: Sequence[str], expected: Sequence[str], reading: _Reading, start: int, limit: int
) -> list[int]:
    """Up to ``limit`` indexes, not before ``start``, at which ``expected`` stands."""
    if len(expected) > len(lines) - start:
        return []
    # As one string: its search is linear, where a comparison at every line is not.
    text = "\n".join(["", *map(reading, lines[start:]), ""])
    wanted = "\n".join(["", *map(reading, expected), ""])
    found: list[int] = []
    index, before, at = start, 0, text.find(wanted)
    while at >= 0 and len(found) < limit:
        index += text.count("\n", before, at)
        found.append(index)
        before, at = at, text.find(wanted, at + 1)
    return found


def _no_place(where: str, within: str, hunk: Hunk, lines: Sequence[str], start: int) -> ToolError:
    """What was expected and what is there, at the place that comes nearest."""
    expected = hunk.expected
    best, most = None, 0
    if len(lines) * len(expected) <= _HINT_EFFORT:
        for at in range(start, len(lines)):
            fitting = sum(
                lines[at + offset].rstrip() == wanted.rstrip()
                for offset, wanted in enumerate(expected[: len(lines) - at])
            )
            if fitting > most:
                best, most = at, fitting
    if best is None:
        first = next((line for line in expected if line.strip()), "")
        return _failed(where, f"its lines are not in {within}; it expects {_quoted(first)}")
    for offset, wanted in enumerate(expected):
        index = best + offset
        found = _quoted(lines[index]) if index < len(lines) else "the end of the file"
        if index >= len(lines) or lines[index].rstrip() != wanted.rstrip():
            return _failed(
                where,
                f"its lines are not in {within}; nearest is line {best + 1}, but at line "
                f"{index + 1} it expects {_quoted(wanted)} and finds {found}",
            )
    return _failed(where, f"its lines are at line {best + 1}, not at {within}")


def _failed(where: str, what: str) -> ToolError:
    return ToolError(f"{where}: {what}")


def _quoted(line: str) -> str:
    return repr(line if len(line) <= 160 else f"{line[:157]}…")
