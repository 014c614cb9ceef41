"""From chunks and bodies of the chat format to native messages.

Owns what the format's servers send beyond text, calls and reasoning, and the finished message. That
loses nothing: what the format sends back stands in the message, everything else below
``_metadata``. It must not know requests, knobs or tools' declarations. Merging is the contract's;
what is here runs for chunks that are more than text or a piece of a call, and its cost depends on
the chunk alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from agent_hookspecs import Finish, NativeMessage
from agent_hookspecs.authoring import (
    AccumulatorStreamingMixin,
    Partial,
    finish_tool_calls,
    plain,
)
from agent_hookspecs.errors import ProtocolError, ServerError
from agent_host_openai_compatible.errors import error_in, reported_error
from agent_host_openai_compatible.usage import normalised_usage

__all__ = ["ChatStreaming", "final_message", "told_in"]

#: Keys of a chunk that say nothing worth keeping beyond what is read from them.
_ENVELOPE = frozenset({"choices", "usage", "id", "object", "created", "model", "obfuscation", "p"})
_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "usage"})
_REASONING_KEYS = ("reasoning", "reasoning_content")
#: Keys of a delta that the contract's accumulator merges.
_MERGED = frozenset({"content", "role", "refusal", "tool_calls", "reasoning_details"})
#: Where some servers keep the usage of a stream, if not in the chunk itself.
_USAGE_HOLDERS = ("x_groq",)
#: Fields of a spoken answer that arrive in pieces.
_GROWING = frozenset({"data", "transcript"})

#: Keys of a message in which servers sign their reasoning, and those of the signatures there.
_SIGNED = ("reasoning_details", "extra_content")
_SIGNATURES = ("signature", "thought_signature", "data")

#: What a message says of its answer besides its usage.
_NOTED = ("finish_reason", "response_id", "model")

# Reads a key that is only ever set, never appended to, without asking for text to be joined.
_stored = dict.get


class ChatStreaming(AccumulatorStreamingMixin):
    """Reads the chunks of any server of the format.

    Pieces of calls and reasoning wait in the state for the extensions that show them. What is said
    about an answer is kept under ``about`` of the accumulator.
    """

    name: str
    #: The format's own words, and those that servers and gateways pass on from their models.
    finish_reasons: Mapping[str, Finish] = {
        **AccumulatorStreamingMixin.finish_reasons,
        "end_turn": "stop",
        "eos": "stop",
        "eos_token": "stop",
        "stop_sequence": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "max_output_tokens": "length",
        "model_length": "length",
        "model_context_window_exceeded": "length",
        "safety": "blocked",
        "sensitive": "blocked",
        "insufficient_system_resource": "error",
        "network_error": "error",
    }
    # Whatever role a server names, the answer is the assistant's.
    answer_role: ClassVar[str] = "assistant"
    accumulates: ClassVar[Collection[str]] = ("tool_calls", "reasoning")
    waiting_keys: ClassVar[Mapping[str, str]] = {
        "tool_calls": "new_calls",
        "reasoning": "new_reasoning",
    }

    def check_chunk(self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None) -> None:
        error = error_in(chunk, event)
        if error is not None:
            raise reported_error(error, provider=self.name)
        if choice.get("finish_reason") == "error":
            raise _ended_in_error(choice, self.name)

    def read_content(self, content: object, accumulated: Partial) -> str:
        parts: list[Partial] | None = _stored(accumulated, "parts")
        if isinstance(content, str):
            if content and parts is not None:
                _add_part({"type": "text", "text": content}, parts, accumulated)
            return content
        if not isinstance(content, list):
            return ""
        if parts is None:
            before = accumulated.get("content")
            parts = accumulated["parts"] = [Partial(type="text", text=before)] if before else []
        given = [part for part in content if isinstance(part, dict)]
        for part in given:
            _add_part(part, parts, accumulated)
        texts = [part.get("text") for part in given if part.get("type") == "text"]
        return "".join(each for each in texts if isinstance(each, str))

    def merge_more(
        self, delta: dict[str, Any], accumulated: Partial, fragment: dict[str, Any]
    ) -> None:
        for key, value in delta.items():
            if value is None or key in _MERGED:
                continue
            if key in _REASONING_KEYS and type(value) is str:
                if value:
                    _about(accumulated).setdefault("reasoning_keys", {})[key] = True
            elif key != "function_call" or delta.get("tool_calls"):
                _keep(_about(accumulated).setdefault("unsent", {}), key, value, accumulated)
        details = delta.get("reasoning_details")
        if details and "reasoning" not in fragment and (text := told_in(details)):
            # Nowhere else in this chunk, and to be read in the blocks later on.
            fragment["reasoning"] = text

    def note_chunk(
        self, chunk: dict[str, Any], choice: dict[str, Any], accumulated: Partial
    ) -> None:
        about = _about(accumulated)
        reported = chunk.get("usage") or choice.get("usage")
        for key in _USAGE_HOLDERS:
            if not reported and key in chunk and (usage := _usage_in(chunk[key])):
                reported = accumulated["usage"] = usage
        ends = choice.get("finish_reason") or not choice.get("delta")
        if reported or ends or "chosen" not in about:
            # What is said about an answer stands in its first chunk or with its end.
            _note(chunk, choice, about, accumulated)
        elif choice.get("logprobs"):
            _keep(about.setdefault("choice", {}), "logprobs", choice["logprobs"], accumulated)


def _about(accumulated: Partial) -> dict[str, Any]:
    about: dict[str, Any] | None = _stored(accumulated, "about")
    if about is None:
        about = accumulated["about"] = {}
    return about


def _usage_in(holder: object) -> dict[str, Any] | None:
    usage = holder.get("usage") if isinstance(holder, dict) else None
    return usage if isinstance(usage, dict) else None


def _note(
    chunk: dict[str, Any], choice: dict[str, Any], about: dict[str, Any], accumulated: Partial
) -> None:
    """Keep what the chunk says about the answer and nobody here reads."""
    if choice:
        about["chosen"] = True
    for key, name in (("id", "response_id"), ("model", "model")):
        value = chunk.get(key)
        if value and isinstance(value, str):
            about.setdefault(name, value)
    for key, value in chunk.items():
        if key not in _ENVELOPE and value:
            _set(about.setdefault("answer", {}), key, value, accumulated)
    for key, value in choice.items():
        if key not in _OF_CHOICE and value:
            _keep(about.setdefault("choice", {}), key, value, accumulated)


def _set(kept: dict[str, Any], key: str, value: Any, accumulated: Partial) -> None:
    """Keep the latest value of a key, of which there may be many."""
    kept[key] = value if key in kept else accumulated.keep(value)


def _add_part(part: Mapping[str, Any], parts: list[Partial], accumulated: Partial) -> None:
    """Continue the last part if it is of the same kind and grows, else begin another."""
    kind = part.get("type")
    if kind == "thinking" and isinstance(part.get("thinking"), list):
        target = parts[-1] if parts and _stored(parts[-1], "type") == kind else None
        if target is None:
            parts.append(Partial(accumulated.keep({**part, "thinking": []})))
            target = parts[-1]
        for key, value in part.items():
            if key != "thinking":
                _set(target, key, value, accumulated)
        for inner in part["thinking"]:
            if isinstance(inner, dict):
                _add_part(inner, target["thinking"], accumulated)
        return
    if kind in ("text", "thinking") and isinstance(part.get(kind), str):
        last = parts[-1] if parts and _stored(parts[-1], "type") == kind else {}
        if isinstance(last, Partial) and isinstance(_stored(last, kind), str):
            last.append_text(kind, part[kind])
            return
    parts.append(Partial(accumulated.keep(part)))


def _keep(kept: dict[str, Any], key: str, value: Any, accumulated: Partial) -> None:
    """Keep a field nobody here reads: lists and spoken answers grow, the rest is replaced."""
    before = kept.get(key)
    if isinstance(value, list):
        if value and isinstance(before, list):
            before.extend(accumulated.keep(value))
        elif value:
            kept[key] = list(accumulated.keep(value))
    elif isinstance(value, dict):
        into = before if isinstance(before, Partial) else Partial(accumulated.keep({}))
        kept[key] = into
        for name, item in value.items():
            grows = name in _GROWING and isinstance(_stored(into, name, ""), str)
            if grows and isinstance(item, str):
                into.append_text(name, item)
            elif item is not None:
                _keep(into, name, item, accumulated)
    elif value != "":
        _set(kept, key, value, accumulated)


def _ended_in_error(choice: dict[str, Any], provider: str) -> Exception:
    if error := choice.get("error"):
        return reported_error(error, provider=provider)
    return ServerError(
        f"{provider} broke the answer off with the finish reason 'error'",
        provider=provider,
        hint="try again later",
    )


def told_in(details: object) -> str:
    """The text that reasoning blocks tell; what is encrypted tells none."""
    entries = details if isinstance(details, list) else [details]
    texts = (each.get("text") or each.get("summary") for each in entries if isinstance(each, dict))
    return "".join(text for text in texts if isinstance(text, str))


def final_message(
    accumulated: object,
    *,
    provider: str,
    replayed: Sequence[str],
    taken: Collection[str],
    replays_reasoning: bool | None = None,
    with_reasoning: bool = False,
) -> NativeMessage:
    """The finished native message.

    In it stands what is sent back with the history; ``replayed`` names the keys, beyond those of
    every server, that are. ``replays_reasoning`` says whether reasoning blocks are too, None where
    they are signed, and ``with_reasoning`` adds ``reasoning_content``. All else that came is kept
    below ``_metadata``.
    """
    message = accumulated if type(accumulated) is Partial else Partial()
    about = _about(message)
    if not about.get("chosen"):
        raise ProtocolError(
            f"{provider} answered without any choice",
            provider=provider,
            hint="check that the base URL is that of a chat completions API",
        )
    calls = finish_tool_calls(_stored(message, "tool_calls"), taken=taken)
    rest = _rest(message, about)
    if with_reasoning and (thoughts := message.get("reasoning")):
        replayed = (*replayed, "reasoning_content")
        rest.setdefault("reasoning_content", thoughts)
    if replays_reasoning is not False:
        replayed = (
            *replayed,
            *(key for key in _SIGNED if replays_reasoning or _is_signed(rest.get(key))),
        )
    final: NativeMessage = {"role": "assistant", "content": _content(message, bool(calls))}
    for key in replayed:
        if key == "audio" and isinstance(rest.get(key), dict):
            # Sent back by id; the sound itself stays here.
            if spoken := rest[key].get("id"):
                final[key] = {"id": spoken}
        elif key in rest:
            final[key] = rest.pop(key)
    if calls:
        final["tool_calls"] = calls
    known = {**about, "finish_reason": _stored(message, "finish_reason")}
    noted = {key: known[key] for key in _NOTED if known.get(key)}
    if usage := _stored(message, "usage"):
        noted["usage"] = normalised_usage(usage)
    for key, value in (("unsent", rest), ("choice", about.get("choice"))):
        if value:
            noted[key] = plain(value)
    if "answer" in about:
        noted["answer"] = about["answer"]
    if noted:
        final["_metadata"] = noted
    return final


def _is_signed(value: object) -> bool:
    """Whether there is a signature, or something encrypted, anywhere in it."""
    if isinstance(value, list):
        return any(map(_is_signed, value))
    if not isinstance(value, Mapping):
        return False
    signed = any(value.get(key) for key in _SIGNATURES)
    return signed or any(map(_is_signed, value.values()))


def _rest(message: Partial, about: dict[str, Any]) -> dict[str, Any]:
    """Everything the message has beside its content and its calls, under the wire's names."""
    rest: dict[str, Any] = {}
    if refusal := message.get("refusal"):
        rest["refusal"] = refusal
    for key in about.get("reasoning_keys", ()):
        rest[key] = message.get("reasoning")
    if details := plain(_stored(message, "reasoning_details")):
        rest["reasoning_details"] = details
    rest.update(plain(about.get("unsent") or {}))
    return rest


def _content(message: Partial, has_calls: bool) -> Any:
    parts = plain(_stored(message, "parts") or [])
    if any(part.get("type") != "text" for part in parts):
        return parts
    text = message.get("content") or ""
    return None if not text and (has_calls or message.get("refusal")) else text
