"""A provider whose server sends binary frames: a length, a kind, and so many bytes of text.

The host knows no such framing, so the provider reads them itself in `stream_api`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from agent_hookspecs import Config, CoreMessage, NativeMessage, ProviderPlugin, State
from agent_hookspecs.authoring import requested_knobs, take_knob
from agent_hookspecs.errors import OverloadedError, RateLimitError, ServerError, StreamCutError
from reference_library.connection import answer_of

__all__ = ["Frames"]

_HEAD = struct.Struct(">IB")
_TEXT, _END, _ERROR = 1, 2, 3


class Frames(ProviderPlugin):
    """Reads frames from a connection of its own."""

    name = "frames"
    version = "1.0"
    requires_api_key = True
    requires_base_url = True
    finish_reasons = {"over": "stop", "short": "length"}  # noqa: RUF012

    def init(self, config: Config) -> State:
        knobs = requested_knobs(config)
        return {
            "config": config,
            "request": {},
            "partial": None,
            "knobs": knobs,
            "texts": [],
            "end": None,
        }

    def to_native_messages(self, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
        return [{"by": message["role"], "text": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [
            {
                "role": "assistant",
                "content": native["text"],
                "metadata": dict(native.get("_metadata") or {}),
            }
            for native in native_messages
        ]

    def stream_api(
        self, native_messages: list[NativeMessage], state: State
    ) -> Iterator[dict[str, Any]]:
        config = state["config"]
        body: dict[str, Any] = {
            "model": config.get("model"),
            "said": [{"by": each["by"], "text": each["text"]} for each in native_messages],
        }
        if (most := take_knob(state, "max_output_tokens")) is not None:
            body["most"] = most
        key = {"x-frames-key": config["api_key"]}
        with answer_of(config, "frames", body, key) as response:
            yield from _frames(response)

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        shown: list[dict[str, Any]] = []
        if "text" in native_chunk:
            state["texts"].append(native_chunk["text"])
            shown = [{"role": "assistant", "content": native_chunk["text"]}]
        else:
            state["end"] = native_chunk
        return shown, [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["end"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        end = state["end"] or {}
        notes: dict[str, Any] = {"finish_reason": end.get("end")}
        if "read" in end:
            notes["usage"] = {"input": end["read"], "output": end["wrote"], "raw": end}
        text = "".join(state["texts"])
        final: NativeMessage = {"by": "assistant", "text": text, "_metadata": notes}
        return [final], [*native_messages, final], state


def _frames(source: BinaryIO) -> Iterator[dict[str, Any]]:
    while head := source.read(_HEAD.size):
        size, kind = _HEAD.unpack(head) if len(head) == _HEAD.size else (1, 0)
        data = source.read(size)
        if len(data) < size or not kind:
            raise StreamCutError("a frame is not complete")
        if kind == _TEXT:
            yield {"text": data.decode("utf-8")}
        elif kind == _END:
            yield json.loads(data)
            return
        else:
            told = json.loads(data)
            kinds = {"overloaded": OverloadedError, "rate_limit": RateLimitError}
            raise kinds.get(told["kind"], ServerError)(f"the server says: {told['message']}")
