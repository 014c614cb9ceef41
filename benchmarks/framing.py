"""CPU time per event: our framing in memory, and framing with transport through a real socket.

Ratios below 1 mean that ours is cheaper than what it stands beside: in memory a bare decode,
splitlines and json.loads of whole events, over the socket httpx with iter_lines and json.loads.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import httpx

from agent_host.wire.client import AsyncWireClient, WireClient
from agent_host.wire.deadlines import Timeouts
from agent_host.wire.framing import framing, warm_up
from agent_host.wire.request import WireRequest
from benchmarks.measure import Samples, Table, interleaved, progress, show

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = 2000
ROUNDS = 9


def body() -> bytes:
    chunk = {
        "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWx",
        "object": "chat.completion.chunk",
        "created": 1734567890,
        "model": "gpt-4o-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
        "usage": None,
    }
    events = [
        json.dumps(
            {
                **chunk,
                "choices": [
                    {"index": 0, "delta": {"content": f" token {n}"}, "finish_reason": None}
                ],
            },
            separators=(",", ":"),
        )
        for n in range(EVENTS)
    ]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


BODY = body()


def reads(size: int) -> list[bytes]:
    return [BODY[start : start + size] for start in range(0, len(BODY), size)]


def ours(pieces: list[bytes]) -> int:
    machine = framing("sse")
    count = 0
    for piece in pieces:
        for _chunk, _event in machine.decode(piece):
            count += 1
    return count + len(machine.flush())


def floor(pieces: list[bytes]) -> int:
    # Cheating: it joins the input and would cut strings at Unicode line ends.
    count = 0
    for line in b"".join(pieces).decode().splitlines():
        if line.startswith("data: ") and line != "data: [DONE]":
            json.loads(line[6:])
            count += 1
    return count


def measured(rounds: int, **contestants: Callable[[], int]) -> dict[str, Samples]:
    """The CPU time of this thread for each contestant, which must have decoded everything."""

    def case(name: str) -> None:
        count = contestants[name]()
        if count != EVENTS:
            raise RuntimeError(f"{name} decoded {count} events of {EVENTS}")

    cases = {name: partial(case, name) for name in contestants}
    return interleaved(cases, rounds, clock=time.thread_time)


def serve(listener: socket.socket, chunked_by: int) -> None:
    """Answer every request with the body, one HTTP chunk for each ``chunked_by`` bytes."""
    if chunked_by:
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
            b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*reads(chunked_by), b""]
        )
    else:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)

    def converse(sock: socket.socket) -> None:
        with sock:
            while sock.recv(65536):
                sock.sendall(answer)

    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=converse, args=(sock,), daemon=True).start()


def over_socket(chunked_by: int, rounds: int) -> dict[str, Samples]:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, chunked_by), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    request = WireRequest("GET", url, {}, None, Timeouts(total=60.0))
    transport, client = WireClient(), httpx.Client()
    loop = asyncio.new_event_loop()
    atransport, aclient = AsyncWireClient(), httpx.AsyncClient()

    def through_transport() -> int:
        machine = framing("sse")
        response = transport.open(request)
        count = sum(len(machine.decode(data)) for data in response.chunks())
        return count + len(machine.flush())

    def through_httpx() -> int:
        count = 0
        with client.stream("GET", url) as response:
            for line in response.iter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    json.loads(line[6:])
                    count += 1
        return count

    async def athrough_transport() -> int:
        machine = framing("sse")
        response = await atransport.open(request)
        count = 0
        async for data in response.chunks():
            count += len(machine.decode(data))
        return count + len(machine.flush())

    async def athrough_httpx() -> int:
        count = 0
        async with aclient.stream("GET", url) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    json.loads(line[6:])
                    count += 1
        return count

    result = measured(
        rounds,
        ours=through_transport,
        httpx=through_httpx,
        aours=lambda: loop.run_until_complete(athrough_transport()),
        ahttpx=lambda: loop.run_until_complete(athrough_httpx()),
    )
    transport.close()
    client.close()
    loop.run_until_complete(atransport.aclose())
    loop.run_until_complete(aclient.aclose())
    loop.close()
    listener.close()
    return result


def run(quick: bool) -> list[Table]:
    rounds = 1 if quick else ROUNDS
    standard = table_of("the decoder of the standard library", rounds)
    warm_up()
    return [standard, table_of("pydantic_core loaded", rounds)]


def table_of(decoder: str, rounds: int) -> Table:
    table = Table(f"CPU per event of {len(BODY) // EVENTS} bytes, {EVENTS} events, {decoder} (µs)")
    progress(f"framing, {decoder}")
    for size in (4096, 16384, 65536):
        pieces = reads(size)
        found = measured(rounds, ours=partial(ours, pieces), floor=partial(floor, pieces))
        _add(table, f"memory, reads of {size}", found["ours"], found["floor"])
    for chunked_by in (0, len(BODY) // EVENTS, 4096):
        found = over_socket(chunked_by, rounds)
        label = f"socket, {f'chunks of {chunked_by}' if chunked_by else 'one length'}"
        _add(table, f"{label}, sync", found["ours"], found["httpx"])
        _add(table, f"{label}, async", found["aours"], found["ahttpx"])
    return table


def _add(table: Table, label: str, ours: Samples, base: Samples) -> None:
    scale = 1e6 / EVENTS
    table.add(f"{label}: ours", ours.times(scale), base.times(scale))
    table.add(f"{label}: base", base.times(scale), base.times(scale))


if __name__ == "__main__":
    show(run(quick=False))
