"""Builds requests as the host would, without a socket, for the tests about what is sent."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import CoreMessage, ProviderExtensionPlugin
from agent_hookspecs.tool_interop import ToolInteropRegistry
from agent_host_anthropic.caching import AnthropicCaching
from agent_host_anthropic.provider import AnthropicProvider
from agent_host_anthropic.reasoning import AnthropicThinking
from agent_host_anthropic.structured import AnthropicStructuredOutput
from agent_host_anthropic.tool_format import CONTRIBUTION
from agent_host_anthropic.tools import AnthropicTools

EXTENSIONS = (AnthropicTools, AnthropicThinking, AnthropicStructuredOutput, AnthropicCaching)
TOOL = {"name": "weather", "description": "Tells.", "parameters": {"type": "object"}}
BUDGETED, ADAPTIVE = "claude-sonnet-4-5", "claude-opus-4-6"


class Built:
    """The request for a conversation, and what was said about it on the way."""

    def __init__(
        self,
        *messages: CoreMessage,
        extensions: tuple[type[ProviderExtensionPlugin], ...] = EXTENSIONS,
        natives: list[dict[str, Any]] | None = None,
        stream: bool = True,
        deferred: tuple[str, ...] = (),
        **config: Any,
    ) -> None:
        provider = AnthropicProvider()
        self.warnings: list[str] = []
        config = {"model": BUDGETED, "api_key": "key-1", **config}
        context = {
            "tags": provider.get_tags(config, []),
            "deferred_tools": deferred,
            "warn": lambda message, plugin: self.warnings.append(message),
            "tool_interop": {
                "registry": ToolInteropRegistry(CONTRIBUTION),
                "schema_target_formats": provider.accepted_tool_schema_formats(),
            },
        }
        self.state = provider.init(config)
        history = natives or provider.to_native_messages(messages or (user("hi"),))
        history, self.state = provider.initialize_request(history, self.state)
        for extension in extensions:
            plugin: Any = extension()
            history, self.state = plugin.initialize_request(history, self.state, context)
        self.spec = provider.build_request(history, self.state, stream, context)

    @property
    def body(self) -> dict[str, Any]:
        body = self.spec["body"]
        assert isinstance(body, dict)
        return body

    @property
    def unused(self) -> list[str]:
        return sorted(self.state["knobs"])


def user(text: str, **more: Any) -> CoreMessage:
    return {"role": "user", "content": text, "metadata": {}, **more}  # type: ignore[typeddict-item]


def system(text: str) -> CoreMessage:
    return {"role": "system", "content": text, "metadata": {}}


def assistant(text: str, *calls: tuple[str, str, str]) -> CoreMessage:
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    metadata = {"tool_calls": made} if made else {}
    return {"role": "assistant", "content": text, "metadata": metadata}


def result(call_id: str, text: str, **more: Any) -> CoreMessage:
    metadata = {"tool_call_id": call_id, **more.pop("metadata", {})}
    return {"role": "tool", "content": text, "metadata": metadata, **more}  # type: ignore[typeddict-item]


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
