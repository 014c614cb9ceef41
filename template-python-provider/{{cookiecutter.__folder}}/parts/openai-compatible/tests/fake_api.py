"""The API that the tests talk to: the kit's server for the OpenAI chat format."""

from __future__ import annotations

from agent_host_testing.formats.openai_chat import OpenAIChat
from agent_host_testing.improvisation import Improviser

__all__ = ["WIRE", "improvise"]

WIRE = OpenAIChat("reasoning_content")

improvise = Improviser(WIRE.name)
