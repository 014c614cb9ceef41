"""The gateway's own keys: made, kept as hashes in the store, and found by what a client sends.

A key is 256 random bits, so that a fast hash of it is enough: nobody can try them all.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

from agent_hookspecs import ConfigError
from agent_hookspecs.store import (
    Note,
    NoteChangedError,
    SessionStore,
    StoreCorruptError,
    StoreUnavailableError,
)

__all__ = ["KEPT_SECONDS", "Key", "KeyList", "Keys", "wait_for_store"]

#: For how long what was read of the keys holds: so long a key that was revoked may still open.
KEPT_SECONDS = 2.0
#: How long a request waits for the store before it is refused.
_STORE_SECONDS = 10.0
_PREFIX = "agh_"
#: Begins the names of the notes that are keys.
_NOTES = "gateway.key."
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a key allows: models by pattern, until when, how much and how often, and the console.

    Who has the console sees all sessions and runs of the store.
    """

    id: str
    name: str
    hash: str
    created: float
    expires: float | None = None
    models: tuple[str, ...] = ("*",)
    budget: float | None = None
    budget_tokens: int | None = None
    requests_per_minute: int | None = None
    console: bool = False

    def allows(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)

    @property
    def is_expired(self) -> bool:
        return self.expires is not None and time.time() >= self.expires

    @property
    def is_limited(self) -> bool:
        limits = (self.budget, self.budget_tokens, self.requests_per_minute)
        return any(limit is not None for limit in limits)


class Keys:
    """The keys in a store, for whoever manages them. Methods block."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    def list(self) -> list[Key]:
        """All keys, the oldest first."""
        found = map(_read_key, self._store.list_notes(_NOTES))
        return sorted(found, key=lambda key: key.created)

    def find(self, secret: str) -> Key | None:
        """The key of a secret, expired or not."""
        hashed = _hash(secret)
        return next((key for key in self.list() if key.hash == hashed), None)

    def add(self, name: str, **limits: Any) -> tuple[Key, str]:
        """A new key, and its secret, which is known to nobody afterwards."""
        if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
            raise ConfigError("a key needs a name", key="name", hint="say what it is for")
        secret = _PREFIX + secrets.token_urlsafe(32)
        given = {each: value for each, value in limits.items() if value is not None}
        key = Key(
            id=secrets.token_hex(6), name=name, hash=_hash(secret), created=time.time(), **given
        )
        try:
            self._store.write_note(_NOTES + name, asdict(key))
        except NoteChangedError as error:
            raise ConfigError(
                f"there is a key {name!r} already", key="name", hint="revoke it, or choose another"
            ) from error
        return key, secret

    def revoke(self, name: str) -> Key:
        """Take a key away, by its name or id."""
        notes = self._store.list_notes(_NOTES)
        for note in notes:
            key = _read_key(note)
            if name in (key.name, key.id):
                self._store.write_note(note.name, None, note.version)
                return key
        known = ", ".join(note.name.removeprefix(_NOTES) for note in notes) or "none"
        raise ConfigError(f"there is no key {name!r}", key="name", hint=f"there are: {known}")


class KeyList:
    """The keys as one process knows them: as they were in the store a moment ago."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._known: dict[str, Key] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def known(self) -> list[Key]:
        """All keys, as they were a moment ago."""
        return [*self._known.values()]

    def find(self, secret: str) -> Key | None:
        """The key of a secret, expired or not."""
        return self._known.get(_hash(secret))

    async def refresh(self, seconds: float = KEPT_SECONDS) -> None:
        """Read the keys again unless they are known since so many seconds."""
        if time.monotonic() - self._read_at < seconds:
            return
        # However many wait for them, they are read once at a time.
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await wait_for_store(asyncio.shield(self._reading))

    async def _read(self) -> None:
        begun = time.monotonic()
        try:
            listed = await asyncio.to_thread(self._keys.list)
        finally:
            self._reading = None
        self._known = {key.hash: key for key in listed}
        self._read_at = begun


async def wait_for_store(answer: asyncio.Future[None]) -> None:
    """Wait, but not for ever: a server that has vanished does not say so."""
    try:
        await asyncio.wait_for(answer, _STORE_SECONDS)
    except asyncio.TimeoutError:
        raise StoreUnavailableError(
            f"the store has not answered within {_STORE_SECONDS:g} s",
            hint="see whether its server can be reached",
        ) from None


def _read_key(note: Note) -> Key:
    known = {each.name for each in fields(Key)}
    try:
        taken = {name: value for name, value in note.value.items() if name in known}
        return Key(**{**taken, "models": tuple(taken["models"])})
    except (AttributeError, KeyError, TypeError) as error:
        raise StoreCorruptError(
            f"the note {note.name!r} is no key: {error}",
            hint="a newer version may have written it: upgrade agent-host-gateway",
        ) from error


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
