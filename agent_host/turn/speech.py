"""What features say in a request: instructions, and context for the turn of the user.

Both are put into core messages before these become natives, so that no provider needs to know of
them. Instructions lie over the native history for one request and are taken off when it has ended;
context stays in the natives of its message. Neither becomes part of a session's messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.messages import CoreMessage, MultipartContent, NativeMessage
from agent_host.drivers.effects import Call, Steps, TimeUpError
from agent_host.sessions.frozen import plain_copy
from agent_host.sessions.natives import Overlay, common_length
from agent_host.turn.history import config_of, convert_messages

if TYPE_CHECKING:
    from agent_host.turn.turn import Turn

__all__ = ["add_context", "add_instructions", "remove_instructions", "warn_of_unsent"]

_INSTRUCTIONS, _CONTEXT = "get_instructions", "get_context_parts"


def add_context(turn: Turn, rest: list[CoreMessage]) -> Steps[list[CoreMessage]]:
    """The messages without natives, with context in the user's latest if it is among them."""
    place = _last_user_message(rest)
    if place is None:
        return rest
    texts: list[str] = []
    parts: list[MultipartContent] = []
    for part in [part for given in (yield from _ask(turn, _CONTEXT)) for part in given]:
        if isinstance(part, str):
            texts.append(part)
        else:
            parts.append(part)
    text = _paragraphs(texts)
    if not (text or parts):
        return rest
    turn.spoken[_CONTEXT] = text
    message = rest[place]
    spoken: dict[str, Any] = {**message, "content": _paragraphs([text, message["content"]])}
    if parts:
        spoken["multipartContent"] = [*(message.get("multipartContent") or ()), *parts]
    return [*rest[:place], cast(CoreMessage, spoken), *rest[place + 1 :]]


def _last_user_message(rest: Sequence[CoreMessage]) -> int | None:
    for place in range(len(rest) - 1, -1, -1):
        message = rest[place]
        # Where the host asks once more, the user has said nothing new.
        if message["role"] == "user" and not message["metadata"].get("from_host"):
            return place
    return None


def add_instructions(turn: Turn) -> Steps[None]:
    """Lay instructions over the natives of the turn."""
    text = _paragraphs([*(yield from _ask(turn, _INSTRUCTIONS)), turn.instructions])
    if not text:
        return
    turn.spoken[_INSTRUCTIONS] = text
    first = list(takewhile(lambda each: each["role"] == "system", turn.start.messages))
    before = convert_messages(turn, first) if first else []
    if first and common_length(turn.natives, before) == len(before):
        # One system message, because many chat templates take no second.
        last = first[-1]
        joined = cast(CoreMessage, {**last, "content": _paragraphs([last["content"], text])})
        after = convert_messages(turn, [*first[:-1], joined])
    else:
        # There is none, or a plugin has made something else of the beginning.
        alone: CoreMessage = {"role": "system", "content": text, "metadata": {}}
        before, after = [], convert_messages(turn, [alone])
    overlay = Overlay.of(before, after)
    turn.natives = overlay.apply(turn.natives)
    turn.retained = replace(turn.retained, overlay=overlay)


def remove_instructions(turn: Turn, natives: list[NativeMessage]) -> list[NativeMessage] | None:
    """The natives as they may be retained; None, and a warning, if that cannot be told."""
    overlay = turn.retained.overlay
    bare = natives if overlay is None else overlay.remove(natives)
    if bare is None:
        turn.warnings.add(
            "the native history of this turn is not retained: a plugin has changed the system "
            "message, so that the instructions of features cannot be told from it",
            turn.provider,
        )
    return bare


def _ask(turn: Turn, hook: str) -> Steps[list[Any]]:
    """What every feature answers, in order; as features may read files or ask servers, apart."""
    caller = getattr(turn.managers.feature.hook, hook)
    config = config_of(turn, turn.state)
    # A copy, for the request is made from the other one.
    given_config = plain_copy(config)
    ask = partial(caller, session=turn.start, config=given_config, context=turn.context)
    try:
        given = yield Call(ask, patience=turn.hook_time.max_hook_seconds)
    except TimeUpError as error:
        # Which of several it was that took so long, nobody can tell from outside.
        turn.managers.feature.implementations(hook)[0].raise_failure(error)
    return cast("list[Any]", given)


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def warn_of_unsent(turn: Turn, sent: object) -> None:
    """Say so if what features have said is not in ``sent``: a request's body, or its natives."""
    for hook, text in turn.spoken.items():
        if text and not _holds(sent, text.strip()):
            names = [each.plugin for each in turn.managers.feature.implementations(hook)]
            what = "instructions" if hook == _INSTRUCTIONS else "context"
            turn.warnings.add(
                f"{turn.provider} does not send the {what} of {', '.join(names) or 'the run'}",
                turn.provider,
            )


def _holds(value: object, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, (bytes, bytearray)):
        written = (json.dumps(text, ensure_ascii=ascii) for ascii in (True, False))
        return any(each[1:-1].encode() in value for each in written)
    if isinstance(value, Mapping):
        return any(_holds(item, text) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_holds(item, text) for item in value)
