"""What Gemini answers, streamed or whole: accumulated as native parts, then told as core messages.

Native parts are kept as they came: consecutive text without a signature is one part, and nothing is
moved across a thought, a signature or another part. A stream sends the signature of a text after
it, on an empty part; it is put where an answer in one piece has it. It must not know requests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agent_hookspecs import Config, CoreMessage, NativeMessage, redact
from agent_hookspecs.authoring import Partial, plain, unique_call_id
from agent_hookspecs.tool_interop import JsonObject, WireNames, content_part
from agent_host_google.calls import (
    CALL_IDS,
    call_ids,
    calls_in,
    core_call,
    function_call,
)
from agent_host_google.errors import MALFORMED, blocked, raise_chunk_error, raise_for_finish
from agent_host_google.media import core_part
from agent_host_google.usage import usage_of

__all__ = ["Answer", "core_message"]

_SIGNATURES = ("thoughtSignature", "thought_signature")
#: The core's name for what is wrong with calls, by their ids.
CALL_PROBLEMS = "tool_call_errors"
#: Of a candidate; whatever else it says is kept with the message.
_READ = frozenset({"content", "finishReason", "index"})
_NOTHING: JsonObject = {}


class Answer:
    """One answer on its way; ``text``, ``thought`` and ``new_calls`` are the last chunk's."""

    __slots__ = (
        "_about",
        "_call_ids",
        "_candidate",
        "_has_said",
        "_names",
        "_open",
        "_open_rest",
        "_parts",
        "finish",
        "new_calls",
        "taken",
        "text",
        "thought",
        "usage",
    )

    def __init__(self, names: WireNames, config: Config) -> None:
        self._names = names
        #: All parts; those of text grow until another begins.
        self._parts: list[JsonObject] = []
        #: The text part that grows, and what it holds besides text.
        self._open: Partial | None = None
        self._open_rest: JsonObject = _NOTHING
        #: The ids of its calls, in order.
        self._call_ids: dict[str, None] = {}
        #: Whether there is anything to show.
        self._has_said = False
        self.usage: JsonObject | None = None
        #: What it says of itself; it counts all that is kept of the answer.
        self._about = Partial.of_answer(config)
        self._candidate: JsonObject = {}
        #: The ids of the calls in the history before the answer.
        self.taken: Collection[str] = ()
        self.finish: str | None = None
        self.text = ""
        self.thought = ""
        self.new_calls: list[JsonObject] = []

    def read(self, chunk: Any) -> None:
        """Take one decoded chunk."""
        self.text = self.thought = ""
        if self.new_calls:
            self.new_calls = []
        if type(chunk) is not dict:
            if isinstance(chunk, list):
                self._read_all(chunk)
            return
        usage = chunk.get("usageMetadata")
        if type(usage) is dict and ("totalTokenCount" in usage or self.usage is None):
            # Each report is of everything so far.
            self.usage = usage
        if not self._about:
            self._note(chunk)
        candidates = chunk.get("candidates")
        candidate = candidates[0] if type(candidates) is list and candidates else None
        if type(candidate) is not dict or candidate.get("index"):
            candidate = _first_candidate(candidates)
            if candidate is None:
                _refuse(chunk)
                return
        content = candidate.get("content")
        parts = content.get("parts") if type(content) is dict else None
        if type(parts) is list:
            if len(parts) == 1 and type(parts[0]) is dict:
                self._take(parts[0])
            else:
                self._take_all(parts)
        if len(candidate) > 2 or "index" not in candidate:
            self._read_ending(candidate)

    def _read_ending(self, candidate: JsonObject) -> None:
        """What a candidate says besides its content, which is little before its end."""
        for key in candidate:
            if key not in _READ:
                if key not in self._candidate:
                    self._about.keep(candidate[key])
                self._candidate[key] = candidate[key]
        reason = candidate.get("finishReason")
        if reason and isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
            self.finish = reason

    def check(self) -> None:
        """Raise if the answer ended in a way that makes it none."""
        if self.finish is not None and self.finish != "STOP":
            called = bool(self._call_ids)
            said = self._has_said and not called
            raise_for_finish(self.finish, self._candidate, said=said, called=called)

    def finished(self) -> NativeMessage:
        """The whole answer as a native message."""
        about = dict(self._about)
        if self.finish:
            about["finish_reason"] = self.finish
        if self.usage:
            about["usage"] = self.usage
        if self._call_ids:
            about[CALL_IDS] = [*self._call_ids]
            if self.finish in MALFORMED:
                told = f": {redact(self.finish_message)[:500]}" if self.finish_message else ""
                problem = f"Gemini gave up on it, {self.finish}{told}"
                about[CALL_PROBLEMS] = dict.fromkeys(self._call_ids, problem)
        if self._candidate:
            about["candidate"] = self._candidate
        parts = [plain(part) for part in self._parts if not _is_empty(part)]
        return {"role": "model", "parts": parts, **({"_metadata": about} if about else {})}

    @property
    def begun(self) -> bool:
        """Whether there is anything of an answer."""
        return self.finish is not None or bool(self._parts)

    @property
    def finish_message(self) -> str:
        """What Gemini says about the end of the answer; mostly nothing."""
        message = self._candidate.get("finishMessage")
        return message if isinstance(message, str) else ""

    def _read_all(self, chunks: list[Any]) -> None:
        """An answer in pieces that came as one document."""
        texts, thoughts, calls = [], [], []
        for chunk in chunks:
            self.read(chunk)
            texts.append(self.text)
            thoughts.append(self.thought)
            calls += self.new_calls
        self.text, self.thought, self.new_calls = "".join(texts), "".join(thoughts), calls

    def _take_all(self, parts: list[Any]) -> None:
        """Several parts of one chunk."""
        texts, thoughts = [], []
        for part in parts:
            if type(part) is dict:
                self.text = self.thought = ""
                self._take(part)
                texts.append(self.text)
                thoughts.append(self.thought)
        self.text, self.thought = "".join(texts), "".join(thoughts)

    def _note(self, chunk: JsonObject) -> None:
        for key, name in (("responseId", "response_id"), ("modelVersion", "model")):
            if isinstance(value := chunk.get(key), str) and value:
                self._about[name] = value

    def _take(self, part: JsonObject) -> None:
        text = part.get("text")
        if type(text) is not str:
            self._open = None
            self._parts.append(self._about.keep(part))
            self._has_said = self._has_said or _is_said(part)
            call = function_call(part)
            if call is not None:
                self._take_call(call)
            return
        rest = (
            _NOTHING
            if len(part) == 1
            else {key: value for key, value in part.items() if key != "text"}
        )
        grown = self._open
        if grown is not None and (rest is self._open_rest or rest == self._open_rest):
            grown.append_text("text", text)
        elif grown is not None and not text and not self._open_rest and _is_signature(rest):
            grown.update(rest)
            self._open = None
        else:
            grown = Partial(self._about.keep({"text": text, **rest}))
            self._parts.append(grown)
            # A signature is of its own part alone: what follows is another one.
            signed = any(key in rest for key in _SIGNATURES)
            self._open, self._open_rest = (None if signed else grown), rest
        if rest and rest.get("thought") is True:
            self.thought = text
        elif text:
            self.text = text
            self._has_said = True

    def _take_call(self, call: JsonObject) -> None:
        identity = unique_call_id(call.get("id"), self.taken, self._call_ids)
        self._call_ids[identity] = None
        self.new_calls.append(core_call(call, identity, self._names))


def core_message(native: NativeMessage, names: WireNames) -> CoreMessage:
    """A native message as the core holds it."""
    role, parts = native.get("role"), [p for p in native.get("parts") or () if isinstance(p, dict)]
    if any("functionResponse" in part for part in parts):
        return _tool_message(parts, names)
    texts = [part["text"] for part in parts if _is_said(part) and "text" in part]
    message: CoreMessage = {
        "role": "assistant" if role == "model" else "system" if role == "system" else "user",
        "content": "".join(texts),
        "metadata": _metadata(native, parts, names) if role == "model" else {},
    }
    if media := [made for part in parts if (made := core_part(part)) is not None]:
        shown = [content_part("text", {"text": message["content"]})] if message["content"] else []
        message["multipartContent"] = [*shown, *media]
    return message


def _metadata(native: NativeMessage, parts: list[JsonObject], names: WireNames) -> dict[str, Any]:
    about = native.get("_metadata") or {}
    metadata: dict[str, Any] = {}
    paired = zip(calls_in(native), call_ids(native), strict=False)
    if calls := [core_call(call, identity, names) for call, identity in paired]:
        metadata["tool_calls"] = calls
    thoughts = [part.get("text") for part in parts if part.get("thought") is True]
    if reasoning := "".join(text for text in thoughts if isinstance(text, str)):
        metadata["reasoning"] = reasoning
    if about.get(CALL_PROBLEMS):
        metadata[CALL_PROBLEMS] = plain(about[CALL_PROBLEMS])
    if isinstance(about.get("usage"), dict):
        metadata["usage"] = usage_of(plain(about["usage"]))
    for key in ("finish_reason", "response_id", "model"):
        if about.get(key):
            metadata[key] = about[key]
    if about.get("candidate"):
        metadata["candidate"] = plain(about["candidate"])
    return metadata


def _tool_message(parts: list[JsonObject], names: WireNames) -> CoreMessage:
    response = next(part["functionResponse"] for part in parts if "functionResponse" in part)
    given = response.get("response") or {}
    value = given.get("result", given.get("error", given.get("output", "")))
    name = names.decode(str(response.get("name", "")))
    text = value if isinstance(value, str) else str(value)
    metadata = {"tool_name": name, "tool_call_id": response.get("id") or ""}
    message: CoreMessage = {"role": "tool", "content": text, "metadata": metadata}
    media = [made for part in parts if (made := core_part(part)) is not None]
    if media:
        message["multipartContent"] = media
    return message


def _first_candidate(candidates: object) -> JsonObject | None:
    """The first of the answers; further ones are never asked for."""
    if isinstance(candidates, list):
        for candidate in candidates:
            if type(candidate) is dict and not candidate.get("index"):
                return candidate
    return None


def _refuse(chunk: JsonObject) -> None:
    """Raise if a chunk without an answer says why there is none."""
    if chunk.get("error"):
        raise_chunk_error(chunk["error"])
    feedback = chunk.get("promptFeedback")
    reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if isinstance(feedback, dict) and isinstance(reason, str) and reason:
        told = feedback.get("blockReasonMessage")
        raise blocked(reason, told, feedback.get("safetyRatings"))


def _is_signature(rest: JsonObject) -> bool:
    return len(rest) == 1 and any(key in rest for key in _SIGNATURES)


def _is_said(part: JsonObject) -> bool:
    """Whether the part is something to show: text that is no thought, or a medium."""
    if "text" in part:
        return bool(part["text"]) and part.get("thought") is not True
    return "inlineData" in part or "fileData" in part


def _is_empty(part: JsonObject) -> bool:
    """Whether the part says nothing at all; the API refuses such parts in a history."""
    return part.get("text") == "" and part.keys() <= {"text", "thought"}
