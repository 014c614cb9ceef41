"""What a streamed chunk costs, from the socket to the events, and whether it stays that way.

The base is the shortest loop one would write by hand: httpx, ``iter_lines`` and ``json.loads``,
which throws the chunks away. Ours delivers the whole stream of events through one provider and two
extensions and leaves a session behind.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from agent_host.core import AgentCore
from benchmarks.measure import Table, growth, interleaved, show
from benchmarks.server import running
from tests.openai_like import EXTENSIONS, OpenAiLike

CHUNKS = 2000
ROUNDS = 9
TRANSFERS = {"length": "one length", "chunked": "a chunk an event"}
CONTENTS = ("text", "tools", "reasoning")


class Contestants:
    """The plain loop and the host, sync and async, each with a client of its own."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.client, self.aclient = httpx.Client(), httpx.AsyncClient()
        self.core = AgentCore()
        self.core.register_provider(OpenAiLike, EXTENSIONS)
        self.session = self.core.add_message(self.core.create_session(), "user", "Go on.")
        self.core.warm_up(self.config("text", 1, "length"))
        self.loop = asyncio.new_event_loop()

    def config(self, content: str, count: int, transfer: str) -> dict[str, Any]:
        return {"base_url": f"{self.server}/{content}/{count}/{transfer}", "model": "m"}

    def plain(self, content: str, count: int, transfer: str) -> int:
        url = f"{self.server}/{content}/{count}/{transfer}/chat/completions"
        seen = 0
        with self.client.stream("POST", url, json={"model": "m"}) as response:
            for line in response.iter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    json.loads(line[6:])
                    seen += 1
        return seen

    async def aplain(self, content: str, count: int, transfer: str) -> int:
        url = f"{self.server}/{content}/{count}/{transfer}/chat/completions"
        seen = 0
        async with self.aclient.stream("POST", url, json={"model": "m"}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    json.loads(line[6:])
                    seen += 1
        return seen

    def ours(self, content: str, count: int, transfer: str) -> int:
        seen = 0
        for event in self.core.send_request_stream(
            self.session, self.config(content, count, transfer)
        ):
            if event["type"] == "partial":
                seen += 1
        return seen

    async def aours(self, content: str, count: int, transfer: str) -> int:
        seen = 0
        async for event in self.core.asend_request_stream(
            self.session, self.config(content, count, transfer)
        ):
            if event["type"] == "partial":
                seen += 1
        return seen

    def case(self, name: str, *what: Any) -> Callable[[], None]:
        """A run of one contestant that refuses to have read too little."""
        least = what[1]

        def run() -> None:
            found = getattr(self, name)(*what)
            seen = self.loop.run_until_complete(found) if name.startswith("a") else found
            if seen < least:
                raise RuntimeError(f"{name} read {seen} chunks of {what}")

        return run

    def close(self) -> None:
        self.client.close()
        self.loop.run_until_complete(self.aclient.aclose())
        self.loop.run_until_complete(self.core.aclose())
        self.loop.close()


@contextmanager
def contestants() -> Iterator[Contestants]:
    with running() as server:
        entered = Contestants(server)
        try:
            yield entered
        finally:
            entered.close()


def run(quick: bool) -> list[Table]:
    with contestants() as runners:
        return [per_chunk(runners, quick), linear(runners, quick), memory(runners, quick)]


def per_chunk(runners: Contestants, quick: bool) -> Table:
    table = Table(
        f"CPU per streamed chunk, {CHUNKS} chunks, provider and two extensions (µs)",
        ("stream", "ours", "httpx loop", "ratio", "of medians"),
    )
    names = ("ours", "plain", "aours", "aplain")
    for content in CONTENTS:
        for transfer, described in TRANSFERS.items():
            cases = {name: runners.case(name, content, CHUNKS, transfer) for name in names}
            found = interleaved(cases, 2 if quick else ROUNDS)
            label = f"{content}, {described}"
            table.compare(f"{label}, sync", found["ours"], found["plain"], each=CHUNKS)
            table.compare(f"{label}, async", found["aours"], found["aplain"], each=CHUNKS)
    return table


def linear(runners: Contestants, quick: bool) -> Table:
    few, many = (2_000, 20_000) if quick else (20_000, 200_000)
    table = Table(
        f"{many} chunks against {few} (10 is linear)",
        ("stream", "times the cost", "of medians"),
    )
    for content in ("text", "tools"):
        for name in ("ours", "aours"):
            cases = {
                "few": runners.case(name, content, few, "length"),
                "many": runners.case(name, content, many, "length"),
            }
            found = interleaved(cases, 2 if quick else 3)
            label = f"{content}, {'async' if name == 'aours' else 'sync'}"
            grown = growth(table, label, found["few"], found["many"], many // few)
            table.add(label, least=grown, median=found["many"].median / found["few"].median)
    return table


def memory(runners: Contestants, quick: bool) -> Table:
    count = 2_000 if quick else 20_000
    table = Table(
        "Memory above the start (tracemalloc): while streaming, and with the final's copies",
        ("stream", "kB of text", "kB streaming", "kB at the end"),
    )
    for chunks in (count, count * 4):
        text = sum(len(f" token {number}") for number in range(chunks))
        streaming, ending = _peaks(runners, chunks)
        table.add(
            f"text, {chunks}", text=text / 1e3, streaming=streaming / 1e3, ending=ending / 1e3
        )
    return table


def _peaks(runners: Contestants, chunks: int) -> tuple[int, int]:
    """The peaks before and after the last chunk."""
    config = runners.config("text", chunks, "chunked")
    gc.collect()
    tracemalloc.start()
    seen = streaming = 0
    for event in runners.core.send_request_stream(runners.session, config):
        if event["type"] == "partial":
            seen += 1
            if seen == chunks:
                streaming = tracemalloc.get_traced_memory()[1]
    ending = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return streaming, ending


if __name__ == "__main__":
    show(run(quick=False))
