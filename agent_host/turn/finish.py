"""The steps after the last chunk: finals, core messages, and the session that holds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import Any, cast

from agent_hookspecs.authoring.merging import finish_tool_calls
from agent_hookspecs.errors import HookResultError, StreamCutError
from agent_hookspecs.messages import Context, CoreMessage, NativeMessage, State
from agent_hookspecs.specs import SpecRole
from agent_host.plugins.stack import Calls, Stack, answered, listed
from agent_host.sessions.natives import retain_natives
from agent_host.sessions.session import Session
from agent_host.turn.prepare import Prepared
from agent_host.turn.read import Reading

__all__ = ["check_complete", "default_from_native", "finish", "partial_session"]

_FINALS = ("finals", "native_messages", "state")
_ADDITIONS: tuple[SpecRole, ...] = ("extension", "feature")


def check_complete(stack: Stack, calls: Calls, state: State, *, ended: bool) -> None:
    """Refuse a stream that stopped before its end, unless the framing itself saw the end marker."""
    if not ended and calls.call("provider", "stream_complete")(state) is False:
        raise StreamCutError(
            f"the stream of {stack.provider.name} ended before the answer did",
            provider=stack.provider.name,
            hint="what came so far is in the stream's session; ask again for the rest",
        )


def finish(
    stack: Stack,
    calls: Calls,
    session: Session,
    prepared: Prepared,
    reading: Reading,
    context: Context,
) -> tuple[Session, list[CoreMessage]]:
    """``finalize``, ``from_native_messages``, and the new session with its finals."""
    finals, natives, state = reading.finals, reading.natives, reading.state
    written = _written_calls(stack, reading, session)
    if calls.has("provider", "finalize") and not reading.whole:
        result = calls.call("provider", "finalize")(natives, state, context)
        more, natives, state = answered(stack.provider.name, "finalize", result, *_FINALS)
        finals = [*finals, *more]
    for role in _ADDITIONS:
        if calls.has(role, "finalize"):
            fold = calls.call(role, "finalize")
            finals, natives, state = fold(finals, natives, state, context)
    reading.state = state
    messages = _core_messages(stack, calls, finals, state)
    given = [message["metadata"].get("tool_calls") for message in messages]
    if any(given):
        _identify(messages, session)
        _sanitise(stack, messages, written)
    grown = session.appended(*messages)
    if any(given) and given != [message["metadata"].get("tool_calls") for message in messages]:
        # The natives hold calls that no provider takes back; they are made anew from the core's.
        return grown, messages
    return retain_natives(grown, natives, prepared.origin, prepared.before), messages


def _core_messages(
    stack: Stack, calls: Calls, finals: list[NativeMessage], state: State
) -> list[CoreMessage]:
    if calls.has("provider", "from_native_messages"):
        given = calls.call("provider", "from_native_messages")(finals, state)
        messages = listed(stack.provider.name, "from_native_messages", given)
        _check_messages(stack.provider.name, messages)
    else:
        messages = [default_from_native(final) for final in finals]
    if calls.has("extension", "from_native_messages"):
        messages = calls.call("extension", "from_native_messages")(finals, messages)
    return [_as_core(message) for message in messages]


def _check_messages(provider: str, messages: list[Any]) -> None:
    for message in messages:
        if not isinstance(message, Mapping):
            raise HookResultError(
                f"plugin {provider!r}: hook 'from_native_messages' must return messages that are "
                f"dicts, not {type(message).__name__}",
                plugin=provider,
                hook="from_native_messages",
            )


def _as_core(message: Mapping[str, Any]) -> CoreMessage:
    """The message with what every core message has; wires leave content out, or say null."""
    known = message.get("metadata")
    return cast(
        CoreMessage,
        {
            **message,
            "role": message.get("role") or "assistant",
            "content": _text(message.get("content")),
            "metadata": dict(known) if isinstance(known, Mapping) else {},
        },
    )


def default_from_native(native: NativeMessage) -> CoreMessage:
    """Role, the text of the content, and what ``_metadata`` holds."""
    kept = native.get("_metadata")
    metadata = dict(kept) if isinstance(kept, Mapping) else {}
    metadata.pop("native_indices", None)
    return {
        "role": native.get("role") or "assistant",
        "content": _text(native.get("content")),
        "metadata": metadata,
    }


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def _written_calls(stack: Stack, reading: Reading, session: Session) -> list[dict[str, Any]]:
    """The calls as the model wrote them, before anybody sanitises them, under their final ids."""
    partial = reading.state.get("partial")
    calls = partial.get("tool_calls") if isinstance(partial, Mapping) else None
    if calls:
        return finish_tool_calls(calls, taken=session.tool_call_ids)
    found = (final.get("tool_calls") for final in reading.finals if isinstance(final, Mapping))
    return [call for calls in found for call in finish_tool_calls(calls)]


def _identify(messages: list[CoreMessage], session: Session) -> None:
    """Give every call an id that no other call of the conversation has."""
    taken: Collection[str] = session.tool_call_ids
    used: set[str] = set()
    for message in messages:
        if not message["metadata"].get("tool_calls"):
            continue
        if used:
            # Rare: most turns have one message with calls, and no long history is copied for it.
            taken = {*taken, *used}
        calls = finish_tool_calls(message["metadata"]["tool_calls"], taken=taken)
        for place, call in enumerate(calls):
            key = "id" if call.get("id") or "call_id" not in call else "call_id"
            known = call.get(key)
            identity = known if isinstance(known, str) else ""
            if not identity.strip() or identity in taken or identity in used:
                # Of a shape that merging leaves alone.
                stem, first = (f"{identity}__", 2) if identity.strip() else ("tc_", 1)
                free = (f"{stem}{number}" for number in count(first))
                identity = next(name for name in free if name not in taken and name not in used)
                calls[place] = {**call, key: identity}
            used.add(identity)
        message["metadata"]["tool_calls"] = calls


def _sanitise(stack: Stack, messages: list[CoreMessage], written: list[dict[str, Any]]) -> None:
    """Make the calls of messages fit to be sent back, and note beside them which were broken.

    Broken arguments become ``{}`` in history; whoever runs calls looks at ``tool_call_errors`` and
    does not run those.
    """
    standing = [(message["metadata"], call) for message in messages for call in _calls_in(message)]
    problems = _problems(stack, written, [call for _, call in standing])
    for message in messages:
        if isinstance(message["metadata"].get("tool_calls"), list):
            message["metadata"]["tool_calls"] = []
    for (metadata, call), problem in zip(standing, problems, strict=True):
        call_id, _ = _seen(stack, call)
        if call_id and problem:
            known = metadata.get("tool_call_errors") or {}
            metadata["tool_call_errors"] = {call_id: problem, **known}
        metadata["tool_calls"].append(stack.registry.sanitize_tool_call(call))


def _problems(
    stack: Stack, written: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[str | None]:
    """What was wrong with each call when the model wrote it, or is now."""
    before = [_seen(stack, call) for call in written]
    now = [_seen(stack, call) for call in calls]
    by_id = dict(before)
    ids = {call_id for call_id, _ in now}
    problems: list[str | None] = []
    for place, (call_id, problem) in enumerate(now):
        earlier = by_id.get(call_id)
        if call_id not in by_id and len(before) == len(now) and before[place][0] not in ids:
            # The id was made unique since; the place is still the same.
            earlier = before[place][1]
        problems.append(earlier or problem)
    return problems


def _calls_in(message: CoreMessage) -> list[dict[str, Any]]:
    calls = message["metadata"].get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _seen(stack: Stack, call: dict[str, Any]) -> tuple[str | None, str | None]:
    """The call's id, and what is wrong with it."""
    view = stack.registry.inspect_call(call)
    return (view.call_id, view.problem) if view is not None else (None, None)


def partial_session(session: Session, reading: Reading | None) -> Session:
    """The session with what the model had said when it was interrupted, marked as partial."""
    text = reading.text() if reading is not None else ""
    if not text:
        return session
    return session.appended({"role": "assistant", "content": text, "metadata": {"partial": True}})
