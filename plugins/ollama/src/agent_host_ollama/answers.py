"""What Ollama answers, streamed or whole: one native message, then told as a core message.

The message keeps every field it came with: text, thinking, calls and whatever is new. It must not
know requests, nor how other APIs stream: calls arrive whole here and as objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agent_hookspecs import Config, CoreMessage, NativeMessage, Usage
from agent_hookspecs.authoring import Partial, plain, unique_call_id
from agent_hookspecs.tool_interop import JsonObject, WireNames, content_part
from agent_host_ollama.calls import CALL_IDS, callable_calls, core_call
from agent_host_ollama.errors import raise_stream_error
from agent_host_ollama.images import picture_of

__all__ = ["Answer", "core_message"]

#: Counts and durations of the last line.
_COUNTS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)
_READ = frozenset({"role", "content", "thinking", "tool_calls", "images"})


class Answer:
    """One answer on its way; ``text``, ``thinking`` and ``new_calls`` are the last chunk's."""

    __slots__ = (
        "_about",
        "_call_ids",
        "_calls",
        "_images",
        "_message",
        "_names",
        "begun",
        "done",
        "new_calls",
        "taken",
        "text",
        "thinking",
    )

    def __init__(self, names: WireNames, config: Config) -> None:
        self._names = names
        #: The message without calls and images; it counts all that is kept of the answer.
        self._message = Partial.of_answer(config)
        self._calls: list[Any] = []
        #: The ids of its calls, in order.
        self._call_ids: dict[str, None] = {}
        self._images: list[Any] = []
        self._about: JsonObject = {}
        #: The ids of the calls in the history before the answer.
        self.taken: Collection[str] = ()
        self.begun = False
        self.done = False
        self.text = ""
        self.thinking = ""
        self.new_calls: list[JsonObject] = []

    def read(self, chunk: Any) -> None:
        """Take one decoded line."""
        self.text = self.thinking = ""
        if self.new_calls:
            self.new_calls = []
        if type(chunk) is not dict:
            return
        if chunk.get("error"):
            raise_stream_error(chunk["error"])
        message = chunk.get("message")
        if type(message) is dict:
            self.begun = True
            text = message.get("content")
            if text and type(text) is str:
                self.text = text
                self._message.append_text("content", text)
            if len(message) > 2:
                self._read_more(message)
        if chunk.get("done"):
            self._end(chunk)

    def finished(self) -> NativeMessage:
        """The whole answer as a native message."""
        said = plain(self._message)
        message: NativeMessage = {"role": "assistant", "content": said.pop("content", "")}
        if "thinking" in said:
            message["thinking"] = said.pop("thinking")
        if self._calls:
            message["tool_calls"] = list(self._calls)
        if self._images:
            message["images"] = list(self._images)
        about = {**self._about, **({CALL_IDS: [*self._call_ids]} if self._call_ids else {})}
        return {**message, **said, **({"_metadata": about} if about else {})}

    def _read_more(self, message: JsonObject) -> None:
        thinking = message.get("thinking")
        if thinking and isinstance(thinking, str):
            self.thinking = thinking
            self._message.append_text("thinking", thinking)
        if isinstance(calls := message.get("tool_calls"), list):
            known = [call for call in calls if isinstance(call, dict)]
            self._calls += [self._message.keep(call) for call in known]
            for call in callable_calls(calls):
                identity = unique_call_id(call.get("id"), self.taken, self._call_ids)
                self._call_ids[identity] = None
                self.new_calls.append(core_call(call, identity, self._names))
        if isinstance(images := message.get("images"), list):
            self._images += [self._message.keep(image) for image in images]
        for key, value in message.items():
            if key not in _READ:
                kept = key in self._message
                self._message[key] = value if kept else self._message.keep(value)

    def _end(self, chunk: JsonObject) -> None:
        self.begun = self.done = True
        counts = {key: chunk[key] for key in _COUNTS if chunk.get(key) is not None}
        told = {"model": chunk.get("model"), "finish_reason": chunk.get("done_reason")}
        self._about = {key: value for key, value in told.items() if value}
        if "eval_count" in counts or "prompt_eval_count" in counts:
            self._about["usage"] = counts


def core_message(native: NativeMessage, names: WireNames) -> CoreMessage:
    """A native message as the core holds it."""
    role, about = native.get("role"), native.get("_metadata") or {}
    content = native.get("content")
    metadata: dict[str, Any] = {}
    if role == "tool":
        name = names.decode(str(native.get("tool_name") or ""))
        metadata = {"tool_name": name, "tool_call_id": native.get("tool_call_id") or ""}
    pairs = zip(callable_calls(native.get("tool_calls")), about.get(CALL_IDS) or (), strict=False)
    if calls := [core_call(call, identity, names) for call, identity in pairs]:
        metadata["tool_calls"] = calls
    if native.get("thinking"):
        metadata["reasoning"] = native["thinking"]
    if isinstance(about.get("usage"), dict):
        metadata["usage"] = _usage(dict(about["usage"]))
    metadata |= {key: about[key] for key in ("finish_reason", "model") if about.get(key)}
    message: CoreMessage = {
        "role": role if role in ("system", "user", "tool") else "assistant",
        "content": content if isinstance(content, str) else "",
        "metadata": metadata,
    }
    if pictures := [picture_of(image) for image in native.get("images") or () if image]:
        shown = [content_part("text", {"text": message["content"]})] if message["content"] else []
        message["multipartContent"] = [*shown, *pictures]
    return message


def _usage(raw: JsonObject) -> Usage:
    """The counts of one answer; thinking is counted with the rest of the output."""
    usage: Usage = {"raw": raw}
    if isinstance(raw.get("prompt_eval_count"), int):
        usage["input"] = raw["prompt_eval_count"]
    if isinstance(raw.get("eval_count"), int):
        usage["output"] = raw["eval_count"]
    return usage
