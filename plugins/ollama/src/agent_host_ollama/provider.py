"""The provider ``ollama``: the hooks through which the host talks to Ollama's own chat API.

It says what to send and reads what comes back; the host owns the socket. Every hook is thin: the
modules beside this one each own one format and direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    NativeMessage,
    ProtocolError,
    ProviderPlugin,
    RequestSpec,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import (
    Partial,
    knob_elements,
    knob_schema,
    model_element,
    requested_knobs,
    retained_count,
    taken_call_ids,
)
from agent_hookspecs.messages import Framing
from agent_hookspecs.tool_interop import ToolInteropContribution, get_registry_from_context
from agent_host_ollama._version import __version__
from agent_host_ollama.answers import Answer, core_message
from agent_host_ollama.calls import ids_in, resolve_results
from agent_host_ollama.errors import http_error
from agent_host_ollama.functions import CONTRIBUTION, OLLAMA_FUNCTION
from agent_host_ollama.messages import native_message
from agent_host_ollama.models import models_in, tags_of
from agent_host_ollama.requests import DEFAULT_BASE, address, body_of, headers_of, take_options
from agent_host_ollama.tools import inject_tools, wire_names

__all__ = ["OllamaProvider"]

_KNOBS = ("max_output_tokens", "temperature", "stop", "seed")

Messages = list[dict[str, Any]]


class OllamaProvider(ProviderPlugin):
    """Ollama through ``/api/chat``, which streams lines of JSON."""

    name = "ollama"
    version = __version__
    label = "Ollama"
    optional_api_key = True
    framing: Framing = "ndjson"

    # What it is.

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True},
            "base_url": {
                "type": "string",
                "required": False,
                "default": DEFAULT_BASE,
                "description": "The address of the server, with or without /api or /v1.",
            },
            "api_key": {"type": "string", "required": False, "secret": True},
            **knob_schema(*_KNOBS),
            "num_ctx": {
                "type": "integer",
                "required": False,
                "description": "How many tokens of context the server makes room for.",
            },
            "keep_alive": {
                "type": ["string", "number"],
                "required": False,
                "description": "How long the model stays loaded: 5m, seconds, -1 for ever.",
            },
            "options": {
                "type": "object",
                "required": False,
                "description": "More options of the model, such as top_k or min_p.",
            },
            "attachments_root": {
                "type": "string",
                "required": False,
                "description": "The folder below which files that messages name may be sent.",
            },
            "extra_body": {
                "type": "object",
                "required": False,
                "description": "Keys that are put into the body of every request, last.",
            },
            "extra_headers": {
                "type": "object",
                "required": False,
                "secret": True,
                "description": "Further headers of every request.",
            },
        }

    def models_request(self, config: Config) -> RequestSpec:
        """All models; or, once one is chosen, what that one can do, which no listing tells."""
        if config.get("model"):
            return {
                "method": "POST",
                "url": address(config, "show"),
                "headers": headers_of(config),
                "body": {"model": config["model"]},
            }
        return {"method": "GET", "url": address(config, "tags"), "headers": headers_of(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return models_in(body)

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        return tags_of(config, models)

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [model_element(models), *knob_elements(*_KNOBS)]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [OLLAMA_FUNCTION]

    def get_tool_interop_contribution(self) -> ToolInteropContribution:
        return CONTRIBUTION

    # What is sent.

    def init(self, config: Config) -> State:
        names = wire_names(config)
        state: State = {"config": config, "request": {}, "partial": None, "names": names}
        state["knobs"] = requested_knobs(config)
        state["answer"] = Answer(names, config)
        state["unsent"] = []
        return state

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        names, note = state["names"], state["unsent"].append
        return [native_message(message, names, note) for message in messages]

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return [core_message(native, state["names"]) for native in native_messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        for message in state["unsent"]:
            get_warn_from_context(context, self.name)(message)
        take_options(state)
        state["answer"].taken = taken_call_ids(native_messages, state, ids_in)
        return resolve_results(native_messages, retained_count(context)), state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        if "supports_tools" in context.get("tags", ()):
            inject_tools(state, context)
        warn = get_warn_from_context(context, self.name)
        return {
            "method": "POST",
            "url": address(state["config"], "chat"),
            "headers": {"content-type": "application/json", **headers_of(state["config"])},
            "body": body_of(native_messages, state, context, stream=stream, warn=warn),
            "framing": self.framing,
        }

    # What comes back.

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[Messages, Messages, list[NativeMessage], State]:
        answer: Answer = state["answer"]
        answer.read(native_chunk)
        partial = state["partial"]
        if type(partial) is not Partial:
            begun = {"role": "assistant", "content": "", **(partial or {})}
            partial = state["partial"] = Partial(begun)
        if answer.new_calls:
            partial.setdefault("tool_calls", []).extend(answer.new_calls)
        text = answer.text
        if not text:
            return [], [], native_messages, state
        partial.append_text("content", text)
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return bool(state["answer"].done)

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        answer: Answer = state["answer"]
        if not answer.begun:
            raise ProtocolError(
                "Ollama answered without a message",
                hint="the address may not be that of a server with /api/chat",
            )
        final = answer.finished()
        if "tool_calls" in final:
            sanitize = get_registry_from_context(context).sanitize_tool_call
            final["tool_calls"] = [sanitize(call) for call in final["tool_calls"]]
        return [final], [*native_messages, final], state

    def map_error(self, status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
        return http_error(status, body)
