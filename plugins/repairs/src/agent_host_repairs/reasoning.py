"""The feature that gives assistant tool turns the ``reasoning_content`` some routes insist on.

Owns that one field of OpenAI-like messages. What reasoning there really was is the provider's to
replay; a message that has the field keeps it.
"""

from __future__ import annotations

from agent_hookspecs import FeaturePlugin, NativeMessage, State
from agent_host_repairs._version import __version__
from agent_host_repairs.outgoing import replace_messages

__all__ = ["EmptyReasoningContent"]


class EmptyReasoningContent(FeaturePlugin):
    """Sends ``reasoning_content: ""`` with assistant messages that have tool calls and no such."""

    name = "assistant_tool_calls_reasoning_content_empty_if_missing"
    version = __version__
    label = "Empty reasoning_content on tool turns"
    required_tags = ("repair:assistant_tool_calls_reasoning_content_empty_if_missing",)
    priority = -100

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        replace_messages(native_messages, state, _mended)
        return native_messages, state


def _mended(message: NativeMessage) -> NativeMessage:
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list) or not calls:
        return message
    if message.get("reasoning_content") is not None:
        return message
    return {**message, "reasoning_content": ""}
