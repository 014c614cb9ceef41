"""What can be wrong with an answer besides its connection."""

from __future__ import annotations

__all__ = ["MalformedAnswerError", "TruncatedAnswerError"]


class MalformedAnswerError(Exception):
    """What came is not HTTP, or a kind of it that nobody asked for."""


class TruncatedAnswerError(ConnectionError):
    """The connection ended before the answer did."""
