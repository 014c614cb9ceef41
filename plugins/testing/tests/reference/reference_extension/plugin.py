"""An extension of providers that stream chat completions, so that answers can be had again.

It sends a seed, and keeps the fingerprint of the system that answered: in the accumulator while the
answer comes, then under ``_metadata`` of the native message, and in the metadata of the core one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import Config, CoreMessage, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import AccumulatorExtensionMixin

__all__ = ["ReferenceExtension"]

KEY = "system_fingerprint"


class ReferenceExtension(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    """A seed in requests, and a fingerprint in answers."""

    name = "reference_extension"
    version = "1"
    label = "Reference extension"
    required_tags = ("provider:echo",)

    def init(self, config: Config, state: State) -> State:
        return {**state, "seed": config.get("seed", 0)}

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        state["request"].setdefault("payload", {})["seed"] = state["seed"]
        return native_messages, state

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return {KEY: chunk[KEY]} if chunk.get(KEY) else {}

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        accumulated[KEY] = delta[KEY]
        return None, accumulated

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        for final in final_messages:
            if fingerprint := final.pop(KEY, None):
                # The final and the one in the history are one object.
                final["_metadata"] = {**final.get("_metadata", {}), KEY: fingerprint}
        return final_messages, native_messages, state

    def to_native_messages(
        self, messages: Sequence[CoreMessage], native_messages: list[NativeMessage]
    ) -> list[NativeMessage]:
        if len(messages) != len(native_messages):
            return native_messages
        return [
            {**native, "_metadata": {**native.get("_metadata", {}), KEY: fingerprint}}
            if (fingerprint := message["metadata"].get(KEY))
            else native
            for message, native in zip(messages, native_messages, strict=True)
        ]

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(messages) != len(native_messages):
            return messages
        return [
            cast(CoreMessage, {**message, "metadata": {**message["metadata"], KEY: fingerprint}})
            if (fingerprint := native.get("_metadata", {}).get(KEY))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]
