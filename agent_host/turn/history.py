"""A session as the natives of a request: what is retained of it, and the rest converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ContractError
from agent_hookspecs.messages import Config, CoreMessage, NativeMessage
from agent_host.sessions.excerpts import Excerpt, find_excerpt, make_excerpt, with_excerpt
from agent_host.sessions.natives import (
    NativeHistory,
    Origin,
    RetainedHistory,
    retain_natives,
    retained_history,
)
from agent_host.wire.request import without_userinfo

if TYPE_CHECKING:
    from agent_host.sessions.session import Session
    from agent_host.turn.turn import Turn

__all__ = [
    "apply_excerpt",
    "config_of",
    "convert_messages",
    "default_to_native",
    "find_history",
    "find_retained",
    "make_natives",
]


def find_history(turn: Turn, session: Session) -> None:
    """The retained natives that still hold, and the rest of the session converted."""
    turn.natives = make_natives(turn, find_retained(turn, session))


def find_retained(turn: Turn, session: Session) -> list[CoreMessage]:
    """Set what is retained and still holds; gives the messages for which nothing is."""
    # A session is kept and handed on, and who asks does not matter for who has answered.
    address = without_userinfo(str(config_of(turn, turn.state).get("base_url") or ""))
    turn.origin = Origin(turn.provider, address, str(turn.state.get("native_format") or ""))
    turn.retained = retained_history(session, turn.origin)
    excerpt = find_excerpt(session)
    if excerpt is not None and turn.retained.covered < excerpt.covered:
        # They are of another provider, or of before there was an excerpt.
        turn.retained = RetainedHistory(NativeHistory())
        return [*excerpt.messages(session), *session.since(excerpt.covered)]
    return session.since(turn.retained.covered)


def apply_excerpt(turn: Turn, session: Session, items: Sequence[object]) -> Session:
    """The session with an excerpt, and with the natives of that retained in place of all others.

    Answers that stay are sent as they came, with whatever their provider has signed in them.
    """
    find_retained(turn, session)
    retained = turn.retained
    excerpt = make_excerpt(session, items, retained.covered)
    natives, spans = _excerpt_natives(turn, session, excerpt)
    return retain_natives(
        with_excerpt(session, excerpt),
        natives,
        turn.origin,
        retained,
        covered=excerpt.covered,
        spans=spans,
        is_sent=False,
    )


def _excerpt_natives(
    turn: Turn, session: Session, excerpt: Excerpt
) -> tuple[list[NativeMessage], list[list[int]]]:
    """The natives of an excerpt, and which of them are as they came."""
    spans: list[list[int]] = []
    known = {start: (end, natives) for start, end, natives in _known_spans(turn, session)}
    items, natives = excerpt.items, list[NativeMessage]()
    converted: list[CoreMessage] = []
    place = 0
    while place < len(items):
        item = items[place]
        if not isinstance(item, int):
            converted.append(item)
            place += 1
            continue
        end, own = known.get(item, (item, []))
        if item < end and items[place : place + end - item] == [*range(item, end)]:
            natives += _convert_some(turn, converted)
            spans.append([item, end, len(natives), len(natives) + len(own)])
            natives += own
            converted = []
            place += end - item
        else:
            converted.append(session.messages[item])
            place += 1
    return [*natives, *_convert_some(turn, converted)], spans


def _convert_some(turn: Turn, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
    return convert_messages(turn, messages) if messages else []


def _known_spans(turn: Turn, session: Session) -> Iterator[tuple[int, int, list[NativeMessage]]]:
    """From which message to which natives are retained that belong to just those."""
    retained, excerpt = turn.retained, find_excerpt(session)
    natives = [*retained.natives, *retained.unsent]
    if excerpt is not None:
        yield from ((i, j, natives[a:b]) for i, j, a, b in retained.spans)
    covered, length = (0, 0) if excerpt is None else (-1, 0)
    for checkpoint in retained.checkpoints:
        match checkpoint:
            case [int(next_covered), int(next_length), str()]:
                if 0 <= covered < next_covered and length <= next_length:
                    yield covered, next_covered, natives[length:next_length]
                if excerpt is None or next_covered >= excerpt.covered:
                    covered, length = next_covered, next_length


def make_natives(turn: Turn, rest: Sequence[CoreMessage]) -> list[NativeMessage]:
    """What is retained, and then the rest as natives."""
    # Not list(): of a subclass that is twice as slow.
    natives: list[NativeMessage] = turn.retained.natives[:]
    natives += turn.retained.unsent
    if rest:
        natives += convert_messages(turn, rest)
    return natives


def convert_messages(turn: Turn, messages: Sequence[CoreMessage]) -> list[NativeMessage]:
    """Messages as the provider and its extensions make natives of them."""
    provider, extension = turn.managers.provider, turn.managers.extension
    natives: list[NativeMessage]
    if provider.implements("to_native_messages"):
        natives = provider.hook.to_native_messages(messages=messages, state=turn.state)
    else:
        natives = [default_to_native(message) for message in messages]
    if extension.implements("to_native_messages"):
        natives = extension.hook.to_native_messages(messages=messages, native_messages=natives)
    return natives


def default_to_native(message: CoreMessage) -> NativeMessage:
    """Role and content; what else there is travels in ``_metadata``, which is never sent."""
    native: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    metadata = {k: v for k, v in message["metadata"].items() if k != "native_indices"}
    if metadata:
        native["_metadata"] = metadata
    return native


def config_of(turn: Turn, state: dict[str, Any]) -> Config:
    """The config in a state, which plugins may have changed."""
    config = state.get("config")
    if not isinstance(config, dict):
        # Whose fault that is, nobody can tell any more: all plugins share the state.
        raise ContractError(
            f"a plugin has made state['config'] {type(config).__name__}, which is not a dict",
            hint="plugins may change the config's keys; state['config'] itself stays a dict",
        )
    return config
