"""How many lines of a batch are answered in a second on Ray, to the engine local.

Ray has two workers on two processors of this machine. What it takes to begin, which is a cluster
and two processes that import all there is, is measured by a batch of two lines and taken off both;
what is left is the rate of a batch that has begun. It needs the plugin ``ray``, so it is begun by
itself: ``python -m benchmarks.spreading``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_host import AgentApplication, AppConfig
from benchmarks.cases import PROMPT, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Samples, Table, progress, show
from benchmarks.server import running

LINES = 3000
ROUNDS = 3
CONCURRENCY = 16
WORDS = 50
ENGINES: dict[str, dict[str, Any]] = {
    "local": {},
    "ray": {"address": "local", "cpus": 2, "workers": 2},
}


def run(quick: bool) -> list[Table]:
    progress("a batch on Ray")
    count, rounds = (20, 1) if quick else (LINES, ROUNDS)
    case = Case("chat", "text", WORDS, "each")
    rates: dict[str, list[float]] = {name: [] for name in ENGINES}
    starts: dict[str, list[float]] = {name: [] for name in ENGINES}
    with running() as server, TemporaryDirectory() as folder:
        config = config_of(case, server)
        del config["use_tools"]
        agent = {"provider": "main", "tools": []}
        settings = AppConfig(providers={"main": config}, agents={"default": agent})
        few, many = _write(Path(folder, "few"), 2), _write(Path(folder, "many"), count)
        with AgentApplication(settings, store=False) as app:
            for _ in range(rounds):
                for name, options in ENGINES.items():
                    answer = _answerer(app, name, options, Path(folder, "out"))
                    start, whole = answer(few), answer(many)
                    starts[name].append(start)
                    rates[name].append((count - 2) / max(whole - start, 1e-9))
    rate = Table("Lines of a batch answered in a second, its start taken off", name="rate")
    begin = Table("A batch of two lines (s)", name="start")
    for name in ENGINES:
        base = Samples(tuple(rates["local"]))
        rate.add(name, Samples(tuple(rates[name])), base, inverse=True)
        begin.add(name, Samples(tuple(starts[name])))
    return [rate, begin]


def _write(file: Path, count: int) -> Path:
    lines = [json.dumps({"id": f"l{n}", "prompt": PROMPT}) for n in range(count)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _answerer(
    app: AgentApplication, engine: str, options: dict[str, Any], out: Path
) -> Callable[[Path], float]:
    def answer(lines: Path) -> float:
        began = time.perf_counter()
        batch = app.batch(
            lines,
            out=out,
            fresh=True,
            engine=engine,
            engine_options=options,
            concurrency=CONCURRENCY,
        )
        assert not batch.run().failed
        return time.perf_counter() - began

    return answer


if __name__ == "__main__":
    show(run(quick=False))
