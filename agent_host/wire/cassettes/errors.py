"""What goes wrong with cassettes."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["CassetteError", "ReplayMissError"]


class CassetteError(AgentError):
    """A cassette cannot be written or read."""


class ReplayMissError(CassetteError):
    """A request was made of which there is no recording; nothing was sent.

    ``difference`` says where the nearest recording differs from it.
    """

    details: tuple[str, ...] = ("difference",)

    def __init__(self, message: str, *, difference: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.difference = difference
