"""Answers of the API: from events, or one whole body, to a native message; and to a core message.

An answer grows in constant time per event: text is appended and joined at the end, and the input of
a call is parsed once, when the answer is complete. It must not know requests or plugins.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Config, CoreMessage, MultipartContent, NativeMessage
from agent_hookspecs.authoring import Partial, plain
from agent_hookspecs.tool_interop import compact_json, parse_tool_arguments
from agent_host_anthropic.found import found_names
from agent_host_anthropic.media import part_of_block
from agent_host_anthropic.tool_format import REGISTRY, wire_id
from agent_host_anthropic.usage import merge_usage, normalised_usage

__all__ = ["Answer", "core_message"]

#: Under which a block keeps the text of its input while it grows.
_INPUT = "_input"
#: What a message says of itself besides its role and content.
_ABOUT = ("type", "role", "content", "usage", "id", "model", "stop_reason")
#: Reasons to stop that leave the last block unfinished.
_CUT = ("max_tokens", "model_context_window_exceeded")
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


class Answer:
    """One answer as far as it has come. Blocks are told apart by their index."""

    __slots__ = ("_about", "_all", "_last", "_latest", "_open", "ended", "started", "usage")

    def __init__(self, config: Config) -> None:
        #: What it says of itself; it counts all that is kept of the answer.
        self._about = Partial.of_answer(config)
        #: Every block with its index; a server may use an index again for another block.
        self._all: list[tuple[int, Partial]] = []
        self._open: dict[int, Partial] = {}
        self._latest: Partial | None = None
        #: The highest index so far.
        self._last = -1
        #: What was reported of it so far.
        self.usage: dict[str, Any] = {}
        self.started = False
        #: The protocol's end was seen, or a reason to stop, after which no content comes.
        self.ended = False

    def begin(self, message: object) -> str:
        """Take ``message_start``, or a whole message; gives the text that it brings."""
        self.started = True
        if not isinstance(message, Mapping):
            return ""
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        texts = [self.open(index, block) for index, block in enumerate(blocks)]
        self.learn(message, message.get("usage"))
        return "".join(texts)

    def open(self, index: object, block: object) -> str:
        """Take ``content_block_start``; gives the text that it brings."""
        self.started = True
        if not isinstance(block, Mapping):
            return ""
        place = index if type(index) is int else self._last + 1
        self._last = max(self._last, place)
        self._latest = self._open[place] = Partial(self._about.keep(block))
        self._all.append((place, self._latest))
        text = block.get("text")
        return text if block.get("type") == "text" and isinstance(text, str) else ""

    def grow(self, index: object, delta: dict[str, Any]) -> str:
        """Take the delta of a block; gives the text that it brings."""
        block = self._open.get(index) if type(index) is int else self._latest
        if block is None:
            # Its beginning never came; the kind of what comes says what it must have been.
            block = self._opened_late(index, delta)
        kind = delta.get("type")
        if kind == "text_delta":
            text = delta.get("text")
            if type(text) is not str:
                return ""
            block.append_text("text", text)
            return text
        if kind == "input_json_delta":
            block.append_text(_INPUT, _text(delta, "partial_json"))
        elif kind == "thinking_delta":
            block.append_text("thinking", _text(delta, "thinking"))
        elif kind == "signature_delta":
            block["signature"] = _text(delta, "signature")
        elif kind == "citations_delta":
            known = block.get("citations")
            if type(known) is not list:
                known = block["citations"] = []
            known.append(self._about.keep(delta.get("citation")))
        else:
            self._merge(block, delta)
        return ""

    def _merge(self, block: Partial, delta: dict[str, Any]) -> None:
        """Add a delta of a kind that is not known: texts grow, all else is replaced."""
        for key, value in delta.items():
            if key == "type":
                continue
            if isinstance(value, str) and isinstance(dict.get(block, key), str):
                block.append_text(key, value)
            else:
                self._set(block, key, value)

    def _set(self, kept: Partial, key: str, value: Any) -> None:
        """Keep the latest value of a key, of which there may be many."""
        kept[key] = value if key in kept else self._about.keep(value)

    def _opened_late(self, index: object, delta: dict[str, Any]) -> Partial:
        kind = str(delta.get("type") or "")
        types = {"thinking_delta": "thinking", "signature_delta": "thinking"}
        empty: dict[str, Any] = {"type": types.get(kind, "text")}
        empty["thinking" if empty["type"] == "thinking" else "text"] = ""
        self.open(index, empty)
        assert self._latest is not None
        return self._latest

    def learn(self, about: object, usage: object) -> None:
        """Take what a message, or ``message_delta``, says of the answer; later words count."""
        if isinstance(about, Mapping):
            for key, value in about.items():
                if key != "content":
                    self._set(self._about, key, value)
            self.ended = self.ended or bool(about.get("stop_reason"))
        if isinstance(usage, Mapping):
            for key, value in usage.items():
                if key not in self.usage:
                    self._about.keep(value)
            merge_usage(self.usage, usage)

    def native(self, names: Mapping[str, str]) -> NativeMessage:
        """The finished native message, valid to be sent again; ``names`` maps wire names to ids."""
        content: list[dict[str, Any]] = []
        problems: dict[str, str] = {}
        blocks = [block for _, block in sorted(self._all, key=lambda placed: placed[0])]
        for block in blocks:
            finished, problem = _finished(block)
            if finished.get("type") == "tool_use" and not finished.get("id"):
                # Its result has to name it.
                finished["id"] = wire_id(f"{self._about.get('id') or 'call'}_{len(content)}")
            content.append(finished)
            if block is blocks[-1] and self._about.get("stop_reason") in _CUT:
                problem = problem or _cut_short(finished)
            if problem and finished.get("type") == "tool_use":
                problems[finished["id"]] = problem
        wires = [str(block.get("name")) for block in content if block.get("type") == "tool_use"]
        wires += found_names(content)
        renamed = {wire: names[wire] for wire in wires if names.get(wire, wire) != wire}
        about = self._about
        notes: dict[str, Any] = {
            "response_id": about.get("id"),
            "model": about.get("model"),
            "finish_reason": about.get("stop_reason"),
            **{key: value for key, value in about.items() if key not in _ABOUT},
            "usage": self.usage or None,
            "tool_names": renamed or None,
            "tool_call_errors": problems or None,
        }
        metadata = {key: value for key, value in notes.items() if value is not None}
        role = about.get("role")
        sender = role if isinstance(role, str) and role else "assistant"
        return {"role": sender, "content": content, "_metadata": plain(metadata)}


def _finished(block: Partial) -> tuple[dict[str, Any], str | None]:
    """The block as it is kept, and what is wrong with its input."""
    finished: dict[str, Any] = plain(block)
    written = finished.pop(_INPUT, "")
    if "input" not in finished and finished.get("type") != "tool_use" and not written:
        return finished, None
    given = written if written.strip() else finished.get("input")
    # A call too large to be run is still one that was made.
    payload, problem = parse_tool_arguments(given, sys.maxsize)
    finished["input"] = payload or {}
    return finished, problem


def _cut_short(block: dict[str, Any]) -> str | None:
    """What is wrong with the last call of an answer that had no room for more.

    Without arguments it may be that their first character was one too many.
    """
    return "invalid_json" if block.get("type") == "tool_use" and not block["input"] else None


def _text(delta: dict[str, Any], key: str) -> str:
    value = delta.get(key)
    return value if isinstance(value, str) else ""


def core_message(native: NativeMessage) -> CoreMessage:
    """A native message as applications see it; thinking is its extension's."""
    known = native.get("_metadata")
    metadata = {
        key: value
        for key, value in (known.items() if isinstance(known, Mapping) else ())
        if key not in ("native_indices", "tool_names", "usage", "not_sent")
    }
    content = native.get("content")
    if not isinstance(content, list):
        text = content if isinstance(content, str) else ""
        return {"role": native.get("role") or "assistant", "content": text, "metadata": metadata}
    blocks = [block for block in content if isinstance(block, Mapping)]
    if native.get("role") == "user" and blocks and blocks[0].get("type") == "tool_result":
        return _tool_message(blocks[0], metadata)
    if isinstance(known, Mapping):
        _add_notes(metadata, known)
    names = known.get("tool_names") if isinstance(known, Mapping) else None
    calls = [_core_call(block, names or {}) for block in blocks if block.get("type") == "tool_use"]
    if calls:
        metadata["tool_calls"] = calls
    if found := [(names or {}).get(wire, wire) for wire in found_names(blocks)]:
        metadata["found_tools"] = found
    if server_tools := [kind for block in blocks if (kind := _server_tool(block))]:
        metadata["server_tools"] = server_tools
    if citations := [each for block in blocks for each in block.get("citations") or ()]:
        metadata["citations"] = citations
    message: CoreMessage = {
        "role": native.get("role") or "assistant",
        "content": "".join(_text(dict(b), "text") for b in blocks if b.get("type") == "text"),
        "metadata": metadata,
    }
    parts = [part for block in blocks if (part := _medium(block))]
    if parts:
        message["multipartContent"] = parts
    return message


def _add_notes(metadata: dict[str, Any], known: Mapping[str, Any]) -> None:
    usage = known.get("usage")
    if isinstance(usage, Mapping):
        # A message that was made from a core one has them normalised already.
        counts = usage if "raw" in usage else normalised_usage(dict(usage))
        # No answer takes nothing: who does not know sends zeros.
        if counts.get("input") or counts.get("output"):
            metadata["usage"] = counts
    if known.get("finish_reason") == "refusal":
        details = known.get("stop_details")
        told = details if isinstance(details, Mapping) else {}
        why = told.get("explanation") or told.get("category")
        metadata.setdefault("refusal", str(why or "the model declined to answer"))


def _core_call(block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The call in the one shape that every provider can take over."""
    wire = str(block.get("name") or "")
    arguments = compact_json(block.get("input") or {}) or "{}"
    function = {"name": names.get(wire, wire), "arguments": arguments}
    return {"id": block.get("id") or "", "type": "function", "function": function}


def _server_tool(block: Mapping[str, Any]) -> str | None:
    """The type of a block that a tool of the API's own left behind."""
    kind = str(block.get("type") or "")
    return kind if kind in _SERVER_CALLS or kind.endswith("_tool_result") else None


def _medium(block: Mapping[str, Any]) -> MultipartContent | None:
    return part_of_block(block) if block.get("type") in ("image", "document") else None


def _tool_message(block: Mapping[str, Any], metadata: dict[str, Any]) -> CoreMessage:
    view = REGISTRY.inspect_result(dict(block))
    metadata.setdefault("tool_call_id", block.get("tool_use_id") or "")
    if block.get("is_error") is True:
        metadata.setdefault("error", True)
    return {"role": "tool", "content": view.text if view else "", "metadata": metadata}
