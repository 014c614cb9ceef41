"""What storing adds to a streamed request, and what it takes to go on with what was stored.

The first is the same run with and without a store, in one process. A run is stored when it begins
and when its answer is whole, so what it adds does not depend on the number of chunks. The goal is
for an answer of 200 chunks that come as a model writes them, one after the other; where all come at
once a request costs a fifth of that, and storing adds the same.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from agent_host import AgentApplication, Session
from benchmarks.cases import PROMPT, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, Task, interleaved, progress, show
from benchmarks.processes import place
from benchmarks.server import running

CHUNKS = 200
#: Runs that are timed together, because one alone is shorter than what disturbs it.
RUNS = 20
ROUNDS = 15
#: Of runs whose chunks come a millisecond apart, which take a fifth of a second each.
PACED_RUNS, PACED_ROUNDS = 5, 7
#: Messages of the sessions that a new process goes on with.
LENGTHS = (100, 10_000)
PROCESSES = 9

_GO_ON = """\
import json, sys
from agent_host import AgentApplication
store, session, prompt, options = sys.argv[1:]
with AgentApplication({}, store=store) as app:
    app.run(prompt, session=session, **json.loads(options))
"""


@contextmanager
def applications(folder: Path) -> Iterator[dict[str, AgentApplication]]:
    stores: dict[str, str | bool] = {
        "nothing stored": False,
        "stored": f"sqlite:///{folder / 'sessions.db'}",
        "stored in memory": ":memory:",
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(AgentApplication({}, store=store))
            for name, store in stores.items()
        }


def run(quick: bool) -> list[Table]:
    return [storing(quick), going_on(quick)]


def storing(quick: bool) -> Table:
    progress("storing")
    table = Table(f"CPU of a streamed run of {CHUNKS} chunks (ms)", name="storing")
    with (
        tempfile.TemporaryDirectory() as folder,
        running() as server,
        applications(Path(folder)) as apps,
    ):
        for label, transfer, make in (
            ("chunks 1 ms apart, new sessions, sync", "paced", _new_sessions),
            ("chunks 1 ms apart, new sessions, async", "paced", _new_sessions_async),
            ("all chunks at once, new sessions, sync", "each", _new_sessions),
            ("all chunks at once, one session, sync", "each", _one_session),
            ("all chunks at once, new sessions, async", "each", _new_sessions_async),
        ):
            is_paced = transfer == "paced"
            runs, rounds = (PACED_RUNS, PACED_ROUNDS) if is_paced else (RUNS, ROUNDS)
            runs, rounds = (1, 1) if quick else (runs, rounds)
            options = _options(Case("chat", "text", CHUNKS, transfer), server)
            tasks = {name: make(app, runs, options) for name, app in apps.items()}
            found = interleaved(tasks, rounds)
            base = found["nothing stored"].times(1000 / runs)
            for name, samples in found.items():
                goal = "storing" if is_paced and name == "stored" else None
                table.add(f"{label}: {name}", samples.times(1000 / runs), base, goal=goal)
    return table


def going_on(quick: bool) -> Table:
    """A process that opens a stored session, asks a model once more and ends."""
    progress("going on with stored sessions")
    title = "A process that goes on with a stored session, until it ends (ms)"
    table = Table(title, name="going_on")
    with place() as at, running() as server:
        url = f"sqlite:///{at.folder / 'sessions.db'}"
        options = _options(Case("chat", "text", 5), server)
        with AgentApplication({}, store=url) as app:
            sessions = {
                length: app.run(PROMPT, session=_conversation(length - 2), **options).session.id
                for length in LENGTHS
            }
        environment = at.environment()
        tasks = {
            str(length): partial(
                at.timed, ["-c", _GO_ON, url, session, PROMPT, json.dumps(options)], environment
            )
            for length, session in sessions.items()
        }
        found = interleaved(tasks, 1 if quick else PROCESSES)
    base = found[str(LENGTHS[0])].times(1000)
    for length, samples in found.items():
        goal = "session_length" if length == str(LENGTHS[-1]) else None
        table.add(f"{length} messages", samples.times(1000), base, goal=goal)
    return table


def _conversation(length: int) -> Session:
    """So many messages of some hundred characters, in turn."""
    return Session(
        {"role": "assistant" if place % 2 else "user", "content": f"{place} {'word ' * 40}"}
        for place in range(length)
    )


def _options(case: Case, server: str) -> dict[str, Any]:
    config = config_of(case, server)
    return {
        "provider": config.pop("provider"),
        "model": config.pop("model"),
        "use_tools": [],
        "settings": config,
    }


def _new_sessions(app: AgentApplication, runs: int, options: dict[str, Any]) -> Task:
    def stream() -> None:
        for _ in range(runs):
            for _ in app.stream(PROMPT, **options):
                continue

    return stream


def _one_session(app: AgentApplication, runs: int, options: dict[str, Any]) -> Task:
    def stream() -> None:
        session = None
        for _ in range(runs):
            session = app.run(PROMPT, session=session, **options).session

    return stream


def _new_sessions_async(app: AgentApplication, runs: int, options: dict[str, Any]) -> Task:
    async def stream() -> None:
        for _ in range(runs):
            async for _ in app.astream(PROMPT, **options):
                continue
        await app.core.async_wire.aclose()

    return lambda: asyncio.run(stream())


if __name__ == "__main__":
    show(run(quick=False))
