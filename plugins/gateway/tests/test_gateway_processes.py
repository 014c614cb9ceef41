"""`agent-host serve` as a process: workers, and an end that finishes what has begun."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from gateway_process import DOORS, ask, minimal_body, running_gateway

from agent_host_gateway.serving import LimitedProtocol

HOST = "import sys; from agent_host.cli import main; sys.exit(main(sys.argv[1:]))"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    config = folder / "agent-host.json"
    config.write_text(json.dumps({"store": f"sqlite:///{folder / 'sessions.db'}"}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", HOST, "serve", "--port", str(port), "--config", str(config)]
    process = subprocess.Popen([*command, *options], env=os.environ)
    address = f"127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if ask(address, "/readyz").status == 200:
                    break
            except OSError:
                assert process.poll() is None, "the gateway has ended before it began"
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield process, address
    finally:
        process.kill()
        process.wait()


def test_what_is_written_is_sent_at_once() -> None:
    found: list[int] = []

    class Watched(LimitedProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            own = transport.get_extra_info("socket")
            found.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with running_gateway(protocol=Watched) as address:
        assert ask(address, "/healthz").status == 200
    assert found
    assert all(found)


def test_streams_that_have_begun_are_finished_before_the_end(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, address):
        # Slower to read than to write, so that it is still under way.
        text = "word " * 200_000
        connection = HTTPConnection(address, timeout=60)
        body = json.dumps({**minimal_body("chat", text), "stream": True})
        connection.request("POST", DOORS["chat"], body, {"content-type": "application/json"})
        response = connection.getresponse()
        begun = response.read(1000)
        process.send_signal(signal.SIGTERM)
        rest = response.read()
        connection.close()
        assert (begun + rest).endswith(b"data: [DONE]\n\n")
        assert process.wait(60) in (0, -signal.SIGTERM)


def test_the_body_of_an_answer_does_not_wait_for_its_head_to_be_confirmed() -> None:
    options: list[int] = []

    class Watched(LimitedProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            accepted = transport.get_extra_info("socket")
            options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    with running_gateway(protocol=Watched) as address:
        assert ask(address, "/healthz").status == 200
    assert options
    assert all(options)


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as (process, address):
        assert ask(address, "/healthz").status == 200
        process.kill()
        deadline = time.monotonic() + 30
        while True:
            try:
                ask(address, "/healthz")
            except OSError:
                break
            assert time.monotonic() < deadline, "workers live on"


def test_workers_share_stored_responses(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as (process, address):
        made = [ask(address, DOORS["responses"], minimal_body("responses")).body for _ in range(4)]
        for response in made:
            for _ in range(3):
                found = ask(address, f"{DOORS['responses']}/{response['id']}")
                assert found.body == response
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
