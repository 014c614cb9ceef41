"""The provider and its two extensions: Ollama's chat, tools and thinking.

It does no I/O. Chunks are lines of JSON, each with a fragment of one message; calls come whole,
with arguments that are objects, and go back so. Older servers give calls no id: those by which the
core knows them stand in ``_metadata`` and never go on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    NativeMessage,
    OverloadedError,
    ProviderExtensionPlugin,
    ProviderPlugin,
    RequestSpec,
    ServerError,
    State,
)
from agent_hookspecs.authoring import Partial, finish_tool_calls, taken_call_ids
from agent_hookspecs.messages import Framing
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
    WireNames,
    compact_json,
    get_registry_from_context,
)

__all__ = ["ReferenceOllamaChat", "ReferenceOllamaChatThinking", "ReferenceOllamaChatTools"]

NAME = "reference_ollama_chat"
TAG = f"provider:{NAME}"
FUNCTION = "openai.chat_completions.function"

Messages = list[dict[str, Any]]


class ReferenceOllamaChat(ProviderPlugin):
    """The server at the setting ``base_url``."""

    name = NAME
    version = "1"
    label = "Reference ollama"
    requires_api_key = True
    requires_base_url = True
    framing: Framing = "ndjson"

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True},
            "base_url": {"type": "string", "required": True},
            "api_key": {"type": "string", "required": True, "secret": True},
        }

    def get_tags(self) -> list[str]:
        return [TAG, "supports_streaming", "supports_tools", "supports_reasoning"]

    def models_request(self, config: Config) -> RequestSpec:
        return {"method": "GET", "url": f"{_base(config)}/tags", "headers": _headers(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [{"id": model["model"]} for model in body["models"]]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [FUNCTION]

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        names = WireNames(view.name for view in views if view and view.name)
        answer: dict[str, Any] = {"thinking": Partial(), "tool_calls": [], "last": None}
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
            "url": f"{_base(config)}/chat",
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
        body = {**request["payload"], "messages": messages, "stream": stream}
        return {"url": request["url"], "headers": request["headers"], "body": body}

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        answer = state["answer"]
        if error := native_chunk.get("error"):
            raise _error(error)
        message = native_chunk.get("message") or {}
        if thought := message.get("thinking"):
            answer["thinking"].append_text("text", thought)
        answer["tool_calls"] += message.get("tool_calls") or ()
        if native_chunk.get("done"):
            answer["last"] = native_chunk
        text = message.get("content")
        if not text:
            return [], [], native_messages, state
        state["partial"].append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["answer"]["last"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        answer, last = state["answer"], state["answer"]["last"] or {}
        final = {"role": "assistant", "content": state["partial"].get("content", "")}
        if thought := answer["thinking"].get("text"):
            final["thinking"] = thought
        written = [_core_call(call, state["names"]) for call in answer["tool_calls"]]
        made = finish_tool_calls(written, taken=taken_call_ids(native_messages, context))
        if made:
            final["tool_calls"] = [_sendable(call) for call in answer["tool_calls"]]
        about = {
            "finish_reason": last.get("done_reason"),
            "usage": _usage(last),
            "call_ids": [call["id"] for call in made],
            "tool_call_errors": _problems(made),
        }
        final["_metadata"] = {key: value for key, value in about.items() if value}
        return [final], [*native_messages, final], state


class ReferenceOllamaChatTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows the calls of the answer."""

    name = f"{NAME}_tools"
    version = "1"
    label = "Reference ollama tools"
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
            tools = [_renamed(each, state["names"]) for each in declared]
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
        new = ((native_chunk or {}).get("message") or {}).get("tool_calls")
        if new:
            first = len(state["answer"]["tool_calls"]) - len(new)
            calls = [_core_call(call, state["names"]) for call in new]
            shown = [
                {"index": first + n, "id": call["id"], **call["function"]}
                for n, call in enumerate(calls)
            ]
            partial_messages = _shown(partial_messages, tool_calls=shown)
        return partial_messages, final_messages, native_messages, state


class ReferenceOllamaChatThinking(ProviderExtensionPlugin):
    """Asks the model to think, and shows its thoughts; the natives have them in any case."""

    name = f"{NAME}_thinking"
    version = "1"
    label = "Reference ollama thinking"
    required_tags = (TAG, "supports_reasoning")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        state["request"]["payload"]["think"] = True
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        thought = ((native_chunk or {}).get("message") or {}).get("thinking")
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
            if (text := native.get("thinking"))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


def _base(config: Config) -> str:
    return f"{str(config['base_url']).rstrip('/')}/api"


def _headers(config: Config) -> dict[str, str]:
    return {"authorization": f"Bearer {config['api_key']}"}


def _renamed(tool: dict[str, Any], names: WireNames) -> dict[str, Any]:
    function = tool["function"]
    return {**tool, "function": {**function, "name": names.encode(function["name"])}}


def _shown(partials: Messages, **patch: Any) -> Messages:
    """The partial messages of a chunk with more to see in the last of them."""
    last = partials[-1] if partials else {"role": "assistant", "content": ""}
    return [*partials[:-1], {**last, **patch}]


def _sendable(call: dict[str, Any]) -> dict[str, Any]:
    """The call with arguments that the server takes back: an object, whatever the model wrote."""
    function = call["function"]
    if isinstance(function.get("arguments"), dict):
        return call
    return {**call, "function": {**function, "arguments": {}}}


def _core_call(call: dict[str, Any], names: WireNames) -> dict[str, Any]:
    given = call["function"].get("arguments") or {}
    arguments = given if isinstance(given, str) else compact_json(given) or "{}"
    function = {"name": names.decode(call["function"]["name"]), "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def _problems(calls: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What keeps calls from being run, by their ids."""
    views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call, calls)
    return {str(view.call_id): view.problem for view in views if view and view.problem}


def _usage(last: dict[str, Any]) -> dict[str, Any] | None:
    counts = {"input": last.get("prompt_eval_count"), "output": last.get("eval_count")}
    known = {name: count for name, count in counts.items() if count is not None}
    raw = {key: last[key] for key in ("prompt_eval_count", "eval_count") if key in last}
    return {**known, "raw": raw} if known else None


def _to_native(message: CoreMessage, names: WireNames) -> NativeMessage:
    metadata = message["metadata"]
    native: NativeMessage = {"role": message["role"], "content": message["content"]}
    if message["role"] == "tool":
        native["tool_name"] = names.encode(str(metadata.get("tool_name")))
    if message["role"] == "assistant" and metadata.get("tool_calls"):
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call, metadata["tool_calls"])
        made = [(names.encode(str(view.tool_name)), view.payload or {}) for view in views if view]
        native["tool_calls"] = [{"function": {"name": n, "arguments": p}} for n, p in made]
    return native


def _from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    metadata = dict(native.get("_metadata") or {})
    ids = metadata.pop("call_ids", ())
    made = [_core_call(call, names) for call in native.get("tool_calls") or ()]
    if made:
        named = zip(made, ids, strict=True)
        metadata["tool_calls"] = [{**call, "id": call_id} for call, call_id in named]
    return {"role": "assistant", "content": native["content"], "metadata": metadata}


def _error(said: str) -> AgentError:
    """The typed error for an error in the middle of a stream, of which there is one sentence."""
    busy = any(words in said for words in ("too much", "busy", "overloaded"))
    return (OverloadedError if busy else ServerError)(
        f"{NAME} broke off: {said}",
        provider=NAME,
        hint="what came so far is in the stream's session; ask again for the rest",
    )
