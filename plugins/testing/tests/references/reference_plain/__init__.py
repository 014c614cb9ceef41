"""A provider without tools: lines of text over the host's own wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reference_common import (
    begin_state,
    core_messages,
    error_of_kind,
    native_turns,
    notes_of,
    refusal,
    sent,
)

from agent_hookspecs import (
    AgentError,
    Config,
    Context,
    CoreMessage,
    NativeMessage,
    ProviderPlugin,
    RequestSpec,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import Partial, take_knob

__all__ = ["Plain"]


class Plain(ProviderPlugin):
    """Adds up what the lines say."""

    name = "plain"
    requires_api_key = True
    requires_base_url = True
    framing = "ndjson"
    finish_reasons = {"over": "stop", "short": "length"}  # noqa: RUF012

    def init(self, config: Config) -> State:
        return {**begin_state(config), "end": None}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return native_turns(messages, state)

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return core_messages(native_messages)

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        for sentence in state["unsent"]:
            get_warn_from_context(context, self.name)(sentence)
        config = state["config"]
        body: dict[str, Any] = {
            "model": config.get("model"),
            "said": [sent(native) for native in native_messages],
            "lines": stream,
        }
        if (most := take_knob(state, "max_output_tokens")) is not None:
            body["most"] = most
        return {
            "method": "POST",
            "url": f"{config['base_url'].rstrip('/')}/lines",
            "headers": {"x-lines-key": config["api_key"]},
            "body": body,
            "framing": self.framing,
        }

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        if "kind" in native_chunk:
            raise error_of_kind(native_chunk)
        if "end" in native_chunk:
            state["end"] = native_chunk
        text = native_chunk.get("text")
        if not text:
            return [], [], native_messages, state
        partial = Partial.of(state["partial"])
        partial.append_text("content", text)
        state["partial"] = partial
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["end"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        said = str((state["partial"] or {}).get("content") or "")
        notes = notes_of(state["end"] or {})
        final: NativeMessage = {"by": "assistant", "text": said, "_metadata": notes}
        return [final], [*native_messages, final], state

    def map_error(self, status: int, body: bytes) -> AgentError | None:
        return refusal(status, body)
