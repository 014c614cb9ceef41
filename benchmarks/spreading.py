"""How many lines of a batch are answered in a second on Ray, to the engine local.

Ray has two workers on two processors of this machine. What it takes to begin, which is a cluster
and two processes that import all there is, stands by itself: the rate is that of the last three
quarters of the lines. It needs the plugin ``ray``, so it is begun by itself:
``python -m benchmarks.spreading``.
"""

from __future__ import annotations

import json
import time
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
        lines, out = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
        texts = [json.dumps({"id": f"l{n}", "prompt": PROMPT}) for n in range(count)]
        lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
        with AgentApplication(settings, store=False) as app:
            for _ in range(rounds):
                for name, options in ENGINES.items():
                    batch = app.batch(
                        lines,
                        out=out,
                        fresh=True,
                        engine=name,
                        engine_options=options,
                        concurrency=CONCURRENCY,
                    )
                    began, times = time.perf_counter(), []
                    for result in batch:
                        assert result["status"] == "succeeded", result
                        times.append(time.perf_counter())
                    starts[name].append(times[0] - began)
                    quarter = count // 4
                    rates[name].append((count - quarter) / (times[-1] - times[quarter - 1]))
    rate = Table("Lines of a batch answered in a second, once it has begun", name="rate")
    begin = Table("Until the first line has its result (s)", name="start")
    for name in ENGINES:
        rate.add(name, Samples(tuple(rates[name])), Samples(tuple(rates["local"])), inverse=True)
        begin.add(name, Samples(tuple(starts[name])))
    return [rate, begin]


if __name__ == "__main__":
    show(run(quick=False))
