"""What the built-in store costs by the length of a session, and how quickly it finds words.

To open a session is to read its summary and the messages that a screen shows. Loading all of it, as
going on with a model needs, is linear and stands beside without a goal; what a person waits for it
is measured in `benchmarks.storing`.
"""

from __future__ import annotations

import random
import tempfile
import time
from functools import partial
from pathlib import Path

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store import (
    Change,
    Checkpoint,
    NativeChange,
    SessionLease,
    SessionSummary,
    current_owner,
    new_id,
)
from agent_host.store.sqlite import SqliteStore
from benchmarks.measure import Table, Task, interleaved, progress, show

SIZES = (100, 10_000)
#: Messages of all sessions, among which words are looked for.
SEARCHED = 100_000
ROUNDS = 15
#: Calls that are timed together, because one alone is shorter than what disturbs it.
CALLS = 20
_SHOWN = 50
_VOCABULARY = [f"w{number}" for number in range(20_000)]
#: A word that few messages have, two that hardly any has, one that all have, one that none has, and
#: beginnings of words that a few, many and all messages have.
QUERIES = ("w17", "w17 w18", "the", "nothing", "w199*", "w17*", "w*")


def run(quick: bool) -> list[Table]:
    sizes = (100, 1_000) if quick else SIZES
    searched = 2_000 if quick else SEARCHED
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "sessions.db"))
        progress("sessions to store")
        leases = {size: fill_session(store, size) for size in sizes}
        for _ in range(max(1, (searched - sum(sizes)) // sizes[-1])):
            fill_session(store, sizes[-1])
        progress("store")
        tables = [
            lengths(store, leases, 2 if quick else ROUNDS),
            searches(store, 2 if quick else ROUNDS),
        ]
        store.close()
    return tables


def fill_session(store: SqliteStore, count: int) -> SessionLease:
    """A session of so many messages, each with a native."""
    session = new_id()
    # Other words in each, because what is the same is stored once.
    chance = random.Random(session)
    store.create_session(SessionSummary(id=session))
    lease = store.acquire_lease(session, current_owner())
    for first in range(0, count, 1000):
        added = [make_message(chance, place) for place in range(first, min(first + 1000, count))]
        natives = NativeChange(
            unchanged=first,
            added=[{"role": each["role"], "parts": [{"text": each["content"]}]} for each in added],
            origin=["acme", "https://acme.example"],
            checkpoints=[
                Checkpoint(place, place, "0" * 32)
                for place in range(first + 2, first + len(added) + 1, 2)
            ],
        )
        store.append(lease, Change(messages=added, natives=natives))
    return lease


def make_message(chance: random.Random, place: int) -> CoreMessage:
    words = " ".join(chance.choices(_VOCABULARY, k=50))
    role = "assistant" if place % 2 else "user"
    return {"role": role, "content": f"{words} the end", "metadata": {}}  # type: ignore[typeddict-item]


def lengths(store: SqliteStore, leases: dict[int, SessionLease], rounds: int) -> Table:
    table = Table("CPU by the length of a session (µs)", name="lengths")
    few, many = leases
    for what, call in (
        ("open", open_session),
        ("list", list_sessions),
        ("add a turn", add_turn),
    ):
        tasks: dict[str, Task] = {
            str(size): partial(repeat, CALLS, partial(call, store, lease))
            for size, lease in leases.items()
        }
        found = interleaved(tasks, rounds)
        base = found[str(few)].times(1e6 / CALLS)
        table.add(f"{what}: {few} messages", base, base)
        longer = found[str(many)].times(1e6 / CALLS)
        table.add(f"{what}: {many} messages", longer, base, goal="session_length")
    for size, lease in leases.items():
        tasks = {"load": partial(load_session, store, lease)}
        found = interleaved(tasks, max(2, rounds // 3))
        table.add(f"load all: {size} messages", found["load"].times(1e6))
    return table


def searches(store: SqliteStore, rounds: int) -> Table:
    table = Table("Time of a search, the latest 20 messages (ms)", name="searches")
    tasks: dict[str, Task] = {
        query: partial(repeat, CALLS, partial(search, store, query)) for query in QUERIES
    }
    found = interleaved(tasks, rounds, clock=time.perf_counter)
    for query in QUERIES:
        table.add(f"search: {query}", found[query].times(1000 / CALLS), goal="search")
    return table


def repeat(times: int, task: Task) -> None:
    for _ in range(times):
        task()


def open_session(store: SqliteStore, lease: SessionLease) -> None:
    store.find_session(lease.session)
    store.read_messages(lease.session, -_SHOWN, _SHOWN)


def list_sessions(store: SqliteStore, lease: SessionLease) -> None:
    store.list_sessions()


def add_turn(store: SqliteStore, lease: SessionLease) -> None:
    count = store.find_session(lease.session).message_count
    asked = make_message(random.Random(), 0)
    # In the place of the one before, so that the session stays as long as it is.
    store.append(lease, Change(messages=[asked], after=count - 1))


def load_session(store: SqliteStore, lease: SessionLease) -> None:
    store.load_history(lease.session)


def search(store: SqliteStore, text: str) -> None:
    store.search_messages(text)


if __name__ == "__main__":
    show(run(quick=False))
