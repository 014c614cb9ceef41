"""A request's conversation in words that belong to no protocol: who said what, block by block.

Owns the blocks and how they become core messages. Which key of which API a block came from is for
the readers of the protocols to know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agent_hookspecs.messages import CoreMessage, MultipartContent, Role

__all__ = [
    "Answer",
    "Block",
    "Entry",
    "Turn",
    "core_messages",
    "merge_neighbours",
    "parse_arguments",
    "text_block",
    "tool_name",
]

Kind = Literal["text", "reasoning", "call", "result", "media", "native"]


@dataclass(frozen=True, slots=True)
class Block:
    """One thing that was said. What ``value`` holds depends on the kind:

    ``text``: text, perhaps signature and citations. ``reasoning``: text, signature, perhaps id.
    ``call``: id, name, arguments, perhaps their text as it was written and a signature.
    ``result``: id, name, content (blocks), error. ``media``: kind and what says where it is.
    ``native``: part, as only its API understands it.
    """

    kind: Kind
    value: Mapping[str, Any]

    def __str__(self) -> str:
        shown = json.dumps(self.value, ensure_ascii=False, default=str)
        return f"{self.kind} {shown if len(shown) < 400 else shown[:400] + '…'}"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one party said in a row; results of tools are a party's of their own."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user would have done to have such a request sent.

    ``tools`` are schemas as an author writes them, ``settings`` the keys of the config.
    """

    entries: tuple[Entry, ...]
    tools: tuple[dict[str, Any], ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    family: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    ``history`` is the part of a request's body by which the answer is sent back as it was;
    ``citations`` are what it refers to, in the API's own shape.
    """

    history: Mapping[str, Any]
    citations: tuple[Any, ...] = ()


def text_block(text: str, **more: Any) -> Block:
    """A text; what is None is left out."""
    return Block("text", {"text": text, **{k: v for k, v in more.items() if v is not None}})


def tool_name(schema: Mapping[str, Any]) -> str:
    """What a tool is called by its author."""
    return str((schema.get("custom") or schema)["name"])


def parse_arguments(text: Any) -> Any:
    """Arguments as a value; what is no JSON stays what it is."""
    if not isinstance(text, str):
        return text if text is not None else {}
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def merge_neighbours(entries: Iterable[Entry], *roles: Role) -> list[Entry]:
    """The entries with neighbours of one role as one; of ``roles`` only, if any are given."""
    joined: list[Entry] = []
    for entry in entries:
        if joined and joined[-1].role == entry.role and (not roles or entry.role in roles):
            joined[-1] = replace(entry, blocks=(*joined[-1].blocks, *entry.blocks))
        else:
            joined.append(entry)
    return joined


def core_messages(entries: Sequence[Entry], family: str) -> list[CoreMessage]:
    """The entries as the messages of a session; ``family`` is whose native parts there are."""
    names: dict[str, str] = {}
    messages: list[CoreMessage] = []
    pending: list[tuple[str, str]] = []
    # Some protocols have an item for everything that a model says in one answer.
    for entry in merge_neighbours(entries, "assistant"):
        if entry.role == "assistant":
            message = _assistant(entry, len(messages))
            calls = message["metadata"].get("tool_calls", ())
            pending = [(call["id"], call["function"]["name"]) for call in calls]
            names |= dict(pending)
            messages.append(message)
        elif entry.role == "tool":
            messages += _results(entry, names, pending, family)
        else:
            messages.append(_spoken_message(entry, family))
    return messages


def _spoken_message(entry: Entry, family: str) -> CoreMessage:
    first, *rest = entry.blocks or (text_block(""),)
    if first.kind != "text":
        first, rest = text_block(""), [first, *rest]
    message: CoreMessage = {"role": entry.role, "content": first.value["text"], "metadata": {}}
    if entry.role == "system":
        texts = [first, *rest]
        return {**message, "content": "\n\n".join(block.value["text"] for block in texts)}
    if rest:
        message["multipartContent"] = [_part(block, family) for block in rest]
    return message


def _part(block: Block, family: str) -> MultipartContent:
    value = dict(block.value)
    if block.kind == "text":
        return {"type": "text", "content": {"text": value["text"]}, "metadata": {}}
    if block.kind == "media":
        kind, media_type = value.pop("kind"), value.pop("media_type", None)
        known = {"media_type": media_type} if media_type else {}
        return {"type": kind, "content": value, "metadata": known}
    return {"type": "native", "content": {"part": value["part"]}, "metadata": {"format": family}}


def _assistant(entry: Entry, number: int) -> CoreMessage:
    metadata: dict[str, Any] = {}
    thoughts = [block.value["text"] for block in entry.blocks if block.kind == "reasoning"]
    if any(thoughts):
        metadata["reasoning"] = "".join(thoughts)
    calls = [block.value for block in entry.blocks if block.kind == "call"]
    if calls:
        metadata["tool_calls"] = [
            {
                "id": call["id"] or f"tc_{number}_{place}",
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": call.get("text") or json.dumps(call["arguments"]),
                },
            }
            for place, call in enumerate(calls)
        ]
    text = "".join(block.value["text"] for block in entry.blocks if block.kind == "text")
    return {"role": "assistant", "content": text, "metadata": metadata}


def _results(
    entry: Entry, names: Mapping[str, str], pending: list[tuple[str, str]], family: str
) -> Iterator[CoreMessage]:
    """One message for each result; one without an id answers the first open call of its name."""
    for block in entry.blocks:
        value = block.value
        call_id = value["id"] if value["id"] in names else _open_call(pending, value["name"])
        pending[:] = [call for call in pending if call[0] != call_id]
        yield _result(value, call_id or value["id"] or "", names, family)


def _open_call(pending: Iterable[tuple[str, str]], name: str | None) -> str | None:
    return next((id for id, called in pending if name is None or called == name), None)


def _result(
    value: Mapping[str, Any], call_id: str, names: Mapping[str, str], family: str
) -> CoreMessage:
    texts = [block.value["text"] for block in value["content"] if block.kind == "text"]
    text = "".join(texts)
    envelope: dict[str, Any] = {"type": "tool_result", "text": text}
    if len(texts) != len(value["content"]):
        envelope["content"] = [_part(block, family) for block in value["content"]]
    metadata = {"tool_call_id": call_id, "tool_name": names.get(call_id) or value["name"] or ""}
    if value.get("error"):
        metadata["error"] = True
    message: dict[str, Any] = {
        "role": "tool",
        "content": text,
        "metadata": metadata,
        "toolResult": envelope,
    }
    return message  # type: ignore[return-value]
