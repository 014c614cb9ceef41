"""The API that the tests talk to: the kit's server for the OpenAI chat format."""

from __future__ import annotations

from agent_host_testing.formats.openai_chat import OpenAIChat

__all__ = ["WIRE"]

WIRE = OpenAIChat("reasoning_content")
