"""The provider ``google``: the hooks through which the host talks to Gemini's generateContent.

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
    Usage,
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
from agent_hookspecs.tool_interop import ToolInteropContribution, get_registry_from_context
from agent_host_google._version import __version__
from agent_host_google.answers import Answer, core_message
from agent_host_google.batches import GoogleBatches, batch_endpoint, has_batches
from agent_host_google.calls import ids_in, with_answered_calls
from agent_host_google.errors import FINISH_REASONS, quota_error
from agent_host_google.functions import CONTRIBUTION, GOOGLE_FUNCTION
from agent_host_google.messages import native_message
from agent_host_google.models import facts_of, listed_models, tags_of
from agent_host_google.requests import (
    body_of,
    endpoint,
    headers_of,
    models_url,
    take_generation_knobs,
)
from agent_host_google.tools import inject_tools, wire_names
from agent_host_google.usage import usage_of
from agent_host_google.vertex import VERTEX_SETTINGS, vertex_base

__all__ = ["GoogleProvider"]

_KNOBS = ("max_output_tokens", "temperature", "stop", "seed")

Messages = list[dict[str, Any]]


class GoogleProvider(ProviderPlugin):
    """Gemini through ``generateContent`` and ``streamGenerateContent``."""

    name = "google"
    version = __version__
    label = "Google Gemini"
    requires_api_key = True
    finish_reasons = FINISH_REASONS

    # What it is.

    def get_config_schema(self) -> dict[str, Any]:
        optional = {"required": False}
        return {
            "model": {"type": "string", "required": True},
            "api_key": {"type": "string", "secret": True, **optional},
            "base_url": {
                "type": "string",
                "description": "Another address, with or without its version; Vertex whole.",
                **optional,
            },
            **VERTEX_SETTINGS,
            **knob_schema(*_KNOBS),
            "generation_config": {
                "type": "object",
                "description": "More of generationConfig, such as topP or responseModalities.",
                **optional,
            },
            "safety_settings": {
                "type": "array",
                "description": "safetySettings as the API takes them.",
                **optional,
            },
            "builtin_tools": {
                "type": "array",
                "description": "Tools that Google runs: googleSearch, codeExecution, or objects.",
                **optional,
            },
            "attachments_root": {
                "type": "string",
                "description": "The folder below which files that messages name may be sent.",
                **optional,
            },
            "extra_body": {
                "type": "object",
                "description": "Merged into the body of every request, last.",
                **optional,
            },
            "extra_headers": {
                "type": "object",
                "description": "Further headers; authorization replaces the key.",
                "secret": True,
                **optional,
            },
        }

    def models_request(self, config: Config) -> RequestSpec | None:
        if facts_of(config) or (config.get("model") and vertex_base(config) is not None):
            return None
        return {"method": "GET", "url": models_url(config), "headers": headers_of(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return listed_models(body)

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        return [*tags_of(config, models), *(["supports_batches"] if has_batches(config) else ())]

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [model_element(models), *knob_elements(*_KNOBS)]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [GOOGLE_FUNCTION]

    def get_tool_interop_contribution(self) -> ToolInteropContribution:
        return CONTRIBUTION

    # What is sent.

    def init(self, config: Config) -> State:
        names = wire_names(config)
        if (base := vertex_base(config)) is not None:
            # The address says whose history it is, and the settings have done their work.
            config = {**config, "base_url": base, "vertex_project": None, "vertex_region": None}
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": requested_knobs(config),
            "names": names,
            "answer": Answer(names, config),
            "unsent": [],
        }

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        note = state["unsent"].append
        return [native_message(message, state["names"], note) for message in messages]

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return [core_message(native, state["names"]) for native in native_messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, self.name)
        for message in state["unsent"]:
            warn(message)
        state["request"]["headers"] = headers_of(state["config"])
        state["request"].setdefault("payload", {})
        take_generation_knobs(state)
        state["answer"].taken = taken_call_ids(native_messages, state, ids_in)
        return with_answered_calls(native_messages, retained_count(context)), state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        config = state["config"]
        if "supports_tools" in context.get("tags", ()):
            inject_tools(state, context)
        warn = get_warn_from_context(context, self.name)
        facts = facts_of(config)
        system, signs = facts.get("system", True), facts.get("signs", False)
        body = body_of(native_messages, state, context, system=system, signs=signs, warn=warn)
        return {
            "method": "POST",
            "url": endpoint(config, stream),
            "headers": {"content-type": "application/json", **state["request"]["headers"]},
            "body": body,
            "framing": self.framing,
        }

    def get_batch_endpoint(self, config: Config, request: RequestSpec) -> GoogleBatches | None:
        return batch_endpoint(config, request)

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
        if text:
            partial.append_text("content", text)
        if answer.finish is not None:
            answer.check()
        shown = [{"role": "assistant", "content": text}] if text else []
        return shown, [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["answer"].finish is not None

    def usage_so_far(self, state: State) -> Usage | None:
        answer: Answer = state["answer"]
        return usage_of(answer.usage) if answer.usage else None

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        answer: Answer = state["answer"]
        if not answer.begun:
            raise ProtocolError(
                "Gemini answered without a candidate",
                hint="the address may not be that of generateContent",
            )
        if answer.finish_message and FINISH_REASONS.get(answer.finish or "") == "blocked":
            warn = get_warn_from_context(context, self.name)
            warn(f"Gemini stopped its answer, {answer.finish}: {answer.finish_message}")
        final = answer.finished()
        sanitize = get_registry_from_context(context).sanitize_tool_call
        final["parts"] = [
            sanitize(part) if "functionCall" in part else part for part in final["parts"]
        ]
        return [final], [*native_messages, final], state

    def map_error(self, status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
        return quota_error(status, headers, body)
