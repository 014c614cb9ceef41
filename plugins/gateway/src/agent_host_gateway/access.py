"""Who asks, and whether they may: the keys of clients, what they allow, and guesses at them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from agent_host_gateway.keys import Key, KeyList
from agent_host_gateway.refusals import Refused

__all__ = ["OPEN", "Access", "Caller"]

_MAX_GUESSES = 10
_GUESS_SECONDS = 60.0
_MAX_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: ``id`` tells callers apart; without a key everything is allowed."""

    id: str
    name: str
    key: Key | None = None

    def may_use(self, model: str) -> bool:
        return self.key is None or self.key.allows(model)


#: Whoever asks a gateway that has no keys, which listens on this machine alone.
OPEN = Caller("open", "open")


class Access:
    """The door-keeper of one process."""

    def __init__(self, keys: KeyList, *, is_open: bool) -> None:
        self._keys = keys
        #: Whether nobody needs a key while there is none: not where there were some, because who
        #: revokes the last one wants nobody in, and a proxy lets everybody come from this machine.
        self._is_open = is_open
        self._guesses: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def known_keys(self) -> list[Key]:
        """All keys, as they were a moment ago."""
        return self._keys.known()

    async def identify(self, headers: Mapping[str, str], address: str) -> Caller:
        """Who sends these headers, or a refusal."""
        secret = _secret(headers)
        await self._keys.refresh()
        key = None if secret is None else self._keys.find(secret)
        if key is None and secret is not None and not self._has_guessed(address):
            # It may have been made since; who guesses finds no way here to keep the store busy.
            await self._keys.refresh(0)
            key = self._keys.find(secret)
        if key is None:
            if self._is_open and not self._keys.known():
                # Clients cannot be made without a key; any is as good as none here.
                return OPEN
            if secret is None:
                raise self._refusal(
                    address, "a key is needed: send it as Authorization: Bearer KEY"
                )
            raise self._refusal(address, "the key is not known")
        if key.is_expired:
            raise Refused(f"the key {key.name!r} has expired", kind="authentication")
        return Caller(key.id, key.name, key)

    def _has_guessed(self, address: str) -> bool:
        """Whether so many wrong keys came from there that the next one is not believed."""
        count, since = self._guesses.get(address, (0, 0.0))
        return count >= _MAX_GUESSES and time.monotonic() - since <= _GUESS_SECONDS

    def _refusal(self, address: str, message: str) -> Refused:
        """Why somebody is not let in; who tries again and again is told to wait."""
        now = time.monotonic()
        count, since = self._guesses.get(address, (0, now))
        if now - since > _GUESS_SECONDS:
            count, since = 0, now
        self._guesses[address] = count + 1, since
        self._guesses.move_to_end(address)
        while len(self._guesses) > _MAX_ADDRESSES:
            self._guesses.popitem(last=False)
        if count >= _MAX_GUESSES:
            return Refused(
                "too many wrong keys from this address",
                kind="rate_limit",
                retry_after=since + _GUESS_SECONDS - now,
            )
        return Refused(message, kind="authentication", code="invalid_api_key")


def _secret(headers: Mapping[str, str]) -> str | None:
    bearer = headers.get("authorization", "")
    scheme, _, token = bearer.partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or None
