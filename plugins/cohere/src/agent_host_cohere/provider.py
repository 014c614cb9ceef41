"""The provider ``cohere``: the hooks through which the host speaks to the v2 Chat API.

It does no I/O: it says what to send and what an event means, and the host owns the socket. How
messages look is in `messages`, what an event adds to the answer in `answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    CoreMessage,
    Finish,
    ModelInfo,
    NativeMessage,
    ProtocolError,
    ProviderPlugin,
    RequestSpec,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import (
    AccumulatorStreamingMixin,
    Partial,
    knob_elements,
    knob_schema,
    model_element,
    requested_knobs,
    take_knob,
)
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    OPENAI_CHAT_FUNCTION,
    WireNames,
    get_registry_from_context,
)
from agent_host_cohere._version import __version__
from agent_host_cohere.answers import ABOUT, delta_of, end_of, merge_block, usage_of
from agent_host_cohere.errors import ended_error, refusal_error
from agent_host_cohere.messages import core_message, native_answer, native_messages_of
from agent_host_cohere.models import is_known, listed_models, tags_of
from agent_host_cohere.requests import (
    DEFAULT_BASE_URL,
    KNOBS,
    chat_request,
    endpoint,
    first_payload,
    headers_of,
    listing_request,
)

__all__ = ["CohereProvider"]


def _setting(kind: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "required": False, "description": description, **more}


class CohereProvider(AccumulatorStreamingMixin, ProviderPlugin):
    """Command models through ``POST /v2/chat``."""

    name = "cohere"
    version = __version__
    label = "Cohere"
    requires_api_key = True
    accumulates = ("tool_calls", "reasoning")
    finish_reasons: Mapping[str, Finish] = {
        "COMPLETE": "stop",
        "STOP_SEQUENCE": "stop",
        "MAX_TOKENS": "length",
        "TOOL_CALL": "tool_calls",
    }
    answer_role = "assistant"

    # What it is.

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True, "description": "The model's id."},
            "api_key": {"type": "string", "required": False, "secret": True},
            "base_url": _setting(
                "string", "Where the API is, with or without a version.", default=DEFAULT_BASE_URL
            ),
            "documents": _setting("array", "Texts or objects that answers may cite."),
            "citation_mode": _setting(
                "string", "How citations are made: accurate, fast, off, enabled or disabled."
            ),
            "safety_mode": _setting("string", "CONTEXTUAL, STRICT or OFF."),
            "strict_tools": _setting("boolean", "Hold calls to the schemas of their tools."),
            "attachments_root": _setting(
                "string", "The folder from which files in messages may be sent."
            ),
            "extra_headers": _setting("object", "Headers to add to every request."),
            "extra_body": _setting("object", "Keys of the body, above all others."),
            **knob_schema(*KNOBS),
        }

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [model_element(models), *knob_elements(*KNOBS)]

    def models_request(self, config: Config) -> RequestSpec | None:
        return None if is_known(config.get("model")) else listing_request(config)

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return listed_models(body)

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        return tags_of(config, models)

    def accepted_tool_schema_formats(self) -> list[str]:
        return [OPENAI_CHAT_FUNCTION]

    # What is sent.

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": requested_knobs(config),
            "names": WireNames(view.name for view in views if view),
            "unsent": [],
        }

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return native_messages_of(messages, state["names"], state["unsent"].append)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        warn = get_warn_from_context(context, self.name)
        for sentence in state["unsent"]:
            warn(sentence)
        state["request"] = {
            **state["request"],
            "url": endpoint(config, "v2/chat"),
            "headers": headers_of(config),
            "payload": first_payload(state),
        }
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        if not state["request"]["payload"].get("tools"):
            # There is nothing to call, one by one or otherwise.
            take_knob(state, "parallel_tool_calls")
        warn = get_warn_from_context(context, self.name)
        return chat_request(native_messages, state, stream, context, warn)

    # What comes back.

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return delta_of(chunk)

    def check_chunk(self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None) -> None:
        error = ended_error(*end_of(chunk))
        if error is not None:
            raise error

    def merge_more(
        self, delta: dict[str, Any], accumulated: Partial, fragment: dict[str, Any]
    ) -> None:
        if "blocks" in delta:
            merge_block(accumulated, delta["blocks"])
        if "tool_plan" in delta:
            accumulated.append_text("tool_plan", delta["tool_plan"])
        if "citations" in delta:
            accumulated.setdefault("citations", []).extend(accumulated.keep(delta["citations"]))
        for key in ABOUT:
            if key in delta:
                accumulated[key] = delta[key]

    def extract_usage(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        return usage_of(chunk)

    def process_chunk(
        self,
        native_chunk: object,
        native_messages: list[NativeMessage],
        state: State,
        event: str | None = None,
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        shown, finals, natives, state = super().process_chunk(
            native_chunk, native_messages, state, event
        )
        for message in shown:
            for call in message.get("tool_calls", ()):
                call["name"] = state["names"].decode(call["name"])
        return shown, finals, natives, state

    def stream_complete(self, state: State) -> bool:
        return bool((state["partial"] or {}).get("finish_reason"))

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context | None = None
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        finals, _, state = super().finalize(native_messages, state)
        if not finals:
            raise ProtocolError(
                "cohere answered without a message",
                hint="check that base_url is the address of Cohere's API",
            )
        sanitize = get_registry_from_context(context).sanitize_tool_call
        final = native_answer(finals[0], sanitize)
        return [final], [*native_messages, final], state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return [core_message(native, state["names"]) for native in native_messages]

    def map_error(self, status: int, body: bytes) -> AgentError | None:
        return refusal_error(status, body)
