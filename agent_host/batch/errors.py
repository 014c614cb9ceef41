"""What keeps a batch from beginning or going on."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["BatchError", "LineError"]


class BatchError(AgentError):
    """A batch cannot begin or go on. What was answered before is in its file of results."""


class LineError(BatchError):
    """A line of a batch is none; ``line`` is its number, from 1."""

    details: tuple[str, ...] = ("line",)

    def __init__(self, message: str, *, line: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.line = line
