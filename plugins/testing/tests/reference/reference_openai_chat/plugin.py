"""The provider and its two extensions: chat completions, tools and reasoning.

It does no I/O. Names of tools are made legal on the way out and restored on the way in; signed
reasoning lives in the natives alone, so that nobody but its origin ever gets it back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    ContextLengthError,
    CoreMessage,
    InvalidRequestError,
    ModelInfo,
    NativeMessage,
    OverloadedError,
    ProviderError,
    ProviderExtensionPlugin,
    ProviderPlugin,
    RateLimitError,
    RequestSpec,
    ServerError,
    State,
)
from agent_hookspecs.authoring import (
    AccumulatorExtensionMixin,
    AccumulatorStreamingMixin,
    accumulate_reasoning,
    accumulate_tool_calls,
)
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)

__all__ = ["ReferenceChat", "ReferenceChatReasoning", "ReferenceChatTools"]

NAME = "reference_openai_chat"
TAG = f"provider:{NAME}"
FUNCTION = "openai.chat_completions.function"


class ReferenceChat(AccumulatorStreamingMixin, ProviderPlugin):
    """Chat completions below the setting ``base_url``."""

    name = NAME
    version = "1"
    label = "Reference chat"
    requires_api_key = True
    requires_base_url = True

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True},
            "base_url": {"type": "string", "required": True},
            "api_key": {"type": "string", "required": True, "secret": True},
        }

    def get_tags(self) -> list[str]:
        return [TAG, "supports_streaming", "supports_tools", "supports_reasoning"]

    def models_request(self, config: Config) -> RequestSpec:
        return {"method": "GET", "url": f"{_base(config)}/models", "headers": _headers(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [{"id": model["id"]} for model in body["data"]]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [FUNCTION]

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        names = WireNames(view.name for view in views if view and view.name)
        return {"config": config, "request": {}, "partial": None, "names": names}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return [_to_native(message, state["names"]) for message in messages]

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return [_from_native(native, state["names"]) for native in native_messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        state["request"] = {
            "url": f"{_base(config)}/chat/completions",
            "headers": _headers(config),
            "payload": {"model": config["model"]},
        }
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool
    ) -> RequestSpec:
        request = state["request"]
        history = request.get("messages", native_messages)
        messages = [{k: v for k, v in each.items() if k != "_metadata"} for each in history]
        body = {**request["payload"], "messages": messages}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {"url": request["url"], "headers": request["headers"], "body": body}

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        if isinstance(native_chunk, dict) and native_chunk.get("error"):
            raise _error(native_chunk["error"])
        return super().process_chunk(native_chunk, native_messages, state)

    def extract_usage(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        raw = super().extract_usage(chunk)
        if raw is None:
            return None
        prompt = raw.get("prompt_tokens_details") or {}
        completion = raw.get("completion_tokens_details") or {}
        return {
            "input": raw.get("prompt_tokens", 0),
            "output": raw.get("completion_tokens", 0),
            "cached_input": prompt.get("cached_tokens") or 0,
            "reasoning": completion.get("reasoning_tokens") or 0,
            "raw": raw,
        }

    def stream_complete(self, state: State) -> bool:
        return bool((state.get("partial") or {}).get("finish_reason"))


class ReferenceChatTools(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    """Offers the tools of a request, and keeps the calls of the answer."""

    name = f"{NAME}_tools"
    version = "1"
    label = "Reference chat tools"
    required_tags = (TAG, "supports_tools")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        schemas = state["config"].get("tools")
        if schemas:
            declared = get_registry_from_context(context).convert_schemas(
                schemas,
                target=ToolInteropTarget("openai.chat_completions"),
                target_formats=get_schema_target_formats_from_context(context),
            )
            names = state["names"]
            state["request"]["payload"]["tools"] = [
                _renamed(each, names.encode) for each in declared
            ]
        return native_messages, state

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_tool_calls(delta, accumulated)

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
        context: Context,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        registry = get_registry_from_context(context)
        for final in final_messages:
            if calls := final.get("tool_calls"):
                # The final and the one in the history are one object.
                final["tool_calls"] = [registry.sanitize_tool_call(call) for call in calls]
        return final_messages, native_messages, state


class ReferenceChatReasoning(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    """Keeps the reasoning of the answer: its text for people, its signed blocks in the natives."""

    name = f"{NAME}_reasoning"
    version = "1"
    label = "Reference chat reasoning"
    required_tags = (TAG, "supports_reasoning")

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_reasoning(delta, accumulated)

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [
            cast(CoreMessage, {**message, "metadata": {**message["metadata"], "reasoning": text}})
            if (text := native.get("reasoning"))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


def _base(config: Config) -> str:
    return str(config["base_url"]).rstrip("/")


def _headers(config: Config) -> dict[str, str]:
    return {"authorization": f"Bearer {config['api_key']}"}


def _renamed(entry: dict[str, Any], rename: Any) -> dict[str, Any]:
    """A declaration or a call under another name."""
    function = entry["function"]
    return {**entry, "function": {**function, "name": rename(function["name"])}}


def _to_native(message: CoreMessage, names: WireNames) -> NativeMessage:
    native: NativeMessage = {"role": message["role"], "content": message["content"]}
    metadata = message["metadata"]
    if message["role"] == "tool":
        native["tool_call_id"] = _legal_id(metadata.get("tool_call_id"))
    calls = metadata.get("tool_calls")
    if message["role"] == "assistant" and calls:
        native["tool_calls"] = [
            {**_renamed(call, names.encode), "id": _legal_id(call["id"])} for call in calls
        ]
    return native


def _legal_id(call_id: object) -> str:
    """The id as this API takes it; those of other providers may have any character."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", str(call_id))[-40:]


def _from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    known = native.get("_metadata")
    metadata: dict[str, Any] = dict(known) if isinstance(known, dict) else {}
    if native.get("refusal"):
        metadata["refusal"] = native["refusal"]
    if calls := native.get("tool_calls"):
        metadata["tool_calls"] = [_renamed(call, names.decode) for call in calls]
    return {"role": "assistant", "content": native.get("content") or "", "metadata": metadata}


_ERRORS: dict[str, type[ProviderError]] = {
    "context_length_exceeded": ContextLengthError,
    "rate_limit_exceeded": RateLimitError,
    "server_is_overloaded": OverloadedError,
    "429": RateLimitError,
    "503": OverloadedError,
    "529": OverloadedError,
}


def _error(said: Any) -> AgentError:
    """The typed error for what stands in a stream in place of a chunk."""
    details = said if isinstance(said, dict) else {"message": str(said)}
    code = str(details.get("code") or details.get("type") or "")
    usual = InvalidRequestError if code.startswith(("4", "invalid")) else ServerError
    return _ERRORS.get(code, usual)(
        f"{NAME} broke off: {details.get('message') or 'no reason given'}",
        provider=NAME,
        code=code or None,
        hint="what came so far is in the stream's session; ask again for the rest",
    )
