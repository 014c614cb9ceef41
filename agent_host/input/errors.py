"""`InputError`: what a run was given cannot be sent."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["InputError"]


class InputError(AgentError):
    """A part of a prompt cannot be sent; ``part`` is its name or address. Nothing was sent."""

    details: tuple[str, ...] = ("part",)

    def __init__(self, message: str, *, part: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.part = part
