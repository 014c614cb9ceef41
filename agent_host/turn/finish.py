"""The steps after the last chunk: finals, core messages, and the session that holds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.authoring.calls import unique_call_id
from agent_hookspecs.authoring.merging import finish_tool_calls
from agent_hookspecs.errors import ContractError, HookResultError, SessionError
from agent_hookspecs.messages import CoreMessage, NativeMessage
from agent_host.redaction import describe_error
from agent_host.sessions.frozen import refuse_foreign
from agent_host.sessions.natives import common_length, retain_natives
from agent_host.turn.calls import ToolCall, inspect_call, wire_call_id
from agent_host.turn.finish_reason import note_finish
from agent_host.turn.lost_tools import warn_of_unread_calls
from agent_host.turn.speech import remove_instructions
from agent_host.usage import check_usage, describe_wrong_usage

if TYPE_CHECKING:
    from agent_host.sessions.session import Session
    from agent_host.turn.read import Reading
    from agent_host.turn.turn import Turn

__all__ = ["default_from_native", "finish_turn"]


def finish_turn(turn: Turn) -> Session:
    """``finalize`` and ``from_native_messages``; the session that holds the answer.

    Sets the turn's ``finals``, its ``calls`` and how it ended.
    """
    reading = turn.reading
    assert reading is not None, "an answer was read before it is finished"
    finals, natives, state = reading.finals, reading.natives, reading.state
    written = _written_calls(turn, reading)
    managers = turn.managers
    if managers.provider.implements("finalize") and not reading.is_whole:
        more, natives, state = managers.provider.hook.finalize(
            native_messages=natives, state=state, context=turn.context
        )
        finals = [*finals, *more]
    for manager in (managers.extension, managers.feature):
        if manager.implements("finalize"):
            finals, natives, state = manager.hook.finalize(
                final_messages=finals, native_messages=natives, state=state, context=turn.context
            )
    reading.state = turn.state = state
    messages = _core_messages(turn, finals)
    note_finish(turn, messages, has_unread_calls=warn_of_unread_calls(turn, finals, messages))
    given = [message["metadata"].get("tool_calls") for message in messages]
    turn.finals, turn.calls = messages, []
    if any(given):
        turn.limits.check_calls(sum(map(len, filter(None, given))))
        _identify_calls(messages, turn.start)
        turn.calls = _take_calls(turn, messages, written)
    try:
        session = turn.start.with_added(*messages)
    except SessionError as error:
        # The session is as it was: it is the answer that it cannot take.
        raise _unfit_error(turn, "from_native_messages", "messages", error) from error
    if any(given) and given != [message["metadata"].get("tool_calls") for message in messages]:
        # The natives hold calls that no provider takes back; they are made anew from the core's.
        return session
    bare = remove_instructions(turn, natives)
    if bare is None:
        return session
    try:
        # Only what is new: what was retained has been looked at when it was.
        refuse_foreign(bare[len(turn.retained.natives) :])
        asked = _asked_until(turn, natives, bare)
        spans = turn.retained.spans if turn.retained.unsent else None
        return retain_natives(session, bare, turn.origin, turn.retained, asked=asked, spans=spans)
    except (TypeError, ValueError, RecursionError, SessionError) as error:
        raise _unfit_error(turn, "finalize", "native messages", error) from error


def _asked_until(
    turn: Turn, natives: list[NativeMessage], bare: list[NativeMessage]
) -> tuple[int, int] | None:
    """How many messages were sent, and of how many natives; None if a plugin has changed those."""
    overlaid = len(natives) - len(bare)
    sent, first = turn.natives, len(turn.retained.natives) + overlaid
    new = sent[first:]
    if common_length(natives[first : len(sent)], new) < len(new):
        return None
    return turn.start.count, len(sent) - overlaid


def _unfit_error(turn: Turn, hook: str, what: str, error: Exception) -> HookResultError:
    """What is wrong with an answer that no session can hold or store."""
    return HookResultError(
        f"plugin {turn.provider!r}: the {what} of its answer cannot be held in a session: "
        f"{describe_error(error)}",
        plugin=turn.provider,
        hook=hook,
        hint="messages hold what JSON can; other things go into the state",
    )


def _core_messages(turn: Turn, finals: list[NativeMessage]) -> list[CoreMessage]:
    provider, extension = turn.managers.provider, turn.managers.extension
    messages: list[CoreMessage]
    if provider.implements("from_native_messages"):
        messages = provider.hook.from_native_messages(native_messages=finals, state=turn.state)
    else:
        messages = [default_from_native(final) for final in finals]
    if extension.implements("from_native_messages"):
        messages = extension.hook.from_native_messages(native_messages=finals, messages=messages)
    if not all(isinstance(message, Mapping) for message in messages):
        # What a plugin has changed in place, it has not returned, and so it is not known who did.
        raise ContractError(
            "a plugin has put something into the messages of the answer that is no message",
            hook="from_native_messages",
            hint="plugins return what they change, and leave what they are given as it is",
        )
    checked = [_as_core(message) for message in messages]
    for message in checked:
        _check_usage(turn, message)
    return checked


def _check_usage(turn: Turn, message: CoreMessage) -> None:
    """Take out of the usage what is no number of anything; budgets would be wrong by it."""
    usage = message["metadata"].get("usage")
    if isinstance(usage, Mapping):
        known, wrong = check_usage(usage)
        if wrong:
            message["metadata"]["usage"] = known
            turn.warnings.add(describe_wrong_usage(turn.provider, wrong), turn.provider)


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
    """Role, the text of the content, calls and refusal, and what ``_metadata`` holds."""
    kept = native.get("_metadata")
    metadata = dict(kept) if isinstance(kept, Mapping) else {}
    metadata.pop("native_indices", None)
    metadata |= {key: native[key] for key in ("tool_calls", "refusal") if native.get(key)}
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


def _written_calls(turn: Turn, reading: Reading) -> list[dict[str, Any]]:
    """The calls as the model wrote them, before anybody sanitises them, under their final ids."""
    partial = reading.state.get("partial")
    calls = partial.get("tool_calls") if isinstance(partial, Mapping) else None
    if calls:
        return finish_tool_calls(calls, taken=turn.start.tool_call_ids)
    found = (final.get("tool_calls") for final in reading.finals if isinstance(final, Mapping))
    return [call for calls in found for call in finish_tool_calls(calls)]


def _identify_calls(messages: list[CoreMessage], session: Session) -> None:
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
            # Merging leaves some shapes alone.
            call_id = unique_call_id(call.get(key), taken, used)
            if call_id != call.get(key):
                calls[place] = {**call, key: call_id}
            used.add(call_id)
        message["metadata"]["tool_calls"] = calls


def _take_calls(
    turn: Turn, messages: list[CoreMessage], written: list[dict[str, Any]]
) -> list[ToolCall]:
    """The calls of messages, which are made fit to be sent back; beside them stands what was wrong.

    Broken arguments become ``{}`` in history; whoever runs calls looks at ``tool_call_errors`` and
    does not run those.
    """
    found = [(message["metadata"], wire) for message in messages for wire in _wire_calls(message)]
    earlier = _pair_calls(turn, written, [wire for _, wire in found])
    for message in messages:
        if isinstance(message["metadata"].get("tool_calls"), list):
            message["metadata"]["tool_calls"] = []
    calls: list[ToolCall] = []
    for (metadata, wire), call in zip(found, earlier, strict=True):
        told = (metadata.get("tool_call_errors") or {}).get(wire_call_id(wire))
        if call is None or call.wire != wire or told:
            problem = told or (None if call is None else call.problem)
            call = inspect_call(turn.stack, wire, problem, turn.argument_limit)
        if call.id and call.problem:
            known = metadata.get("tool_call_errors") or {}
            metadata["tool_call_errors"] = {call.id: call.problem, **known}
        metadata["tool_calls"].append(turn.stack.registry.sanitize_tool_call(wire))
        calls.append(call)
    return calls


def _pair_calls(
    turn: Turn, written: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[ToolCall | None]:
    """For each call what the model wrote for it, found by its id or by its place."""
    before = [inspect_call(turn.stack, call, None, turn.argument_limit) for call in written]
    by_id = {wire_call_id(call.wire): call for call in before}
    ids = [wire_call_id(call) for call in calls]
    pairs = [by_id.get(call_id) for call_id in ids]
    if len(before) == len(ids):
        for place, call in enumerate(before):
            if pairs[place] is None and wire_call_id(call.wire) not in ids:
                # The id was made unique since; the place is still the same.
                pairs[place] = call
    return pairs


def _wire_calls(message: CoreMessage) -> list[dict[str, Any]]:
    calls = message["metadata"].get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
