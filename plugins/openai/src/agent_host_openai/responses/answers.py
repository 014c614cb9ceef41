"""Native messages of the Responses API as core messages, and the end of a turn.

Owns what an answer's items mean: text, refusal, reasoning, calls and the tools that the provider
ran by itself. Repairs happen here once, before a turn is kept: broken arguments, and ids that would
not be unique.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agent_hookspecs import CoreMessage, NativeMessage, State
from agent_hookspecs.authoring import taken_call_ids, tool_call_id, unique_call_id
from agent_hookspecs.errors import ProtocolError, StreamCutError
from agent_hookspecs.messages import Role
from agent_hookspecs.tool_interop import ToolInteropRegistry, WireNames
from agent_host_openai.responses.found import found_names

__all__ = ["call_of", "finished_turn", "from_natives", "text_of"]

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
#: Calls that the provider leaves to the caller to run.
_LEFT_TO_RUN = frozenset({"computer_call", "local_shell_call", "apply_patch_call", *_CALLS})
_UNFINISHED = ("incomplete", "in_progress")


def finished_turn(
    natives: list[NativeMessage], state: State, registry: ToolInteropRegistry, provider: str
) -> tuple[list[NativeMessage], list[NativeMessage], State]:
    """The answer as the native message that history keeps, appended to a new list."""
    answer = state["answer"]
    about, items = answer["about"], answer["items"]
    if about is None:
        # An end marker of the framing is no end of an answer: the last item may be half of one.
        if items or state["partial"]:
            raise StreamCutError(
                f"the answer of {provider} ended without its closing event",
                provider=provider,
                hint="what came so far is in the stream's session; ask again for the rest",
            )
        raise ProtocolError(
            f"{provider} answered with something that is no response",
            provider=provider,
            hint="check that the base URL is that of a Responses API, or set api to 'chat'",
        )
    output = [items[place] for place in sorted(items)]
    if any(item.get("type") in _CALLS for item in output):
        output = _repaired(output, registry, taken_call_ids(natives, state, _ids_in))
    turn: NativeMessage = {"role": "assistant", "output": output}
    if about:
        turn["_metadata"] = about
    return [turn], [*natives, turn], state


def _repaired(
    output: Sequence[dict[str, Any]], registry: ToolInteropRegistry, taken: Collection[str]
) -> list[dict[str, Any]]:
    repaired: list[dict[str, Any]] = []
    beside: set[str] = set()
    for item in output:
        if item.get("type") in _CALLS:
            call_id = unique_call_id(tool_call_id(item), taken, beside)
            beside.add(call_id)
            if call_id != item.get("call_id"):
                item = {**item, "call_id": call_id}
            item = registry.sanitize_tool_call(item)
        repaired.append(item)
    return repaired


def _ids_in(natives: Iterable[NativeMessage]) -> set[str]:
    return {
        item["call_id"]
        for native in natives
        if isinstance(output := native.get("output"), list)
        for item in output
        if isinstance(item, Mapping) and isinstance(item.get("call_id"), str)
    }


# From native to core.


def from_natives(natives: Sequence[NativeMessage], names: WireNames) -> list[CoreMessage]:
    """One core message for each native."""
    return [_core(native, names) for native in natives if isinstance(native, dict)]


def _core(native: NativeMessage, names: WireNames) -> CoreMessage:
    known = native.get("_metadata")
    metadata = dict(known) if isinstance(known, Mapping) else {}
    metadata.pop("native_indices", None)
    output = native.get("output")
    if "type" in native and "call_id" in native:
        metadata.setdefault("tool_call_id", native["call_id"])
        return {"role": "tool", "content": _plain_text(output), "metadata": metadata}
    if not isinstance(output, list):
        role: Role = "system" if native.get("role") == "system" else "user"
        return {"role": role, "content": _plain_text(native.get("content")), "metadata": metadata}
    items = [item for item in output if isinstance(item, Mapping)]
    metadata.update(_meaning(items, names))
    content = "".join(map(text_of, items))
    return {"role": "assistant", "content": content, "metadata": metadata}


def _meaning(items: Sequence[Mapping[str, Any]], names: WireNames) -> dict[str, Any]:
    """The metadata that an answer's items stand for; what they lack is left out."""
    calls = [_decoded(call, names) for item in items if (call := call_of(item))]
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    unfinished = {
        str(item.get("call_id")): "it was cut off before its end"
        for item in items
        if item.get("type") in _CALLS and item.get("status") in _UNFINISHED
    }
    found = {
        "tool_calls": calls,
        "tool_call_errors": unfinished,
        "found_tools": [names.decode(name) for name in found_names(items)],
        "reasoning": "".join(map(_reasoning_text, thoughts)),
        "reasoning_details": [dict(item) for item in thoughts],
        "refusal": "".join(_texts(items, "refusal")),
        "server_tools": [
            item["type"] for item in items if isinstance(item.get("type"), str) and _was_run(item)
        ],
        "annotations": _annotations(items),
    }
    return {key: value for key, value in found.items() if value}


def _was_run(item: Mapping[str, Any]) -> bool:
    """Whether the item is of a tool that the provider ran."""
    kind = item["type"]
    return kind == "mcp_list_tools" or (kind.endswith("_call") and kind not in _LEFT_TO_RUN)


def call_of(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call that an item makes, without what only history needs; None if it makes none."""
    kind = item.get("type")
    payload = _CALLS.get(kind) if isinstance(kind, str) else None
    if payload is None:
        return None
    return {
        "type": kind,
        "call_id": tool_call_id(item),
        "name": item.get("name") or "",
        payload: item.get(payload) or "",
    }


def _decoded(call: dict[str, Any], names: WireNames) -> dict[str, Any]:
    return {**call, "name": names.decode(call["name"])}


def text_of(item: Any) -> str:
    """What a message item says; "" for any other item."""
    if not isinstance(item, Mapping) or item.get("type") != "message":
        return ""
    return "".join(_texts([item], "text"))


def _texts(items: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return [
        part[key]
        for item in items
        if item.get("type") == "message" and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, Mapping) and isinstance(part.get(key), str)
    ]


def _annotations(items: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [
        note
        for item in items
        if item.get("type") == "message" and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, Mapping) and isinstance(part.get("annotations"), list)
        for note in part["annotations"]
    ]


def _reasoning_text(item: Mapping[str, Any]) -> str:
    return "".join(
        part["text"]
        for key in ("summary", "content")
        if isinstance(parts := item.get(key), list)
        for part in parts
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )


def _plain_text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))
