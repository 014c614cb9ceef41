"""A native history as the API accepts it: system prompt apart, turns in turn, calls answered.

Works on copies; natives stay as they are. It must not know settings or tools, only the rules by
which the API refuses a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_host_anthropic.media import text_block
from agent_host_anthropic.tool_format import REGISTRY

__all__ = ["called_before_thinking", "conversation"]

Block = dict[str, Any]
Turn = dict[str, Any]

_THINKING = ("thinking", "redacted_thinking")
#: The API wants a user to begin.
_OPENING = "(The conversation begins here.)"
_UNANSWERED = "[no result: the call was not run]"


def conversation(natives: Sequence[object]) -> tuple[list[Block], list[Turn]]:
    """The blocks of the system prompt, and the turns."""
    system: list[Block] = []
    turns: list[Turn] = []
    for native in natives:
        if not isinstance(native, dict):
            continue
        blocks = _sendable(native.get("content"))
        role = native.get("role")
        if role == "system":
            system += blocks
        elif not blocks:
            continue
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            rest = {key: value for key, value in native.items() if key != "_metadata"}
            turns.append({**rest, "content": blocks})
    return system, _bounded(_answered(turns))


def called_before_thinking(natives: Sequence[object]) -> bool:
    """Whether the turn in progress began with calls and no thinking before them.

    Such a turn, made elsewhere or without thinking, cannot be continued with a thinking budget. It
    goes back to the last thing the user said that was not the result of a call.
    """
    first: list[Block] = []
    said = answered = False
    for native in reversed(natives):
        if not isinstance(native, dict):
            continue
        blocks = _sendable(native.get("content"))
        if native.get("role") == "user":
            said = said or bool(blocks)
            answered = answered or any(block.get("type") == "tool_result" for block in blocks)
        elif native.get("role") == "assistant" and blocks:
            if said and not answered:
                break
            first, said, answered = blocks, False, False
    called = any(block.get("type") == "tool_use" for block in first)
    return called and first[0].get("type") not in _THINKING


def _sendable(content: object) -> list[Block]:
    """The blocks of a message; blank text is refused by the API, and is not sent."""
    if isinstance(content, str):
        return [text_block(content)] if content.strip() else []
    if not isinstance(content, list):
        return []
    return [_bare(block) for block in content if isinstance(block, dict) and not _is_blank(block)]


def _is_blank(block: Block) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _bare(block: Block) -> Block:
    """The block without notes of our own and, if it is a result, without blank text in it."""
    if "_metadata" in block:
        block = {key: value for key, value in block.items() if key != "_metadata"}
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        contents = _sendable(block["content"])
        if len(contents) != len(block["content"]):
            return {**block, "content": contents}
    return block


def _answered(turns: list[Turn]) -> list[Turn]:
    """The turns with each call answered in the next one, first in it and in order.

    A call that nobody answered gets an error for a result, and a result of no call becomes text:
    both happen when a run was interrupted or a session was cut.
    """
    answered: list[Turn] = []
    waiting: list[str] = []
    for turn in turns:
        if turn["role"] == "assistant":
            waiting = _call_ids(turn)
            answered.append(turn)
        else:
            answered.append({**turn, "content": _with_results(turn["content"], waiting)})
            waiting = []
    if waiting:
        answered.append({"role": "user", "content": _with_results([], waiting)})
    return answered


def _call_ids(turn: Turn) -> list[str]:
    calls = (block for block in turn["content"] if block.get("type") == "tool_use")
    return list(dict.fromkeys(call["id"] for call in calls if isinstance(call.get("id"), str)))


def _with_results(blocks: list[Block], waiting: list[str]) -> list[Block]:
    results: dict[str, Block] = {}
    others: list[Block] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            others.append(block)
        elif (call_id := block.get("tool_use_id")) in waiting and call_id not in results:
            results[call_id] = block
        else:
            others.append(_as_text(block))
    return [*(results.get(call_id) or _no_result(call_id) for call_id in waiting), *others]


def _no_result(call_id: str) -> Block:
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": _UNANSWERED,
        "is_error": True,
    }


def _as_text(result: Block) -> Block:
    view = REGISTRY.inspect_result(result)
    text = view.text if view is not None else ""
    return text_block(f"[result of an earlier tool call] {text}".rstrip())


def _bounded(turns: list[Turn]) -> list[Turn]:
    """The turns with a user's at the beginning, and no blank at the end of an assistant's."""
    if not turns or turns[0]["role"] != "user":
        turns = [{"role": "user", "content": [text_block(_OPENING)]}, *turns]
    last = turns[-1]
    if last["role"] == "assistant" and last["content"][-1].get("type") == "text":
        final = last["content"][-1]
        trimmed = {**final, "text": final["text"].rstrip()}
        turns[-1] = {**last, "content": [*last["content"][:-1], trimmed]}
    return turns
