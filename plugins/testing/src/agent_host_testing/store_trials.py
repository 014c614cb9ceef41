"""What a store must survive: writers that are killed, and many that write at once.

Both are run in a process of their own, which has no threads, so that it can fork writers quickly
and kill them: ``python -m agent_host_testing.store_trials kill|crowd URL OPTIONS AMOUNT``. What a
writer was told is stored must be there, and nothing may be there by half.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store import (
    Change,
    Checkpoint,
    NativeChange,
    SessionLockedError,
    SessionStore,
    SessionSummary,
    StoredRun,
    current_owner,
    new_id,
)

__all__ = ["listen", "open_by_hook", "run_trial", "say"]

#: A session is given up after so many writers, so that looking at it stays quick.
_WRITERS = 5
_PROCESSES = 4
_SESSIONS = 40


def run_trial(kind: str, url: str, options: Mapping[str, Any], amount: float) -> str:
    """Run a trial in a process of its own; what it found out, or an error that says what broke.

    ``kill``: ``amount`` writers are killed. ``crowd``: writers share sessions for so many seconds.
    ``runs``: ``amount`` processes that run an agent are killed.
    """
    module = "run_trials" if kind == "runs" else "store_trials"
    command = [sys.executable, "-m", f"agent_host_testing.{module}", kind, url]
    command += [json.dumps(dict(options)), str(amount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def open_by_hook(url: str, options: Mapping[str, Any]) -> SessionStore:
    """The store of a URL, as the host opens it for an application."""
    # Not above: a process that only wants the suites' names does not pay for the host.
    from agent_host.plugins.activate import Activator
    from agent_host.plugins.stores import open_store

    return open_store(url, options, _catalog(), Activator())


@cache
def _catalog() -> Any:
    from agent_host.plugins.load import load_catalog

    return load_catalog()


def _turn(session: str, run: str, number: int) -> Change:
    """What the turn of that number adds: always the same, and large enough to need many pages."""
    chance = random.Random(number)
    text = f"turn {number} " + "x" * chance.choice([10, 500, 9000, 40_000])
    call = {"id": f"call-{number}", "name": "work", "arguments": "{}"}
    messages: list[CoreMessage] = [
        {"role": "user", "content": f"ask {text}", "metadata": {}},
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}},
        {"role": "tool", "content": text, "metadata": {"tool_call_id": call["id"]}},
    ]
    count = 3 * (number + 1)
    return Change(
        messages=messages,
        natives=NativeChange(
            unchanged=count - 3,
            added=[{"native": message} for message in messages],
            origin=["acme", "https://acme.example"],
            checkpoints=[Checkpoint(count, count, f"digest {number}")],
        ),
        metadata={"turns": number + 1},
        run=StoredRun(id=run, session=session, state="running", details={"turns": number + 1}),
        events=[{"type": "turn_end", "turn": number}],
    )


def _count_turns(store: SessionStore, session: str, run: str) -> int:
    """How many turns are stored; an `AssertionError` if one is not whole, or not as it was."""
    found = store.load_history(session)
    turns = int(found.metadata.get("turns", 0))
    wanted = [_turn(session, run, number) for number in range(turns)]
    assert found.messages == [message for turn in wanted for message in turn.messages], "messages"
    natives = [native for turn in wanted for native in turn.natives.added]  # type: ignore[union-attr]
    assert found.natives == natives, "natives"
    assert [each.covered for each in found.checkpoints] == [3 * n + 3 for n in range(turns)]
    if turns:
        assert store.find_run(run).details == {"turns": turns}, "the run"
        events = [stored.event for stored in store.read_events(run)]
        assert events == [event for turn in wanted for event in turn.events], "events"
        text = "ask turn"
        assert store.search_messages(text, limit=1), "no message can be searched for"
    return turns


@dataclass(slots=True)
class _Place:
    """A session that writers work on one after the other, and what is known to be stored in it."""

    session: str = field(default_factory=new_id)
    run: str = field(default_factory=new_id)
    turns: int = 0

    def write(self, store: SessionStore, report: Callable[[str], None]) -> None:
        """What a writer does until it is killed."""
        if not self.turns:
            with suppress(Exception):
                # Nothing is lost: whoever was here before was killed before it could say so.
                store.create_session(SessionSummary(id=self.session))
        turns = _count_turns(store, self.session, self.run)
        assert self.turns <= turns <= self.turns + 1, f"{turns} turns, of which {self.turns} sure"
        lease = store.acquire_lease(self.session, current_owner())
        report(f"found {turns}")
        for number in range(turns, sys.maxsize):
            store.append(lease, _turn(self.session, self.run, number))
            report(f"stored {number + 1}")


def _kill_writers(url: str, options: Mapping[str, Any], rounds: int) -> str:
    chance = random.Random(os.getpid())
    places = [_Place()]
    # Once before the forks, so that writers find everything imported.
    open_by_hook(url, options).close()
    opening = 0.05
    for number in range(rounds):
        if number % _WRITERS == _WRITERS - 1:
            places.append(_Place())
        place = places[-1]
        reader, process = _fork_writer(url, options, place)
        begun = time.monotonic()
        # Some are killed before they have begun, most while they store the turn after this one.
        wanted = chance.choice([0, 0, 1, 2, 3, 5, 8])
        said = listen(reader, wanted, chance.uniform(0, 2 * opening) if not wanted else None)
        if wanted:
            opening = min(opening, (time.monotonic() - begun) / wanted)
            # At any moment of what it does next.
            said += listen(reader, 1, chance.uniform(0, opening))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        said += listen(reader, sys.maxsize, None)
        os.close(reader)
        _take_in(place, said)
    store = open_by_hook(url, options)
    for place in places:
        if place.turns:
            turns = _count_turns(store, place.session, place.run)
            assert place.turns <= turns <= place.turns + 1, f"{turns} turns, {place.turns} sure"
    store.close()
    return f"{rounds} writers were killed, who had stored {sum(p.turns for p in places)} turns"


def _fork_writer(url: str, options: Mapping[str, Any], place: _Place) -> tuple[int, int]:
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return reader, process
    try:
        place.write(open_by_hook(url, options), lambda said: say(writer, said))
    except BaseException:  # Nothing is lost: the parent is told.
        say(writer, "failed " + traceback.format_exc().replace("\n", "\\n"))
    finally:
        os._exit(1)


def say(writer: int, said: str) -> None:
    """Tell the parent something, through a pipe."""
    os.write(writer, f"{said}\n".encode())


def listen(reader: int, lines: int, seconds: float | None) -> bytes:
    """What a writer says: so many lines, or for so long, or until its end."""
    said = b""
    end = None if seconds is None else time.monotonic() + seconds
    while said.count(b"\n") < lines or end is not None:
        left = None if end is None else max(0.0, end - time.monotonic())
        if not select.select([reader], [], [], left)[0]:
            break
        more = os.read(reader, 65536)
        if not more:
            break
        said += more
    return said


def _take_in(place: _Place, said: bytes) -> None:
    # The last line may have been cut off.
    for line in said.decode().split("\n")[:-1]:
        word, _, rest = line.partition(" ")
        assert word != "failed", rest.replace("\\n", "\n")
        place.turns = max(place.turns, int(rest))


def _crowd(url: str, options: Mapping[str, Any], seconds: float) -> str:
    store = open_by_hook(url, options)
    places = [_Place() for _ in range(_SESSIONS)]
    for place in places:
        store.create_session(SessionSummary(id=place.session))
    # Nothing that is open is carried into the writers.
    store.close()
    end = time.monotonic() + seconds
    writers = [_fork_member(url, options, places, end) for _ in range(_PROCESSES)]
    stored: Counter[str] = Counter()
    for reader, process in writers:
        said = listen(reader, sys.maxsize, None)
        os.waitpid(process, 0)
        document = json.loads(said)
        assert isinstance(document, dict), document
        stored.update(document)
    for place in places:
        turns = _count_turns(store, place.session, place.run)
        assert turns == stored[place.session], f"{turns} turns of {stored[place.session]}"
    store.close()
    return f"{_PROCESSES} writers stored {sum(stored.values())} turns in {_SESSIONS} sessions"


def _fork_member(
    url: str, options: Mapping[str, Any], places: list[_Place], end: float
) -> tuple[int, int]:
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return reader, process
    result: object
    try:
        result = _write_among_others(open_by_hook(url, options), places, end)
    except BaseException:  # Nothing is lost: the parent is told.
        result = traceback.format_exc()
    try:
        with open(writer, "w", encoding="utf-8") as file:
            json.dump(result, file)
    finally:
        os._exit(0)


def _write_among_others(store: SessionStore, places: list[_Place], end: float) -> dict[str, int]:
    stored: Counter[str] = Counter()
    chance = random.Random(os.getpid())
    while time.monotonic() < end:
        place = chance.choice(places)
        try:
            lease = store.acquire_lease(place.session, current_owner())
        except SessionLockedError:  # Nothing is lost: another session is tried.
            continue
        turns = store.find_session(place.session).message_count // 3
        for number in range(turns, turns + chance.choice([1, 2, 3])):
            store.append(lease, _turn(place.session, place.run, number))
            stored[place.session] += 1
        store.release_lease(lease)
    store.close()
    return dict(stored)


if __name__ == "__main__":
    _, _kind, _url, _options, _amount = sys.argv
    if _kind == "kill":
        _told = _kill_writers(_url, json.loads(_options), int(float(_amount)))
    else:
        _told = _crowd(_url, json.loads(_options), float(_amount))
    sys.stdout.write(f"{_told}\n")
