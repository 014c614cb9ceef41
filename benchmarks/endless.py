"""What a server that does not stop can do to us: how its cost grows, what it holds and blocks.

Tool calls without ids are counted by the CPU they cost, as they grow in number. Answers without end
come in every framing and wire format (`shapes`) until a limit of the host ends them: what is
measured is the memory they take above that of a short answer, and the longest that the event loop
waited before it had another turn. That is CPU time of the process, because a busy machine makes
everybody wait: what a thread does without letting the loop go on counts as well. A process of its
own reads each.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from typing import Any, cast

from agent_hookspecs import AgentError, ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_hookspecs.messages import Framing, State
from agent_host.core import AgentCore
from agent_host.plugins.load import load_catalog
from agent_host.wire.framing import MAX_EVENT_BYTES
from benchmarks.cases import PROMPT, WIRES, Case
from benchmarks.drivers.ours import SaveDocument, config_of
from benchmarks.measure import Samples, Table, growth, interleaved, progress, show
from benchmarks.server import running
from benchmarks.shapes import ANSWERS, PROVIDERS, Answer
from benchmarks.worker import peak_kb

CALLS = (6_000, 48_000)
ROUNDS = 3
#: About as much as is sent at one time.
_BLOCK = 1 << 16
#: What a smoke run reads at most of an answer, and what is enough of one that says nothing.
_QUICK_BYTES, _ENOUGH_BYTES = 1 << 20, 4 << 20
#: Of how many answers a smoke run reads one; each is read in a process of its own.
_QUICK_STEP = 8


def run(quick: bool) -> list[Table]:
    return [calls(quick), *streams(quick)]


def calls(quick: bool) -> Table:
    few, many = (100, 800) if quick else CALLS
    table = Table("CPU of an answer of tool calls without ids, by their number (s)", name="calls")
    progress("calls without ids")
    catalog = load_catalog()
    if WIRES["chat"].provider not in {record.name for record in catalog.usable("provider")}:
        table.notes.append(f"left out: {WIRES['chat'].distribution} is not installed")
        return table
    with running() as server, AgentCore(catalog=catalog) as core:
        core.register_tool(SaveDocument)
        session = core.add_message(core.create_session(), "user", PROMPT)

        def read(count: int) -> None:
            config = config_of(Case("chat", "calls", count), server)
            # How long a hook takes is what is measured, and worth no warning.
            config |= {"max_answer_calls": many, "slow_hook_seconds": 3600}
            for _ in core.send_request_stream(session, config):
                continue

        tasks = {str(count): partial(read, count) for count in (few, many)}
        found = interleaved(tasks, 1 if quick else ROUNDS)
    first, last = found[str(few)], found[str(many)]
    factor = many / few
    growth(table, "calls without ids", first, last, factor)
    table.add(f"{few} calls", first, first)
    table.add(f"{many} calls, for each {few}", last.times(1 / factor), first, goal="endless_calls")
    return table


def streams(quick: bool) -> list[Table]:
    memory = Table("Memory that an answer without end takes (MB)", name="endless_memory")
    busy = Table("Longest turn of the event loop while it is read (ms of CPU)", name="endless_busy")
    # All of them are read by a test too, at lower limits.
    for answer in ANSWERS[::_QUICK_STEP] if quick else ANSWERS:
        label = f"{answer.wire}, {answer.what}"
        progress(label)
        with _serving(answer) as url, get_context("spawn").Pool(1) as pool:
            settings = {"max_answer_bytes": _ENOUGH_BYTES} if answer.is_enough else {}
            settings = {"max_answer_bytes": _QUICK_BYTES} if quick else settings
            read, grown, longest = pool.apply(_read_in_process, (answer.wire, url, settings))
        memory.add(label, Samples((grown / 1000,)), goal="endless_memory")
        busy.add(label, Samples((longest * 1000,)), goal="endless_busy")
        busy.notes.append(f"{label}: {read}")
    return [memory, busy]


@contextmanager
def _serving(answer: Answer) -> Iterator[str]:
    """A server of an answer that is sent until nobody reads it; the first request gets a word."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"

    def send(sock: socket.socket, data: bytes) -> None:
        sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            # Whoever reads leaves when it has had enough.
            with sock, suppress(OSError):
                asked = sock.recv(65536)
                if asked.startswith((b"GET ", b"POST /api/show ")):
                    # Not what is measured: what models there are, or what one can do.
                    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                    continue
                sock.sendall(head)
                block = bytearray()
                for piece in answer.pieces(MAX_EVENT_BYTES):
                    block += piece
                    if len(block) >= _BLOCK:
                        send(sock, bytes(block))
                        block.clear()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _read_in_process(wire: str, url: str, settings: dict[str, Any]) -> tuple[str, int, float]:
    """How the answer ended, how many kB it took, and the longest turn of the event loop."""
    return asyncio.run(_read(wire, url, settings))


async def _read(wire: str, url: str, settings: dict[str, Any]) -> tuple[str, int, float]:
    config = {"base_url": url, "retries": 0, "slow_hook_seconds": 3600, **settings}
    if wire in PROVIDERS:
        core = AgentCore(catalog=load_catalog())
        provider, model = PROVIDERS[wire]
        config |= {"provider": provider, "model": model, "api_key": "k", "use_tools": []}
    else:
        core = AgentCore()
        core.register_provider(_provider(wire))
    session = core.add_message(core.create_session(), "user", PROMPT)

    async def read(**limits: int) -> str:
        try:
            async for _ in core.asend_request_stream(session, {**config, **limits}):
                continue
        except AgentError as error:
            return f"{type(error).__name__}: {error.message}"
        return "it ended"

    # Whatever is made once is there before anything is measured.
    await read(max_answer_bytes=_BLOCK)
    # A full collection looks at all that was ever imported, which is not the answer's doing.
    gc.collect()
    gc.freeze()
    before = peak_kb()
    reading = asyncio.create_task(read())
    longest, last = 0.0, time.process_time()
    while not reading.done():
        await asyncio.sleep(0)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    ended = await reading
    grown = peak_kb() - before
    await core.aclose()
    return ended, grown, longest


def _provider(kind: str) -> type[ProviderPlugin]:
    class Endless(AccumulatorStreamingMixin, ProviderPlugin):
        name = "endless"
        framing = cast("Framing", kind)

        def init(self, config: dict[str, Any]) -> State:
            return {"config": config, "request": {}, "partial": None}

        def initialize_request(
            self, native_messages: list[dict[str, Any]], state: State
        ) -> tuple[list[dict[str, Any]], State]:
            state["request"] = {"url": state["config"]["base_url"], "payload": {}}
            return native_messages, state

    return Endless


if __name__ == "__main__":
    show(run(quick=False))
