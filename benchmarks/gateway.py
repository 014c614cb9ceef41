"""``python -m benchmarks.gateway [--litellm PYTHON] [--quick]``: beside litellm's proxy.

An upstream that sends bytes made beforehand stands behind each in turn; one process asks.
Everything is measured for the upstream alone too. On a machine that does other work meanwhile the
CPU times are worth more than the rest.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

CHUNKS = 200
MODEL = "bench"
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


async def _serve_upstream(port: int, pause: float) -> None:
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
                        b"transfer-encoding: chunked\r\n\r\n"
                    )
                    for event in events:
                        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                        if pause:
                            await writer.drain()
                            await asyncio.sleep(pause)
                    writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            # Whoever asked has gone.
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
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
    command = [sys.executable, "-m", "benchmarks.gateway", "--upstream", str(port), str(pause)]
    with _process("upstream", port, command, "/v1/models") as running:
        yield running


@contextmanager
def ours(behind: Running, folder: Path) -> Iterator[Running]:
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
    adding = [sys.executable, "-c", _HOST, "serve", "keys", "add", "bench", "--config", str(config)]
    made = subprocess.run(
        adding, env={**os.environ, **home}, stdout=subprocess.PIPE, text=True, check=True
    )
    # Both have a key, because the other does not start without.
    key = made.stdout.strip()
    with _process("agent-host", port, command, "/healthz", key, **home) as running:
        yield running


@contextmanager
def litellm(behind: Running, folder: Path, python: str) -> Iterator[Running]:
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
    program = str(Path(python).with_name("litellm"))
    command = [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
    key = f"sk-{secrets.token_hex(32)}"
    alive = "/health/liveliness"
    with _process("litellm", port, command, alive, key, LITELLM_MASTER_KEY=key) as running:
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
        first = 0.0
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
            first = first or time.perf_counter() - begun
        await reader.readline()
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


def measure(running: Running, quick: bool) -> dict[str, float]:
    """All figures of one contestant."""
    ask_many(running, 1, 20, False)
    ask_many(running, 1, 3, True)
    few, many = (50, 200) if quick else (300, 3000)
    one = ask_many(running, 1, few, False)
    sixteen = ask_many(running, 16, many, False)
    streamed = ask_many(running, 1, 10 if quick else 60, True)
    memory = running.rss
    together = ask_many(running, 50 if quick else 500, 50 if quick else 500, True)
    return {
        "start, s": running.start,
        "whole request, 1 client, ms": one["whole"],
        "whole requests a second, 16 clients": sixteen["rate"],
        "CPU per whole request, ms": sixteen["cpu"],
        f"stream of {CHUNKS} chunks, ms": streamed["whole"],
        "CPU per chunk, µs": 1000 * streamed["cpu"] / CHUNKS,
        "first chunk, ms": streamed["first"],
        "memory, MB": memory,
        "500 streams at once, streams a second": together["rate"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python that has litellm[proxy]")
    parser.add_argument("--quick", action="store_true", help="little work, to see that it works")
    parser.add_argument("--growth", type=int, default=0, help="memory after so many requests more")
    parser.add_argument("--upstream", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.upstream:
        asyncio.run(_serve_upstream(int(chosen.upstream[0]), float(chosen.upstream[1])))
        return 0
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name, upstream() as behind:
        folder = Path(name)
        columns["upstream"] = measure(behind, chosen.quick)
        with ours(behind, folder) as running:
            columns["agent-host"] = measure(running, chosen.quick)
            if chosen.growth:
                before = running.rss
                ask_many(running, 16, chosen.growth, False)
                print(f"memory after {chosen.growth} more: {running.rss - before:+.2f} MB")
        if chosen.litellm:
            with litellm(behind, folder, chosen.litellm) as running:
                columns["litellm"] = measure(running, chosen.quick)
    print("".join(f"{each:>14}" for each in ("", *columns)).rjust(40 + 14 * len(columns)))
    for row in columns["upstream"]:
        print(f"{row:<40}" + "".join(f"{each[row]:>14.2f}" for each in columns.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
