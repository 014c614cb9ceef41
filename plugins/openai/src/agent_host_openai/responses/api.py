"""The hooks of the provider while it speaks the Responses API; each hands over to its module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import Config, Context, CoreMessage, Finish, NativeMessage, State, Usage
from agent_hookspecs.authoring.knobs import requested_knobs
from agent_hookspecs.logs import get_warn_from_context
from agent_hookspecs.messages import RequestSpec
from agent_hookspecs.tool_interop import (
    OPENAI_RESPONSES_CUSTOM,
    OPENAI_RESPONSES_FUNCTION,
    WireNames,
    get_registry_from_context,
)
from agent_host_openai.models import can
from agent_host_openai.responses.answers import finished_turn, from_natives
from agent_host_openai.responses.events import begin, is_complete, read_event, usage_told
from agent_host_openai.responses.messages import to_natives
from agent_host_openai.responses.requests import body, first_payload
from agent_host_openai.settings import SERVER, headers_for
from agent_host_openai_compatible.servers import endpoint
from agent_host_openai_compatible.tools import wire_names

__all__ = ["ResponsesApi"]

_Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


class ResponsesApi:
    """Requests to ``/responses`` and their answers."""

    #: What a response gives as its status, or as the reason why it is incomplete.
    finish_reasons: Mapping[str, Finish] = {
        "completed": "stop",
        "incomplete": "length",
        "max_output_tokens": "length",
        "content_filter": "blocked",
        "cancelled": "error",
    }

    def formats_for(self, config: Config) -> list[str]:
        """Freeform tools stay freeform for the models that take them."""
        freeform = can(config, "supports_custom_tools")
        return [OPENAI_RESPONSES_FUNCTION, *([OPENAI_RESPONSES_CUSTOM] if freeform else ())]

    def init(self, config: Config) -> State:
        state: State = {
            "config": config,
            "request": {},
            "knobs": requested_knobs(config),
            "wire_names": WireNames(),
            "notes": [],
        }
        begin(state)
        return state

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return to_natives(messages, wire_names(state), state.setdefault("notes", []).append)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, SERVER.name)
        for note in state.pop("notes", ()):
            warn(note)
        request = state.setdefault("request", {})
        request["url"] = endpoint(SERVER, state["config"], "/responses")
        request["headers"] = headers_for(state["config"])
        request["payload"] = {**first_payload(state), **request.get("payload", {})}
        begin(state)
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        request = state["request"]
        spec: RequestSpec = {
            "method": "POST",
            "url": request["url"],
            "headers": request["headers"],
            "body": body(native_messages, state, stream, context, SERVER.name),
            "framing": "sse",
        }
        if request.get("timeout") is not None:
            spec["timeout"] = request["timeout"]
        return spec

    def process_chunk(
        self,
        native_chunk: Any,
        native_messages: list[NativeMessage],
        state: State,
        event: str | None = None,
    ) -> _Answer:
        return read_event(native_chunk, native_messages, state, event)

    def stream_complete(self, state: State) -> bool:
        return is_complete(state)

    def usage_so_far(self, state: State) -> Usage | None:
        return usage_told(state)

    def finalize(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        registry = get_registry_from_context(context)
        return finished_turn(native_messages, state, registry, SERVER.name)

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return from_natives(native_messages, wire_names(state))
