"""The gateway's own keys: made, kept as hashes in a file, and found by what a client sends.

A key is 256 random bits, so that a fast hash of it is enough: nobody can try them all. The file
lies in the plugin's folder, which no tool may touch, and is read again when it has changed.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent_hookspecs import ConfigError

__all__ = ["Key", "KeyFile"]

_PREFIX = "agh_"
_VERSION = 1


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


class KeyFile:
    """The keys of one gateway."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / "keys.json"
        self._seen: tuple[int, int] | None = None
        self._keys: dict[str, Key] = {}

    def list(self) -> list[Key]:
        """All keys, the oldest first."""
        self._read()
        return sorted(self._keys.values(), key=lambda key: key.created)

    def find(self, secret: str) -> Key | None:
        """The key of a secret, expired or not."""
        self._read()
        return self._keys.get(_hash(secret))

    def add(self, name: str, **limits: Any) -> tuple[Key, str]:
        """A new key, and its secret, which is known to nobody afterwards."""
        if not name.strip():
            raise ConfigError("a key needs a name", key="name", hint="say what it is for")
        if any(key.name == name for key in self.list()):
            raise ConfigError(
                f"there is a key {name!r} already", key="name", hint="revoke it, or choose another"
            )
        secret = _PREFIX + secrets.token_urlsafe(32)
        given = {each: value for each, value in limits.items() if value is not None}
        key = Key(
            id=secrets.token_hex(6), name=name, hash=_hash(secret), created=time.time(), **given
        )
        self._write([*self._keys.values(), key])
        return key, secret

    def revoke(self, name: str) -> Key:
        """Take a key away, by its name or id."""
        for key in self.list():
            if name in (key.name, key.id):
                self._write(each for each in self._keys.values() if each.id != key.id)
                return key
        known = ", ".join(key.name for key in self._keys.values()) or "none"
        raise ConfigError(f"there is no key {name!r}", key="name", hint=f"there are: {known}")

    def _read(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            # Nothing is lost: without a file there are no keys.
            self._seen, self._keys = None, {}
            return
        seen = found.st_mtime_ns, found.st_ino
        if seen == self._seen:
            return
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            known = {each.name for each in fields(Key)}
            listed = [_read_key(each, known) for each in document["keys"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"the file of keys cannot be read: {error}",
                file=str(self._path),
                hint="repair it, or remove it and make new keys",
            ) from error
        self._keys = {key.hash: key for key in listed}
        self._seen = seen

    def _write(self, keys: Iterable[Key]) -> None:
        listed = [asdict(key) for key in keys]
        text = json.dumps({"version": _VERSION, "keys": listed}, indent=1)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._path.with_name(f"keys.{os.getpid()}.{secrets.token_hex(4)}.draft")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as writing:
            writing.write(text)
        # Whole or not at all, for those who read it meanwhile.
        os.replace(draft, self._path)
        self._seen = None
        self._read()


def _read_key(values: dict[str, Any], known: set[str]) -> Key:
    taken = {name: value for name, value in values.items() if name in known}
    return Key(**{**taken, "models": tuple(taken["models"])})


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
