"""Every breakage there is."""

from __future__ import annotations

from breakages import (
    anthropic,
    cohere,
    echo,
    everywhere,
    files,
    google,
    neglected,
    ollama,
    openai,
    openai_compatible,
    openrouter,
    postgres,
    repairs,
    speaking,
    tools,
)
from breakages.breakage import Breakage, Suite

__all__ = ["BREAKAGES", "SUITES", "unbroken"]

BREAKAGES: tuple[Breakage, ...] = (
    *openai_compatible.BREAKAGES,
    *openrouter.BREAKAGES,
    *openai.BREAKAGES,
    *anthropic.BREAKAGES,
    *cohere.BREAKAGES,
    *google.BREAKAGES,
    *ollama.BREAKAGES,
    *echo.BREAKAGES,
    *files.BREAKAGES,
    *repairs.BREAKAGES,
    *tools.BREAKAGES,
    *speaking.BREAKAGES,
    *postgres.BREAKAGES,
    *everywhere.BREAKAGES,
    *neglected.BREAKAGES,
)
#: The suites that judge them, each once.
SUITES: tuple[Suite, ...] = tuple(dict.fromkeys(each.suite for each in BREAKAGES))


def unbroken(suite: Suite) -> Breakage:
    """No mistake at all, which no recording may see; all else is in the package's own tests."""
    name = f"{suite.distribution}-{suite.name}-unbroken".lower()
    return Breakage(suite.distribution, suite, name, "answers", "Nothing is wrong.", (), ())
