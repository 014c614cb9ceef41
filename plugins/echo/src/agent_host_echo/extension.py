"""The extension ``echo_reasoning``: asks the echo model to reason, and keeps what it says.

Owns the ``reasoning`` setting, the payload key it switches, and the way of reasoning text between
chunks, native messages and core metadata. It must not know the prompt language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import CoreMessage, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import AccumulatorExtensionMixin, accumulate_reasoning
from agent_host_echo._version import __version__

__all__ = ["EchoReasoning"]


class EchoReasoning(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    """Reasoning for the models of the provider ``echo`` that can reason."""

    name = "echo_reasoning"
    version = __version__
    label = "Echo reasoning"
    required_tags = ("provider:echo", "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return {"reasoning": {"type": "boolean", "required": False, "default": True}}

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return [{"type": "checkbox", "key": "reasoning", "label": "Reasoning"}]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        if state["config"].get("reasoning") is not False:
            state["request"].setdefault("payload", {})["reasoning"] = True
        return native_messages, state

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_reasoning(delta, accumulated)

    def to_native_messages(
        self, messages: Sequence[CoreMessage], native_messages: list[NativeMessage]
    ) -> list[NativeMessage]:
        if len(messages) != len(native_messages):
            return native_messages
        return [_to_native(*pair) for pair in zip(messages, native_messages, strict=True)]

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [_from_native(*pair) for pair in zip(native_messages, messages, strict=True)]


def _to_native(message: CoreMessage, native: NativeMessage) -> NativeMessage:
    reasoning = (message.get("metadata") or {}).get("reasoning")
    if message["role"] != "assistant" or not isinstance(reasoning, str) or not reasoning:
        return native
    rest = {key: value for key, value in native.items() if key != "_metadata"}
    known = native.get("_metadata") or {}
    metadata = {key: value for key, value in known.items() if key != "reasoning"}
    return {**rest, "reasoning": reasoning, **({"_metadata": metadata} if metadata else {})}


def _from_native(native: NativeMessage, message: CoreMessage) -> CoreMessage:
    reasoning = native.get("reasoning")
    if not isinstance(reasoning, str) or not reasoning:
        return message
    metadata = {**message["metadata"], "reasoning": reasoning}
    return cast(CoreMessage, {**message, "metadata": metadata})
