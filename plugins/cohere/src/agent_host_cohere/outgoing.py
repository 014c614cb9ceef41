"""A native history as the API accepts it.

Owns the rules by which the API refuses a conversation. The natives stay as they are; files that
they refer to are put in at the very end, so that nothing keeps them.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import NativeMessage
from agent_hookspecs.authoring import Rendering, expand_attachments, refers_to_files

__all__ = ["Conversation"]

_UNANSWERED = "[no result: the run was interrupted before the tool had ended]"


class Conversation(Rendering):
    """The messages of a history so far, and the calls in them that wait for a result."""

    def __init__(self) -> None:
        self._system: list[NativeMessage] = []
        self._messages: list[NativeMessage] = []
        self._open_calls: list[str] = []
        #: The places of messages that refer to files, each once.
        self._with_files: dict[int, None] = {}
        #: What was left out, in words for whoever runs the request.
        self.not_sent: list[str] = []

    def add(self, native: NativeMessage) -> None:
        native.pop("_metadata", None)
        role = native.get("role")
        if role == "system":
            # The API wants instructions before everything else.
            self._system.append(native)
            return
        if role == "assistant" and not (native.get("content") or native.get("tool_calls")):
            return
        if role == "tool":
            answered = native.get("tool_call_id")
            if answered not in self._open_calls:
                self.not_sent.append(f"a tool result is not sent: no call has the id {answered!r}")
                return
            self._open_calls = [each for each in self._open_calls if each != answered]
        else:
            self._messages += self._missing_results()
            self._open_calls = [call["id"] for call in native.get("tool_calls") or ()]
        if refers_to_files(native):
            self._with_files[len(self._messages)] = None
        self._messages.append(native)

    def end(self, attachments_root: str | None) -> list[NativeMessage]:
        """The messages to send, with files and with a result for every call."""
        messages = [*self._messages, *self._missing_results()]
        for place in self._with_files:
            [messages[place]] = expand_attachments(
                [messages[place]], root=attachments_root, note=_note
            )
        return [*self._system, *messages]

    def _missing_results(self) -> list[NativeMessage]:
        return [
            {"role": "tool", "tool_call_id": call_id, "content": _UNANSWERED}
            for call_id in self._open_calls
        ]


def _note(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
