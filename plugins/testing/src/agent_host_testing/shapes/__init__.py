"""The fifty wire shapes by number, in exact bytes, and how a provider is held to them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from agent_host_testing.shapes import (
    anthropic,
    ends,
    framing,
    gemini,
    ollama,
    openrouter,
    responses,
    tool_deltas,
)
from agent_host_testing.shapes.checking import ShapeSubject, check_shape
from agent_host_testing.shapes.shape import NextRequest, Outcome, Sent, Shape, ShapeCall

__all__ = [
    "SHAPES",
    "NextRequest",
    "Outcome",
    "Sent",
    "Shape",
    "ShapeCall",
    "ShapeSubject",
    "check_shape",
    "shape",
    "shapes_for",
]

_FAMILIES = (tool_deltas, ollama, anthropic, gemini, responses, openrouter, framing, ends)

#: Every shape of a number, which has at least one.
SHAPES: dict[int, tuple[Shape, ...]] = {
    number: tuple(each for family in _FAMILIES for each in family.SHAPES if each.number == number)
    for number in range(1, 51)
}


def shapes_for(format_name: str, dialects: Collection[str] = ()) -> list[Shape]:
    """The shapes of a wire format that each of its providers must bear.

    ``dialects`` adds those that only certain servers have, such as ``"openrouter"``.
    """
    return [
        each
        for each in chain.from_iterable(SHAPES.values())
        if each.format == format_name and (not each.dialect or each.dialect in dialects)
    ]


def shape(number_or_name: int | str) -> Shape:
    """The shape of that name, or the first one of that number.

    Raises LookupError if there is none.
    """
    for each in chain.from_iterable(SHAPES.values()):
        if number_or_name in (each.number, each.name):
            return each
    raise LookupError(f"there is no wire shape {number_or_name!r}; they are numbered 1 to 50")
