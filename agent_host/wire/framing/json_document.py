"""One JSON document."""

from __future__ import annotations

import json

from agent_host.wire.framing.base import MAX_EVENT_BYTES, Event, Framing
from agent_host.wire.framing.decoding import stops_inside, text_of

__all__ = ["JsonFraming"]


class JsonFraming(Framing):
    """One JSON document, decoded when it is whole."""

    name = "JSON"

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(max_event_bytes)
        self._body = bytearray()

    def _feed(self, data: bytes, events: list[Event]) -> None:
        self._body += data
        self._body = self._limit_size(self._body)

    def _end(self, events: list[Event]) -> None:
        body, self._body = self._body, bytearray()
        if not body or body.isspace():
            return
        try:
            value = self._value(bytes(body))
        except json.JSONDecodeError as exc:
            if stops_inside(text_of(body), exc):
                raise self._cut_error() from exc
            self._skip(body)
        else:
            self.done = True
            events.append((value, None))
