"""The provider and its two extensions: generateContent, tools and thoughts.

It does no I/O. A native message is a content of the API with its parts as they came, signatures
included; system messages stand among the others until a request is made. The API gives calls ids or
not: those by which the core knows them stand in ``_metadata`` and never go on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
    AgentError,
    Config,
    ContentBlockedError,
    Context,
    CoreMessage,
    InvalidRequestError,
    MalformedCallError,
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
from agent_hookspecs.authoring import Partial, finish_tool_calls, plain, taken_call_ids
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
    WireNames,
    compact_json,
    get_registry_from_context,
)

__all__ = ["ReferenceGenerate", "ReferenceGenerateThoughts", "ReferenceGenerateTools"]

NAME = "reference_google_generate"
TAG = f"provider:{NAME}"
FUNCTION = "openai.chat_completions.function"

Messages = list[dict[str, Any]]


class ReferenceGenerate(ProviderPlugin):
    """Models below the setting ``base_url``."""

    name = NAME
    version = "1"
    label = "Reference generate"
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
        url = f"{_base(config)}?pageSize=1000"
        return {"method": "GET", "url": url, "headers": _headers(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [{"id": model["name"].removeprefix("models/")} for model in body["models"]]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [FUNCTION]

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        names = WireNames(view.name for view in views if view and view.name)
        answer: dict[str, Any] = {"parts": [], "usage": None, "finish": None}
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
        url = f"{_base(config)}/{config['model']}"
        state["request"] = {"url": url, "headers": _headers(config), "payload": {}}
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool
    ) -> RequestSpec:
        request = state["request"]
        history = request.get("messages", native_messages)
        body = {**request["payload"], "contents": _contents(history)}
        if system := [part for m in history if m["role"] == "system" for part in m["parts"]]:
            body["systemInstruction"] = {"parts": system}
        operation = "streamGenerateContent?alt=sse" if stream else "generateContent"
        url = f"{request['url']}:{operation}"
        return {"url": url, "headers": request["headers"], "body": body}

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        answer = state["answer"]
        if error := native_chunk.get("error"):
            raise _error(error)
        # Each report is of everything so far.
        answer["usage"] = native_chunk.get("usageMetadata") or answer["usage"]
        if reason := (native_chunk.get("promptFeedback") or {}).get("blockReason"):
            raise ContentBlockedError(f"{NAME} withheld its answer: {reason}", provider=NAME)
        for candidate in native_chunk.get("candidates") or ():
            answer["finish"] = candidate.get("finishReason") or answer["finish"]
        parts = _parts(native_chunk)
        for part in parts:
            _take(answer["parts"], part)
        text = _said(parts)
        if not text:
            return [], [], native_messages, state
        state["partial"].append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return bool(state["answer"]["finish"])

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        answer = state["answer"]
        if answer["finish"] in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"):
            raise MalformedCallError(f"{NAME} could not read the model's call", provider=NAME)
        # The API refuses empty texts, but not those that carry a signature.
        said = [p for p in answer["parts"] if p.get("text") != "" or "thoughtSignature" in p]
        parts = plain(said)
        written = [_core_call(part["functionCall"], state["names"]) for part in _calls(parts)]
        made = finish_tool_calls(written, taken=taken_call_ids(native_messages, context))
        for part in _calls(parts):
            if not isinstance(part["functionCall"].get("args", {}), dict):
                part["functionCall"]["args"] = {}
        about = {
            "finish_reason": answer["finish"],
            "usage": _usage(answer["usage"]),
            "call_ids": [call["id"] for call in made],
            "tool_call_errors": _problems(made),
        }
        metadata = {key: value for key, value in about.items() if value}
        final = {"role": "model", "parts": parts, "_metadata": metadata}
        return [final], [*native_messages, final], state


class ReferenceGenerateTools(ProviderExtensionPlugin):
    """Offers the tools of a request, and shows the calls of the answer."""

    name = f"{NAME}_tools"
    version = "1"
    label = "Reference generate tools"
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
            functions = [_declaration(each["function"], state["names"]) for each in declared]
            state["request"]["payload"]["tools"] = [{"functionDeclarations": functions}]
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        new = _calls(_parts(native_chunk))
        if new:
            first = len(_calls(state["answer"]["parts"])) - len(new)
            calls = [_core_call(part["functionCall"], state["names"]) for part in new]
            shown = [
                {"index": first + n, "id": call["id"], **call["function"]}
                for n, call in enumerate(calls)
            ]
            partial_messages = _shown(partial_messages, tool_calls=shown)
        return partial_messages, final_messages, native_messages, state


class ReferenceGenerateThoughts(ProviderExtensionPlugin):
    """Asks for the model's thoughts, and shows them; the natives have them in any case."""

    name = f"{NAME}_thoughts"
    version = "1"
    label = "Reference generate thoughts"
    required_tags = (TAG, "supports_reasoning")

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        generation = {"thinkingConfig": {"includeThoughts": True}}
        state["request"]["payload"]["generationConfig"] = generation
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, list[NativeMessage], list[NativeMessage], State]:
        thought = _thought(_parts(native_chunk))
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
            if (text := _thought(native.get("parts") or ()))
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


def _base(config: Config) -> str:
    return f"{str(config['base_url']).rstrip('/')}/v1beta/models"


def _headers(config: Config) -> dict[str, str]:
    return {"x-goog-api-key": config["api_key"]}


def _declaration(function: dict[str, Any], names: WireNames) -> dict[str, Any]:
    return {
        "name": names.encode(function["name"]),
        "description": function.get("description") or "",
        "parametersJsonSchema": function.get("parameters") or {"type": "object"},
    }


def _shown(partials: Messages, **patch: Any) -> Messages:
    """The partial messages of a chunk with more to see in the last of them."""
    last = partials[-1] if partials else {"role": "assistant", "content": ""}
    return [*partials[:-1], {**last, **patch}]


def _contents(history: Sequence[NativeMessage]) -> list[dict[str, Any]]:
    """The history as it is sent: the results of one turn in one content, under ids we were given.

    The core names every call; an id that the API did not give is none to it.
    """
    given = {part["functionCall"].get("id") for m in history for part in _calls(m["parts"])}
    contents: list[dict[str, Any]] = []
    for message in history:
        results = [part for part in message["parts"] if "functionResponse" in part]
        if not results and message["role"] != "system":
            contents.append({"role": message["role"], "parts": message["parts"]})
        for part in results:
            response = part["functionResponse"]
            if response["id"] not in given:
                response = {key: value for key, value in response.items() if key != "id"}
            if "functionResponse" not in contents[-1]["parts"][0]:
                contents.append({"role": "user", "parts": []})
            contents[-1]["parts"].append({"functionResponse": response})
    return contents


def _parts(chunk: Any) -> list[dict[str, Any]]:
    """The parts of the first candidate."""
    candidates = (chunk or {}).get("candidates") or [{}]
    return (candidates[0].get("content") or {}).get("parts") or []


def _take(parts: list[Partial], part: dict[str, Any]) -> None:
    """Add a part; text goes on the text before it, unless a signature has closed that."""
    last = parts[-1] if parts else Partial()
    grows = "text" in last and "text" in part and "thoughtSignature" not in last
    if grows and last.get("thought") == part.get("thought"):
        last.append_text("text", part["text"])
        last.update({key: value for key, value in part.items() if key != "text"})
    else:
        parts.append(Partial(part))


def _calls(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if "functionCall" in part]


def _said(parts: Sequence[dict[str, Any]]) -> str:
    return "".join(p["text"] for p in parts if "text" in p and not p.get("thought"))


def _thought(parts: Sequence[dict[str, Any]]) -> str:
    return "".join(p["text"] for p in parts if "text" in p and p.get("thought"))


def _core_call(call: dict[str, Any], names: WireNames) -> dict[str, Any]:
    given = call.get("args", {})
    arguments = given if isinstance(given, str) else compact_json(given) or "{}"
    function = {"name": names.decode(call["name"]), "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def _problems(calls: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What keeps calls from being run, by their ids."""
    views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call, calls)
    return {str(view.call_id): view.problem for view in views if view and view.problem}


def _usage(raw: dict[str, Any] | None) -> dict[str, Any] | None:
    if not raw:
        return None
    thoughts = raw.get("thoughtsTokenCount") or 0
    return {
        "input": raw.get("promptTokenCount") or 0,
        "output": (raw.get("candidatesTokenCount") or 0) + thoughts,
        "cached_input": raw.get("cachedContentTokenCount") or 0,
        "reasoning": thoughts,
        "raw": raw,
    }


def _to_native(message: CoreMessage, names: WireNames) -> NativeMessage:
    metadata = message["metadata"]
    if message["role"] == "tool":
        response = {
            "id": metadata.get("tool_call_id"),
            "name": names.encode(str(metadata.get("tool_name"))),
            "response": {"result": message["content"]},
        }
        return {"role": "user", "parts": [{"functionResponse": response}]}
    said = [{"text": message["content"]}] if message["content"] else []
    if message["role"] != "assistant":
        return {"role": message["role"], "parts": said}
    views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_call, metadata.get("tool_calls") or ())
    made = [
        {"functionCall": {"name": names.encode(str(view.tool_name)), "args": view.payload or {}}}
        for view in views
        if view
    ]
    return {"role": "model", "parts": [*said, *made]}


def _from_native(native: NativeMessage, names: WireNames) -> CoreMessage:
    metadata = dict(native.get("_metadata") or {})
    ids = metadata.pop("call_ids", ())
    made = [_core_call(part["functionCall"], names) for part in _calls(native["parts"])]
    if made:
        named = zip(made, ids, strict=True)
        metadata["tool_calls"] = [{**call, "id": call_id} for call, call_id in named]
    return {"role": "assistant", "content": _said(native["parts"]), "metadata": metadata}


_ERRORS: dict[int, type[ProviderError]] = {
    400: InvalidRequestError,
    429: RateLimitError,
    503: OverloadedError,
}


def _error(said: dict[str, Any]) -> AgentError:
    """The typed error for an error in the middle of a stream."""
    return _ERRORS.get(said["code"], ServerError)(
        f"{NAME} broke off: {said['message']}",
        provider=NAME,
        code=said.get("status"),
        hint="what came so far is in the stream's session; ask again for the rest",
    )
