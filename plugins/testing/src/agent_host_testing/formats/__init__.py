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
    """The format of that name, or of one's own as ``module:NAME``, a format or a class of one.

    Raises LookupError naming those there are.
    """
    module, _, attribute = FORMATS.get(name, name).partition(":")
    try:
        if not attribute:
            raise LookupError
        found = getattr(import_module(module), attribute)
    except (LookupError, ImportError, AttributeError) as error:
        known = f"there are {', '.join(FORMATS)}, and your own as module:NAME"
        raise LookupError(f"there is no wire format {name!r}; {known}") from error
    found = found() if isinstance(found, type) else found
    if not isinstance(found, WireFormat):
        raise LookupError(f"{name!r} is no WireFormat, but {type(found).__name__}")
    return found
