"""A conversation as an immutable value.

Every change gives a new session that shares what it can with the old one. It knows nothing of
plugins; what they retain in the metadata is theirs.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import takewhile
from typing import Any, cast

from agent_hookspecs.errors import SessionError
from agent_hookspecs.messages import CoreMessage
from agent_host.sessions.frozen import frozen, thawed

__all__ = ["SCHEMA_VERSION", "Session"]

SCHEMA_VERSION = 1

_ROLES = ("system", "user", "assistant", "tool")


class _Notes:
    """What is known of the messages of a session and of those it was made from.

    Sessions that differ only in their end share it: the first one to go on adds to it, and any
    other that does goes on with a copy.
    """

    __slots__ = ("call_ids", "digests", "lock")

    def __init__(self) -> None:
        self.digests: list[str] = []
        #: Each id with the place of the message that has it first, in the order of places.
        self.call_ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def add(self, messages: Iterable[CoreMessage]) -> None:
        for message in messages:
            for call_id in _call_ids(message):
                self.call_ids.setdefault(call_id, len(self.digests))
            self.digests.append(_digest(self.digests[-1] if self.digests else "", message))

    def first(self, count: int) -> _Notes:
        """A copy that knows of no more than ``count`` messages."""
        notes = _Notes()
        notes.digests = self.digests[:count]
        notes.call_ids = dict(self.call_ids)
        while notes.call_ids:
            call_id, place = notes.call_ids.popitem()
            if place < count:
                notes.call_ids[call_id] = place
                break
        return notes


class CallIds(Collection[str]):
    """The ids of the calls in the first ``count`` messages that notes were taken of."""

    __slots__ = ("_count", "_places")

    def __init__(self, places: dict[str, int], count: int) -> None:
        self._places = places
        self._count = count

    def __contains__(self, call_id: object) -> bool:
        place = self._places.get(cast(str, call_id))
        return place is not None and place < self._count

    def __iter__(self) -> Iterator[str]:
        return iter([call_id for call_id in list(self._places) if call_id in self])

    def __len__(self) -> int:
        # Those that do not count are the last ones, and most often there are none.
        later = takewhile(self._count.__le__, reversed(self._places.values()))
        return len(self._places) - sum(1 for _ in later)


class Session:
    """Messages in order, and metadata. Make one with `AgentCore.create_session`."""

    __slots__ = ("_id", "_messages", "_metadata", "_noted", "_notes")

    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        self._id = id or uuid.uuid4().hex
        self._messages: tuple[CoreMessage, ...] = tuple(
            _checked(message, number) for number, message in enumerate(messages)
        )
        self._metadata: dict[str, Any] = frozen(dict(metadata or {}))
        #: The notes hold for this many of the messages.
        self._notes, self._noted = _Notes(), 0

    @property
    def id(self) -> str:
        return self._id

    @property
    def messages(self) -> Sequence[CoreMessage]:
        """The core messages; they refuse to be changed in place."""
        return self._messages

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Data of the session as a whole; it refuses to be changed in place too."""
        return self._metadata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Session):
            return NotImplemented
        return (
            self._id == other._id
            and self._messages == other._messages
            and self._metadata == other._metadata
        )

    def __hash__(self) -> int:
        return hash((self._id, len(self._messages)))

    def __repr__(self) -> str:
        return f"Session({self._id}, {len(self._messages)} messages)"

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Not slot by slot: frozen values are pickled as plain ones and must be frozen again.
        return Session.from_dict, (self.to_dict(),)

    def appended(self, *messages: Mapping[str, Any]) -> Session:
        """With messages added at the end."""
        count = len(self._messages)
        added = tuple(_checked(message, count + n) for n, message in enumerate(messages))
        return self._derived(messages=self._messages + added)

    def with_messages(self, messages: Iterable[Mapping[str, Any]]) -> Session:
        """With other messages: the way to edit or remove some."""
        checked = tuple(_checked(message, number) for number, message in enumerate(messages))
        changed = self._derived(messages=checked)
        changed._notes, changed._noted = _Notes(), 0
        return changed

    def with_metadata(self, patch: Mapping[str, Any]) -> Session:
        """With these metadata keys set; a value of None removes its key."""
        kept = {key: value for key, value in self._metadata.items() if key not in patch}
        news = {key: value for key, value in patch.items() if value is not None}
        return self._derived(metadata=frozen({**kept, **news}))

    def branch(self, at: int) -> Session:
        """A new session that goes on after message ``at``; negative numbers count from the end."""
        count = len(self._messages)
        place = at + count if at < 0 else at
        if not 0 <= place < count:
            raise SessionError(
                f"session {self._id} has no message {at}", hint=f"it has {count} messages"
            )
        branched = self._derived(messages=self._messages[: place + 1])
        branched._id = uuid.uuid4().hex
        # What is noted behind this place is of messages that the branch will not have.
        branched._noted = min(self._noted, place + 1)
        return branched

    def _derived(
        self,
        messages: tuple[CoreMessage, ...] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        derived = Session.__new__(Session)
        derived._id = self._id
        derived._messages = self._messages if messages is None else messages
        derived._metadata = self._metadata if metadata is None else metadata
        derived._notes, derived._noted = self._notes, self._noted
        return derived

    def digest(self, count: int) -> str:
        """A digest of the first ``count`` messages; each message is read once in its life."""
        return self._read(count).digests[count - 1] if count else ""

    @property
    def tool_call_ids(self) -> Collection[str]:
        """The ids of all calls in the conversation."""
        count = len(self._messages)
        return CallIds(self._read(count).call_ids, count)

    def _read(self, count: int) -> _Notes:
        """The notes, after the first ``count`` messages have been read."""
        if self._noted >= count:
            return self._notes
        notes = self._notes
        with notes.lock:
            noted = self._noted
            if len(notes.digests) != noted:
                notes = notes.first(noted)
            notes.add(self._messages[noted:count])
            self._notes, self._noted = notes, max(noted, count)
        return notes

    def to_dict(self) -> dict[str, Any]:
        """A plain copy with a schema version, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self._id,
            "messages": thawed(self._messages),
            "metadata": thawed(self._metadata),
        }

    @classmethod
    def from_dict(cls, document: object) -> Session:
        """The inverse of `to_dict`; a `SessionError` says what is wrong with anything else."""
        if not isinstance(document, Mapping):
            raise SessionError(f"a session is an object, not {type(document).__name__}")
        version = document.get("schema_version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise SessionError(
                f"schema_version is {version!r}", hint="only what to_dict wrote can be read"
            )
        if version > SCHEMA_VERSION:
            raise SessionError(
                f"the session has schema version {version}, this host reads up to {SCHEMA_VERSION}",
                hint="upgrade agent-host",
            )
        identity, messages = document.get("id"), document.get("messages")
        metadata = document.get("metadata", {})
        if not isinstance(identity, str) or not identity:
            raise SessionError(f"id is {identity!r}", hint="it must be a string")
        if not isinstance(messages, (list, tuple)):
            raise SessionError("messages is not a list")
        if not isinstance(metadata, Mapping):
            raise SessionError("metadata is not an object")
        return cls(messages, metadata, id=identity)


def _checked(message: Mapping[str, Any], number: int) -> CoreMessage:
    if not isinstance(message, Mapping):
        raise SessionError(f"message {number} is {type(message).__name__}, not an object")
    role, content = message.get("role"), message.get("content", "")
    if role not in _ROLES:
        raise SessionError(
            f"message {number} has role {role!r}", hint=f"use one of {', '.join(_ROLES)}"
        )
    if not isinstance(content, str):
        raise SessionError(
            f"the content of message {number} is {type(content).__name__}, not text",
            hint="put images and other parts into multipartContent",
        )
    metadata = message.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise SessionError(f"the metadata of message {number} is not an object")
    return cast(CoreMessage, frozen({**message, "content": content, "metadata": dict(metadata)}))


def _call_ids(message: CoreMessage) -> Iterator[str]:
    calls = message["metadata"].get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        call_id = (call.get("id") or call.get("call_id")) if isinstance(call, dict) else None
        if isinstance(call_id, str):
            yield call_id


def _digest(previous: str, message: CoreMessage) -> str:
    metadata = {k: v for k, v in message["metadata"].items() if k != "native_indices"}
    told = {**message, "metadata": metadata}
    try:
        text = json.dumps(told, sort_keys=True, default=repr)
    except TypeError:
        # Keys that JSON cannot sort; such a message cannot be stored, but it can be sent.
        text = repr(told)
    return blake2b(
        f"{previous}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
