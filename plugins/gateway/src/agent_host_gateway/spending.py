"""What each key has used: requests, tokens and cost by day and model, and requests by minute.

All of it stands in the store as counts, which every worker of every machine adds to. What many
requests have to ask or say at once goes there as one change, so that a process waits for the store
once at a time, however many requests there are.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from agent_hookspecs import Usage
from agent_hookspecs.logs import get_logger
from agent_hookspecs.store import SessionStore, StoreError
from agent_host_gateway.access import Caller
from agent_host_gateway.keys import Key, wait_for_store
from agent_host_gateway.refusals import Refused

__all__ = ["Spending"]

log = get_logger(__name__)

#: How long it takes at most until what a key without limits has used is in the store.
_WRITE_SECONDS = 1.0
#: What is said at once is bounded, so that others can write in between.
_MOST = 500
#: A minute is forgotten when it is over for every clock that is nearly right.
_KEPT_MINUTES = 5
#: How many of the units in which costs are counted make a dollar.
_UNITS = 10**9
#: An upstream may say that it has used anything.
_MOST_AMOUNT = 10**12
_MAX_MODEL = 200
_MINUTES = "gateway.minute."
_TOTALS = "gateway.total."
_USED = "gateway.used."
_FIELDS = ("requests", "input", "output", "cost")


@dataclass(frozen=True, slots=True)
class _Asking:
    """A request that waits for whether its key may make it."""

    key: Key
    answer: asyncio.Future[None]


class Spending:
    """The account of all keys, for one event loop."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._asking: list[_Asking] = []
        self._used: Counter[str] = Counter()
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_minute = 0

    async def admit(self, key: Key) -> None:
        """Count a request of a limited key, or refuse it."""
        asking = _Asking(key, asyncio.get_running_loop().create_future())
        self._asking.append(asking)
        self._write_soon()
        await wait_for_store(asking.answer)

    def note(self, caller: Caller, model: str, usage: Usage) -> None:
        """Add what an answer has used; does not wait."""
        cost = round(usage.get("cost", 0.0) * _UNITS)
        amounts = (1, usage.get("input", 0), usage.get("output", 0), cost)
        day = time.strftime("%Y-%m-%d", time.gmtime())
        is_limited = caller.key is not None and caller.key.is_limited
        for name, amount in zip(_FIELDS, amounts, strict=True):
            bounded = max(0, min(amount, _MOST_AMOUNT))
            self._used[f"{_USED}{day}.{caller.id}.{name}.{model[:_MAX_MODEL]}"] += bounded
            if is_limited and name != "requests":
                kind = "cost" if name == "cost" else "tokens"
                self._used[f"{_TOTALS}{caller.id}.{kind}"] += bounded
        if is_limited:
            self._write_soon()
        else:
            self._write_later()

    def totals(self, key_id: str) -> tuple[int, float]:
        """Tokens and cost of a key, as far as they are written; blocks."""
        tokens, cost = _total_names(key_id)
        found = self._store.add_counts({tokens: 0, cost: 0})
        return found[tokens], found[cost] / _UNITS

    def rows(self, since: str) -> list[dict[str, Any]]:
        """What each key has used from a day on, by day and model, as far as written; blocks."""
        found = self._store.list_counts(f"{_USED}{since}", f"{_USED}~")
        rows: dict[tuple[str, str, str], dict[str, Any]] = defaultdict(dict)
        for name, amount in found.items():
            day, key, field, model = name.removeprefix(_USED).split(".", 3)
            rows[day, key, model][field] = amount / _UNITS if field == "cost" else amount
        nothing = dict.fromkeys(_FIELDS, 0)
        return [
            {"key": key, "day": day, "model": model, **nothing, **amounts}
            for (day, key, model), amounts in sorted(rows.items())
        ]

    async def close(self) -> None:
        """Write what is left."""
        if self._used:
            self._write_soon()
        if self._writing is not None:
            await asyncio.wait({self._writing})
        if self._timer is not None:
            self._timer.cancel()

    def _write_soon(self) -> None:
        """Write when nobody does; whoever does goes on until nothing is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_on())

    def _write_later(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_WRITE_SECONDS, self._write_soon)

    async def _write_on(self) -> None:
        try:
            while self._asking or self._used:
                asking, self._asking = self._asking[:_MOST], self._asking[_MOST:]
                used, self._used = self._used, Counter()
                if not await self._write(asking, used):
                    # Nothing is lost: it is kept, and written with what comes next.
                    self._write_later()
                    break
        finally:
            self._writing = None

    async def _write(self, asking: list[_Asking], used: Counter[str]) -> bool:
        now = int(time.time())
        minute = now // 60
        amounts = Counter(used)
        for each in asking:
            for name in _total_names(each.key.id):
                amounts[name] += 0
            if each.key.requests_per_minute is not None:
                amounts[_minute_name(minute, each.key)] += 1
        try:
            sums = await asyncio.to_thread(self._count, dict(amounts), minute)
        except StoreError as error:
            log.warning("usage_not_written", error=error.message, counts=len(used))
            self._used += used
            for each in asking:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return False
        for each in asking:
            refused = _refuse_budget(each.key, sums)
            if each.key.requests_per_minute is not None:
                # Of those that were counted together, each has its own place.
                name = _minute_name(minute, each.key)
                amounts[name] -= 1
                refused = refused or _refuse_rate(each.key, sums[name] - amounts[name], now)
            if each.answer.done():
                continue
            if refused is None:
                each.answer.set_result(None)
            else:
                each.answer.set_exception(refused)
        return True

    def _count(self, amounts: dict[str, int], minute: int) -> dict[str, int]:
        if minute != self._last_minute:
            self._last_minute = minute
            self._store.remove_counts(_MINUTES, f"{_MINUTES}{minute - _KEPT_MINUTES}")
        return self._store.add_counts(amounts)


def _total_names(key_id: str) -> tuple[str, str]:
    return f"{_TOTALS}{key_id}.tokens", f"{_TOTALS}{key_id}.cost"


def _minute_name(minute: int, key: Key) -> str:
    return f"{_MINUTES}{minute}.{key.id}"


def _refuse_budget(key: Key, sums: dict[str, int]) -> Refused | None:
    tokens, cost = (sums[name] for name in _total_names(key.id))
    if key.budget_tokens is not None and tokens >= key.budget_tokens:
        return Refused(
            f"the key {key.name!r} has used {tokens} of {key.budget_tokens} tokens", kind="budget"
        )
    if key.budget is not None and cost >= key.budget * _UNITS:
        return Refused(
            f"the key {key.name!r} has used up its budget of {key.budget:g} US dollars",
            kind="budget",
        )
    return None


def _refuse_rate(key: Key, count: int, now: int) -> Refused | None:
    if key.requests_per_minute is None or count <= key.requests_per_minute:
        return None
    return Refused(
        f"the key {key.name!r} may ask {key.requests_per_minute} times a minute",
        kind="rate_limit",
        code="rate_limit_exceeded",
        retry_after=60 - now % 60,
    )
