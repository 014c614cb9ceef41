"""Tool ids as providers accept them on the wire.

Owns the encoding and its map. It must not know plugins or formats: an id is just text here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

from agent_hookspecs.errors import CollisionError

__all__ = ["WireNames"]

#: The longest tool name that the large providers accept.
MAX_WIRE_NAME = 64

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_REPLACEMENTS = {":": "__", ".": "--"}
_DIGEST_LENGTH = 10


class WireNames:
    """The wire names of one request's tools, and the way back.

    Declarations and replayed history are encoded with the same object, so that a call decodes to
    the id it was declared for. There is no decoding by rule: ``a__b`` may be an id of its own.
    ``spell`` makes a wire name of an id, for APIs that take less, or more, than 64 letters, digits,
    ``_`` and ``-``.
    """

    __slots__ = ("_ids", "_spell", "_wires")

    def __init__(
        self, ids: Iterable[str] = (), *, spell: Callable[[str], str] | None = None
    ) -> None:
        self._spell = spell or _wire_name
        self._ids: dict[str, str] = {}
        self._wires: dict[str, str] = {}
        for tool_id in ids:
            self.encode(tool_id)

    def encode(self, tool_id: str) -> str:
        """The wire name of ``tool_id``; a safe id is its own.

        Raises CollisionError when another id has that wire name already.
        """
        wire = self._wires.get(tool_id)
        if wire is None:
            wire = self._spell(tool_id)
            other = self._ids.setdefault(wire, tool_id)
            if other != tool_id:
                raise CollisionError(
                    f"tools {other!r} and {tool_id!r} would both be called {wire!r} on the wire",
                    owners=(other, tool_id),
                    hint="rename one of them or disable its plugin for this agent",
                )
            self._wires[tool_id] = wire
        return wire

    def decode(self, wire: str) -> str:
        """The id that was encoded as ``wire``; a name that was not is returned as it is."""
        return self._ids.get(wire, wire)

    def __iter__(self) -> Iterator[str]:
        """The ids that were encoded so far."""
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)


def _wire_name(tool_id: str) -> str:
    wire = _UNSAFE.sub(lambda found: _REPLACEMENTS.get(found[0], "_"), tool_id) or "_"
    if len(wire) <= MAX_WIRE_NAME:
        return wire
    # Of the id, not of the encoded name: ids that differ in replaced characters stay apart.
    digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{wire[: MAX_WIRE_NAME - _DIGEST_LENGTH - 1]}_{digest}"
