"""Bytes in, decoded JSON events out: server-sent events, NDJSON, a JSON array, one JSON document.

Each framing is a machine with two methods, `decode` and `flush`, that owns no socket and knows no
provider. However the input is cut, the events are the same, and every byte is looked at a bounded
number of times: what is incomplete waits in one growing buffer that is never scanned again.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from agent_hookspecs.errors import ConfigError, ProtocolError, StreamCutError

from agent_host.wire.failures import describe_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "MAX_EVENT_BYTES",
    "Event",
    "Framing",
    "JsonArrayFraming",
    "JsonFraming",
    "NdjsonFraming",
    "SseFraming",
    "framing",
    "warm_up",
]

Bytes = TypeVar("Bytes", bytes, bytearray)

#: A decoded JSON value and, for server-sent events, the name of its event.
Event: TypeAlias = "tuple[Any, str | None]"

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024

_BOM: Final = b"\xef\xbb\xbf"
_HEAD_BYTES: Final = 2048

# Measured on a typical chunk of 290 bytes (CPython 3.11): json.loads of bytes 4.0 µs, of str 3.4,
# raw_decode 2.3, pydantic_core.from_json 1.2. Importing the last one takes 21 ms, which a stream of
# some 19,000 chunks would repay, so it is used where the application has loaded it already or has
# asked for `warm_up`. What it refuses (lone surrogates, for one, of an emoji cut in two) is given
# to json.
_DECODER: Final = json.JSONDecoder()
_raw_decode: Final = _DECODER.raw_decode


def _parse(data: bytes, *, cache_strings: str = "") -> Any:
    """The JSON value that ``data`` is; JSONDecodeError when it is not one.

    It takes the arguments of ``pydantic_core.from_json``, whose place it holds.
    """
    text = _text(data)
    try:
        try:
            value, end = _raw_decode(text)
            if end == len(text):
                return value
        except json.JSONDecodeError:
            # Maybe only for the white space before the value, which raw_decode does not skip.
            pass
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except RecursionError as exc:
        raise _unreadable("JSON that is nested too deeply to be read") from exc
    except ValueError as exc:
        raise _unreadable("a number with more digits than can be read") from exc


def _decoder() -> Callable[..., Any]:
    """The quickest decoder at hand. What it raises a ValueError for is up to `_parse`."""
    from_json: Callable[..., Any] | None
    from_json = getattr(sys.modules.get("pydantic_core"), "from_json", None)
    return from_json or _parse


def warm_up() -> None:
    """Load the quickest decoder, for processes that will decode much."""
    import pydantic_core  # noqa: F401


def _unreadable(what: str) -> ProtocolError:
    return ProtocolError(
        f"the answer holds {what}",
        hint="no model output looks like this; check what answers at the base URL",
    )


def _text(data: bytes | bytearray) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # One damaged character must not lose the event around it.
        return data.decode(errors="replace")


def _stops_inside(text: str, error: json.JSONDecodeError) -> bool:
    """Whether ``text`` is the beginning of a JSON container that goes on after its end."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    # The longest token that json reports by its first character is a literal or an escape.
    near_the_end = error.pos >= len(text.rstrip()) - len("-Infinity")
    return near_the_end or error.msg.startswith("Unterminated string")


class Framing(ABC):
    """What all machines share: the counts, the limit and the words for an answer of another kind.

    ``done`` is True once the protocol's own end marker was seen; bytes after it are ignored.
    ``decoded`` counts events, ``skipped`` what stood in an event's place and was not JSON, of which
    ``first_skipped`` keeps the beginning.
    """

    name: str

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.max_event_bytes = max_event_bytes
        self.done = False
        self.decoded = 0
        self.skipped = 0
        self.first_skipped = b""
        self._head = b""
        self._held = b""
        self._started = False
        self._quick = _decoder()

    def decode(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes."""
        return list(self.events(data))

    def flush(self) -> list[Event]:
        """The events that the end of the input completes.

        Raises StreamCutError when the input certainly stops in the middle of something.
        """
        return list(self.last_events())

    def events(self, data: bytes) -> Iterator[Event]:
        """What `decode` gives, each event decoded when it is asked for; all must be asked for.

        So a chunk is worked on and gone before the next one is made, which takes a third less time
        than decoding a whole read at once. An error comes after the events that stand before it.
        """
        if self.done or not data:
            return iter(())
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]
        if not self._started:
            # A byte order mark may itself arrive in pieces.
            data = self._held + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._held = data
                return iter(())
            self._started = True
            data = data.removeprefix(_BOM)
        return self._feed(data)

    def last_events(self) -> Iterator[Event]:
        """What `flush` gives, in the way of `events`."""
        if self.done:
            return
        if not self._started:
            self._started = True
            yield from self._feed(self._held)
        yield from self._end()

    def array_in(self, data: bytes) -> bytes | None:
        """The input from its first ``[`` on, if it is a JSON array; ``data`` comes next of it."""
        head = self._head.removeprefix(_BOM)
        if head.strip() and not _BOM.startswith(head):
            return None
        begun = (head + data[:_HEAD_BYTES]).removeprefix(_BOM).lstrip()
        return begun + data[_HEAD_BYTES:] if begun[:1] == b"[" else None

    def nothing_decoded(self, content_type: str = "") -> ProtocolError | None:
        """The error of an answer that had bytes but not one event; None when all is well."""
        if self.decoded or self.done or not self._head:
            return None
        seen = describe_body(self._head, content_type)
        return ProtocolError(
            f"the answer holds no {self.name} event, but {seen.summary}",
            excerpt=seen.excerpt,
            hint="check the base URL: something other than the model's API answers there",
        )

    @abstractmethod
    def _feed(self, data: bytes) -> Iterator[Event]:
        """The events that ``data``, never empty, completes."""

    @abstractmethod
    def _end(self) -> Iterator[Event]:
        """The events that the end of the input completes."""

    def _value(self, data: bytes) -> Any:
        """The JSON value that ``data`` is; JSONDecodeError when it is not one."""
        try:
            value = self._quick(data, cache_strings="keys")
        except ValueError:
            # json decides what is an error, and of which kind.
            value = _parse(data)
        self.decoded += 1
        return value

    def _skip(self, data: bytes | bytearray) -> None:
        if not self.skipped:
            self.first_skipped = bytes(data[:200])
        self.skipped += 1

    def _sized(self, data: Bytes) -> Bytes:
        """``data`` of one event, or of its beginning; padding before it does not count."""
        if len(data) > self.max_event_bytes:
            data = data.lstrip()
            self._check_size(len(data))
        return data

    def _check_size(self, size: int) -> None:
        if size > self.max_event_bytes:
            raise ProtocolError(
                f"one {self.name} event is larger than {self.max_event_bytes} bytes",
                hint="raise the limit of the event size if answers of this size are expected",
            )

    def _cut(self) -> StreamCutError:
        return StreamCutError(f"the answer stopped in the middle of a {self.name} event")


class _LineFraming(Framing):
    """A machine that works on whole lines; the last, incomplete one waits in ``_tail``."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._tail = bytearray()

    def _split(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, without their ends."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            self._tail += lines[0]
            lines[0] = bytes(self._tail)
            self._tail = bytearray(rest)
        else:
            self._tail += rest
        return lines


class SseFraming(_LineFraming):
    """Server-sent events whose data is JSON; ``[DONE]`` ends them."""

    name = "server-sent"

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._after_cr = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event: str | None = None

    def _feed(self, data: bytes) -> Iterator[Event]:
        if self._after_cr:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        # Only CR and LF end a line; a splitter that knows Unicode would cut JSON strings apart.
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._tail or self._data or self._event is not None:
            # After a blank line no event is open.
            end = data.find(b"\n\n") + 2
            if end < 2:
                return self._feed_lines(data)
            return chain(self._feed_lines(data[:end]), self._feed_blocks(data[end:]))
        return self._feed_blocks(data)

    def _feed_blocks(self, data: bytes) -> Iterator[Event]:
        """Take ``data`` that begins where an event may begin.

        Nearly every event is one line of data, maybe after its name: those are decoded at once.
        """
        blocks = data.split(b"\n\n")
        rest = blocks.pop()
        quick, limit = self._quick, self.max_event_bytes
        for block in blocks:
            if self.done:
                break
            line, event = block, None
            if block.startswith(b"event: "):
                name, _, line = block.partition(b"\n")
                event = _text(name[7:])
            if line.startswith(b"data: ") and b"\n" not in line and len(block) <= limit:
                try:
                    value = quick(line[6:], cache_strings="keys")
                except ValueError:
                    # Not JSON, or JSON of a kind that is looked at twice.
                    yield from self._feed_lines(block + b"\n\n")
                else:
                    self.decoded += 1
                    yield value, event
            else:
                yield from self._feed_lines(block + b"\n\n")
        if not self.done:
            yield from self._feed_lines(rest)

    def _feed_lines(self, data: bytes) -> Iterator[Event]:
        for line in self._split(data):
            if line.startswith(b"data:"):
                self._data.append(line)
                self._data_bytes += len(line)
                self._check_size(self._data_bytes)
            elif line:
                self._take_field(line)
            elif self._data:
                yield from self._dispatch()
                if self.done:
                    return
            else:
                self._event = None
        before = self._data_bytes if self._tail.startswith(b"data:") else 0
        self._check_size(len(self._tail) + before)

    def _take_field(self, line: bytes) -> None:
        self._check_size(len(line))
        if line.startswith(b"event:"):
            self._event = _text(line[6:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"data:")
            self._data_bytes += len(b"data:")
            self._check_size(self._data_bytes)

    def _dispatch(self) -> list[Event]:
        values = [line[5:].removeprefix(b" ") for line in self._data]
        event, self._event, self._data_bytes = self._event, None, 0
        self._data.clear()
        joined = b"\n".join(values)
        try:
            return [(self._value(joined), event)]
        except json.JSONDecodeError:
            if len(values) == 1:
                self._refuse(joined)
                return []
        # Some servers forget the blank line between events: each line is then one of its own.
        ends = [value.strip() == b"[DONE]" for value in values]
        self.done = any(ends)
        if self.done:
            values = values[: ends.index(True)]
        decoded = self.decoded
        try:
            return [(self._value(value), event) for value in values if value.strip()]
        except json.JSONDecodeError:
            self.decoded = decoded
            self._skip(joined)
            return []

    def _refuse(self, value: bytes) -> None:
        """Note what is not JSON: the end marker, or something to skip."""
        value = value.strip()
        if value == b"[DONE]":
            self.done = True
        elif value:
            self._skip(value)

    def _end(self) -> Iterator[Event]:
        if self._tail:
            # What stands there is a whole line now, and its event's last one.
            yield from self._feed_lines(b"\n")
        if not self._data:
            return
        begins_json = any(line[5:].lstrip()[:1] in (b"{", b"[") for line in self._data)
        skipped = self.skipped
        yield from self._dispatch()
        if begins_json and self.skipped > skipped:
            raise self._cut()


class NdjsonFraming(_LineFraming):
    """One JSON value a line. There is no end marker; the provider's own last event is the end."""

    name = "NDJSON"

    def _feed(self, data: bytes) -> Iterator[Event]:
        for line in self._split(data):
            if line and not line.isspace():
                try:
                    value = self._value(self._sized(line))
                except json.JSONDecodeError:
                    self._skip(line)
                else:
                    yield value, None
        self._tail = self._sized(self._tail)

    def _end(self) -> Iterator[Event]:
        line, self._tail = bytes(self._tail), bytearray()
        if not line or line.isspace():
            return
        try:
            value = self._value(line)
        except json.JSONDecodeError as exc:
            if line.lstrip().startswith((b"{", b"[")):
                raise self._cut() from exc
            self._skip(line)
        else:
            yield value, None


class JsonArrayFraming(Framing):
    """The elements of one JSON array, each as soon as it is complete.

    A body that is an object instead (an error, as a rule) is one event.
    """

    name = "JSON array"

    _BETWEEN: Final = re.compile(rb'["{}\[\],]')
    _INSIDE: Final = re.compile(rb'["{}\[\]]')
    _IN_STRING: Final = re.compile(rb'["\\]')
    _INK: Final = re.compile(rb"[^ \t\r\n]")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._element = bytearray()
        self._array = False
        self._foreign = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def _feed(self, data: bytes) -> Iterator[Event]:
        position = 0
        if not self._array and not self._depth and not self._foreign:
            ink = self._INK.search(data)
            if ink is None:
                return
            position = ink.start()
            if data[position] == 0x5B:
                self._array = True
                position += 1
            elif data[position] != 0x7B:
                self._foreign = True
                self._skip(data[position:])
        if self._foreign:
            return
        start = position
        while position < len(data):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            if self._in_string:
                pattern = self._IN_STRING
            else:
                pattern = self._INSIDE if self._depth else self._BETWEEN
            found = pattern.search(data, position)
            if found is None:
                break
            at = found.start()
            position = at + 1
            byte = data[at]
            if byte == 0x5C:
                self._escaped = True
            elif byte == 0x22:
                self._in_string = not self._in_string
            elif byte in b"{[":
                self._depth += 1
            elif byte in b"}]" and self._depth:
                self._depth -= 1
                if not self._depth:
                    yield from self._complete(data[start:position])
                    start = position
                    if not self._array:
                        self.done = True
                        return
            elif not self._depth:
                # A comma between elements, or the bracket that ends the array.
                yield from self._complete(data[start:at])
                start = position
                if byte == 0x5D:
                    self.done = True
                    return
        self._element += data[start:]
        self._element = self._sized(self._element)

    def _complete(self, data: bytes) -> list[Event]:
        if self._element:
            self._element += data
            data, self._element = bytes(self._element), bytearray()
        data = self._sized(data)
        if not data.strip():
            return []
        try:
            return [(self._value(data), None)]
        except json.JSONDecodeError:
            self._skip(data)
            return []

    def _end(self) -> Iterator[Event]:
        if self._array or self._depth:
            raise self._cut()
        return iter(())


class JsonFraming(Framing):
    """One JSON document, decoded when it is whole."""

    name = "JSON"

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._body = bytearray()

    def _feed(self, data: bytes) -> Iterator[Event]:
        self._body += data
        self._body = self._sized(self._body)
        return iter(())

    def _end(self) -> Iterator[Event]:
        body, self._body = self._body, bytearray()
        if not body or body.isspace():
            return
        try:
            value = self._value(bytes(body))
        except json.JSONDecodeError as exc:
            if _stops_inside(_text(body), exc):
                raise self._cut() from exc
            self._skip(body)
        else:
            self.done = True
            yield value, None


_FRAMINGS: Final[dict[str, type[Framing]]] = {
    "sse": SseFraming,
    "ndjson": NdjsonFraming,
    "json-array": JsonArrayFraming,
    "json": JsonFraming,
}


def framing(
    name: Literal["sse", "ndjson", "json-array", "json"] | str,
    *,
    max_event_bytes: int = MAX_EVENT_BYTES,
) -> Framing:
    """A new machine for the framing that a provider names."""
    try:
        return _FRAMINGS[name](max_event_bytes)
    except KeyError:
        raise ConfigError(
            f"there is no framing {name!r}", key="framing", hint=f"one of {', '.join(_FRAMINGS)}"
        ) from None
