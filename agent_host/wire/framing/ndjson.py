"""JSON values, one a line."""

from __future__ import annotations

import json

from agent_host.wire.framing.base import Event, LineFraming

__all__ = ["NdjsonFraming"]


class NdjsonFraming(LineFraming):
    """One JSON value a line. There is no end marker; the provider's own last event is the end."""

    name = "NDJSON"

    def _feed(self, data: bytes, events: list[Event]) -> None:
        for line in self._split(data):
            if line and not line.isspace():
                try:
                    value = self._value(self._limit_size(line))
                except json.JSONDecodeError:
                    self._skip(line)
                else:
                    events.append((value, None))
        self._tail = self._limit_size(self._tail)

    def _end(self, events: list[Event]) -> None:
        line, self._tail = bytes(self._tail), bytearray()
        if not line or line.isspace():
            return
        try:
            value = self._value(line)
        except json.JSONDecodeError as exc:
            if line.lstrip().startswith((b"{", b"[")):
                raise self._cut_error() from exc
            self._skip(line)
        else:
            events.append((value, None))
