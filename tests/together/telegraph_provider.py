"""A provider of an API that nobody else speaks; a test makes a package of this file alone.

Turns are ``{"who", "words"}``; a machine's may ``ask`` for tools and a tool's says to which ``ref``
it answers. Answers are lines: words, asks, and the end with its cost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    NativeMessage,
    ProviderPlugin,
    RequestSpec,
    State,
)
from agent_hookspecs.tool_interop import (
    GENERIC_FUNCTION,
    ToolInteropTarget,
    get_registry_from_context,
)

__all__ = ["Telegraph"]

_WHO = {"system": "office", "user": "human", "assistant": "machine", "tool": "tool"}
Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


class Telegraph(ProviderPlugin):
    """Says what to send and reads what comes; the host does the rest."""

    name = "telegraph"
    version = "1.0"
    label = "Telegraph"
    requires_api_key = True
    requires_base_url = True
    framing = "ndjson"

    def get_tags(self, config: Config) -> list[str]:
        return ["provider:telegraph", "supports_streaming", "supports_tools"]

    def accepted_tool_schema_formats(self) -> list[str]:
        return [GENERIC_FUNCTION]

    def init(self, config: Config) -> State:
        return {"config": config, "request": {}, "partial": None, "asks": [], "over": None}

    def to_native_messages(self, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
        return [_native(message) for message in messages]

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [_core(native) for native in native_messages]

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        config = state["config"]
        kit = get_registry_from_context(context).convert_schemas(
            config.get("tools") or (), target=ToolInteropTarget("generic")
        )
        turns = [
            {k: v for k, v in native.items() if k != "_metadata"} for native in native_messages
        ]
        return {
            "method": "POST",
            "url": f"{config['base_url']}/wire",
            "headers": {"x-pass": config["api_key"]},
            "body": {"model": config["model"], "turns": turns, "kit": kit, "lines": stream},
            "framing": "ndjson",
        }

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> Answer:
        shown: list[dict[str, Any]] = []
        if words := native_chunk.get("words"):
            state["partial"] = (state["partial"] or "") + words
            shown = [{"role": "assistant", "content": words}]
        state["asks"] += native_chunk.get("ask", [])
        if "over" in native_chunk:
            state["over"] = native_chunk
        return shown, [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return state["over"] is not None

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        over = state["over"] or {}
        cost = over.get("cost") or {}
        final: NativeMessage = {"who": "machine", "words": state["partial"] or ""}
        if state["asks"]:
            final["ask"] = state["asks"]
        usage = {"input": cost.get("in", 0), "output": cost.get("out", 0), "raw": cost}
        final["_metadata"] = {"finish_reason": over.get("over"), "usage": usage}
        return [final], [*native_messages, final], state


def _native(message: CoreMessage) -> NativeMessage:
    native: NativeMessage = {"who": _WHO[message["role"]], "words": message["content"]}
    metadata = message["metadata"]
    if calls := metadata.get("tool_calls"):
        native["ask"] = [
            {
                "ref": call["id"],
                "tool": call["function"]["name"],
                "with": json.loads(call["function"]["arguments"]),
            }
            for call in calls
        ]
    if message["role"] == "tool":
        native["ref"] = metadata["tool_call_id"]
    return native


def _core(native: NativeMessage) -> CoreMessage:
    metadata: dict[str, Any] = dict(native.get("_metadata") or {})
    if asks := native.get("ask"):
        metadata["tool_calls"] = [
            {
                "id": ask["ref"],
                "type": "function",
                "function": {"name": ask["tool"], "arguments": json.dumps(ask["with"])},
            }
            for ask in asks
        ]
    return {"role": "assistant", "content": native["words"], "metadata": metadata}
