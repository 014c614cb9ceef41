"""What storing adds to a streamed request: the same run with and without a store, in one process.

A run is stored when it begins and when its answer is whole, so what it adds does not depend on the
number of chunks. The goal is for an answer of 200 chunks that come as a model writes them, one
after the other; where all come at once a request costs a fifth of that, and storing adds the same.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from agent_host import AgentApplication
from benchmarks.cases import PROMPT, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, Task, interleaved, progress, show
from benchmarks.server import running

CHUNKS = 200
#: Runs that are timed together, because one alone is shorter than what disturbs it.
RUNS = 20
ROUNDS = 15
#: Of runs whose chunks come a millisecond apart, which take a fifth of a second each.
PACED_RUNS, PACED_ROUNDS = 5, 7


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
    return [table]


def _options(case: Case, server: str) -> dict[str, Any]:
    config = config_of(case, server)
    return {
        "provider": config.pop("provider"),
        "model": config.pop("model"),
        "tools": [],
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
