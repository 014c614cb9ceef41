"""How many lines of a batch are answered in a second, to a loop of asyncio and httpx by hand.

Both read lines of a file, ask for the same streamed answers, so many at a time, and write a line
with each text to a file. The loop by hand does no more than that; ours checks lines, keeps to what
servers allow, has every result on the disk, and can go on after its end.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from agent_host import AgentApplication, AppConfig
from benchmarks.cases import PROMPT, Case, body_of
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Samples, Table, interleaved, progress, show
from benchmarks.server import running

LINES = 1000
ROUNDS = 5
CONCURRENCY = 16
WORDS = 50
BASE = "asyncio and httpx by hand"


def run(quick: bool) -> list[Table]:
    progress("a batch")
    count, rounds = (20, 1) if quick else (LINES, ROUNDS)
    case = Case("chat", "text", WORDS, "each")
    rate = Table(f"Lines of a batch answered in a second, {CONCURRENCY} at a time", name="rate")
    cost = Table("CPU per line of a batch (µs)", name="cpu")
    with running() as server, TemporaryDirectory() as folder:
        lines, out = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
        texts = [json.dumps({"id": f"l{n}", "prompt": PROMPT}) for n in range(count)]
        lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
        config = config_of(case, server)
        del config["use_tools"]
        agent = {"provider": "main", "tools": []}
        settings = AppConfig(providers={"main": config}, agents={"default": agent})
        with AgentApplication(settings, store=False) as app:
            cpu: dict[str, list[float]] = {BASE: [], "app.batch": []}

            def by_hand() -> None:
                asyncio.run(_ask_by_hand(case, server, lines, out))

            def ours() -> None:
                app.batch(lines, out=out, fresh=True, concurrency=CONCURRENCY).run()

            tasks = {
                name: _timed(task, out, cpu[name], count)
                for name, task in zip(cpu, (by_hand, ours), strict=True)
            }
            found = interleaved(tasks, rounds)
    base = found[BASE]
    for name, samples in found.items():
        goal = "batch_rate" if name == "app.batch" else None
        rate.add(name, samples, base, goal=goal, inverse=True)
        # The first round only warms up.
        spent, by_hand_spent = (Samples(tuple(cpu[each][1:])).times(1e6) for each in (name, BASE))
        cost.add(name, spent, by_hand_spent)
    return [rate, cost]


def _timed(
    task: Callable[[], None], out: Path, cpu: list[float], count: int
) -> Callable[[], float]:
    """A task that gives its rate, and notes its CPU time per line."""

    def rate() -> float:
        began, spent = time.perf_counter(), time.process_time()
        task()
        cpu.append((time.process_time() - spent) / count)
        lines_per_second = count / (time.perf_counter() - began)
        _check(out, count)
        return lines_per_second

    return rate


async def _ask_by_hand(case: Case, server: str, lines: Path, out: Path) -> None:
    body, url = body_of(case), case.url(server)
    headers = {"authorization": "Bearer benchmark-key"}
    with lines.open("rb") as file, out.open("w", encoding="utf-8") as results:
        async with httpx.AsyncClient(timeout=60) as client:

            async def work() -> None:
                for line in file:
                    asked = json.loads(line)
                    messages = [{"role": "user", "content": asked["prompt"]}]
                    sent = {**body, "messages": messages}
                    text = ""
                    async with client.stream("POST", url, json=sent, headers=headers) as response:
                        response.raise_for_status()
                        async for event in response.aiter_lines():
                            if event.startswith("data: {"):
                                for choice in json.loads(event[6:])["choices"]:
                                    text += choice["delta"].get("content") or ""
                    results.write(json.dumps({"id": asked["id"], "text": text}) + "\n")

            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


def _check(out: Path, count: int) -> None:
    found = [json.loads(line)["text"] for line in out.read_text("utf-8").splitlines()]
    assert len(found) == count
    assert len({*found}) == 1
    assert found[0]


if __name__ == "__main__":
    show(run(quick=False))
