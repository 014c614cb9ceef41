"""A conversation as an immutable value.

Every change gives a new session that shares what it can with the old one. It knows nothing of
plugins; what they retain in the metadata is theirs.
"""

from __future__ import annotations

import json
import threading
import uuid
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from agent_hookspecs.errors import SessionError
from agent_hookspecs.messages import CoreMessage
from agent_host.sessions.frozen import frozen, thawed, too_deep

__all__ = ["SCHEMA_VERSION", "Session"]

SCHEMA_VERSION = 1

_ROLES = ("system", "user", "assistant", "tool")
_DIGESTED = json.JSONEncoder(sort_keys=True, default=repr)


class _Log:
    """The messages of a conversation, and what is known of them.

    Sessions that differ only in their end share it: the first one to go on adds to it, and any
    other that does goes on with a copy. So nobody may look beyond the messages of their own.
    """

    __slots__ = ("call_ids", "digests", "lock", "messages")

    def __init__(self, messages: Iterable[CoreMessage] = ()) -> None:
        self.messages = [*messages]
        self.digests: list[str] = []
        #: Each id with the place of the message that has it first, in the order of places.
        self.call_ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def grown(self, count: int, messages: Iterable[CoreMessage]) -> _Log:
        """The first ``count`` messages, and then these."""
        with self.lock:
            log = self if len(self.messages) == count else self._first(count)
            log.messages += messages
        return log

    def read(self, count: int) -> _Log:
        """The log itself, after digests and ids of the first ``count`` messages were noted."""
        if len(self.digests) < count:
            with self.lock:
                for place in range(len(self.digests), count):
                    message = self.messages[place]
                    for call_id in _call_ids(message):
                        self.call_ids.setdefault(call_id, place)
                    before = self.digests[-1] if self.digests else ""
                    self.digests.append(_digest(before, message))
        return self

    def _first(self, count: int) -> _Log:
        log = _Log(self.messages[:count])
        log.digests = self.digests[:count]
        log.call_ids = dict(self.call_ids)
        while log.call_ids:
            call_id, place = log.call_ids.popitem()
            if place < count:
                log.call_ids[call_id] = place
                break
        return log


class CallIds(Collection[str]):
    """The ids of the calls in the first ``count`` messages of a log."""

    __slots__ = ("_count", "_places")

    def __init__(self, places: dict[str, int], count: int) -> None:
        self._places = places
        self._count = count

    def __contains__(self, call_id: object) -> bool:
        place = self._places.get(cast(str, call_id))
        return place is not None and place < self._count

    def __iter__(self) -> Iterator[str]:
        # Of a copy that is made at once, because other threads may add to the log meanwhile.
        return iter([call_id for call_id in list(self._places) if call_id in self])

    def __len__(self) -> int:
        # They are in the order of places. Copied at once, as above: another thread may add some.
        return bisect_left(list(self._places.values()), self._count)


class Session:
    """Messages in order, and metadata. Make one with `AgentCore.create_session`."""

    __slots__ = ("_count", "_id", "_log", "_messages", "_metadata")

    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        self._id = id or uuid.uuid4().hex
        self._log = _Log(_checked(message, number) for number, message in enumerate(messages))
        self._count = len(self._log.messages)
        self._messages: tuple[CoreMessage, ...] | None = None
        self._metadata: dict[str, Any] = frozen(dict(metadata or {}))

    @property
    def id(self) -> str:
        return self._id

    @property
    def messages(self) -> Sequence[CoreMessage]:
        """The core messages; they refuse to be changed in place."""
        if self._messages is None:
            # Only for those who ask: it costs as much as the conversation is long.
            self._messages = tuple(self._log.messages[: self._count])
        return self._messages

    @property
    def count(self) -> int:
        """How many messages there are."""
        return self._count

    def since(self, place: int) -> list[CoreMessage]:
        """The messages from that place on."""
        return self._log.messages[place : self._count]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Data of the session as a whole; it refuses to be changed in place too."""
        return self._metadata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Session):
            return NotImplemented
        return (
            self._id == other._id
            and self.messages == other.messages
            and self._metadata == other._metadata
        )

    def __hash__(self) -> int:
        return hash((self._id, self._count))

    def __repr__(self) -> str:
        return f"Session({self._id}, {self._count} messages)"

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Not slot by slot: frozen values are pickled as plain ones and must be frozen again.
        return Session.from_dict, (self.to_dict(),)

    def appended(self, *messages: Mapping[str, Any]) -> Session:
        """With messages added at the end."""
        added = [_checked(message, self._count + n) for n, message in enumerate(messages)]
        return self._derived(self._log.grown(self._count, added), self._count + len(added))

    def with_messages(self, messages: Iterable[Mapping[str, Any]]) -> Session:
        """With other messages: the way to edit or remove some."""
        log = _Log(_checked(message, number) for number, message in enumerate(messages))
        return self._derived(log, len(log.messages))

    def with_metadata(self, patch: Mapping[str, Any]) -> Session:
        """With these metadata keys set; a value of None removes its key."""
        kept = {key: value for key, value in self._metadata.items() if key not in patch}
        news = {key: value for key, value in patch.items() if value is not None}
        changed = self._derived(self._log, self._count)
        changed._messages = self._messages
        changed._metadata = frozen({**kept, **news})
        return changed

    def branch(self, at: int) -> Session:
        """A new session that goes on after message ``at``; negative numbers count from the end."""
        place = at + self._count if at < 0 else at
        if not 0 <= place < self._count:
            raise SessionError(
                f"session {self._id} has no message {at}", hint=f"it has {self._count} messages"
            )
        branched = self._derived(self._log, place + 1)
        branched._id = uuid.uuid4().hex
        return branched

    def _derived(self, log: _Log, count: int) -> Session:
        derived = Session.__new__(Session)
        derived._id = self._id
        derived._log = log
        derived._count = count
        derived._messages = None
        derived._metadata = self._metadata
        return derived

    def digest(self, count: int) -> str:
        """A digest of the first ``count`` messages; each message is read once in its life."""
        return self._log.read(count).digests[count - 1] if count else ""

    @property
    def tool_call_ids(self) -> Collection[str]:
        """The ids of all calls in the conversation."""
        return CallIds(self._log.read(self._count).call_ids, self._count)

    def to_dict(self) -> dict[str, Any]:
        """A plain copy with a schema version, ready for JSON."""
        try:
            return {
                "schema_version": SCHEMA_VERSION,
                "id": self._id,
                "messages": thawed(self._log.messages[: self._count]),
                "metadata": thawed(self._metadata),
            }
        except RecursionError as error:
            # What could be made may be too deep for whoever stands deeper in calls themselves.
            raise too_deep() from error

    @classmethod
    def from_dict(cls, document: object) -> Session:
        """The inverse of `to_dict`; a `SessionError` says what is wrong with anything else."""
        # Not above: it brings pydantic, and most processes import no session.
        from agent_host.sessions.document import read_document

        try:
            found = read_document(document, SCHEMA_VERSION)
        except RecursionError as error:
            raise too_deep() from error
        return cls(found.messages, found.metadata, id=found.id)


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
        text = _DIGESTED.encode(told)
    except TypeError:
        # Keys that JSON cannot sort; such a message cannot be stored, but it can be sent.
        text = repr(told)
    return blake2b(
        f"{previous}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
