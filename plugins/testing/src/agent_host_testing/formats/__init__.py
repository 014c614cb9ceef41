"""The wire formats the kit speaks, by name; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

from agent_host_testing.wire import WireFormat

__all__ = ["FORMATS", "wire_format"]

#: From a format's name to where it is.
FORMATS: dict[str, str] = {
    "openai.chat": "agent_host_testing.formats.openai_chat:OpenAIChat",
    "openai.responses": "agent_host_testing.formats.openai_responses:OpenAIResponses",
    "anthropic.messages": "agent_host_testing.formats.anthropic_messages:AnthropicMessages",
    "google.generate": "agent_host_testing.formats.google_generate:GoogleGenerate",
    "ollama.chat": "agent_host_testing.formats.ollama_chat:OllamaChat",
}


def wire_format(name: str) -> WireFormat:
    """The format of that name.

    Raises LookupError naming those there are.
    """
    if name not in FORMATS:
        raise LookupError(f"there is no wire format {name!r}; there are {', '.join(FORMATS)}")
    module, _, attribute = FORMATS[name].partition(":")
    found = getattr(import_module(module), attribute)()
    assert isinstance(found, WireFormat)
    return found
