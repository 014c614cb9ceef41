"""The provider ``openai``: one entry, two APIs.

Owns the choice between them, which holds for one request, and what they share: settings, models and
tags. Everything else is the chosen API's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    Finish,
    ModelInfo,
    NativeMessage,
    ProviderPlugin,
    State,
    Usage,
)
from agent_hookspecs.errors import AgentError
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.messages import RequestSpec
from agent_hookspecs.tool_interop import OPENAI_CHAT, OPENAI_RESPONSES
from agent_host_openai._version import __version__
from agent_host_openai.batches import OpenAIBatches, batch_endpoint
from agent_host_openai.chat import ChatApi
from agent_host_openai.models import described, misses_its_api, tags_of
from agent_host_openai.responses import WIRE
from agent_host_openai.responses.api import ResponsesApi
from agent_host_openai.responses.events import read_event
from agent_host_openai.settings import APIS, SERVER, api_of, headers_for, own_settings
from agent_host_openai_compatible.models import listed_models
from agent_host_openai_compatible.servers import endpoint, is_at_azure

__all__ = ["OpenAIProvider"]

_Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]

_WIRES = {"chat": "wire:openai-chat", "responses": WIRE}
_NATIVE_FORMATS = {"chat": OPENAI_CHAT, "responses": OPENAI_RESPONSES}


class OpenAIProvider(ProviderPlugin):
    """OpenAI's models through Chat Completions or Responses, as the setting ``api`` says."""

    name = SERVER.name
    version = __version__
    label = SERVER.label
    requires_api_key = True
    finish_reasons: Mapping[str, Finish] = {
        **ChatApi.finish_reasons,
        **ResponsesApi.finish_reasons,
    }

    def __init__(self) -> None:
        self._chat = ChatApi()
        self._responses = ResponsesApi()

    def _api(self, state: State) -> ChatApi | ResponsesApi:
        return self._chat if state["api"] == "chat" else self._responses

    # What it offers.

    def get_config_schema(self) -> dict[str, Any]:
        shared = self._chat.get_config_schema()
        # Chat Completions signs nothing, and Responses has settings of its own for it.
        del shared["replay_reasoning"]
        return {**shared, **own_settings()}

    def get_ui_elements(self, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        options = [{"value": api, "label": api} for api in APIS]
        choice = {"type": "select", "key": "api", "label": "API", "options": options}
        return [*self._chat.get_ui_elements(models), choice]

    def models_request(self, config: Config) -> RequestSpec | None:
        if config.get("model"):
            # The listing says of a model that it is there, and nothing of what it can do.
            return None
        return {
            "method": "GET",
            "url": endpoint(SERVER, config, SERVER.listing),
            "headers": headers_for(config),
        }

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return described(listed_models(body))

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        api = api_of(config)
        tags = [f"provider:{self.name}", _WIRES[api], "supports_streaming"]
        # The chat API takes files only as data.
        fetching = ["supports_file_urls"] if api == "responses" else []
        batches = [] if is_at_azure(SERVER, config) else ["supports_batches"]
        of_model = tags_of(config.get("model"))
        if api == "chat":
            of_model = [tag for tag in of_model if tag != "supports_tool_search"]
        return [*tags, *fetching, *batches, *of_model]

    def accepted_tool_schema_formats(self, config: Config) -> list[str]:
        api = self._chat if api_of(config) == "chat" else self._responses
        return api.formats_for(config)

    # The request.

    def init(self, config: Config) -> State:
        api = api_of(config)
        state = (self._chat if api == "chat" else self._responses).init(config)
        return {**state, "api": api, "native_format": _NATIVE_FORMATS[api]}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return self._api(state).to_native_messages(messages, state)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        if other := misses_its_api(state["config"], state["api"]):
            get_warn_from_context(context, self.name)(
                f"{state['config'].get('model')!r} is served by the API {other!r} alone; "
                f"set api to {other!r}"
            )
        return self._api(state).initialize_request(native_messages, state, context)

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        return self._api(state).build_request(native_messages, state, stream, context)

    def get_batch_endpoint(self, config: Config, request: RequestSpec) -> OpenAIBatches | None:
        return batch_endpoint(config, request)

    # The answer.

    def process_chunk(
        self,
        native_chunk: Any,
        native_messages: list[NativeMessage],
        state: State,
        event: str | None = None,
    ) -> _Answer:
        # Not through `_api`: this runs for every chunk.
        if state["api"] == "responses":
            return read_event(native_chunk, native_messages, state, event)
        return self._chat.process_chunk(native_chunk, native_messages, state, event)

    def stream_complete(self, state: State) -> bool | None:
        return self._api(state).stream_complete(state)

    def usage_so_far(self, state: State) -> Usage | None:
        return self._api(state).usage_so_far(state)

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        return self._api(state).finalize(native_messages, state, context)

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return self._api(state).from_native_messages(native_messages, state)

    def map_error(self, status: int, headers: Mapping[str, str], body: bytes) -> AgentError | None:
        return self._chat.map_error(status, headers, body)
