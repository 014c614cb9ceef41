"""Where the native history of a conversation is found again when a client sends it back.

A client sends back what it was told, which is less than what the provider said: signatures of
reasoning, encrypted thoughts, ids. So an answer that has something to lose is kept as a session,
with its natives, under the digest of the conversation as the client sees it and of whose it is. It
must not know doors nor HTTP.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from agent_hookspecs.logs import get_logger
from agent_hookspecs.store import StoreError
from agent_host_gateway.neutral import Message, describe_call

__all__ = ["Conversations", "Found", "Sessions", "has_something_to_lose"]

log = get_logger(__name__)

#: How many conversations this process remembers by itself, and how many letters of them.
_MAX_KNOWN = 2000
_MAX_SIZE = 256 << 20
#: How many of the latest turns of a conversation are looked for in the store.
_MAX_LOOKS = 4
#: Begins the names of sessions that are the gateway's own.
_PREFIX = "gateway."


class Sessions(Protocol):
    """What is used of the sessions of an application."""

    def find(self, session: str) -> Any: ...
    def load(self, session: str) -> Any: ...
    def add(self, session: Any, *, name: str | None = None, parent: str | None = None) -> Any: ...
    def delete(self, session: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A session that a conversation goes on from: how many of its messages it has, and its id in
    the store, if it is there."""

    session: Any
    count: int
    stored: str | None


class Conversations:
    """The conversations of a gateway. Methods with a store behind them block."""

    def __init__(self, sessions: Sessions | None) -> None:
        self.sessions = sessions
        self._known: OrderedDict[str, tuple[Any, str | None, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, owner: str, messages: Sequence[Message]) -> Found | None:
        """The longest part of a conversation whose natives are known."""
        looks = 0
        for digest, count in reversed([*_digests(owner, messages)]):
            with self._lock:
                known = self._known.get(digest)
                if known is not None:
                    self._known.move_to_end(digest)
                    return Found(known[0], count, known[1])
            if self.sessions is not None and looks < _MAX_LOOKS:
                looks += 1
                if (found := self._load(digest)) is not None:
                    self._remember(digest, *found)
                    return Found(found[0], count, found[1])
        return None

    def keep(self, owner: str, session: Any, parent: str | None) -> tuple[str | None, str | None]:
        """Keep a session whose last message is an answer.

        Gives its id in the store, and why it is not there if it should be.
        """
        stored, problem = parent, None
        digests = [*_digests(owner, session.messages)]
        if not digests or digests[-1][1] != len(session.messages):
            return stored, problem
        digest = digests[-1][0]
        if self.sessions is not None:
            try:
                stored = self.sessions.add(session, name=_PREFIX + digest, parent=parent).id
            except StoreError as error:
                # The same answer to the same conversation may have been stored already.
                found = self._load(digest)
                stored = None if found is None else found[1]
                if found is None:
                    log.warning("answer_not_kept", error=error.message)
                    problem = f"the native history is not stored: {error.message}"
        self._remember(digest, session, stored)
        return stored, problem

    def _remember(self, digest: str, session: Any, stored: str | None) -> None:
        size = _size(session.messages)
        with self._lock:
            _, _, before = self._known.pop(digest, (None, None, 0))
            self._known[digest] = session, stored, size
            self._size += size - before
            while len(self._known) > _MAX_KNOWN or self._size > _MAX_SIZE:
                _, (_, _, gone) = self._known.popitem(last=False)
                self._size -= gone

    def _load(self, digest: str) -> tuple[Any, str] | None:
        assert self.sessions is not None, "only a store is looked into"
        try:
            found = self.sessions.find(_PREFIX + digest)
            return self.sessions.load(found.id), found.id
        except StoreError:
            # Nothing is lost: that it is not there is the answer.
            return None


def has_something_to_lose(message: Mapping[str, Any]) -> bool:
    """Whether a message of the model says more to its provider than clients are told."""
    metadata = message["metadata"]
    return message["role"] == "assistant" and any(
        metadata.get(key) for key in ("tool_calls", "reasoning", "reasoning_details")
    )


def _digests(owner: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """After each turn of the model: the digest of everything up to there, and how much that is."""
    digest = blake2b(owner.encode(), digest_size=24)
    place = 0
    while place < len(messages):
        end = place + 1
        if messages[place]["role"] == "assistant":
            while end < len(messages) and messages[end]["role"] == "assistant":
                end += 1
        digest.update(_digested_text(messages[place:end]))
        if messages[place]["role"] == "assistant":
            yield digest.copy().hexdigest(), end
        place = end


def _size(messages: Sequence[Mapping[str, Any]]) -> int:
    """About how much memory messages take, which others may share."""
    size = 0
    for message in messages:
        size += 500 + len(message["content"])
        for part in message.get("multipartContent") or ():
            size += sum(len(value) for value in part["content"].values() if isinstance(value, str))
    return size


def _digested_text(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """What clients send back of messages, however they write it."""
    first = messages[0]
    calls = [
        describe_call(call)
        for message in messages
        for call in message["metadata"].get("tool_calls") or ()
    ]
    said = [
        first["role"],
        "".join(message["content"] for message in messages).strip(),
        [(part["type"], part["content"]) for part in first.get("multipartContent") or ()],
        first["metadata"].get("tool_call_id"),
        [(call.id, call.name, _canonical(call.arguments)) for call in calls],
    ]
    return json.dumps(said, sort_keys=True).encode()


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        # Nothing is lost: what is no JSON is told apart as it is.
        return arguments
