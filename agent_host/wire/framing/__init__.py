"""Bytes in, decoded JSON events out: server-sent events, NDJSON, a JSON array, one JSON document.

Each framing is a machine with two methods, `decode` and `flush`, that owns no socket and knows no
provider. However the input is cut, the events are the same, and every byte is looked at a bounded
number of times: what is incomplete waits in one growing buffer that is never scanned again. What a
large event would become is counted before it is decoded.
"""

from __future__ import annotations

from typing import Final, Literal

from agent_hookspecs.authoring.partial import MAX_ANSWER_VALUES
from agent_hookspecs.errors import ConfigError
from agent_host.wire.framing.base import MAX_EVENT_BYTES, Event, Framing
from agent_host.wire.framing.decoding import warm_up
from agent_host.wire.framing.plain_json import JsonArrayFraming, JsonFraming, NdjsonFraming
from agent_host.wire.framing.sse import SseFraming

__all__ = ["MAX_EVENT_BYTES", "Event", "Framing", "SseFraming", "framing", "warm_up"]

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
    max_values: int = MAX_ANSWER_VALUES,
) -> Framing:
    """A new machine for the framing that a provider names."""
    try:
        return _FRAMINGS[name](max_event_bytes, max_values)
    except KeyError:
        raise ConfigError(
            f"there is no framing {name!r}", key="framing", hint=f"one of {', '.join(_FRAMINGS)}"
        ) from None
