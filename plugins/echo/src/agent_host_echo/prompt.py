"""The prompt language of the echo model, read line by line.

A line is a directive if it begins with one of these words in its first column and has what the
directive needs. Any other line is text and is echoed; a space in front makes text of a directive.

``/think TEXT``
    Reason TEXT before answering.
``/call NAME [PAYLOAD]``
    Call the tool NAME. The payload is passed on as it stands: JSON, free text, broken JSON.
``/repeat N TEXT``
    Answer TEXT, N times over, N from 1 to 999999.
``/refuse TEXT``
    Decline to answer, in these words.
``/end WORD``
    End the answer with WORD as its finish reason, such as ``length`` or ``content_filter``.
``/fail KIND [MESSAGE]``
    Fail after what the lines above ask for; lines below are not read. KIND is ``rate_limit``,
    ``overloaded``, ``auth``, ``server``, or ``cut`` for an answer that stops in the middle.

Owns the reading alone: it must not know messages, tools, or what the model makes of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Call", "End", "Fail", "Line", "Refuse", "Text", "Think", "parse"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text to answer with."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Text to reason with."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call; ``payload`` is "" if the line has none."""

    name: str
    payload: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Words to decline with."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """A finish reason to end with."""

    word: str


@dataclass(frozen=True, slots=True)
class Fail:
    """A failure; ``message`` is "" if the line has none."""

    kind: str
    message: str


Line: TypeAlias = Text | Think | Call | Refuse | End | Fail

_THINK = re.compile(r"/think\s+(\S.*)")
_CALL = re.compile(r"/call\s+(\S+)(?:\s+(.*))?")
_REPEAT = re.compile(r"/repeat\s+([1-9][0-9]{0,5})\s+(\S.*)")
_REFUSE = re.compile(r"/refuse\s+(\S.*)")
_END = re.compile(r"/end\s+(\w+)")
_FAIL = re.compile(r"/fail\s+(rate_limit|overloaded|auth|server|cut)(?:\s+(.*))?")


def parse(prompt: str) -> list[Line]:
    """What each line of the prompt asks for, in order, up to the first failure."""
    lines: list[Line] = []
    for line in prompt.split("\n"):
        lines.append(_read(line))
        if isinstance(lines[-1], Fail):
            break
    return lines


def _read(line: str) -> Line:
    directive = line.rstrip()
    if found := _THINK.fullmatch(directive):
        return Think(found[1])
    if found := _CALL.fullmatch(directive):
        return Call(found[1], found[2] or "")
    if found := _REPEAT.fullmatch(directive):
        return Text(" ".join([found[2]] * int(found[1])))
    if found := _REFUSE.fullmatch(directive):
        return Refuse(found[1])
    if found := _END.fullmatch(directive):
        return End(found[1])
    if found := _FAIL.fullmatch(directive):
        return Fail(found[1], found[2] or "")
    return Text(line)
