"""A provider whose server repeats in every line all that it has said so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import (
    Config,
    CoreMessage,
    NativeMessage,
    ProviderPlugin,
    RequestSpec,
    State,
)
from agent_hookspecs.authoring import requested_knobs, take_knob

__all__ = ["Ladder"]


class Ladder(ProviderPlugin):
    """Shows of each line what the one before did not have."""

    name = "ladder"
    version = "1.0"
    requires_api_key = True
    requires_base_url = True
    framing = "ndjson"
    finish_reasons = {"top": "stop", "cut": "length"}  # noqa: RUF012

    def init(self, config: Config) -> State:
        knobs = requested_knobs(config)
        return {"config": config, "request": {}, "partial": None, "knobs": knobs, "rung": {}}

    def to_native_messages(self, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
        return [{"by": message["role"], "words": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [
            {
                "role": "assistant",
                "content": native["words"],
                "metadata": dict(native.get("_metadata") or {}),
            }
            for native in native_messages
        ]

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool
    ) -> RequestSpec:
        config = state["config"]
        body: dict[str, Any] = {
            "model": config.get("model"),
            "said": [{"by": each["by"], "words": each["words"]} for each in native_messages],
            "rungs": stream,
        }
        if (most := take_knob(state, "max_output_tokens")) is not None:
            body["most"] = most
        return {
            "method": "POST",
            "url": f"{config['base_url'].rstrip('/')}/climb",
            "headers": {"x-ladder-key": config["api_key"]},
            "body": body,
            "framing": "ndjson",
        }

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        before, state["rung"] = len(state["rung"].get("words", "")), native_chunk
        new = native_chunk["words"][before:]
        state["partial"] = {"role": "assistant", "content": native_chunk["words"]}
        shown = [{"role": "assistant", "content": new}] if new else []
        return shown, [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return "end" in state["rung"]

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        rung = state["rung"]
        notes: dict[str, Any] = {"finish_reason": rung.get("end")}
        if "read" in rung:
            notes["usage"] = {"input": rung["read"], "output": rung["wrote"], "raw": dict(rung)}
            del notes["usage"]["raw"]["words"]
        final: NativeMessage = {"by": "assistant", "words": rung["words"], "_metadata": notes}
        return [final], [*native_messages, final], state
