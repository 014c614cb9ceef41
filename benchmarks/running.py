"""What a run of an application costs above a request of a core, and other things above a run.

The base asks for an answer in one piece; a run streams it, finds its settings in the config, and
gives the answer of an agent. The typed answer is the same text, held to a schema and checked.
Telemetry is installed, and sends nothing to anybody; the best of many short rounds, in turn, tells
what it costs on a machine that does other work meanwhile, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from agent_host import AgentApplication, AppConfig
from benchmarks.cases import PROMPT, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, Task, interleaved, progress, show
from benchmarks.server import running

#: Runs that are timed together, because one alone is shorter than what disturbs it.
RUNS = 50
ROUNDS = 15
WORDS = 5
#: Chunks of an answer, and runs and rounds, by which telemetry is judged.
CHUNKS, TRACED_RUNS, TRACED_ROUNDS = 200, 5, 300


@dataclass
class Words:
    """What the server's JSON answers hold."""

    words: list[str]


def run(quick: bool) -> list[Table]:
    progress("runs")
    count, rounds = (2, 1) if quick else (RUNS, ROUNDS)
    with running() as server:
        return [
            _runs(server, count, rounds),
            _typed(server, count, rounds),
            _traced(server, *((1, 1) if quick else (TRACED_RUNS, TRACED_ROUNDS))),
        ]


def _application(
    server: str, content: str, size: int = WORDS, denied: Sequence[str] = ()
) -> AgentApplication:
    settings = config_of(Case("chat", content, size), server)
    provider = {key: value for key, value in settings.items() if key != "use_tools"}
    agent = {"provider": "main", "tools": []}
    return AgentApplication(
        AppConfig(providers={"main": provider}, agents={"default": agent}, denied_plugins=[*denied])
    )


def _runs(server: str, count: int, rounds: int) -> Table:
    table = Table(f"CPU of a run with an answer of {WORDS} words (µs)", name="running")
    with _application(server, "text") as app:
        core, streamed = app.core, app.request_config()
        whole = {**streamed, **config_of(Case("chat", "whole", WORDS, "length"), server)}
        session = core.add_message(core.create_session(), "user", PROMPT)

        def stream_request() -> None:
            for _ in core.send_request_stream(session, streamed):
                continue

        tasks = {
            "AgentCore.send_request": _repeat(lambda: core.send_request(session, whole), count),
            "AgentCore.send_request_stream": _repeat(stream_request, count),
            "AgentApplication.run": _repeat(lambda: app.run(PROMPT), count),
        }
        _fill(table, interleaved(tasks, rounds), count, {"AgentApplication.run": "run"})
    return table


def _typed(server: str, count: int, rounds: int) -> Table:
    table = Table("CPU of a run with an answer of a type (µs)", name="typed")
    with _application(server, "json") as app:
        tasks = {
            "as text": _repeat(lambda: app.run(PROMPT).text, count),
            "as a dataclass": _repeat(lambda: app.run(PROMPT, output_type=Words).data, count),
        }
        _fill(table, interleaved(tasks, rounds), count, {"as a dataclass": "typed_run"})
    return table


def _traced(server: str, count: int, rounds: int) -> Table:
    title = f"CPU of a streamed run of {CHUNKS} chunks, with no exporter configured (µs)"
    table = Table(title, name="traced")
    if find_spec("agent_host_otel") is None:
        table.notes.append("agent-host-otel is not installed")
        return table
    with (
        _application(server, "text", CHUNKS, ["otel"]) as plain,
        _application(server, "text", CHUNKS) as traced,
    ):
        apps = {"without telemetry": plain, "with agent-host-otel": traced}
        tasks = {name: _repeat(partial(app.run, PROMPT), count) for name, app in apps.items()}
        found = interleaved(tasks, rounds)
    _fill(table, found, count, {})
    ratio = found["with agent-host-otel"].over(found["without telemetry"]).median
    table.notes.append(f"round by round, the median ratio is {ratio:.4f}")
    table.goals["traced"] = [ratio]
    return table


def _repeat(function: Callable[[], Any], count: int) -> Task:
    def task() -> None:
        for _ in range(count):
            function()

    return task


def _fill(table: Table, found: Any, count: int, goals: dict[str, str]) -> None:
    base = next(iter(found.values())).times(1e6 / count)
    for name, samples in found.items():
        table.add(name, samples.times(1e6 / count), base, goal=goals.get(name))


if __name__ == "__main__":
    show(run(quick=False))
