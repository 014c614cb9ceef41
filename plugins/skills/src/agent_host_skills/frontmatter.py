"""The head of a SKILL.md: YAML between two lines of dashes, as texts, lists and mappings.

Foreign input. It is bounded, and read event by event: nothing is constructed, every scalar is text,
and aliases, anchors and tags are refused, so that no small text becomes a large or a live object.
What the fields mean is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    import yaml

__all__ = ["MAX_HEAD", "Head", "HeadError", "Value", "parse_head", "split_head"]

#: The largest head, in characters; the fields that a skill may have need a tenth of it.
MAX_HEAD = 32_768
MAX_DEPTH = 8
MAX_VALUES = 2_000
#: A parser of YAML takes time with the square of them.
MAX_BRACKETS = 200
_DASHES = "---"

Value = Union[str, "list[Value]", "dict[str, Value]"]


class HeadError(ValueError):
    """The head cannot be read; ``line`` is that of the file."""

    def __init__(self, message: str, line: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Head:
    """The fields with the lines on which they stand."""

    fields: dict[str, Value]
    lines: dict[str, int]


def split_head(text: str) -> tuple[str, str]:
    """The YAML between the first two lines of dashes, and what follows them."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != _DASHES:
        raise HeadError(
            "does not begin with a line '---'", 1, "begin it with '---', the fields, and '---'"
        )
    start = 0
    while start <= MAX_HEAD:
        end = rest.find("\n", start)
        line = rest[start:] if end < 0 else rest[start:end]
        if line.rstrip() == _DASHES:
            return rest[:start], "" if end < 0 else rest[end + 1 :]
        if end < 0:
            raise HeadError("has no line '---' that ends its fields", None, "add that line")
        start = end + 1
    raise HeadError(
        f"has no line '---' within the first {MAX_HEAD} characters",
        None,
        "keep the fields short; instructions belong below them",
    )


def parse_head(yaml_text: str) -> Head:
    """The fields of a head; a `HeadError` has the line in the file, never what stands there."""
    import yaml

    if len(yaml_text) > MAX_HEAD:
        raise HeadError(f"has more than {MAX_HEAD} characters of fields")
    if yaml_text.count("[") + yaml_text.count("{") > MAX_BRACKETS:
        raise HeadError(f"has more than {MAX_BRACKETS} opening brackets")
    try:
        return _Reader(yaml.parse(yaml_text, Loader=yaml.SafeLoader)).read_document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "it has characters that YAML does not allow"
        line = None if mark is None else mark.line + 2
        hint = ""
        if what == "mapping values are not allowed here":
            hint = "put a value that has a colon in it into quotes"
        raise HeadError(f"is not YAML: {what}", line, hint) from None
    except RecursionError:
        raise HeadError("is nested too deeply") from None


class _Reader:
    """Makes values of the events of a YAML parser."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._values = 0

    def read_document(self) -> Head:
        import yaml

        event = self._next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            raise HeadError("has no fields: write each as 'name: value'", _line(event))
        lines: dict[str, int] = {}
        fields = self._mapping(event, 1, lines)
        after = self._next()
        while not isinstance(after, yaml.StreamEndEvent):
            if not isinstance(after, yaml.DocumentEndEvent):
                raise HeadError("has more than one YAML document", _line(after))
            after = self._next()
        return Head(fields, lines)

    def _next(self) -> yaml.Event:
        self._values += 1
        if self._values > 2 * MAX_VALUES:
            raise HeadError(f"has more than {MAX_VALUES} values")
        return next(self._events)

    def _value(self, event: yaml.Event, depth: int) -> Value:
        import yaml

        if depth > MAX_DEPTH:
            raise HeadError(f"is nested more than {MAX_DEPTH} levels deep", _line(event))
        if isinstance(event, yaml.AliasEvent):
            raise HeadError("uses an alias ('*name')", _line(event), "write the value out")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth, {})
        if isinstance(event, yaml.SequenceStartEvent):
            _refuse_marks(event)
            found: list[Value] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                found.append(self._value(event, depth + 1))
            return found
        assert isinstance(event, yaml.ScalarEvent), "a parser gives no other event here"
        _refuse_marks(event)
        return str(event.value)

    def _mapping(
        self, start: yaml.MappingStartEvent, depth: int, lines: dict[str, int]
    ) -> dict[str, Value]:
        import yaml

        _refuse_marks(start)
        found: dict[str, Value] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(key, str):
                raise HeadError("has a name of a field that is no text", _line(event))
            if key in found:
                raise HeadError(
                    f"has the field {key[:64]!r} twice", _line(event), "keep one of the two"
                )
            lines[key] = _line(event) or 0
            found[key] = self._value(self._next(), depth + 1)
        return found


def _refuse_marks(
    event: yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent,
) -> None:
    if event.anchor is not None:
        raise HeadError("uses an anchor ('&name')", _line(event), "write the value out")
    if event.tag not in (None, "!"):
        raise HeadError("uses a tag ('!name')", _line(event), "write the plain value")


def _line(event: yaml.Event) -> int | None:
    # Counted from the file's first line, which is the one of dashes.
    mark = event.start_mark
    return None if mark is None else int(mark.line) + 2
