"""A conversation as an immutable value.

Every change gives a new session that shares what it can with the old one. It knows nothing of
plugins; what they retain in the metadata is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b, sha256
from itertools import count
from typing import Any, cast

from agent_hookspecs.errors import SessionError
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.rules import new_id
from agent_host.sessions.frozen import freeze, plain_copy, too_deep_error
from agent_host.sessions.messages import StoredMessages

__all__ = ["SCHEMA_VERSION", "Session", "check_message"]

SCHEMA_VERSION = 1

_ROLES = ("system", "user", "assistant", "tool")
_NO_DIGESTS: tuple[int, list[str]] = 0, [""]
#: What is frozen contains no circles.
_ENCODER = json.JSONEncoder(sort_keys=True, default=repr, check_circular=False)
#: Characters from which on the content of a message is digested by itself.
_LONG_TEXT = 1 << 18


class Session:
    """Messages in order, and metadata. Make one with `AgentCore.create_session`."""

    __slots__ = ("_digests", "_id", "_known_call_ids", "_messages", "_metadata")

    _messages: tuple[CoreMessage, ...] | StoredMessages
    #: A number of messages, and the digests of as many messages, of one more, and so on, as far as
    #: anybody has asked. The list is replaced and never changed, because sessions that begin alike,
    #: in whatever thread, share it.
    _digests: tuple[int, list[str]]
    #: None if they stand in stored messages for which nobody has asked yet.
    _known_call_ids: frozenset[str] | None

    def __init__(
        self,
        messages: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        self._id = id or new_id()
        self._messages = _check_messages(messages)
        self._known_call_ids = frozenset(_call_ids(self._messages))
        self._digests = _NO_DIGESTS
        self._metadata: dict[str, Any] = freeze(dict(metadata or {}))

    @classmethod
    def restore(
        cls,
        id: str,
        messages: Sequence[CoreMessage],
        metadata: Mapping[str, Any],
        digest: str = "",
    ) -> Session:
        """A session as a store gives it back; its messages were checked before they were stored.

        ``digest`` is that of all messages, if it was stored with them.
        """
        session = cls((), metadata, id=id)
        session._messages = StoredMessages(messages)
        session._known_call_ids = None
        if digest:
            session._digests = len(messages), [digest]
        return session

    @property
    def id(self) -> str:
        return self._id

    @property
    def messages(self) -> Sequence[CoreMessage]:
        """The core messages; they refuse to be changed in place."""
        return self._messages

    @property
    def count(self) -> int:
        """How many messages there are."""
        return len(self._messages)

    def since(self, place: int) -> list[CoreMessage]:
        """The messages from that place on."""
        return [*self._messages[place:]]

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
        return hash((self._id, self.count))

    def __repr__(self) -> str:
        return f"Session({self._id}, {self.count} messages)"

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, memo: object) -> Session:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Not slot by slot: frozen values are pickled as plain ones and must be frozen again.
        return Session.from_dict, (self.to_dict(),)

    def with_added(self, *messages: Mapping[str, Any]) -> Session:
        """With messages added at the end."""
        added = _check_messages(messages, self.count)
        session = self._copy()
        session._messages = self._messages + added
        if self._known_call_ids is not None and (ids := frozenset(_call_ids(added))):
            session._known_call_ids = self._known_call_ids | ids
        return session

    def with_messages(self, messages: Iterable[Mapping[str, Any]]) -> Session:
        """With other messages: the way to edit or remove some."""
        return Session(messages, self._metadata, id=self._id)

    def with_metadata(self, patch: Mapping[str, Any]) -> Session:
        """With these metadata keys set; a value of None removes its key."""
        patched = {**self._metadata, **patch}
        session = self._copy()
        session._metadata = freeze(
            {k: v for k, v in patched.items() if v is not None or k not in patch}
        )
        return session

    def branch(self, at: int) -> Session:
        """A new session that goes on after message ``at``; negative numbers count from the end."""
        place = at + self.count if at < 0 else at
        if not 0 <= place < self.count:
            raise SessionError(
                f"session {self._id} has no message {at}", hint=f"it has {self.count} messages"
            )
        session = self._copy()
        session._id = new_id()
        session._messages = self._messages[: place + 1]
        session._known_call_ids = None
        first, digests = self._digests
        known = digests[: max(0, place + 2 - first)]
        session._digests = (first, known) if known else _NO_DIGESTS
        return session

    def _copy(self) -> Session:
        """A session with the same content, which the caller is about to change."""
        session = Session.__new__(Session)
        session._id = self._id
        session._messages = self._messages
        session._known_call_ids = self._known_call_ids
        session._digests = self._digests
        session._metadata = self._metadata
        return session

    def digest(self, count: int) -> str:
        """A digest of the first ``count`` messages; each is read once while a session goes on."""
        first, digests = self._digests if count >= self._digests[0] else _NO_DIGESTS
        last = first + len(digests) - 1
        if last < count:
            digests = digests[:]
            for message in self._messages[last:count]:
                digests.append(_digest(digests[-1], message))
            self._digests = first, digests
        return digests[count - first]

    @property
    def tool_call_ids(self) -> Collection[str]:
        """The ids of all calls in the conversation; messages are read when somebody looks."""
        return _CallIds(self)

    def _call_ids(self) -> frozenset[str]:
        if self._known_call_ids is None:
            self._known_call_ids = frozenset(_call_ids(self._messages))
        return self._known_call_ids

    def to_dict(self) -> dict[str, Any]:
        """A plain copy with a schema version, ready for JSON."""
        try:
            return {
                "schema_version": SCHEMA_VERSION,
                "id": self._id,
                "messages": plain_copy(self._messages[:]),
                "metadata": plain_copy(self._metadata),
            }
        except RecursionError as error:
            # What could be made may be too deep for whoever stands deeper in calls themselves.
            raise too_deep_error() from error

    def shared_dict(self) -> dict[str, Any]:
        """The same as `to_dict`, to read: what is in it is the session's own."""
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self._id,
            "messages": [*self._messages],
            "metadata": self._metadata,
        }

    @classmethod
    def from_dict(cls, document: object) -> Session:
        """The inverse of `to_dict`; a `SessionError` says what is wrong with anything else."""
        # Not above: it brings pydantic, and most processes import no session.
        from agent_host.sessions.document import read_document

        try:
            found = read_document(document, SCHEMA_VERSION)
        except RecursionError as error:
            raise too_deep_error() from error
        return cls(found.messages, found.metadata, id=found.id)


class _CallIds(Collection[str]):
    """The ids of a session's calls; which ones is known when somebody first asks."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __contains__(self, id: object) -> bool:
        return id in self._read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> frozenset[str]:
        return self._session._call_ids()


def _check_messages(
    messages: Iterable[Mapping[str, Any]], first: int = 0
) -> tuple[CoreMessage, ...]:
    return tuple(map(check_message, messages, count(first)))


def check_message(message: Mapping[str, Any], number: int) -> CoreMessage:
    """The message as sessions hold it; ``number`` is for the error that says what is wrong."""
    # A dict is told from other mappings at once, here and below.
    if not isinstance(message, (dict, Mapping)):
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
    if not isinstance(metadata, (dict, Mapping)):
        raise SessionError(f"the metadata of message {number} is not an object")
    return cast(CoreMessage, freeze({**message, "content": content, "metadata": dict(metadata)}))


def _call_ids(messages: Iterable[CoreMessage]) -> Iterator[str]:
    for message in messages:
        calls = message["metadata"].get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            call_id = (call.get("id") or call.get("call_id")) if isinstance(call, dict) else None
            if isinstance(call_id, str):
                yield call_id


def _digest(previous: str, message: CoreMessage) -> str:
    if len(message["content"]) > _LONG_TEXT:
        message = _with_short_content(message)
    text = f"{previous}\n{_digested_text(message)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _with_short_content(message: CoreMessage) -> CoreMessage:
    """The message with a digest of its content in the place of it.

    To write megabytes as JSON would hold up all others. This hash is the quicker one for much.
    """
    content = message["content"].encode("utf-8", "surrogatepass")
    return cast(CoreMessage, {**message, "content": "", "\0content": sha256(content).hexdigest()})


def _digested_text(message: CoreMessage) -> str:
    """All that a message says, whatever the order of its keys; no two say the same."""
    digested: Mapping[str, Any] = message
    if "native_indices" in message["metadata"]:
        others = {k: v for k, v in message["metadata"].items() if k != "native_indices"}
        digested = {**message, "metadata": others}
    if not digested["metadata"] and len(digested) == 3:
        # Nearly all that people say; JSON would begin with a brace.
        return f"{digested['role']} {digested['content']}"
    try:
        return _ENCODER.encode(digested)
    except TypeError:
        # Nothing is lost: a message whose keys cannot be sorted is told apart by its repr.
        return repr(digested)
