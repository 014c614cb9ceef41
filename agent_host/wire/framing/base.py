"""What all framings share: the counts, the limits and the words for an answer of another kind."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Final, TypeAlias, TypeVar, cast

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_hookspecs.errors import (
    AnswerTooLargeError,
    ProtocolError,
    ProviderError,
    StreamCutError,
)
from agent_host.wire.failures import describe_body
from agent_host.wire.framing.decoding import (
    count_values,
    parse_json,
    quickest_decoder,
    warm_up,
)

__all__ = ["LARGE_BYTES", "MAX_EVENT_BYTES", "Event", "Framing", "LineFraming"]

Bytes = TypeVar("Bytes", bound="bytes | bytearray")

#: A decoded JSON value and, for server-sent events, the name of its event.
Event: TypeAlias = "tuple[Any, str | None]"

MAX_EVENT_BYTES: Final = 20 * 1024 * 1024
#: An event of more than this is looked at before it is decoded, and decoded away from others.
LARGE_BYTES: Final = 64 * 1024

_BOM: Final = b"\xef\xbb\xbf"
_HEAD_BYTES: Final = 2048


class Framing(ABC):
    """What all machines share: the counts, the limit and the words for an answer of another kind.

    ``is_done`` is True once the protocol's own end marker was seen; bytes after it are ignored.
    ``event_count`` counts events, ``skip_count`` what stood in an event's place and was not JSON.
    """

    name: str

    def __init__(
        self, max_event_bytes: int = MAX_EVENT_BYTES, max_values: int = MAX_ANSWER_VALUES
    ) -> None:
        self.max_event_bytes = max_event_bytes
        self.max_values = max_values
        self.is_done = False
        self.event_count = 0
        self.skip_count = 0
        self._head = b""
        self._has_begun = False
        #: What has come of the next event.
        self._buffer = bytearray()
        self._quick = quickest_decoder()
        self._failure: ProviderError | None = None

    def decode(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes.

        An error that comes after some of them is raised by the next call, or by `check`.
        """
        self.check()
        if self.is_done or not data:
            return []
        head = self._head
        if len(head) < _HEAD_BYTES:
            self._head = head + data[: _HEAD_BYTES - len(head)]
        if not self._has_begun:
            # A byte order mark may itself arrive in pieces.
            data = head + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                return []
            self._has_begun = True
            data = data.removeprefix(_BOM)
        events: list[Event] = []
        try:
            self._feed(data, events)
        except ProviderError as error:
            self._fail(error, events)
        return events

    def flush(self) -> list[Event]:
        """The events that the end of the input completes.

        Raises StreamCutError when the input certainly stops in the middle of something; after
        events, `check` does.
        """
        self.check()
        events: list[Event] = []
        if self.is_done:
            return events
        try:
            if not self._has_begun:
                self._has_begun = True
                self._feed(self._head, events)
            self._end(events)
        except ProviderError as error:
            self._fail(error, events)
        return events

    def takes_long(self, data: bytes | None) -> bool:
        """Whether to take ``data``, or the end for None, may mean to decode a large event."""
        if self._waiting_bytes() <= LARGE_BYTES:
            return False
        return data is None or self._may_complete(data)

    def _waiting_bytes(self) -> int:
        """How much has come of the next event."""
        return len(self._buffer)

    def _may_complete(self, data: bytes) -> bool:
        """Whether the next event may end in ``data``."""
        return True

    def check(self) -> None:
        """Raise the error that came after the last events."""
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: ProviderError, events: list[Event]) -> None:
        self._failure = error
        if not events:
            raise error

    def find_array(self, data: bytes) -> bytes | None:
        """The input from its first ``[`` on, if it is a JSON array; ``data`` comes next of it."""
        head = self._head.removeprefix(_BOM)
        if head.strip() and not _BOM.startswith(head):
            return None
        begun = (head + data[:_HEAD_BYTES]).removeprefix(_BOM).lstrip()
        return begun + data[_HEAD_BYTES:] if begun[:1] == b"[" else None

    def no_event_error(self, content_type: str = "") -> ProtocolError | None:
        """The error of an answer that had bytes but not one event; None when all is well."""
        if self.event_count or self.is_done or not self._head:
            return None
        seen = describe_body(self._head, content_type)
        return ProtocolError(
            f"the answer holds no {self.name} event, but {seen.summary}",
            excerpt=seen.excerpt,
            hint="check the base URL: something other than the model's API answers there",
        )

    @abstractmethod
    def _feed(self, data: bytes, events: list[Event]) -> None:
        """Add the events that ``data``, empty only if there is no other, completes."""

    @abstractmethod
    def _end(self, events: list[Event]) -> None:
        """Add the events that the end of the input completes."""

    def _value(self, data: bytes | bytearray) -> Any:
        """The JSON value that ``data`` is; JSONDecodeError when it is not one."""
        quick = self._quick
        if len(data) > LARGE_BYTES:
            self._check_values(count_values(data))
            # Worth its import now, but for texts that are more than copied json is quicker.
            warm_up()
            is_plain = b"\\" not in data and data.isascii()
            quick = quickest_decoder() if is_plain else parse_json
        try:
            value = quick(data, cache_strings="keys")
        except ValueError:
            # Nothing is lost: json decides what is an error, and of which kind.
            value = parse_json(data)
        self.event_count += 1
        return value

    def _check_values(self, count: int) -> None:
        if count > self.max_values:
            raise AnswerTooLargeError(
                f"one {self.name} event has more than {self.max_values} values",
                limit="max_answer_values",
                hint="set max_answer_values higher if answers of this size are expected",
            )

    def _add_value(self, data: bytes | bytearray, events: list[Event]) -> bool:
        """Add the value that ``data`` is, or else skip it; whether it was one."""
        try:
            events.append((self._value(data), None))
        except json.JSONDecodeError:
            # Nothing is lost: what was skipped is counted and told of.
            self.skip_count += 1
            return False
        return True

    def _limit_size(self, data: Bytes) -> Bytes:
        """``data`` of one event, or of its beginning; padding before it does not count."""
        if len(data) > self.max_event_bytes:
            data = cast("Bytes", data.lstrip())
            self._check_size(len(data))
        return data

    def _check_size(self, size: int) -> None:
        if size > self.max_event_bytes:
            raise ProtocolError(
                f"one {self.name} event is larger than {self.max_event_bytes} bytes",
                hint="raise the limit of the event size if answers of this size are expected",
            )

    def _cut_error(self) -> StreamCutError:
        return StreamCutError(f"the answer stopped in the middle of a {self.name} event")


class LineFraming(Framing):
    """A machine that works on whole lines; the last, incomplete one waits in the buffer."""

    def _may_complete(self, data: bytes) -> bool:
        return b"\n" in data or b"\r" in data

    def _split(self, data: bytes) -> list[bytes | bytearray]:
        """The lines that ``data`` completes, without their ends."""
        lines: list[bytes | bytearray] = [*data.split(b"\n")]
        rest = lines.pop()
        if lines and self._buffer:
            self._buffer += lines[0]
            # Not copied: it may be large.
            lines[0] = self._buffer
            self._buffer = bytearray(rest)
        else:
            self._buffer += rest
        return lines
