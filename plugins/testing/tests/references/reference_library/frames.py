"""A provider whose server sends binary frames: a length, a kind, and so many bytes of text.

The host knows no such framing, so the provider reads them itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from agent_hookspecs.errors import StreamCutError
from reference_library.lines import Library

__all__ = ["Frames"]

_HEAD = struct.Struct(">IB")
_TEXT = 1


class Frames(Library):
    """Reads frames from a connection of its own."""

    name = "frames"
    path = "frames"

    def _read(self, response: Any) -> Iterator[dict[str, Any]]:
        while head := response.read(_HEAD.size):
            size, kind = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            data = response.read(size)
            if not kind or len(data) < size:
                raise StreamCutError("a frame is not complete")
            yield {"text": data.decode("utf-8")} if kind == _TEXT else json.loads(data)
