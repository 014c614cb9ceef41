"""A native history as the contents of a request.

Owns which messages stand together, where instructions go, and what stands for the signature of a
call that another model made. Files that parts refer to are read at
the very end, so that nothing keeps them.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import MultipartContent, NativeMessage
from agent_hookspecs.authoring import Rendering, expand_attachments
from agent_hookspecs.tool_interop import JsonObject, Warn
from agent_host_google.media import is_reference, native_part

__all__ = ["Conversation"]

#: What the API documents for calls that it did not make itself, such as those of another model.
_PLACEHOLDER = {"thoughtSignature": "skip_thought_signature_validator"}


class Conversation(Rendering):
    """A history so far: the parts of the instructions, and the contents."""

    def __init__(self, signs: bool = False) -> None:
        #: Whether the model wants a signature on the calls of every message.
        self._signs = signs
        self.instructions: list[JsonObject] = []
        self._contents: list[JsonObject] = []
        #: The places of contents that refer to files, each once.
        self._with_files: dict[int, None] = {}

    def add(self, native: NativeMessage) -> None:
        notes = native.get("_metadata")
        role, parts = native.get("role") or "user", native.get("parts") or []
        if role == "system":
            self.instructions += parts
            return
        if not parts:
            return
        if self._signs and role == "model":
            parts = _with_placeholder(parts)
        contents = self._contents
        if contents and _is_result(parts) and _is_result(contents[-1]["parts"]):
            # Results of one turn's calls in one content, as the API wants them; media after them.
            before = contents.pop()
            role, parts = before["role"], [*before["parts"], *parts]
            parts.sort(key=lambda part: "functionResponse" not in part)
        if isinstance(notes, dict) and notes.get("files"):
            self._with_files[len(contents)] = None
        contents.append({"role": role, "parts": parts})

    def end(self, attachments_root: Any, warn: Warn) -> list[JsonObject]:
        """The contents with the data of files; nothing can be added afterwards."""
        self.instructions = [_with_data(each, attachments_root, warn) for each in self.instructions]
        for place in self._with_files:
            content = self._contents[place]
            parts = [_with_data(part, attachments_root, warn) for part in content["parts"]]
            self._contents[place] = {**content, "parts": parts}
        return self._contents


def _is_result(parts: list[Any]) -> bool:
    return "functionResponse" in parts[0]


def _with_placeholder(parts: list[Any]) -> list[Any]:
    """The parts with the first of their calls signed; themselves if one is, or there is none."""
    calls = [part for part in parts if isinstance(part, dict) and "functionCall" in part]
    if not calls or any(part.get("thoughtSignature") for part in calls):
        return parts
    return [{**part, **_PLACEHOLDER} if part is calls[0] else part for part in parts]


def _with_data(part: Any, root: Any, warn: Warn) -> Any:
    if not is_reference(part):
        return part

    def note(text: str) -> dict[str, Any]:
        warn(text.strip("[]"))
        return {"type": "text", "content": {"text": text}}

    [expanded] = expand_attachments([part], root=root, note=note)
    held: MultipartContent = {
        "type": expanded["type"],
        "content": expanded["content"],
        "metadata": expanded.get("metadata") or {},
    }
    return native_part(held)
