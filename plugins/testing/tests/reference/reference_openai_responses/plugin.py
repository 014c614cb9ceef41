"""The provider and its two extensions: the Responses API, tools and reasoning.

It does no I/O. A native message is an item of the API's ``input``, or a turn of the model: its
``output`` items, whole and in order, so that reasoning stays before what it led to. Nothing is
stored at the API; reasoning goes back encrypted, and to nobody but its origin.
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
from agent_hookspecs.authoring import Partial
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
    WireNames,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)

__all__ = ["ReferenceResponses", "ReferenceResponsesReasoning", "ReferenceResponsesTools"]

NAME = "reference_openai_responses"
TAG = f"provider:{NAME}"
TARGET = ToolInteropTarget("openai.responses.function")

Messages = list[dict[str, Any]]


class ReferenceResponses(ProviderPlugin):
    """Responses below the setting ``base_url``."""

    name = NAME
    version = "1"
    label = "Reference responses"
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
        return [TARGET.name]

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        names = WireNames(view.name for view in views if view and view.name)
        known = {"config": config, "request": {}, "partial": Partial()}
        return {**known, "names": names, "response": None}

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
            "url": f"{_base(config)}/responses",
            "headers": _headers(config),
            "payload": {"model": config["model"], "store": False},
        }
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool
    ) -> RequestSpec:
        request = state["request"]
        history = request.get("messages", native_messages)
        items = [item for native in history for item in _items(native)]
        body = {**request["payload"], "input": items}
        if stream:
            body["stream"] = True
        return {"url": request["url"], "headers": request["headers"], "body": body}

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        kind, text = native_chunk.get("type"), ""
        if kind == "response.output_text.delta":
            text = native_chunk["delta"]
        elif kind in ("response.completed", "response.incomplete"):
            state["response"] = native_chunk["response"]
        elif native_chunk.get("object") == "response":
            state["response"] = native_chunk
            text = _text(native_chunk["output"])
        elif kind in ("response.failed", "error"):
            response = native_chunk.get("response") or native_chunk
            raise _error(response.get("error") or native_chunk)
        if not text:
            return [], [], native_messages, state
        state["partial"].append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["response"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        response, registry = state["response"], get_registry_from_context(context)
        about = {
            "finish_reason": response["status"],
            "usage": _usage(response.get("usage")),
            "tool_call_errors": {
                item["call_id"]: view.problem
                for item in _calls(response["output"])
                if (view := registry.inspect_call(item)) and view.problem
            },
        }
        final = {
            "role": "assistant",
            "output": [registry.sanitize_tool_call(item) for item in response["output"]],
            "_metadata": {key: value for key, value in about.items() if value},
        }
        return [final], [*native_messages, final], state


class ReferenceResponsesTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows the calls of the answer as they grow."""

    name = f"{NAME}_tools"
    version = "1"
    label = "Reference responses tools"
    required_tags = (TAG, "supports_tools")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        declared = get_registry_from_context(context).convert_schemas(
            state["config"].get("tools") or (),
            target=TARGET,
            target_formats=get_schema_target_formats_from_context(context),
        )
        if declared:
            tools = [{**each, "name": state["names"].encode(each["name"])} for each in declared]
            state["request"]["payload"]["tools"] = tools
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        kind = (native_chunk or {}).get("type")
        call: dict[str, Any] = {}
        if kind == "response.function_call_arguments.delta":
            call = {"arguments": native_chunk["delta"]}
        elif kind == "response.output_item.added" and _calls([native_chunk["item"]]):
            item = native_chunk["item"]
            call = {"id": item["call_id"], "name": state["names"].decode(item["name"])}
        if call:
            shown = {"index": native_chunk["output_index"], **call}
            partial_messages = _shown(partial_messages, tool_calls=[shown])
        return partial_messages, final_messages, native_messages, state


class ReferenceResponsesReasoning(ProviderExtensionPlugin):
    """Asks for reasoning that can go back, and shows its summary as it comes."""

    name = f"{NAME}_reasoning"
    version = "1"
    label = "Reference responses reasoning"
    required_tags = (TAG, "supports_reasoning")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        payload = state["request"]["payload"]
        payload["include"] = ["reasoning.encrypted_content"]
        payload["reasoning"] = {"summary": "auto"}
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        if (native_chunk or {}).get("type") == "response.reasoning_summary_text.delta":
            partial_messages = _shown(partial_messages, reasoning=native_chunk["delta"])
        return partial_messages, final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [
            cast(CoreMessage, {**message, "metadata": {**message["metadata"], "reasoning": text}})
            if (text := _summary(native.get("output") or ()))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


def _base(config: Config) -> str:
    return str(config["base_url"]).rstrip("/")


def _headers(config: Config) -> dict[str, str]:
    return {"authorization": f"Bearer {config['api_key']}"}


def _shown(partials: Messages, **patch: Any) -> Messages:
    """The partial messages of a chunk with more to see in the last of them."""
    last = partials[-1] if partials else {"role": "assistant", "content": ""}
    return [*partials[:-1], {**last, **patch}]


def _items(native: NativeMessage) -> list[dict[str, Any]]:
    """What is sent of a native message: without storage, plain reasoning means nothing."""
    if "role" not in native or "content" in native:
        return [native]
    return [
        item
        for item in native["output"]
        if item["type"] != "reasoning" or item.get("encrypted_content")
    ]


def _calls(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item["type"] == "function_call"]


def _text(items: Sequence[dict[str, Any]]) -> str:
    said = [part for item in items if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in said if "text" in part)


def _summary(items: Sequence[dict[str, Any]]) -> str:
    parts = [part for item in items if item["type"] == "reasoning" for part in item["summary"]]
    return "".join(part["text"] for part in parts)


def _usage(raw: dict[str, Any] | None) -> dict[str, Any] | None:
    if not raw:
        return None
    return {
        "input": raw["input_tokens"],
        "output": raw["output_tokens"],
        "cached_input": (raw.get("input_tokens_details") or {}).get("cached_tokens") or 0,
        "reasoning": (raw.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
        "raw": raw,
    }


def _to_native(message: CoreMessage, names: WireNames) -> NativeMessage:
    metadata, said = message["metadata"], message["content"]
    if message["role"] == "tool":
        call_id = _legal_id(metadata.get("tool_call_id"))
        return {"type": "function_call_output", "call_id": call_id, "output": said}
    if message["role"] != "assistant":
        return {"role": message["role"], "content": said}
    output: list[dict[str, Any]] = []
    if said:
        content = [{"type": "output_text", "text": said}]
        output.append({"type": "message", "role": "assistant", "content": content})
    calls = DEFAULT_TOOL_INTEROP_REGISTRY.convert_tool_calls(
        metadata.get("tool_calls") or (), target=TARGET
    )
    for call in calls:
        call_id = _legal_id(call["call_id"])
        output.append({**call, "call_id": call_id, "name": names.encode(call["name"])})
    return {"role": "assistant", "output": output}


def _legal_id(call_id: object) -> str:
    """The id as this API takes it; those of other providers may have any character."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", str(call_id))[-64:]


def _from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    metadata = dict(native.get("_metadata") or {})
    calls = [
        {
            "id": item["call_id"],
            "type": "function",
            "function": {"name": names.decode(item["name"]), "arguments": item["arguments"]},
        }
        for item in _calls(native["output"])
    ]
    if calls:
        metadata["tool_calls"] = calls
    return {"role": "assistant", "content": _text(native["output"]), "metadata": metadata}


_ERRORS: dict[str, type[ProviderError]] = {
    "context_length_exceeded": ContextLengthError,
    "rate_limit_exceeded": RateLimitError,
    "server_is_overloaded": OverloadedError,
}


def _error(said: dict[str, Any]) -> AgentError:
    """The typed error for an error event, or for a response that failed."""
    code = str(said.get("code") or said.get("type") or "")
    return _ERRORS.get(code, ServerError)(
        f"{NAME} broke off: {said.get('message') or 'no reason given'}",
        provider=NAME,
        code=code or None,
        hint="what came so far is in the stream's session; ask again for the rest",
    )
