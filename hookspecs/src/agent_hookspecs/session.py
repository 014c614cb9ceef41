"""What a plugin may rely on when it is handed a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from agent_hookspecs.messages import CoreMessage

__all__ = ["Session"]


@runtime_checkable
class Session(Protocol):
    """A conversation as a value: nothing a plugin does to it is seen by anyone else."""

    @property
    def id(self) -> str:
        """Unique for as long as the session exists."""

    @property
    def messages(self) -> Sequence[CoreMessage]:
        """The core messages in order."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Session-wide data, among it the native history under ``native_messages``."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable copy with a schema version."""
