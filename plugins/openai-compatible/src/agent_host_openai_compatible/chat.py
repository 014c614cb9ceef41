"""The provider of the OpenAI chat format: hooks that hand over to the module of each job.

The class serves any server of the format. What is particular to one is a `Server`, given by a
descriptor's options or as the ``server`` of a subclass: data, not code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    NativeMessage,
    ProviderPlugin,
    State,
    Usage,
)
from agent_hookspecs.authoring.knobs import (
    knob_elements,
    knob_schema,
    model_element,
    requested_knobs,
)
from agent_hookspecs.authoring.natives import taken_call_ids
from agent_hookspecs.errors import AgentError, ProviderError
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.messages import RequestSpec
from agent_hookspecs.tool_interop import (
    OPENAI_CHAT_FUNCTION,
    WireNames,
    get_registry_from_context,
)
from agent_host_openai_compatible._version import __version__
from agent_host_openai_compatible.answers import ChatStreaming, final_message
from agent_host_openai_compatible.azure import API_VERSION
from agent_host_openai_compatible.errors import refusal_error
from agent_host_openai_compatible.messages import from_native, to_native
from agent_host_openai_compatible.models import listed_models, model_facts, model_tags
from agent_host_openai_compatible.requests import (
    KNOBS,
    initial_payload,
    request_headers,
    request_spec,
)
from agent_host_openai_compatible.servers import (
    Server,
    endpoint,
    quirks_in_force,
    replays_reasoning,
)
from agent_host_openai_compatible.tools import offer_tools
from agent_host_openai_compatible.usage import normalised_usage

__all__ = ["ChatCompletionsProvider"]


class ChatCompletionsProvider(ChatStreaming, ProviderPlugin):
    """Any server of the OpenAI chat format.

    A subclass sets ``server`` and, where it keeps facts about models of its own, ``facts_package``,
    the package whose ``models.json`` has them. Options given to the constructor replace fields of
    the row. ``tool_formats`` are the formats of declarations and calls that the server takes.
    """

    version = __version__
    server: Server = Server(name="custom", label="OpenAI-compatible")
    facts_package: ClassVar[str] = __package__ or "agent_host_openai_compatible"
    tool_formats: ClassVar[tuple[str, ...]] = (OPENAI_CHAT_FUNCTION,)

    def __init__(self, **options: Any) -> None:
        self.server = type(self).server.with_options(options)
        self.name = self.server.name
        self.label = self.server.label or self.server.name

    # What it offers.

    def get_config_schema(self) -> dict[str, Any]:
        address: dict[str, Any] = {
            "type": "string",
            "required": not self.server.base_url,
            "description": "Address of the API; /v1 is added unless it has a version.",
        }
        if self.server.base_url:
            address["default"] = self.server.base_url
        return {
            "model": {
                "type": "string",
                "required": True,
                "description": "The model's id, as the server calls it.",
            },
            "base_url": address,
            **({"api_version": API_VERSION} if self.server.azure else {}),
            "api_key": {
                "type": "string",
                "required": False,
                "secret": True,
                "description": "Sent only if it is not empty.",
            },
            **knob_schema(*KNOBS),
            "attachments_root": {
                "type": "string",
                "required": False,
                "description": "Folder below which files in messages may be sent.",
            },
            "replay_reasoning": {
                "type": "boolean",
                "required": False,
                "description": "Send reasoning back with the history; by default where the server "
                "has signed it.",
            },
            "extra_body": {
                "type": "object",
                "required": False,
                "description": "Keys for the body, above all others.",
            },
            "extra_headers": {
                "type": "object",
                "required": False,
                "description": "Headers for every request.",
            },
        }

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return [
            model_element(models),
            {"type": "text", "key": "base_url", "label": "Base URL"},
            {"type": "password", "key": "api_key", "label": "API key"},
            *knob_elements(*KNOBS),
        ]

    def models_request(self, config: Config) -> RequestSpec | None:
        if config.get("model") and not (self.server.listing and self.server.telling):
            return None
        if not self.server.listing:
            raise ProviderError(
                f"{self.name} has no list of models", hint="name the model by its id"
            )
        return {
            "method": "GET",
            "url": endpoint(self.server, config, self.server.listing),
            "headers": self.headers_for(config),
        }

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return listed_models(body)

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        return model_tags(self.server, config, models, self.facts_package)

    def accepted_tool_schema_formats(
        self, config: Config, models: Sequence[ModelInfo]
    ) -> list[str]:
        return list(self.tool_formats)

    # The request.

    def headers_for(self, config: Config) -> dict[str, str]:
        """The headers of every request; a subclass may add to them."""
        return request_headers(self.server, config)

    def init(self, config: Config) -> State:
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": requested_knobs(config),
            "quirks": sorted(quirks_in_force(self.server, config)),
            "facts": model_facts(self.server, config.get("model"), self.facts_package),
            "wire_names": WireNames(),
        }

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return to_native(messages, state, self.tool_formats)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, self.name)
        for note in state.pop("notes", ()):
            warn(note)
        request = state.setdefault("request", {})
        request["url"] = endpoint(self.server, state["config"])
        request["headers"] = self.headers_for(state["config"])
        request["payload"] = {**initial_payload(self.server, state), **request.get("payload", {})}
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        if state.get("offers_tools") is not False:
            offer_tools(state, context, self.name)
        return request_spec(self.server, native_messages, state, context, stream=stream)

    # The answer.

    def stream_complete(self, state: State) -> bool | None:
        # The finish reason ends every answer of the format.
        return bool(super().stream_complete(state))

    def usage_so_far(self, state: State) -> Usage | None:
        reported = super().usage_so_far(state)
        return normalised_usage(dict(reported)) if reported else None

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context | None = None
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        partial = state.get("partial")
        has_calls = isinstance(partial, Mapping) and "tool_calls" in partial
        # The ids of a long history matter only to calls that have to be told apart from it.
        final = final_message(
            partial,
            provider=self.name,
            replayed=self.server.replayed,
            replays_reasoning=replays_reasoning(self.server, state.get("config") or {}),
            taken=taken_call_ids(native_messages, state) if has_calls else (),
            with_reasoning="reasoning_content_required" in state.get("quirks", ())
            and (has_calls or _answers_tools(native_messages)),
        )
        if calls := final.get("tool_calls"):
            registry = get_registry_from_context(context)
            final["tool_calls"] = [registry.sanitize_tool_call(call) for call in calls]
        return [final], [*native_messages, final], state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return from_native(native_messages, state)

    def map_error(self, status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
        return refusal_error(status, body, provider=self.name)


def _answers_tools(native_messages: Sequence[NativeMessage]) -> bool:
    """Whether the answer is to tool results, and so belongs to a turn in which tools were used."""
    last = native_messages[-1] if native_messages else None
    return isinstance(last, dict) and last.get("role") == "tool"
