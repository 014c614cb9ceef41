"""The gateway beside litellm's proxy: requests, chunks, memory, starting, many streams at once.

An upstream that sends bytes made beforehand stands behind both, which run side by side and are
asked in turn; what it takes by itself is measured in the same rounds. Both have a core to
themselves where there are two; the upstream and who asks share the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cores import pin, pin_contestants, server_core
from benchmarks.measure import Samples, Table, progress
from benchmarks.peers.installed import is_installed, python_of, versions

CHUNKS = 200
#: How many streams go on at once, and how many requests are looked at for what they leave behind.
STREAMS = 500
REQUESTS = 20_000
ROUNDS = 5
#: Between two chunks of a slow upstream, in seconds.
PAUSE = 0.1
MODEL = "bench"
OURS, LIMITED, PEER, ALONE = "agent-host", "agent-host, a key with limits", "litellm", "upstream"
_HOST = "import sys; from agent_host.cli import main; sys.exit(main(sys.argv[1:]))"
_TICKS = os.sysconf("SC_CLK_TCK")


# --- the upstream --------------------------------------------------------------------------------


def _whole() -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    message = {"role": "assistant", "content": "Hello there, how are you?"}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(answer).encode()


def _events() -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()

    words = [event({"content": f"word{number} "}) for number in range(CHUNKS)]
    return [
        event({"role": "assistant", "content": ""}),
        *words,
        event({}, "stop"),
        b"data: [DONE]\n\n",
    ]


async def serve_upstream(port: int, pause: float) -> None:
    pin(server_core())
    whole, events = _whole(), _events()
    listed = json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode()

    def framed(body: bytes) -> bytes:
        head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r")[0]
                body = await reader.readexactly(int(length or 0))
                if head.startswith(b"get"):
                    writer.write(framed(listed))
                elif b'"stream":true' not in body.replace(b" ", b""):
                    writer.write(framed(whole))
                else:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                        # A slow one has no connection left at rest in the end.
                        + (b"connection: close\r\n" if pause else b"")
                        + b"transfer-encoding: chunked\r\n\r\n"
                    )
                    for event in events:
                        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                        if pause:
                            await writer.drain()
                            await asyncio.sleep(pause)
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
                if pause:
                    return writer.close()
        except (OSError, asyncio.IncompleteReadError):
            # Whoever asked has gone.
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=2000)
    async with server:
        await server.serve_forever()


# --- contestants ---------------------------------------------------------------------------------


@dataclass
class Running:
    name: str
    port: int
    pid: int
    start: float = 0.0
    key: str = "none"

    @property
    def rss(self) -> float:
        """Resident memory of the process and its children, in MB."""
        return sum(_rss(pid) for pid in _family(self.pid))

    @property
    def peak(self) -> float:
        """The most resident memory that the process has had, in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1000

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return sum(_cpu(pid) for pid in _family(self.pid))


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _rss(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def _process(
    name: str, port: int, command: list[str], path: str, key: str = "none", **env: str
) -> Iterator[Running]:
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **env})
        try:
            while not _is_there(port, path):
                if process.poll() is not None or time.perf_counter() - begun > 120:
                    log.seek(0)
                    raise RuntimeError(f"{name} did not start: {log.read()[-2000:]!r}")
                time.sleep(0.02)
            yield Running(name, port, process.pid, time.perf_counter() - begun, key)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_there(port: int, path: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
            return b" 200 " in connection.recv(100)
    except OSError:
        return False


@contextmanager
def upstream(pause: float = 0.0) -> Iterator[Running]:
    port = _free_port()
    serving = (
        "import asyncio, sys; from benchmarks.gateway import serve_upstream; "
        "asyncio.run(serve_upstream(int(sys.argv[1]), float(sys.argv[2])))"
    )
    command = [sys.executable, "-c", serving, str(port), str(pause)]
    with _process(ALONE, port, command, "/v1/models") as running:
        yield running


@contextmanager
def ours(behind: Running, folder: Path) -> Iterator[Running]:
    folder.mkdir(exist_ok=True)
    config = folder / "agent-host.json"
    provider = {
        "provider": "custom",
        "base_url": f"http://127.0.0.1:{behind.port}/v1",
        "api_key": "none",
        "model": MODEL,
    }
    config.write_text(json.dumps({"providers": {MODEL: provider}}))
    port = _free_port()
    command = [sys.executable, "-c", _HOST, "serve", "--port", str(port), "--config", str(config)]
    home = {"AGENT_HOST_HOME": str(folder / "home")}
    # Both have a key, because the other does not start without.
    key = _add_key(config, home, OURS)
    with _process(OURS, port, command, "/healthz", key, **home) as running:
        yield running


def _add_key(config: Path, home: dict[str, str], name: str, *limits: str) -> str:
    adding = [sys.executable, "-c", _HOST, "serve", "keys", "add", name, "--config", str(config)]
    made = subprocess.run(
        [*adding, *limits],
        env={**os.environ, **home},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return made.stdout.strip()


def limited(running: Running, folder: Path) -> Running:
    """The same gateway, asked with a key whose requests are counted."""
    home = {"AGENT_HOST_HOME": str(folder / "home")}
    limits = ("--per-minute", "100000000", "--budget-tokens", "1000000000000")
    key = _add_key(folder / "agent-host.json", home, "limited", *limits)
    return replace(running, name=LIMITED, key=key)


@contextmanager
def litellm(behind: Running, folder: Path) -> Iterator[Running]:
    config = folder / "litellm.yaml"
    described = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"openai/{MODEL}",
                    "api_base": f"http://127.0.0.1:{behind.port}/v1",
                    "api_key": "none",
                },
            }
        ]
    }
    # JSON is YAML.
    config.write_text(json.dumps(described))
    port = _free_port()
    program = str(Path(python_of(PEER)).with_name("litellm"))
    command = [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    key = f"sk-{secrets.token_hex(32)}"
    alive = "/health/liveliness"
    # Its prices come with it, and are not to be fetched from anywhere.
    env = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with _process(PEER, port, command, alive, key, **env) as running:
        yield running


# --- asking --------------------------------------------------------------------------------------


class _Client:
    """One connection, asked again and again."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, stream: bool) -> tuple[float, float]:
        """Seconds until the first byte of the body, and until its end."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._running.port)
        reader, writer = self._streams
        said = [{"role": "user", "content": "Hello"}]
        body = json.dumps({"model": MODEL, "messages": said, "stream": stream})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{self._running.port}\r\n"
        head += f"authorization: Bearer {self._running.key}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        begun = time.perf_counter()
        writer.write(f"{head}{body}".encode())
        told = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in told.partition(b"\r\n")[0]:
            raise RuntimeError(f"{self._running.name}: {told!r} {await reader.read(2000)!r}")
        if b"content-length:" in told:
            length = told.partition(b"content-length:")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))
            return (passed := time.perf_counter() - begun), passed
        first, last = 0.0, b""
        while size := int(await reader.readline(), 16):
            last = (await reader.readexactly(size + 2))[:-2]
            first = first or time.perf_counter() - begun
        await reader.readline()
        if not last.endswith(b"data: [DONE]\n\n"):
            raise RuntimeError(f"{self._running.name} has cut a stream: {last[-200:]!r}")
        return first, time.perf_counter() - begun

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def _ask_many(running: Running, clients: int, count: int, stream: bool) -> list[Any]:
    made = [_Client(running) for _ in range(clients)]

    async def work(client: _Client) -> list[tuple[float, float]]:
        return [await client.ask(stream) for _ in range(max(1, count // clients))]

    found = await asyncio.gather(*map(work, made))
    for client in made:
        client.close()
    return [each for times in found for each in times]


def ask_many(running: Running, clients: int, count: int, stream: bool) -> dict[str, float]:
    """Ask so many times with so many clients; what a request took, in milliseconds."""
    cpu, begun = running.cpu, time.perf_counter()
    times = asyncio.run(_ask_many(running, clients, count, stream))
    wall = time.perf_counter() - begun
    return {
        "first": 1000 * median(first for first, _ in times),
        "whole": 1000 * median(whole for _, whole in times),
        "rate": len(times) / wall,
        "cpu": 1000 * (running.cpu - cpu) / len(times),
    }


# --- tables --------------------------------------------------------------------------------------


def run(quick: bool) -> list[Table]:
    if find_spec("agent_host_gateway") is None:
        return [Table("The gateway", notes=["left out: agent-host-gateway is not installed"])]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        behind = stack.enter_context(upstream())
        progress("gateway, starting")
        start = start_table(behind, folder, quick)
        team = [behind, stack.enter_context(ours(behind, folder))]
        team.append(limited(team[1], folder))
        note = f"no {PEER}: say where its proxy is with --peers"
        if is_installed(PEER):
            note = f"{PEER} {versions()[PEER]}"
            progress(f"gateway, starting {PEER}")
            try:
                team.append(stack.enter_context(litellm(behind, folder)))
                start.add(f"starting: {PEER}", Samples((team[-1].start,)))
            except (OSError, RuntimeError) as failure:
                note = f"{PEER} is left out: {failure}"[:500]
        start.notes.append(note)
        stack.callback(pin_contestants)
        pin(server_core())
        tables = [start, *work_tables(team, quick), growth_table(team[1], quick)]
    return [*tables, streams_table(quick)]


def start_table(behind: Running, folder: Path, quick: bool) -> Table:
    table = Table("Starting until the first request is answered (s)", name="start")
    taken = []
    for _ in range(1 if quick else 3):
        with ours(behind, folder / secrets.token_hex(4)) as running:
            taken.append(running.start)
    table.add(f"starting: {OURS}", Samples(tuple(taken)), goal="gateway_start")
    return table


def work_tables(team: list[Running], quick: bool) -> list[Table]:
    """What everybody takes for the same requests, asked in turn."""
    found: dict[str, list[dict[str, float]]] = {each.name: [] for each in team}
    memory: dict[str, list[float]] = {each.name: [] for each in team}
    for number in range((1 if quick else ROUNDS) + 1):
        progress(f"gateway, round {number}")
        for each in team:
            one = ask_many(each, 1, 5 if quick else 100, False)
            many = ask_many(each, 16, 32 if quick else 640, False)
            streamed = ask_many(each, 1, 2 if quick else 15, True)
            if number:
                # The first round only warms up.
                found[each.name].append(
                    {
                        "one": one["whole"],
                        "rate": many["rate"],
                        "cpu": many["cpu"],
                        "chunk": 1000 * streamed["whole"] / CHUNKS,
                        "chunk_cpu": 1000 * streamed["cpu"] / CHUNKS,
                        "first": streamed["first"],
                    }
                )
                memory[each.name].append(each.rss)

    def samples(who: str, what: str) -> Samples:
        return Samples(tuple(each[what] for each in found[who]))

    def table(
        title: str,
        what: str,
        goal: str | None = None,
        *,
        added: bool = False,
        inverse: bool = False,
        to_peer: bool = True,
    ) -> Table:
        made = Table(title, name=what)
        base = None
        if to_peer and PEER in found:
            base = samples(PEER, what)
            base = base.less(samples(ALONE, what)) if added else base
        for each in team:
            who = each.name
            if added and who == ALONE:
                continue
            values = samples(who, what)
            values = values.less(samples(ALONE, what)) if added else values
            judged = goal if who == OURS and (base is not None or not to_peer) else None
            made.add(f"{what}: {who}", values, base, goal=judged, inverse=inverse)
        return made

    resident = Table("Resident memory (MB)", name="memory")
    base = Samples(tuple(memory[PEER])) if PEER in memory else None
    for who in (OURS, *([PEER] if base is not None else [])):
        goal = "gateway_memory" if who == OURS and base is not None else None
        resident.add(f"memory: {who}", Samples(tuple(memory[who])), base, goal=goal)
    return [
        table("Whole requests a second, 16 clients", "rate", "gateway_rate", inverse=True),
        table("A whole request, 1 client (ms)", "one"),
        table("CPU per whole request, 16 clients (ms)", "cpu"),
        table("What is added to a streamed chunk (µs)", "chunk", "gateway_chunk", added=True),
        table("CPU per streamed chunk (µs)", "chunk_cpu"),
        table(
            "The first chunk behind the upstream's, 1 client (ms)",
            "first",
            "gateway_first_chunk",
            added=True,
            to_peer=False,
        ),
        resident,
    ]


def growth_table(running: Running, quick: bool) -> Table:
    """What many requests leave behind; the rounds before have warmed it up."""
    count = 200 if quick else REQUESTS
    table = Table(f"Memory that {count:,} more requests leave behind (MB)", name="growth")
    progress("gateway, growth")
    before = running.rss
    ask_many(running, 16, count, False)
    after = running.rss - before
    table.add(f"growth: {OURS}", Samples((after,)), goal=None if quick else "gateway_growth")
    return table


def streams_table(quick: bool) -> Table:
    """Many streams of a slow upstream at once: none is cut, and nothing of them is left."""
    count = 20 if quick else STREAMS
    table = Table(f"{count} streams of a slow upstream at once (s)", ("peak MB",), name="streams")
    progress("gateway, many streams")
    with (
        tempfile.TemporaryDirectory() as name,
        upstream(0.001 if quick else PAUSE) as behind,
        ours(behind, Path(name)) as running,
    ):
        pin(server_core())
        ask_many(running, 1, 1, False)
        before, open_before = running.rss, running.descriptors
        for each in (behind, running):
            begun = time.perf_counter()
            # One that is cut raises.
            ask_many(each, count, count, True)
            taken = Samples((time.perf_counter() - begun,))
            table.add(f"streams: {each.name}", taken, peak=each.peak)
        left = _settle(lambda: running.descriptors - open_before)
        pin_contestants()
    table.notes.append(f"before: {before:.0f} MB; descriptors that are left open: {left}")
    if left > 0:
        table.broken.append(f"{left} descriptors are left open")
    if not quick:
        table.goals["gateway_streams"] = [float(count)]
    return table


def _settle(look: Callable[[], int]) -> int:
    """What is left when it becomes no less any more, or in ten seconds."""
    deadline = time.monotonic() + 10
    while (left := look()) > 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
