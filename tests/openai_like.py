"""A provider in the style of OpenAI's chat API with extensions for tools and reasoning.

It does no I/O: the host's wire is what the tests and benchmarks that use it are about. The other
framings send the same chunks in another dress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
    CoreMessage,
    NativeMessage,
    ProviderExtensionPlugin,
    ProviderPlugin,
    State,
)
from agent_hookspecs.authoring import (
    AccumulatorExtensionMixin,
    AccumulatorStreamingMixin,
    accumulate_reasoning,
    accumulate_tool_calls,
)
from agent_hookspecs.tool_interop import get_registry_from_context

__all__ = [
    "EXTENSIONS",
    "PROVIDERS",
    "JsonArrayLike",
    "JsonLike",
    "NdjsonLike",
    "OpenAiLike",
    "OpenAiLikeReasoning",
    "OpenAiLikeTools",
]

Delta = dict[str, Any]


class OpenAiLike(AccumulatorStreamingMixin, ProviderPlugin):
    """Chat completions as server-sent events, below the setting ``base_url``."""

    name = "openai_like"

    def init(self, config: dict[str, Any]) -> State:
        return {"config": config, "request": {}, "partial": None}

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        state["request"] = {
            "url": f"{config['base_url']}/chat/completions",
            "headers": {"authorization": f"Bearer {config.get('api_key', 'none')}"},
            "payload": {"model": config.get("model", "m")},
        }
        return native_messages, state


class NdjsonLike(OpenAiLike):
    name = "ndjson_like"
    framing = "ndjson"


class JsonArrayLike(OpenAiLike):
    name = "json_array_like"
    framing = "json-array"


class JsonLike(OpenAiLike):
    """Whose streamed answer is one document after all."""

    name = "json_like"
    framing = "json"


class OpenAiLikeTools(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    name = "openai_like_tools"

    def process_delta(
        self, delta: Delta, accumulated: dict[str, Any]
    ) -> tuple[Delta | None, dict[str, Any]]:
        return accumulate_tool_calls(delta, accumulated)

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
        context: dict[str, Any],
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        registry = get_registry_from_context(context)
        for final in final_messages:
            if final.get("tool_calls"):
                # The final and the one in the history are one object.
                calls = [registry.sanitize_tool_call(call) for call in final["tool_calls"]]
                final["tool_calls"] = calls
        return final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        return _with_key("tool_calls", native_messages, messages)


class OpenAiLikeReasoning(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    name = "openai_like_reasoning"
    after = ("openai_like_tools",)

    def process_delta(
        self, delta: Delta, accumulated: dict[str, Any]
    ) -> tuple[Delta | None, dict[str, Any]]:
        return accumulate_reasoning(delta, accumulated)

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        return _with_key("reasoning", native_messages, messages)


def _with_key(
    key: str, natives: Sequence[NativeMessage], messages: list[CoreMessage]
) -> list[CoreMessage]:
    return [
        cast(CoreMessage, {**message, "metadata": {**message["metadata"], key: native[key]}})
        if native.get(key)
        else message
        for native, message in zip(natives, messages, strict=False)
    ]


PROVIDERS: tuple[type[OpenAiLike], ...] = (OpenAiLike, NdjsonLike, JsonArrayLike, JsonLike)
EXTENSIONS: tuple[type[ProviderExtensionPlugin], ...] = (OpenAiLikeTools, OpenAiLikeReasoning)
