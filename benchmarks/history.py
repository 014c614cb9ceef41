"""What a whole turn of a long conversation costs, beside httpx that writes and sends the same body.

Both write the body as JSON. Ours also finds what it has retained, renders what is new, and leaves a
session with the answer and the native history that the next turn begins with.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

import httpx

from agent_host import AgentCore, Session
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.load import load_catalog
from benchmarks.cases import WIRES, Case
from benchmarks.drivers.ours import config_of
from benchmarks.measure import Table, Task, interleaved, progress, show
from benchmarks.server import running

SIZES = (100, 1_000, 10_000)
ROUNDS = 9
TURNS = 5


class Post(NamedTuple):
    """A request as a turn sends it."""

    url: str
    headers: dict[str, str]
    body: Any


def run(quick: bool) -> list[Table]:
    sizes = SIZES[:2] if quick else SIZES
    table = Table("CPU of one whole turn, and of httpx with the same body (µs)")
    catalog = load_catalog()
    installed = {record.name for record in catalog.usable("provider")}
    with running() as server, AgentCore(catalog=catalog) as core, httpx.Client() as client:
        for name, wire in WIRES.items():
            if wire.provider not in installed:
                table.notes.append(f"{wire.label} is left out: {wire.distribution} is missing")
                continue
            progress(f"long conversations, {name}")
            config = config_of(Case(name, "whole", 50, "length"), server)
            tasks: dict[str, Task] = {}
            for size in sizes:
                session = conversation(core, config, size)
                posts = sent_posts(catalog, session, config)
                tasks[f"ours {size}"] = partial(send_turns, core, session, config)
                tasks[f"httpx {size}"] = partial(send_posts, client, posts)
            found = interleaved(tasks, 2 if quick else ROUNDS)
            for size in sizes:
                label = f"{wire.label}, {size} messages"
                ours, base = (
                    found[f"{who} {size}"].times(1e6 / TURNS) for who in ("ours", "httpx")
                )
                table.add(f"{label}: ours", ours, base, goal="history")
                table.add(f"{label}: httpx", base, base)
    return [table]


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


def send_turns(core: AgentCore, session: Session, config: dict[str, Any]) -> None:
    """Some turns one after another, each with what the ones before have left."""
    for _ in range(TURNS):
        session, _ = core.send_request(session, config)
        session = core.add_message(session, "user", "And now?")


def sent_posts(catalog: Catalog, session: Session, config: dict[str, Any]) -> list[Post]:
    """What these turns send."""
    sent: list[httpx.Request] = []
    with (
        httpx.Client(event_hooks={"request": [sent.append]}) as client,
        AgentCore(catalog=catalog, http_client=client) as core,
    ):
        send_turns(core, session, config)
    return [
        Post(str(each.url), dict(each.headers), json.loads(each.content))
        for each in sent
        if each.method == "POST"
    ]


def send_posts(client: httpx.Client, posts: list[Post]) -> None:
    """The same requests, by hand."""
    for post in posts:
        client.post(post.url, headers=post.headers, json=post.body).json()


if __name__ == "__main__":
    show(run(quick=False))
