"""A native history as the API accepts it: system prompt apart, turns in turn, calls answered.

Natives stay as they are. It must not know settings or tools, only the rules by which the API
refuses a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import is_
from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.authoring import Rendering, expand_attachments
from agent_hookspecs.tool_interop import WireNames
from agent_host_anthropic.caching import count_markers
from agent_host_anthropic.found import (
    found_names,
    is_result,
    with_known_references,
    without_open_searches,
)
from agent_host_anthropic.media import text_block, with_sources
from agent_host_anthropic.tool_format import REGISTRY

__all__ = ["Conversation", "called_before_thinking"]

Block = dict[str, Any]
Turn = dict[str, Any]
#: Told of what is not sent.
Warn = Callable[[str], None]

_THINKING = ("thinking", "redacted_thinking")
#: The API wants a user to begin.
_OPENING = "(The conversation begins here.)"
_UNANSWERED = "[no result: the call was not run]"
_OPEN_SEARCH = "a search for tools is not sent: it was cut off before its result"


class Conversation(Rendering):
    """A history so far: the blocks of the system prompt, and the turns.

    The last turn is open until somebody else speaks; results are put in place when it is closed.
    """

    def __init__(self) -> None:
        self.system: list[Block] = []
        #: Sentences that say what of the history the API does not take.
        self.not_sent: list[str] = []
        #: How many blocks of closed turns are marked for the provider's cache.
        self.marked = 0
        #: The tools to which results of searches refer.
        self.referred: set[str] = set()
        self._found: set[str] = set()
        self._closed: list[Turn] = []
        self._with_media: list[int] = []
        self._with_references: list[int] = []
        #: The last turn but for its blocks, which are still growing.
        self._open: Turn = {}
        self._blocks: list[Block] = []
        self._waiting: list[str] = []

    def add(self, native: NativeMessage) -> None:
        notes = native.pop("_metadata", None)
        self.not_sent += _notes(notes, "not_sent")
        self._found.update(map(WireNames().encode, _notes(notes, "found_tools")))
        blocks = _sendable(native.get("content"))
        role = native.get("role")
        if role == "system":
            self.system += blocks
        elif not blocks:
            return
        elif self._open and self._open["role"] == role:
            self._blocks += blocks
        else:
            self._close()
            self._open, self._blocks = native, blocks

    @property
    def found_elsewhere(self) -> set[str]:
        """The tools that a search has found of which nothing but their names is in this history."""
        return self._found - self.referred

    def end(
        self,
        attachments_root: str | None,
        warn: Warn | None = None,
        tools: Collection[str] = (),
    ) -> list[Turn]:
        """The turns as they are sent; nothing can be added afterwards.

        ``tools`` are those that are declared.
        """
        self._close(is_last=True)
        if self._waiting:
            self._put({"role": "user", "content": _with_results([], self._waiting)})
        turns = self._closed
        if not turns:
            turns.append(_opening())
        for place in self._with_references:
            turns[place] = {
                **turns[place],
                "content": with_known_references(turns[place]["content"], tools),
            }
        for place in self._with_media:
            turns[place] = _expand_turn(turns[place], attachments_root, warn)
        last = turns[-1]
        if last["role"] == "assistant" and last["content"][-1].get("type") == "text":
            final = last["content"][-1]
            # The API refuses a blank at the end.
            trimmed = {**final, "text": final["text"].rstrip()}
            turns[-1] = {**last, "content": [*last["content"][:-1], trimmed]}
        return turns

    def _close(self, is_last: bool = False) -> None:
        """Put the last turn in place, with each call of the one before answered first in it."""
        if not self._open:
            return
        turn, blocks = self._open, self._blocks
        self._open, self._blocks = {}, []
        if turn["role"] == "assistant" and not is_last:
            # In the last turn the API goes on with it.
            blocks = self._without_open_searches(blocks)
            if not blocks:
                return
        waiting, self._waiting = self._waiting, []
        if turn["role"] == "assistant":
            self._waiting = _call_ids(blocks)
        else:
            blocks = _with_results(blocks, waiting)
        self._put({**turn, "content": blocks})

    def _without_open_searches(self, blocks: list[Block]) -> list[Block]:
        left = without_open_searches(blocks)
        if len(left) < len(blocks):
            self.not_sent.append(_OPEN_SEARCH)
        return left

    def _put(self, turn: Turn) -> None:
        if not self._closed and turn["role"] != "user":
            self._closed.append(_opening())
        if _expand_turn(turn, None) is not turn:
            self._with_media.append(len(self._closed))
        if any(map(is_result, turn["content"])):
            self._with_references.append(len(self._closed))
            self.referred.update(found_names(turn["content"]))
        self.marked += count_markers(turn["content"])
        self._closed.append(turn)


def _opening() -> Turn:
    return {"role": "user", "content": [text_block(_OPENING)]}


def _notes(notes: object, key: str) -> list[str]:
    told = notes.get(key) if isinstance(notes, Mapping) else None
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []


def _expand_turn(turn: Turn, root: str | None, warn: Warn | None = None) -> Turn:
    """The turn with its files read and its media as the API takes them; itself without any."""
    [expanded] = expand_attachments([turn], root=root, note=text_block, warn=warn)
    blocks = [*map(with_sources, expanded["content"])]
    if all(map(is_, blocks, turn["content"])):
        return turn
    return {**expanded, "content": blocks}


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


def _call_ids(blocks: list[Block]) -> list[str]:
    calls = (block for block in blocks if block.get("type") == "tool_use")
    return list(dict.fromkeys(call["id"] for call in calls if isinstance(call.get("id"), str)))


def _with_results(blocks: list[Block], waiting: list[str]) -> list[Block]:
    """The blocks with the results that are waited for first and in order.

    A call that nobody answered gets an error for a result, and a result of no call becomes text:
    both happen when a run was interrupted or a session was cut.
    """
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
