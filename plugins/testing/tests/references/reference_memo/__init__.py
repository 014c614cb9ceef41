"""A provider of an API without ids and without streams: whole documents, calls known by position.

It gives calls ids of its own, at random, and keeps what a model said and what it asked for as two
messages.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from reference_common import (
    begin_state,
    native_turns,
    notes_of,
    refusal,
    request_body,
    warn_of_unsent,
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
)
from agent_hookspecs.authoring import take_knob
from agent_hookspecs.tool_interop import (
    GENERIC_FUNCTION,
    ToolInteropTarget,
    WireNames,
    get_registry_from_context,
    parse_tool_arguments,
)

__all__ = ["Memo"]


class Memo(ProviderPlugin):
    """Sends notes and reads one document."""

    name = "memo"
    requires_api_key = True
    requires_base_url = True
    framing = "json"
    finish_reasons = {"over": "stop", "asks": "tool_calls", "short": "length"}  # noqa: RUF012

    def accepted_tool_schema_formats(self) -> list[str]:
        return [GENERIC_FUNCTION]

    def init(self, config: Config) -> State:
        return {**begin_state(config), "memo": {}}

    def to_native_messages(
        self, messages: Sequence[CoreMessage], state: State
    ) -> list[NativeMessage]:
        names = WireNames()
        turns = native_turns(messages, state)
        return [_native(*pair, names) for pair in zip(messages, turns, strict=True)]

    def from_native_messages(self, native_messages: Sequence[NativeMessage]) -> list[CoreMessage]:
        return [_core(native) for native in native_messages]

    def build_request(
        self, native_messages: list[NativeMessage], state: State, stream: bool, context: Context
    ) -> RequestSpec:
        warn_of_unsent(state, context, self.name)
        config = state["config"]
        kit = get_registry_from_context(context).convert_schemas(
            config.get("tools") or (), target=ToolInteropTarget("generic")
        )
        names = WireNames(tool["name"] for tool in kit)
        body = request_body("notes", native_messages, state)
        body["tools"] = [{**tool, "name": names.encode(tool["name"])} for tool in kit]
        state["names"] = names
        choice = take_knob(state, "tool_choice")
        if choice is not None:
            body["choice"] = names.encode(choice) if choice in names else choice
        return {
            "method": "POST",
            "url": f"{config['base_url'].rstrip('/')}/memo",
            "headers": {"x-memo-key": config["api_key"]},
            "body": body,
            "framing": "json",
        }

    def process_chunk(
        self, native_chunk: Any, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]:
        state["memo"] = native_chunk
        said = native_chunk.get("text") or ""
        state["partial"] = {"role": "assistant", "content": said}
        shown: dict[str, Any] = {"role": "assistant", "content": said}
        if asked := native_chunk.get("asked"):
            state["ids"] = [f"memo_{uuid.uuid4().hex}" for _ in asked]
            shown["tool_calls"] = [
                {
                    "index": index,
                    "id": state["ids"][index],
                    "name": state["names"].decode(ask["tool"]),
                    "arguments": _arguments(ask),
                }
                for index, ask in enumerate(asked)
            ]
        return [shown], [], native_messages, state

    def stream_complete(self, state: State) -> bool:
        return "end" in state["memo"]

    def finalize(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        memo = state["memo"]
        notes = notes_of(memo)
        finals: list[NativeMessage] = []
        if memo.get("text"):
            finals.append({"by": "assistant", "text": memo["text"], "_metadata": notes})
        if memo.get("asked"):
            more = {"ids": state["ids"], "names": [], "broken": {}}
            asked = []
            for call_id, ask in zip(state["ids"], memo["asked"], strict=True):
                payload, problem = parse_tool_arguments(ask["with"])
                asked.append({"tool": ask["tool"], "with": payload or {}})
                more["names"].append(state["names"].decode(ask["tool"]))
                if problem:
                    more["broken"][call_id] = problem
            finals.append({"by": "assistant", "asked": asked, "_metadata": {**notes, **more}})
            if len(finals) > 1:
                finals[0]["_metadata"] = {"finish_reason": memo.get("end")}
        return finals, [*native_messages, *finals], state

    def map_error(self, status: int, body: bytes) -> AgentError | None:
        return refusal(status, body)


def _arguments(ask: dict[str, Any]) -> str:
    given = ask["with"]
    return given if isinstance(given, str) else json.dumps(given)


def _native(message: CoreMessage, native: NativeMessage, names: WireNames) -> NativeMessage:
    metadata = message.get("metadata") or {}
    if calls := metadata.get("tool_calls"):
        native["asked"] = [
            {
                "tool": names.encode(call["function"]["name"]),
                "with": parse_tool_arguments(call["function"]["arguments"])[0] or {},
            }
            for call in calls
        ]
    return native


def _core(native: NativeMessage) -> CoreMessage:
    notes = dict(native.get("_metadata") or {})
    ids, names = notes.pop("ids", ()), notes.pop("names", ())
    broken = notes.pop("broken", None)
    if broken:
        notes["tool_call_errors"] = broken
    if native.get("asked"):
        notes["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(ask["with"])},
            }
            for call_id, name, ask in zip(ids, names, native["asked"], strict=True)
        ]
    return {"role": "assistant", "content": native.get("text") or "", "metadata": notes}
