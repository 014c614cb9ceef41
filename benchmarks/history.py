"""How the cost of one turn grows with the conversation before it.

A turn has to send the whole history, so the time to write it as JSON is measured on its own and
taken off; what remains should not depend on how long the conversation is.
"""

from __future__ import annotations

import json
from typing import Any

import httpx

from agent_host import AgentCore, Session
from agent_host.loading.loader import load_catalog
from agent_host.wire.sending import content_of
from benchmarks.cases import WIRES, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, Task, interleaved, progress, show
from benchmarks.server import running

SIZES = (100, 1_000, 10_000)
ROUNDS = 9
TURNS = 5


def run(quick: bool) -> list[Table]:
    sizes = SIZES[:2] if quick else SIZES
    table = Table("CPU of one turn by the length of the history, without the body's JSON (µs)")
    bodies = Table("CPU of the body's JSON alone (µs)")
    catalog = load_catalog()
    installed = {record.name for record in catalog.usable("provider")}
    with running() as server, AgentCore(catalog=catalog) as core:
        for name, wire in WIRES.items():
            if wire.provider not in installed:
                table.notes.append(f"{wire.label} is left out: {wire.distribution} is missing")
                continue
            progress(f"long conversations, {name}")
            config = config_of(Case(name, "whole", 50, "length"), server)
            tasks: dict[str, Task] = {}
            for size in sizes:
                session = conversation(core, config, size)
                tasks[f"turn {size}"] = _turns(core, session, config)
                tasks[f"body {size}"] = _bodies(session, config)
            found = interleaved(tasks, 2 if quick else ROUNDS)
            shortest = None
            for size in sizes:
                turn, body = (found[f"{k} {size}"].times(1e6 / TURNS) for k in ("turn", "body"))
                rest = turn.less(body)
                shortest = shortest or rest
                goal = "history" if size == SIZES[-1] else None
                table.add(f"{wire.label}, {size} messages", rest, shortest, goal=goal)
                bodies.add(f"{wire.label}, {size} messages", body)
    return [table, bodies]


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


def _turns(core: AgentCore, session: Session, config: dict[str, Any]) -> Task:
    def run_turns() -> None:
        for _ in range(TURNS):
            core.send_request(session, config)

    return run_turns


def _bodies(session: Session, config: dict[str, Any]) -> Task:
    body = sent_body(session, config)

    def write() -> None:
        for _ in range(TURNS):
            content_of(body)

    return write


def sent_body(session: Session, config: dict[str, Any]) -> Any:
    """The body that a turn of the session sends."""
    sent: list[bytes] = []
    with httpx.Client() as real:

        def pass_on(request: httpx.Request) -> httpx.Response:
            sent.append(request.read())
            answer = real.request(request.method, request.url, content=sent[-1])
            return httpx.Response(answer.status_code, content=answer.content)

        client = httpx.Client(transport=httpx.MockTransport(pass_on))
        with AgentCore(catalog=load_catalog(), http_client=client) as core:
            core.send_request(session, config)
    return json.loads(sent[-1])


if __name__ == "__main__":
    show(run(quick=False))
