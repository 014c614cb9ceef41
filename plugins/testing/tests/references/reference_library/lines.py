"""A provider that does its own I/O, with the standard library in place of the host's wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from reference_common import begin_state, core_messages, error_of_kind, native_turns, notes_of, sent

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    NativeMessage,
    ProtocolError,
    ProviderPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import Partial, take_knob
from agent_hookspecs.errors import StreamCutError
from reference_library.connection import answer_of

__all__ = ["Library"]

Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


class Library(ProviderPlugin):
    """Opens a connection for each request and reads its lines."""

    name = "library"
    requires_api_key = True
    requires_base_url = True
    finish_reasons = {"over": "stop", "short": "length"}  # noqa: RUF012
    path = "lines"

    def init(self, config: Config) -> State:
        return {**begin_state(config), "end": None}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        return native_turns(messages, state)

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return core_messages(native_messages)

    def call_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Answer:
        for chunk in self._chunks(native_messages, state, context, stream=False):
            self.process_chunk(chunk, native_messages, state)
        if not self.stream_complete(state):
            raise StreamCutError("the answer has no end")
        finals, natives, state = self.finalize(native_messages, state)
        return [], finals, natives, state

    def stream_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Iterator[dict[str, Any]]:
        yield from self._chunks(native_messages, state, context, stream=True)

    def _chunks(
        self, natives: list[NativeMessage], state: State, context: Context, *, stream: bool
    ) -> Iterator[dict[str, Any]]:
        for sentence in state["unsent"]:
            get_warn_from_context(context, self.name)(sentence)
        config = state["config"]
        body: dict[str, Any] = {
            "model": config.get("model"),
            "said": [sent(native) for native in natives],
            "lines": stream,
        }
        if (most := take_knob(state, "max_output_tokens")) is not None:
            body["most"] = most
        key = {"x-lines-key": config["api_key"]}
        with answer_of(config, self.path, body, key) as response:
            yield from self._read(response)

    def _read(self, response: Any) -> Iterator[dict[str, Any]]:
        for line in response:
            try:
                chunk = json.loads(line)
            except ValueError as error:
                raise ProtocolError("the answer is no JSON") from error
            if not isinstance(chunk, dict):
                raise ProtocolError("the answer is no object")
            yield chunk

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> Answer:
        if "kind" in native_chunk:
            raise error_of_kind(native_chunk)
        if "end" in native_chunk:
            state["end"] = native_chunk
        text = native_chunk.get("text")
        if not text:
            return [], [], native_messages, state
        partial = state["partial"] = Partial.of(state["partial"])
        partial.append_text("content", text)
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
