"""What each key has used: requests, tokens and cost by day and model, and requests by minute.

In a SQLite file beside the keys, which the workers of one machine share. What was used is written
every second or so; requests of limited keys are counted at once, so that no worker lets through
what another has counted.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_hookspecs import Usage
from agent_hookspecs.logs import get_logger
from agent_host_gateway.keys import Key
from agent_host_gateway.refusals import Refused

__all__ = ["Spending"]

log = get_logger(__name__)

_FLUSH_SECONDS = 1.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS used (
    key TEXT, day TEXT, model TEXT, requests INTEGER, input INTEGER, output INTEGER, cost REAL,
    PRIMARY KEY (key, day, model)
);
CREATE TABLE IF NOT EXISTS minutes (
    key TEXT, minute INTEGER, requests INTEGER, PRIMARY KEY (key, minute)
);
"""
_ADD = """
INSERT INTO used VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key, day, model) DO UPDATE SET requests = requests + excluded.requests,
    input = input + excluded.input, output = output + excluded.output, cost = cost + excluded.cost
"""
_COUNT = """
INSERT INTO minutes VALUES (?, ?, 1)
ON CONFLICT (key, minute) DO UPDATE SET requests = requests + 1 RETURNING requests
"""
_ROWS = "SELECT key, day, model, requests, input, output, cost FROM used WHERE day >= ?"
_TOTALS = "SELECT COALESCE(SUM(input + output), 0), COALESCE(SUM(cost), 0) FROM used WHERE key = ?"

#: Requests, tokens in, tokens out, US dollars.
Amounts = tuple[int, int, int, float]
_NOTHING: Amounts = (0, 0, 0, 0.0)


class Spending:
    """The account of all keys. Safe to share between threads; methods may block."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._path = Path(folder) / "used.db"
        self._pending: dict[tuple[str, str, str], Amounts] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._writer: threading.Thread | None = None

    def admit(self, key: Key) -> None:
        """Count a request of a limited key, or refuse it."""
        now = int(time.time())
        with self._open() as connection:
            tokens, cost = connection.execute(_TOTALS, (key.id,)).fetchone()
            for (owner, _, _), (_, given, made, more) in self._snapshot():
                if owner == key.id:
                    tokens, cost = tokens + given + made, cost + more
            if key.budget_tokens is not None and tokens >= key.budget_tokens:
                raise Refused(
                    f"the key {key.name!r} has used {tokens} of {key.budget_tokens} tokens",
                    kind="budget",
                )
            if key.budget is not None and cost >= key.budget:
                raise Refused(
                    f"the key {key.name!r} has used up its budget of {key.budget:g} US dollars",
                    kind="budget",
                )
            if key.requests_per_minute is None:
                return
            minute = now // 60
            connection.execute("DELETE FROM minutes WHERE minute < ?", (minute - 1,))
            (count,) = connection.execute(_COUNT, (key.id, minute)).fetchone()
            if count > key.requests_per_minute:
                raise Refused(
                    f"the key {key.name!r} may ask {key.requests_per_minute} times a minute",
                    kind="rate_limit",
                    code="rate_limit_exceeded",
                    retry_after=60 - now % 60,
                )

    def note(self, key_id: str, model: str, usage: Usage) -> None:
        """Add what an answer has used; does not block."""
        place = key_id, time.strftime("%Y-%m-%d", time.gmtime()), model
        with self._lock:
            more = 1, usage.get("input", 0), usage.get("output", 0), usage.get("cost", 0.0)
            self._pending[place] = _sum(self._pending.get(place, _NOTHING), more)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_on, daemon=True)
                self._writer.start()

    def totals(self, key_id: str) -> tuple[int, float]:
        """Tokens and cost of a key, as far as they are written."""
        with self._open() as connection:
            tokens, cost = connection.execute(_TOTALS, (key_id,)).fetchone()
            return tokens, cost

    def rows(self, since: str) -> list[dict[str, Any]]:
        """What each key has used from a day on, by day and model, as far as it is written."""
        names = ("key", "day", "model", "requests", "input", "output", "cost")
        with self._open() as connection:
            found = connection.execute(_ROWS, (since,)).fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def close(self) -> None:
        """Write what is left."""
        self._ending.set()
        if self._writer is not None:
            self._writer.join()
        self._flush()

    def _snapshot(self) -> list[tuple[tuple[str, str, str], Amounts]]:
        with self._lock:
            return [*self._pending.items()]

    def _write_on(self) -> None:
        while not self._ending.wait(_FLUSH_SECONDS):
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            with self._open() as connection:
                connection.executemany(_ADD, [(*place, *each) for place, each in pending.items()])
        except sqlite3.Error as error:
            log.warning("usage_not_written", error=str(error), keys=len(pending))
            with self._lock:
                for place, amounts in pending.items():
                    self._pending[place] = _sum(amounts, self._pending.get(place, _NOTHING))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction of its own connection, which is quick to open and belongs to its thread."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except Refused:
                # What was counted counts, also if it was one too many.
                connection.execute("COMMIT")
                raise
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        finally:
            connection.close()


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]
