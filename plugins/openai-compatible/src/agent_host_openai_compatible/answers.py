"""From chunks and bodies of the chat format to native messages.

Owns the accumulation of an answer, streamed or whole, into one native message that loses nothing:
what the format sends back stands in the message, everything else below ``_metadata``. It must not
know requests, knobs or tools' declarations. It runs for every chunk, so that its cost depends on
the chunk alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_hookspecs import NativeMessage, State
from agent_hookspecs.authoring import Partial, first_choice
from agent_hookspecs.authoring.merging import (
    ToolCalls,
    finish_reasoning_details,
    finish_tool_calls,
    merge_reasoning_details,
    reasoning_fragment,
    tool_call_deltas,
)
from agent_hookspecs.authoring.partial import plain
from agent_hookspecs.errors import ProtocolError, ServerError
from agent_host_openai_compatible.errors import error_in, reported_error
from agent_host_openai_compatible.usage import normalised_usage

__all__ = ["final_message", "read_chunk", "stream_has_ended", "told_in"]

#: Keys of a delta that alone make it plain text.
_TEXTUAL = frozenset({"content", "role"})
#: Keys of a chunk that say nothing worth keeping beyond what is read from them.
_ENVELOPE = frozenset({"choices", "usage", "id", "object", "created", "model", "obfuscation", "p"})
_OF_CHOICE = frozenset({"index", "delta", "message", "finish_reason", "usage"})
_REASONING_KEYS = ("reasoning", "reasoning_content")
#: Where some servers keep the usage of a stream, if not in the chunk itself.
_USAGE_HOLDERS = ("x_groq",)
#: Fields of a spoken answer that arrive in pieces.
_GROWING = frozenset({"data", "transcript"})

# Reads a key that is only ever set, never appended to, without asking for text to be joined.
_stored = dict.get


def read_chunk(
    chunk: object, state: State, *, provider: str, event: str | None = None
) -> list[dict[str, Any]]:
    """Merge one decoded chunk, or a whole body, into ``state["partial"]``; gives what is new.

    New tool-call fragments and reasoning wait in ``state["new_calls"]`` and
    ``state["new_reasoning"]`` for the extensions that show them. An error in the chunk is raised.
    """
    if type(chunk) is not dict:
        return []
    message = state.get("partial")
    if type(message) is Partial:
        # Nearly every chunk of a long answer: text and nothing else, or arguments and nothing else.
        choices = chunk.get("choices")
        choice = choices[0] if type(choices) is list and choices else None
        delta = choice.get("delta") if type(choice) is dict else None
        if (
            type(choice) is dict
            and type(delta) is dict
            and state["plain"]
            and not chunk.get("usage")
            and not chunk.get("error")
            and not choice.get("finish_reason")
            and not choice.get("index")
            and not choice.get("logprobs")
            and event != "error"
        ):
            text = delta.get("content")
            if type(text) is str and text and (len(delta) == 1 or _is_textual(delta)):
                message.append_text("content", text)
                return [{"role": "assistant", "content": text}]
            if len(delta) == 1 and "tool_calls" in delta:
                _merge_calls(delta, message, state)
                return []
    else:
        message = state["partial"] = Partial(role="assistant")
        message.append_text("content", "")
        state["parts"], state["plain"] = None, False
        state["about"] = {}
    return _read(chunk, message, state, provider, event)


def _is_textual(delta: Any) -> bool:
    # A loop and not `all`: a generator would cost more than everything else here.
    for key, value in delta.items():  # noqa: SIM110
        if key not in _TEXTUAL and value:
            return False
    return True


def _read(
    chunk: dict[str, Any], message: Partial, state: State, provider: str, event: str | None
) -> list[dict[str, Any]]:
    error = error_in(chunk, event)
    if error is not None:
        raise reported_error(error, provider=provider)
    choice, about = first_choice(chunk), state["about"]
    delta, reason = choice.get("delta"), choice.get("finish_reason")
    usage = chunk.get("usage") or choice.get("usage") or _usage_apart(chunk)
    if reason or usage or not delta or "chosen" not in about:
        # What is said about an answer stands in its first chunk or beside its end.
        _note(chunk, choice, usage, about)
    elif choice.get("logprobs"):
        _keep(about.setdefault("choice", {}), "logprobs", choice["logprobs"])
    if not isinstance(delta, dict):
        # Some servers repeat the whole message beside the deltas; it counts only without them.
        whole = choice.get("message")
        delta = whole if isinstance(whole, dict) and not about.get("streamed") else {}
    elif delta:
        about["streamed"] = True
    if reason == "error":
        raise _ended_in_error(choice, provider)
    fragment: dict[str, Any] = {}
    for key, value in delta.items():
        if value is not None:
            _merge(key, value, delta, message, state, fragment)
    # From now on text alone needs none of this.
    state["plain"] = "chosen" in about and state["parts"] is None
    return [{"role": "assistant", "content": "", **fragment}] if fragment else []


def _usage_apart(chunk: dict[str, Any]) -> Any:
    holders = (chunk.get(key) for key in _USAGE_HOLDERS if key in chunk)
    return next(
        (each["usage"] for each in holders if isinstance(each, dict) and "usage" in each), None
    )


def _note(chunk: dict[str, Any], choice: dict[str, Any], usage: Any, about: dict[str, Any]) -> None:
    """Keep what the chunk says about the answer rather than in it."""
    if choice:
        about["chosen"] = True
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            about["finish_reason"] = reason
    for key, name in (("id", "response_id"), ("model", "model")):
        value = chunk.get(key)
        if value and isinstance(value, str):
            about.setdefault(name, value)
    if usage and isinstance(usage, dict):
        about["usage"] = usage
    for key, value in chunk.items():
        if key not in _ENVELOPE and value:
            about.setdefault("answer", {})[key] = value
    for key, value in choice.items():
        if key not in _OF_CHOICE and value:
            _keep(about.setdefault("choice", {}), key, value)


def _merge(
    key: str,
    value: Any,
    delta: dict[str, Any],
    message: Partial,
    state: State,
    fragment: dict[str, Any],
) -> None:
    """Merge one key of a delta or message; what an application should see goes to ``fragment``."""
    if key == "content":
        _merge_content(value, message, state, fragment)
    elif key == "tool_calls" or (key == "function_call" and not delta.get("tool_calls")):
        _merge_calls(delta, message, state)
    elif key in _REASONING_KEYS and isinstance(value, str):
        if value:
            state["about"].setdefault("reasoning_keys", {})[key] = True
            if key == "reasoning" or not delta.get("reasoning"):
                _add_reasoning(value, message, state)
    elif key == "reasoning_details":
        merged = merge_reasoning_details(_stored(message, "reasoning_details"), value)
        if merged:
            message["reasoning_details"] = merged
        if not any(delta.get(each) for each in _REASONING_KEYS) and (text := told_in(value)):
            # Nowhere else in this chunk, and to be read in the blocks later on.
            state["new_reasoning"] = text
    elif key == "refusal":
        if isinstance(value, str) and value:
            message.append_text("refusal", value)
            fragment["refusal"] = value
    elif key != "role":
        _keep(state["about"].setdefault("unsent", {}), key, value)


def _merge_content(value: Any, message: Partial, state: State, fragment: dict[str, Any]) -> None:
    if isinstance(value, str):
        text = value
        if text and state["parts"] is not None:
            _add_part({"type": "text", "text": text}, state["parts"])
    else:
        given = [part for part in value if isinstance(part, dict)] if type(value) is list else []
        if state["parts"] is None:
            before = message["content"]
            state["parts"] = [Partial(type="text", text=before)] if before else []
        for part in given:
            _add_part(part, state["parts"])
        texts = [part.get("text") for part in given if part.get("type") == "text"]
        text = "".join(each for each in texts if isinstance(each, str))
        if thought := reasoning_fragment({"content": given}):
            _add_reasoning(thought, message, state)
    if text:
        message.append_text("content", text)
        fragment["content"] = text


def _add_part(part: Mapping[str, Any], parts: list[Partial]) -> None:
    """Continue the last part if it is of the same kind and grows, else begin another."""
    kind = part.get("type")
    if kind == "thinking" and isinstance(part.get("thinking"), list):
        target = parts[-1] if parts and _stored(parts[-1], "type") == kind else None
        if target is None:
            parts.append(Partial({**part, "thinking": []}))
            target = parts[-1]
        for key, value in part.items():
            if key != "thinking":
                target[key] = value
        for inner in part["thinking"]:
            if isinstance(inner, dict):
                _add_part(inner, target["thinking"])
        return
    if kind in ("text", "thinking") and isinstance(part.get(kind), str):
        last = parts[-1] if parts and _stored(parts[-1], "type") == kind else {}
        if isinstance(last, Partial) and isinstance(_stored(last, kind), str):
            last.append_text(kind, part[kind])
            return
    parts.append(Partial(part))


def _merge_calls(delta: dict[str, Any], message: Partial, state: State) -> None:
    known = _stored(message, "tool_calls")
    calls = known if type(known) is ToolCalls else ToolCalls()
    deltas = delta.get("tool_calls") or tool_call_deltas(delta)
    fragments = calls.merge(deltas)
    if fragments:
        if calls is not known:
            message["tool_calls"] = calls
        state["new_calls"] = fragments


def _add_reasoning(text: str, message: Partial, state: State) -> None:
    message.append_text("reasoning", text)
    state["new_reasoning"] = text


def _keep(kept: dict[str, Any], key: str, value: Any) -> None:
    """Keep a field nobody here reads: lists and spoken answers grow, the rest is replaced."""
    before = kept.get(key)
    if isinstance(value, list):
        if isinstance(before, list):
            before.extend(value)
        elif value:
            kept[key] = list(value)
    elif isinstance(value, dict):
        into = kept[key] = before if isinstance(before, Partial) else Partial()
        for name, item in value.items():
            grows = name in _GROWING and isinstance(_stored(into, name, ""), str)
            if grows and isinstance(item, str):
                into.append_text(name, item)
            elif item is not None:
                _keep(into, name, item)
    elif value != "":
        kept[key] = value


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


def stream_has_ended(state: State) -> bool:
    """Whether the finish reason, which ends every answer of the format, was seen."""
    return bool((state.get("about") or {}).get("finish_reason"))


def final_message(
    state: State,
    *,
    provider: str,
    replayed: Sequence[str],
    taken: Collection[str],
    with_reasoning: bool = False,
) -> NativeMessage:
    """The finished native message.

    In it stands what is sent back with the history; ``replayed`` names the keys, beyond those of
    every server, that are, and ``with_reasoning`` adds ``reasoning_content``. All else that came is
    kept below ``_metadata``.
    """
    about, message = state.get("about") or {}, state.get("partial")
    if type(message) is not Partial or not about.get("chosen"):
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
    final: NativeMessage = {"role": "assistant", "content": _content(message, state, bool(calls))}
    for key in replayed:
        if key == "audio" and isinstance(rest.get(key), dict):
            # Sent back by id; the sound itself stays here.
            if spoken := rest[key].get("id"):
                final[key] = {"id": spoken}
        elif key in rest:
            final[key] = rest.pop(key)
    if calls:
        final["tool_calls"] = calls
    noted = {key: about[key] for key in ("finish_reason", "response_id", "model") if key in about}
    if "usage" in about:
        noted["usage"] = normalised_usage(about["usage"])
    for key, value in (("unsent", rest), ("choice", about.get("choice"))):
        if value:
            noted[key] = plain(value)
    if "answer" in about:
        noted["answer"] = about["answer"]
    if noted:
        final["_metadata"] = noted
    return final


def _rest(message: Partial, about: dict[str, Any]) -> dict[str, Any]:
    """Everything the message has beside its content and its calls, under the wire's names."""
    rest: dict[str, Any] = {}
    if refusal := message.get("refusal"):
        rest["refusal"] = refusal
    for key in about.get("reasoning_keys", ()):
        rest[key] = message.get("reasoning")
    if details := finish_reasoning_details(_stored(message, "reasoning_details")):
        rest["reasoning_details"] = details
    rest.update(plain(about.get("unsent") or {}))
    return rest


def _content(message: Partial, state: State, has_calls: bool) -> Any:
    parts = plain(state["parts"] or [])
    if any(part.get("type") != "text" for part in parts):
        return parts
    text = message["content"]
    return None if not text and (has_calls or message.get("refusal")) else text
