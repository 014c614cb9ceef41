"""Every breakage there is."""

from __future__ import annotations

from breakages import (
    anthropic_messages,
    google_generate,
    ollama_chat,
    openai_chat,
    openai_responses,
    others,
)
from breakages.breakage import Breakage

__all__ = ["BREAKAGES"]

BREAKAGES: tuple[Breakage, ...] = (
    *openai_chat.BREAKAGES,
    *openai_responses.BREAKAGES,
    *anthropic_messages.BREAKAGES,
    *google_generate.BREAKAGES,
    *ollama_chat.BREAKAGES,
    *others.BREAKAGES,
)
