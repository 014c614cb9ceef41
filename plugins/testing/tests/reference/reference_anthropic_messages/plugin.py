"""The provider and its two extensions: the Messages API, tools and thinking.

It does no I/O. A native message is a message of the API as it was sent; system messages stand among
the others until a request is made. Thinking and its signatures live in the natives alone, so that
nobody but their origin ever gets them back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
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
from agent_hookspecs.authoring import Partial, plain
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
    WireNames,
    compact_json,
    get_registry_from_context,
    parse_tool_arguments,
)

__all__ = ["ReferenceMessages", "ReferenceMessagesThinking", "ReferenceMessagesTools"]

NAME = "reference_anthropic_messages"
TAG = f"provider:{NAME}"
FUNCTION = "openai.chat_completions.function"

#: For each kind of delta, the field of it that is appended to the same field of its block.
_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}

Messages = list[dict[str, Any]]


class ReferenceMessages(ProviderPlugin):
    """Messages below the setting ``base_url``."""

    name = NAME
    version = "1"
    label = "Reference messages"
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
        url = f"{_base(config)}/v1/models?limit=1000"
        return {"method": "GET", "url": url, "headers": _headers(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [{"id": model["id"]} for model in body["data"]]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [FUNCTION]

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        names = WireNames(view.name for view in views if view and view.name)
        answer: dict[str, Any] = {"blocks": {}, "usage": {}, "stop_reason": None}
        known = {"config": config, "request": {}, "partial": Partial()}
        return {**known, "names": names, "answer": answer}

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
            "url": f"{_base(config)}/v1/messages",
            "headers": _headers(config),
            "payload": {"model": config["model"], "max_tokens": 4096},
        }
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool
    ) -> RequestSpec:
        request = state["request"]
        history = request.get("messages", native_messages)
        sent = [{k: v for k, v in each.items() if k != "_metadata"} for each in history]
        body = {**request["payload"], "messages": [m for m in sent if m["role"] != "system"]}
        if system := [block for m in sent if m["role"] == "system" for block in m["content"]]:
            body["system"] = system
        if stream:
            body["stream"] = True
        return {"url": request["url"], "headers": request["headers"], "body": body}

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        answer, text = state["answer"], ""
        kind = native_chunk.get("type")
        if kind == "content_block_delta":
            delta = native_chunk["delta"]
            if field := _GROWS.get(delta["type"]):
                answer["blocks"][native_chunk["index"]].append_text(field, delta[field])
            text = delta.get("text") or ""
        elif kind == "content_block_start":
            answer["blocks"][native_chunk["index"]] = Partial(native_chunk["content_block"])
        elif kind in ("message_start", "message"):
            message = native_chunk.get("message", native_chunk)
            answer["blocks"] = {n: Partial(block) for n, block in enumerate(message["content"])}
            text = _text(message)
            _learn(answer, message, message)
        elif kind == "message_delta":
            _learn(answer, native_chunk["delta"], native_chunk)
        elif kind == "error":
            raise _error(native_chunk["error"])
        if not text:
            return [], [], native_messages, state
        state["partial"].append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return bool(state["answer"]["stop_reason"])

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        answer = state["answer"]
        blocks = [plain(block) for _, block in sorted(answer["blocks"].items())]
        problems = {
            block["id"]: problem
            for block in blocks
            if block["type"] == "tool_use" and (problem := _parse_input(block))
        }
        about = {
            "finish_reason": answer["stop_reason"],
            "usage": _usage(answer["usage"]),
            "tool_call_errors": problems,
        }
        metadata = {key: value for key, value in about.items() if value}
        final = {"role": "assistant", "content": blocks, "_metadata": metadata}
        return [final], [*native_messages, final], state


class ReferenceMessagesTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows the calls of the answer as they grow."""

    name = f"{NAME}_tools"
    version = "1"
    label = "Reference messages tools"
    required_tags = (TAG, "supports_tools")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        declared = get_registry_from_context(context).convert_schemas(
            state["config"].get("tools") or (),
            target=ToolInteropTarget("openai.chat_completions"),
            target_formats=[FUNCTION],
        )
        if declared:
            tools = [_declaration(each["function"], state["names"]) for each in declared]
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
        block = (native_chunk or {}).get("content_block") or {}
        delta = (native_chunk or {}).get("delta") or {}
        if block.get("type") == "tool_use":
            call = {"index": native_chunk["index"], "id": block["id"]}
            name = state["names"].decode(block["name"])
            partial_messages = _shown(partial_messages, tool_calls=[{**call, "name": name}])
        elif delta.get("type") == "input_json_delta":
            call = {"index": native_chunk["index"], "arguments": delta["partial_json"]}
            partial_messages = _shown(partial_messages, tool_calls=[call])
        return partial_messages, final_messages, native_messages, state


class ReferenceMessagesThinking(ProviderExtensionPlugin):
    """Asks the model to think, and shows its thoughts; the natives have them in any case."""

    name = f"{NAME}_thinking"
    version = "1"
    label = "Reference messages thinking"
    required_tags = (TAG, "supports_reasoning")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        state["request"]["payload"]["thinking"] = {"type": "adaptive"}
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        thought = ((native_chunk or {}).get("delta") or {}).get("thinking")
        if thought:
            partial_messages = _shown(partial_messages, reasoning=thought)
        return partial_messages, final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [
            cast(CoreMessage, {**message, "metadata": {**message["metadata"], "reasoning": text}})
            if (text := "".join(_fields(native, "thinking")))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


def _base(config: Config) -> str:
    return str(config["base_url"]).rstrip("/")


def _headers(config: Config) -> dict[str, str]:
    return {"x-api-key": config["api_key"], "anthropic-version": "2023-06-01"}


def _declaration(function: dict[str, Any], names: WireNames) -> dict[str, Any]:
    return {
        "name": names.encode(function["name"]),
        "description": function.get("description") or "",
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }


def _shown(partials: Messages, **patch: Any) -> Messages:
    """The partial messages of a chunk with more to see in the last of them."""
    last = partials[-1] if partials else {"role": "assistant", "content": ""}
    return [*partials[:-1], {**last, **patch}]


def _learn(answer: dict[str, Any], about: dict[str, Any], counted: dict[str, Any]) -> None:
    """Take what a message says of itself; counts are of everything so far."""
    answer["stop_reason"] = about.get("stop_reason") or answer["stop_reason"]
    answer["usage"] |= counted.get("usage") or {}


def _parse_input(block: dict[str, Any]) -> str | None:
    """Give a call the input that was written for it; what is wrong with that, if anything."""
    written = block.pop("partial_json", "") or block.get("input")
    payload, problem = parse_tool_arguments(written)
    block["input"] = payload or {}
    return problem


def _usage(raw: dict[str, Any]) -> dict[str, Any] | None:
    cached = raw.get("cache_read_input_tokens") or 0
    written = raw.get("cache_creation_input_tokens") or 0
    counts = {
        "input": (raw.get("input_tokens") or 0) + cached + written,
        "output": raw.get("output_tokens") or 0,
        "cached_input": cached,
        "reasoning": (raw.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    }
    return {**counts, "raw": raw} if any(counts.values()) else None


def _to_native(message: CoreMessage, names: WireNames) -> NativeMessage:
    metadata = message["metadata"]
    said = [{"type": "text", "text": message["content"]}] if message["content"] else []
    if message["role"] == "tool":
        result = {"type": "tool_result", "content": said}
        result["tool_use_id"] = _legal_id(metadata.get("tool_call_id"))
        return {"role": "user", "content": [result]}
    calls = metadata.get("tool_calls") or () if message["role"] == "assistant" else ()
    views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call, calls)
    made = [
        {
            "type": "tool_use",
            "id": _legal_id(view.call_id),
            "name": names.encode(str(view.tool_name)),
            "input": view.payload or {},
        }
        for view in views
        if view
    ]
    return {"role": message["role"], "content": [*said, *made]}


def _legal_id(call_id: object) -> str:
    """The id as this API takes it; those of other providers may have any character."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", str(call_id))


def _from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    metadata = dict(native.get("_metadata") or {})
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {
                "name": names.decode(block["name"]),
                "arguments": compact_json(block["input"]) or "{}",
            },
        }
        for block in native["content"]
        if block["type"] == "tool_use"
    ]
    if calls:
        metadata["tool_calls"] = calls
    return {"role": "assistant", "content": _text(native), "metadata": metadata}


def _text(message: dict[str, Any]) -> str:
    return "".join(_fields(message, "text"))


def _fields(message: dict[str, Any], field: str) -> list[str]:
    return [block[field] for block in message["content"] if field in block]


_ERRORS: dict[str, type[ProviderError]] = {
    "invalid_request_error": InvalidRequestError,
    "overloaded_error": OverloadedError,
    "rate_limit_error": RateLimitError,
}


def _error(said: dict[str, Any]) -> AgentError:
    """The typed error for an error in the middle of a stream."""
    return _ERRORS.get(said["type"], ServerError)(
        f"{NAME} broke off: {said['message']}",
        provider=NAME,
        code=said["type"],
        hint="what came so far is in the stream's session; ask again for the rest",
    )
