"""How the cost of one turn grows with the conversation before it.

A turn has to send the whole history, so the time to write it as JSON is taken off; what remains
should not depend on how long the conversation is. A second table has the whole turn, beside httpx
that writes and sends the same body and does nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import httpx

from agent_host import AgentCore, Session
from agent_host.plugins.load import load_catalog
from agent_host.wire import http, sending
from benchmarks.cases import WIRES, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Samples, Table, Task, interleaved, progress, show
from benchmarks.server import running

SIZES = (100, 1_000, 10_000)
ROUNDS = 9
TURNS = 5


def run(quick: bool) -> list[Table]:
    sizes = SIZES[:2] if quick else SIZES
    table = Table("CPU of one turn by the length of the history, without the body's JSON (µs)")
    whole = Table("CPU of one whole turn, and of httpx with the same body (µs)")
    catalog = load_catalog()
    installed = {record.name for record in catalog.usable("provider")}
    with running() as server, AgentCore(catalog=catalog) as core, httpx.Client() as client:
        for name, wire in WIRES.items():
            if wire.provider not in installed:
                table.notes.append(f"{wire.label} is left out: {wire.distribution} is missing")
                continue
            progress(f"long conversations, {name}")
            config = config_of(Case(name, "whole", 50, "length"), server)
            json: dict[int, list[float]] = {size: [] for size in sizes}
            tasks: dict[str, Task] = {}
            for size in sizes:
                session = conversation(core, config, size)
                tasks[f"ours {size}"] = _turns(core, session, config, json[size])
                tasks[f"httpx {size}"] = _posts(client, _request(core, session, config))
            found = interleaved(tasks, 2 if quick else ROUNDS)
            shortest = None
            for size in sizes:
                label = f"{wire.label}, {size} messages"
                written = Samples(tuple(json[size][1:]))
                turn, base = (
                    found[f"{who} {size}"].times(1e6 / TURNS) for who in ("ours", "httpx")
                )
                rest = turn.less(written.times(1e6 / TURNS))
                shortest = shortest or rest
                table.add(label, rest, shortest, goal="history" if size == SIZES[-1] else None)
                whole.add(f"{label}: ours", turn, base)
                whole.add(f"{label}: httpx", base, base)
    return [table, whole]


def conversation(core: AgentCore, config: dict[str, Any], count: int) -> Session:
    """A session of ``count`` messages whose last turn went through the core."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[n % 2], "content": f"Message {n} of a long conversation."}
        for n in range(count - 2)
    ]
    session = Session([*messages, {"role": "user", "content": "Go on."}])
    session, _ = core.send_request(session, config)
    return core.add_message(session, "user", "And now?")


def _turns(core: AgentCore, session: Session, config: dict[str, Any], json: list[float]) -> Task:
    """Some turns one after another; notes how long their JSON took."""

    def run_turns() -> None:
        talk = session
        with timed_json() as spent:
            for _ in range(TURNS):
                talk, _ = core.send_request(talk, config)
                talk = core.add_message(talk, "user", "And now?")
        json.append(sum(spent))

    return run_turns


@contextmanager
def timed_json() -> Iterator[list[float]]:
    """How long each body took to be written, in the very turn that sends it."""
    spent: list[float] = []

    def content_of(body: Any) -> bytes | None:
        started = time.process_time()
        try:
            return sending.content_of(body)
        finally:
            spent.append(time.process_time() - started)

    with patch.object(http, "content_of", content_of):
        yield spent


def _posts(client: httpx.Client, request: sending.WireRequest) -> Task:
    """The same request as often, by hand."""

    def post() -> None:
        for _ in range(TURNS):
            client.post(request.url, headers=dict(request.headers), json=request.body).json()

    return post


def _request(core: AgentCore, session: Session, config: dict[str, Any]) -> sending.WireRequest:
    """What a turn of the session sends."""
    sent: list[sending.WireRequest] = []

    def headers_of(request: sending.WireRequest, *more: Any) -> dict[str, str]:
        sent.append(request)
        return sending.headers_of(request, *more)

    with patch.object(http, "headers_of", headers_of):
        core.send_request(session, config)
    [request] = sent
    return request


if __name__ == "__main__":
    show(run(quick=False))
