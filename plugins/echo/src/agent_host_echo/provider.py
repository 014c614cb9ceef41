"""The provider ``echo``: the hooks through which the host talks to the echo model.

Owns the conversion of messages, what the model is sent, and the accumulation of text and calls.
Reasoning is its extension's; what a prompt means is the model's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, cast

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    MultipartContent,
    NativeChunk,
    NativeMessage,
    ProviderPlugin,
    State,
)
from agent_hookspecs.authoring import (
    AccumulatorStreamingMixin,
    accumulate_reasoning,
    first_choice,
    model_element,
)
from agent_host_echo._version import __version__
from agent_host_echo.model import DEFAULT_MODEL, MODELS, answer_at_once, answer_in_chunks

__all__ = ["EchoProvider", "sent"]


class EchoProvider(AccumulatorStreamingMixin, ProviderPlugin):
    """A deterministic model without a network. Its native messages are OpenAI-like."""

    name = "echo"
    version = __version__
    label = "Echo"
    # Reasoning is its extension's.
    accumulates = ("tool_calls",)

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": False, "default": DEFAULT_MODEL},
            "tool_choice": {"type": "string", "required": False, "default": "auto"},
        }

    def get_models(self) -> list[ModelInfo]:
        return deepcopy([*MODELS])

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        can = _capabilities(config, models)
        tags = ["provider:echo", "supports_streaming"]
        return tags + [f"supports_{what}" for what, able in can.items() if able]

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [model_element(models)]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [
            "openai.chat_completions.function",
            "openai.chat_completions.custom",
            "openai.responses.function",
            "openai.responses.custom",
            "generic.function",
        ]

    def init(self, config: Config) -> State:
        return {"config": config, "request": {}, "partial": None}

    def to_native_messages(self, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
        return [_to_native(message) for message in messages]

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [_from_native(message) for message in native_messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        request = state["request"]
        payload = {"model": config.get("model") or DEFAULT_MODEL, **request.get("payload", {})}
        tools = [tool for tool in config.get("tools") or () if isinstance(tool, dict)]
        if tools and "tools" not in payload and _capabilities(config, MODELS).get("tools"):
            payload["tools"] = tools
            payload.setdefault("tool_choice", config.get("tool_choice") or "auto")
        request["payload"] = payload
        state["partial"] = None
        return native_messages, state

    def stream_api(
        self, native_messages: list[NativeMessage], state: State
    ) -> Iterator[NativeChunk]:
        return answer_in_chunks(sent(native_messages, state))

    def call_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        body = answer_at_once(sent(native_messages, state))
        # An accumulator of its own: the request's would be finalized a second time.
        answer: State = {"partial": None}
        self.process_chunk(body, native_messages, answer)
        # The extension never sees this body, so nobody else would keep its reasoning.
        _, answer["partial"] = accumulate_reasoning(first_choice(body), answer["partial"])
        finals, native_messages, _ = self.finalize(native_messages, answer, context)
        return [], finals, native_messages, state

    def extract_usage(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        raw = super().extract_usage(chunk)
        if raw is None:
            return None
        return {
            "input": raw["prompt_tokens"],
            "output": raw["completion_tokens"],
            "reasoning": raw["completion_tokens_details"]["reasoning_tokens"],
            "raw": raw,
        }

    def stream_complete(self, state: State) -> bool:
        return bool((state.get("partial") or {}).get("finish_reason"))

    def finalize(
        self,
        native_messages: list[NativeMessage],
        state: State,
        context: Context | None = None,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        finals, native_messages, state = super().finalize(native_messages, state)
        registry = ((context or {}).get("tool_interop") or {}).get("registry")
        if registry is not None:
            for final in finals:
                if calls := final.get("tool_calls"):
                    final["tool_calls"] = [registry.sanitize_tool_call(call) for call in calls]
        return finals, native_messages, state


def _capabilities(config: Config, models: Sequence[ModelInfo]) -> dict[str, Any]:
    """What the selected model can do; of a model that is not listed nothing is assumed."""
    selected = config.get("model") or DEFAULT_MODEL
    for model in models:
        if model.get("id") == selected and isinstance(model.get("capabilities"), dict):
            return cast(dict[str, Any], model["capabilities"])
    return {}


def sent(native_messages: list[NativeMessage], state: State) -> dict[str, Any]:
    """The payload as the model gets it: all that a wire would carry, and nothing else."""
    request = state["request"]
    override = request.get("messages")
    history = override if isinstance(override, list) else native_messages
    messages = [
        {key: value for key, value in message.items() if key != "_metadata"}
        for message in history
        if isinstance(message, dict)
    ]
    return {**request.get("payload", {}), "messages": messages}


def _to_native(message: CoreMessage) -> NativeMessage:
    metadata = dict(message.get("metadata") or {})
    metadata.pop("native_indices", None)
    native: NativeMessage = {"role": message["role"], "content": _content(message)}
    if message["role"] == "assistant" and (calls := metadata.pop("tool_calls", None)):
        native["tool_calls"] = calls
    if refusal := metadata.pop("refusal", None):
        native["refusal"] = refusal
    if message["role"] == "tool" and (call_id := metadata.pop("tool_call_id", None)):
        native["tool_call_id"] = call_id
    if metadata:
        native["_metadata"] = metadata
    return native


def _content(message: CoreMessage) -> str | list[dict[str, Any]]:
    """The text, or parts where there is more; media stay as the core has them."""
    text, parts = message.get("content") or "", message.get("multipartContent") or ()
    if not parts:
        return text
    first = [{"type": "text", "text": text}] if text else []
    return [*first, *(_native_part(part) for part in parts)]


def _native_part(part: MultipartContent) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["content"].get("text") or ""}
    return {**part}


def _core_content(content: object) -> dict[str, Any]:
    """The content of a native message as keys of a core one."""
    if not isinstance(content, list):
        return {"content": content or ""}
    texts = [part["text"] for part in content[:1] if part["type"] == "text"]
    parts = [
        {"type": "text", "content": {"text": part["text"]}, "metadata": {}}
        if part["type"] == "text"
        else part
        for part in content[len(texts) :]
    ]
    return {"content": "".join(texts), **({"multipartContent": parts} if parts else {})}


def _from_native(native: NativeMessage) -> CoreMessage:
    known = native.get("_metadata")
    metadata = dict(known) if isinstance(known, dict) else {}
    metadata.pop("native_indices", None)
    if calls := native.get("tool_calls"):
        metadata["tool_calls"] = calls
    if refusal := native.get("refusal"):
        metadata["refusal"] = refusal
    if call_id := native.get("tool_call_id"):
        metadata.setdefault("tool_call_id", call_id)
    message = {"role": native.get("role") or "assistant", "metadata": metadata}
    return cast(CoreMessage, {**message, **_core_content(native.get("content"))})
