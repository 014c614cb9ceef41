"""The provider ``{{ cookiecutter.plugin_id }}``: what is sent to the API, and how its lines are read.

It does no I/O: it says what to send and what a line means, and the host owns the socket. How
messages look is in ``messages``, what a line adds to the answer in ``answers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import (
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
    AccumulatorStreamingMixin,
    Partial,
    bare_messages,
    knob_schema,
    requested_knobs,
    selected_model,
    take_knob,
)
from agent_hookspecs.messages import Framing
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    GENERIC_FUNCTION,
    WireNames,
    get_registry_from_context,
)

from {{ cookiecutter.package }}._version import __version__
from {{ cookiecutter.package }}.answers import delta_of, raise_error, usage_of
from {{ cookiecutter.package }}.messages import from_native, native_answer, to_native

__all__ = ["{{ cookiecutter.__class }}Provider"]

BASE_URL = "http://localhost:8000"
#: Abilities of a model as the API names them, and as users are shown them.
ABILITIES = {"tools": "tools", "thought": "reasoning"}
KNOBS = {"max_output_tokens": "limit", "temperature": "temperature"}


class {{ cookiecutter.__class }}Provider(AccumulatorStreamingMixin, ProviderPlugin):
    """The models of an API that answers in lines of JSON."""

    name = "{{ cookiecutter.plugin_id }}"
    version = __version__
    optional_api_key = True
    framing: Framing = "ndjson"
    accumulates = ("tool_calls", "reasoning")

    # What it is.

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "model": {"type": "string", "required": True},
            "base_url": {"type": "string", "required": False, "default": BASE_URL},
            "api_key": {"type": "string", "required": False, "secret": True},
            **knob_schema(*KNOBS),
        }

    def models_request(self, config: Config) -> RequestSpec:
        return {"method": "GET", "url": _url(config, "models"), "headers": _headers(config)}

    def parse_models(self, body: Any) -> list[ModelInfo]:
        return [
            {"id": model["id"], "capabilities": _abilities(model.get("abilities", ()))}
            for model in body["models"]
        ]

    def get_tags(self, config: Config, models: Sequence[ModelInfo]) -> list[str]:
        model = selected_model(config, models)
        # Of a model that is not listed nothing is known; most can call tools.
        able = ["tools"] if model is None else model.get("capabilities") or []
        tags = [f"supports_{ability}" for ability in ABILITIES.values() if ability in able]
        return [f"provider:{self.name}", "supports_streaming", *tags]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [GENERIC_FUNCTION]

    # What is sent.

    def init(self, config: Config) -> State:
        views = map(DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema, config.get("tools") or ())
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": requested_knobs(config),
            "names": WireNames(view.name for view in views if view),
        }

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        note = state.setdefault("notes", []).append
        return [to_native(message, state["names"], note) for message in messages]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        warn = get_warn_from_context(context, self.name)
        for note in state.pop("notes", ()):
            warn(note)
        config = state["config"]
        payload = {"model": config.get("model")}
        for knob, key in KNOBS.items():
            value = take_knob(state, knob)
            if value is not None:
                payload[key] = value
        url, headers = _url(config, "chat"), _headers(config)
        state["request"] = {"url": url, "headers": headers, "payload": payload}
        return native_messages, state

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        request = state["request"]
        messages = bare_messages(request.get("messages") or native_messages, context)
        body = {**request["payload"], "messages": messages, "stream": stream}
        return {"url": request["url"], "headers": request["headers"], "body": body}

    # What comes back.

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return delta_of(chunk)

    def check_chunk(self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None) -> None:
        raise_error(chunk)

    def merge_more(
        self, delta: dict[str, Any], accumulated: Partial, fragment: dict[str, Any]
    ) -> None:
        for key in ("seal", "finish_reason"):
            if delta.get(key):
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
        shown, finals, natives, state = super().process_chunk(native_chunk, native_messages, state)
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
                f"{self.name} answered without a message",
                hint="check that base_url is the address of this API",
            )
        sanitize = get_registry_from_context(context).sanitize_tool_call
        final = native_answer(finals[0], sanitize)
        return [final], [*native_messages, final], state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], state: State
    ) -> list[CoreMessage]:
        return [from_native(native, state["names"]) for native in native_messages]


def _abilities(told: Sequence[str]) -> list[str]:
    return [ABILITIES[ability] for ability in told if ability in ABILITIES]


def _url(config: Config, what: str) -> str:
    return f"{str(config.get('base_url') or BASE_URL).rstrip('/')}/{what}"


def _headers(config: Config) -> dict[str, str]:
    key = config.get("api_key")
    return {"authorization": f"Bearer {key}"} if key else {}
