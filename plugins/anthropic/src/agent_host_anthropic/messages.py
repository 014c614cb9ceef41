"""Core messages as native ones: one native message for each, in the API's content blocks.

Natives are what the API would take but for three things that are seen to when a request is made:
system messages stand among the others, neighbours of one role are not joined, and files are not
read. Reasoning is never made from core messages: only who signed it takes it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hookspecs import CoreMessage, MultipartContent, NativeMessage
from agent_hookspecs.tool_interop import ToolInteropTarget, WireNames
from agent_host_anthropic.media import block_of_part, text_block
from agent_host_anthropic.tool_format import FAMILY, REGISTRY, wire_id

__all__ = ["native_messages_of"]

Block = dict[str, Any]

#: Metadata that stands elsewhere in a native message, or belongs to the host.
_CARRIED = frozenset(
    {"native_indices", "tool_calls", "tool_call_id", "cache_control", "reasoning_details"}
)
_TARGET = ToolInteropTarget(FAMILY)


def native_messages_of(messages: Sequence[CoreMessage]) -> list[NativeMessage]:
    """The native forms of the messages, in the same order."""
    names = WireNames()
    return [_native(message, names) for message in messages]


def _native(message: CoreMessage, names: WireNames) -> NativeMessage:
    role, metadata = message["role"], message.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _CARRIED}
    unsent: list[str] = []
    if role == "tool":
        blocks = [_result(message, metadata, unsent)]
    else:
        blocks = _contents(message, unsent)
        if role == "assistant":
            blocks += _calls(metadata.get("tool_calls"), names, unsent)
    _mark(blocks, metadata.get("cache_control"))
    if unsent:
        kept["not_sent"] = unsent
    sender = "user" if role == "tool" else role
    return {"role": sender, "content": blocks, **({"_metadata": kept} if kept else {})}


def _contents(message: CoreMessage, unsent: list[str]) -> list[Block]:
    """The blocks of a message that is no result; only a user's may be more than text."""
    text, parts = message.get("content"), message.get("multipartContent") or ()
    blocks = [_block(part, unsent) for part in parts]
    if message["role"] != "user":
        blocks = [_as_text(block, message["role"], unsent) for block in blocks]
    return _beside([text_block(text)] if isinstance(text, str) and text else [], blocks)


def _beside(told: list[Block], parts: list[Block]) -> list[Block]:
    """What a message says and its parts; some have the same text in both."""
    if _text_of(told) == _text_of(parts):
        told = [block for block in told if block.get("type") != "text"]
    return [*told, *parts]


def _text_of(blocks: list[Block]) -> str:
    return "".join(block["text"] for block in blocks if block.get("type") == "text")


def _as_text(block: Block, role: str, unsent: list[str]) -> Block:
    kind = block.get("type")
    if kind == "text":
        return block
    unsent.append(f"a part of type {kind!r} is not sent: a message of role {role!r} has text alone")
    return text_block(f"[{kind} not sent again]")


def _block(part: MultipartContent, unsent: list[str]) -> Block:
    metadata = part.get("metadata") or {}
    if part.get("type") == "native" and metadata.get("format") == FAMILY:
        own = (part.get("content") or {}).get("part")
        if isinstance(own, dict):
            return own
    block = block_of_part(part)
    if block is None:
        kind = part.get("type") or "part"
        unsent.append(f"a part of type {kind!r} is not sent: the Messages API does not take it")
        return text_block(f"[{kind} not sent: the Messages API does not take it]")
    return block


def _calls(calls: object, names: WireNames, unsent: list[str]) -> list[Block]:
    blocks: list[Block] = []
    for call in calls if isinstance(calls, (list, tuple)) else ():
        if REGISTRY.format_of_call(call) is None:
            unsent.append("a tool call is not sent: no active plugin explains its format")
            continue
        (block,) = REGISTRY.convert_tool_calls([call], target=_TARGET)
        call_id = block.get("id")
        blocks.append(
            {
                **block,
                **({"id": wire_id(call_id)} if isinstance(call_id, str) else {}),
                "name": names.encode(block["name"]),
            }
        )
    return blocks


def _result(message: CoreMessage, metadata: Mapping[str, Any], unsent: list[str]) -> Block:
    result: Any = message.get("toolResult")
    if REGISTRY.format_of_result(result) is None:
        result = message.get("content") or ""
    (block,) = REGISTRY.convert_tool_results([result], target=_TARGET, warn=unsent.append)
    content = block.get("content")
    if parts := [_block(part, unsent) for part in message.get("multipartContent") or ()]:
        told = [text_block(content)] if isinstance(content, str) and content else content or []
        content = _beside(told, parts)
    call_id = metadata.get("tool_call_id") or block.get("tool_use_id") or ""
    failed = metadata.get("error") is True or block.get("is_error") is True
    return {
        "type": "tool_result",
        "tool_use_id": wire_id(str(call_id)),
        "content": content if content is not None else "",
        **({"is_error": True} if failed else {}),
    }


def _mark(blocks: list[Block], marker: object) -> None:
    """Put a cache marker that the message asks for at its end."""
    if blocks and isinstance(marker, Mapping):
        blocks[-1] = {**blocks[-1], "cache_control": dict(marker)}
