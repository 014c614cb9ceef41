"""What storing adds to a streamed request: the same run with and without a store, in one process.

A run is stored when it begins and when its answer is whole, so what it adds does not depend on the
number of chunks. The goal is for an answer of 200 chunks.
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
    rounds, runs = (1, 2) if quick else (ROUNDS, RUNS)
    table = Table(f"CPU of a streamed run of {CHUNKS} chunks (ms)", name="storing")
    with (
        tempfile.TemporaryDirectory() as folder,
        running() as server,
        applications(Path(folder)) as apps,
    ):
        config = config_of(Case("chat", "text", CHUNKS), server)
        options: dict[str, Any] = {
            "provider": config.pop("provider"),
            "model": config.pop("model"),
            "tools": [],
            "settings": config,
        }

        def new_sessions(app: AgentApplication) -> Task:
            def stream() -> None:
                for _ in range(runs):
                    for _ in app.stream(PROMPT, **options):
                        continue

            return stream

        def one_session(app: AgentApplication) -> Task:
            def stream() -> None:
                session = None
                for _ in range(runs):
                    session = app.run(PROMPT, session=session, **options).session

            return stream

        def in_a_loop(app: AgentApplication) -> Task:
            async def stream() -> None:
                for _ in range(runs):
                    async for _ in app.astream(PROMPT, **options):
                        continue
                await app.core.async_wire.aclose()

            return lambda: asyncio.run(stream())

        for label, make in (
            ("new sessions, sync", new_sessions),
            ("one session, sync", one_session),
            ("new sessions, async", in_a_loop),
        ):
            found = interleaved({name: make(app) for name, app in apps.items()}, rounds)
            base = found["nothing stored"].times(1000 / runs)
            for name, samples in found.items():
                goal = "storing" if name == "stored" else None
                table.add(f"{label}: {name}", samples.times(1000 / runs), base, goal=goal)
    return [table]


if __name__ == "__main__":
    show(run(quick=False))
