"""What a program gets in place of an answer's data.

OutputError              there is no data: the run waits, or nothing was asked for
├── OutputRefusedError   the model declined, or its provider withheld the answer
├── OutputCutError       the answer was cut: too long, or a limit of the run
└── OutputInvalidError   the model answered, but never as it was asked to
"""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["OutputCutError", "OutputError", "OutputInvalidError", "OutputRefusedError"]


class OutputError(AgentError):
    """An answer has no data; ``text`` is what the model said instead."""

    details: tuple[str, ...] = ("text",)

    def __init__(self, message: str, *, text: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.text = text


class OutputRefusedError(OutputError):
    """The model declined to answer, or its provider withheld what it said."""


class OutputCutError(OutputError):
    """The answer was cut before its end."""


class OutputInvalidError(OutputError):
    """The answer does not fit the type that was asked for, after all retries."""
