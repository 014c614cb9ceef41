"""A native history as servers of the chat format accept it.

Owns the rules by which they refuse a conversation. The natives stay as they are; files that they
refer to are put in at the very end, so that nothing keeps them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Any

from agent_hookspecs import Context, NativeMessage
from agent_hookspecs.authoring import (
    Rendering,
    expand_attachments,
    refers_to_files,
    render_history,
)
from agent_host_openai_compatible.sounds import is_sound, sendable_sound

__all__ = ["outgoing_messages"]

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_SHORT_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_UNANSWERED = "[no result: the run was interrupted before the tool had ended]"


def outgoing_messages(
    natives: list[NativeMessage],
    context: Context | None = None,
    quirks: Collection[str] = (),
    *,
    attachments_root: str | None = None,
) -> list[NativeMessage]:
    """The history as the format accepts it.

    ``_metadata`` never leaves. Files are put in. Ids of calls that were made elsewhere are written
    as servers accept them. An assistant message that says nothing is left out, and a call that was
    never answered gets a result that says so, because servers refuse both.
    """
    short, alternating = "short_call_ids" in quirks, "alternating_roles" in quirks
    history = render_history(_Messages, natives, context, short, alternating)
    sent = history.messages
    sent += history.missing_results()
    for place in history.with_files:
        [sent[place]] = expand_attachments([sent[place]], root=attachments_root, note=_note)
    for place in history.with_sounds:
        parts = sent[place]["content"]
        ready = [sendable_sound(part, quirks) if is_sound(part) else part for part in parts]
        sent[place] = {**sent[place], "content": ready}
    return sent


class _Messages(Rendering):
    """The messages of a history so far, and the calls in them that wait for a result."""

    def __init__(self, short_ids: bool, alternating: bool) -> None:
        self._short_ids = short_ids
        self._alternating = alternating
        self._new_ids: dict[str, str] = {}
        self._open_calls: list[str] = []
        self.messages: list[NativeMessage] = []
        #: The places of messages that refer to files, and of those with sounds, each once.
        self.with_files: dict[int, None] = {}
        self.with_sounds: dict[int, None] = {}

    def add(self, native: NativeMessage) -> None:
        notes = native.pop("_metadata", None)
        if _is_empty(native):
            return
        if isinstance(notes, dict) and notes.get("rebuilt"):
            self._rename_calls(native)
        self._put_new_ids(native)
        if native.get("role") == "tool":
            answered = native.get("tool_call_id")
            self._open_calls = [call_id for call_id in self._open_calls if call_id != answered]
        else:
            self.messages += self.missing_results()
            self._open_calls = [
                call["id"]
                for call in native.get("tool_calls") or ()
                if isinstance(call, dict) and isinstance(call.get("id"), str)
            ]
        if self._alternating and self.messages and _joins(self.messages[-1], native):
            native = _joined(self.messages.pop(), native)
        if refers_to_files(native):
            self.with_files[len(self.messages)] = None
        if isinstance(native.get("content"), list) and any(map(is_sound, native["content"])):
            self.with_sounds[len(self.messages)] = None
        self.messages.append(native)

    def missing_results(self) -> list[NativeMessage]:
        """Results for the calls that have none, to be put after those that there are."""
        return [
            {"role": "tool", "tool_call_id": call_id, "content": _UNANSWERED}
            for call_id in self._open_calls
        ]

    def _rename_calls(self, native: NativeMessage) -> None:
        """Find legal ids for foreign calls."""
        for call in native.get("tool_calls") or ():
            known = call.get("id") or ""
            if not (_SHORT_CALL_ID if self._short_ids else _CALL_ID).fullmatch(known):
                digest = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()
                self._new_ids[known] = digest[:9] if self._short_ids else f"call_{digest[:24]}"

    def _put_new_ids(self, native: NativeMessage) -> None:
        if not self._new_ids:
            return
        if native.get("tool_call_id") in self._new_ids:
            native["tool_call_id"] = self._new_ids[native["tool_call_id"]]
        for call in native.get("tool_calls") or ():
            if (known := call.get("id") or "") in self._new_ids:
                call["id"] = self._new_ids[known]


def _note(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_empty(native: NativeMessage) -> bool:
    if native.get("role") != "assistant" or native.get("content"):
        return False
    return not any(value for key, value in native.items() if key not in ("role", "content"))


def _joins(before: NativeMessage, message: NativeMessage) -> bool:
    """Whether two messages are one to a server that wants roles to alternate."""
    plain = not ({"tool_calls", "tool_call_id"} & (message.keys() | before.keys()))
    return plain and before.get("role") == message.get("role")


def _joined(before: NativeMessage, message: NativeMessage) -> NativeMessage:
    contents = (before.get("content"), message.get("content"))
    return {**before, **message, "content": _joined_content(*contents)}


def _joined_content(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}" if first and second else first or second
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
