"""The provider ``anthropic``: the hooks through which the host speaks to the Messages API.

Thin on purpose: requests are made in `requests`, answers read in `answers`. It does no I/O. Tools,
thinking, structured output and prompt caching are extensions, each gated by what the model can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import (
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
    Usage,
    get_warn_from_context,
)
from agent_hookspecs.authoring import (
    Partial,
    knob_elements,
    knob_schema,
    model_element,
    requested_knobs,
    take_knob,
)
from agent_hookspecs.tool_interop import ToolInteropContribution
from agent_host_anthropic._version import __version__
from agent_host_anthropic.answers import Answer, core_message
from agent_host_anthropic.batches import AnthropicBatches, batch_endpoint, has_batches
from agent_host_anthropic.errors import reported_error
from agent_host_anthropic.facts import is_known, model_facts, tags_of
from agent_host_anthropic.messages import native_messages_of
from agent_host_anthropic.requests import (
    DEFAULT_BASE_URL,
    OLD_VERSION,
    endpoint,
    headers_of,
    listing_request,
    message_request,
    payload_of,
)
from agent_host_anthropic.tool_format import CONTRIBUTION, TOOL_FORMAT
from agent_host_anthropic.tools import declare_tools
from agent_host_anthropic.usage import normalised_usage
from agent_host_anthropic.vertex import VERTEX_SETTINGS, vertex_base

__all__ = ["AnthropicProvider"]

Messages = list[dict[str, Any]]

_KNOBS = ("max_output_tokens", "temperature", "stop")
_DELTA_PARTS = ("type", "delta", "usage")
_FINISH_REASONS: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    # The API has shortened its context and goes on when asked again.
    "compaction": "pause",
}


class AnthropicProvider(ProviderPlugin):
    """Claude models through Anthropic's own API, or whoever speaks it at ``base_url``."""

    name = "anthropic"
    version = __version__
    label = "Anthropic"
    requires_api_key = True
    framing = "sse"
    finish_reasons = _FINISH_REASONS

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True, "description": "The model's id."},
            "api_key": {"type": "string", "required": False, "secret": True},
            "base_url": {
                "type": "string",
                "required": False,
                "default": DEFAULT_BASE_URL,
                "description": "Where the API is, with or without /v1.",
            },
            **VERTEX_SETTINGS,
            "anthropic_version": {
                "type": "string",
                "required": False,
                "default": OLD_VERSION,
                "description": "The version of the API that requests are written for.",
            },
            "betas": {
                "type": "array",
                "required": False,
                "description": "Names of beta features, for the header anthropic-beta.",
            },
            "attachments_root": {
                "type": "string",
                "required": False,
                "description": "The folder from which files in messages may be sent.",
            },
            "extra_headers": {
                "type": "object",
                "required": False,
                "description": "Headers to add to every request.",
            },
            "extra_body": {
                "type": "object",
                "required": False,
                "description": "Keys to add to the body of every request, or to replace in it.",
            },
            **knob_schema(*_KNOBS),
        }

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        return [*tags_of(config, models), *(["supports_batches"] if has_batches(config) else ())]

    def get_ui_elements(self, config: Config, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        sampling = model_facts(config.get("model")).sampling
        knobs = knob_elements(*(knob for knob in _KNOBS if sampling or knob != "temperature"))
        return [model_element(models), *knobs]

    def models_request(self, config: Config) -> RequestSpec | None:
        return None if is_known(config.get("model")) else listing_request(config)

    def parse_models(self, body: Any) -> list[ModelInfo]:
        listed = body.get("data") if isinstance(body, dict) else None
        return [
            cast(ModelInfo, {**model, "name": model.get("display_name") or model["id"]})
            for model in listed or ()
            if isinstance(model, dict) and isinstance(model.get("id"), str) and model["id"]
        ]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [TOOL_FORMAT]

    def get_tool_interop_contribution(self) -> ToolInteropContribution:
        return CONTRIBUTION

    def init(self, config: Config) -> State:
        if (base := vertex_base(config, DEFAULT_BASE_URL)) is not None:
            # The address says whose history it is, and the settings have done their work.
            config = {**config, "base_url": base, "vertex_project": None, "vertex_region": None}
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": requested_knobs(config),
            "answer": Answer(config),
        }

    def to_native_messages(self, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
        return native_messages_of(messages)

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [core_message(native) for native in native_messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        state["request"] = {
            **state["request"],
            "url": endpoint(config, "messages"),
            "headers": headers_of(config),
            "payload": payload_of(state),
        }
        state["partial"] = None
        state["answer"] = Answer(config)
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        if "supports_tools" not in context.get("tags", ()):
            # There is nothing to call, one by one or otherwise.
            take_knob(state, "parallel_tool_calls")
        elif "tools" not in state["request"]["payload"]:
            declare_tools(state, context, self.name)
        state["request"]["stream"] = stream
        warn = get_warn_from_context(context, self.name)
        return message_request(native_messages, state, stream, context, warn)

    def get_batch_endpoint(self, config: Config, request: RequestSpec) -> AnthropicBatches | None:
        return batch_endpoint(config, request)

    def process_chunk(
        self,
        native_chunk: Any,
        native_messages: Messages,
        state: State,
        event: str | None = None,
    ) -> tuple[Messages, Messages, Messages, State]:
        if type(native_chunk) is not dict:
            return [], [], native_messages, state
        answer: Answer = state["answer"]
        kind = native_chunk.get("type") or event
        if kind == "content_block_delta":
            delta = native_chunk.get("delta")
            if type(delta) is not dict:
                return [], [], native_messages, state
            text = answer.grow(native_chunk.get("index"), delta)
        elif kind == "content_block_start":
            text = answer.open(native_chunk.get("index"), native_chunk.get("content_block"))
        else:
            text = self._other(kind, native_chunk, answer, state)
        if not text:
            return [], [], native_messages, state
        partial = state["partial"]
        if type(partial) is not Partial:
            partial = state["partial"] = _accumulator(partial)
        partial.append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def _other(self, kind: object, chunk: dict[str, Any], answer: Answer, state: State) -> str:
        """Take an event that is not about a block; gives the text that it brings."""
        if kind == "message_start":
            return answer.begin(chunk.get("message"))
        if kind == "message_delta":
            rest = {key: value for key, value in chunk.items() if key not in _DELTA_PARTS}
            answer.learn(rest, chunk.get("usage"))
            answer.learn(chunk.get("delta"), None)
        elif kind == "message_stop":
            answer.ended = True
        elif kind == "message":
            text = answer.begin(chunk)
            answer.ended = True
            return text
        elif kind == "error" or isinstance(chunk.get("error"), dict):
            raise reported_error(chunk)
        elif state["request"].get("stream") is False:
            # Unknown events are passed over; a body that is no message leaves nothing to read.
            raise ProtocolError(
                f"the answer is no message but of type {kind!r}",
                hint="check the base URL: something other than the Messages API answers there",
            )
        return ""

    def stream_complete(self, state: State) -> bool:
        answer: Answer = state["answer"]
        return answer.ended

    def usage_so_far(self, state: State) -> Usage | None:
        answer: Answer = state["answer"]
        return normalised_usage(dict(answer.usage)) if answer.usage else None

    def finalize(self, native_messages: Messages, state: State) -> tuple[Messages, Messages, State]:
        answer: Answer = state["answer"]
        if not answer.started:
            return [], native_messages, state
        final = answer.native(state.get("tool_names") or {})
        return [final], [*native_messages, final], state


def _accumulator(known: object) -> Partial:
    """The accumulator with its role; what extensions have put there stays."""
    return Partial({"role": "assistant", **(known if isinstance(known, dict) else {})})
