"""Spans over OTLP to a real collector, a process of its own, and what it then knows of them.

The collector is Phoenix, in an environment of its own because of all that it brings with it:
``AGENT_HOST_COLLECTOR`` names the folder of that environment, as ``.ci/run`` does.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

pytest.importorskip("agent_host")

PROGRAM = """
from agent_host import AgentApplication
from agent_hookspecs.authoring import tool

@tool(effect="read")
def look():
    "Look around."
    return "a tree"

config = {"allowed_plugins": ["echo", "otel"], "agents": {"default": {"provider": "echo"}}}
with AgentApplication(config, tools=[look]) as app:
    app.run("/call look")
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[str]:
    command = Path(os.environ.get("AGENT_HOST_COLLECTOR", "/nowhere"), "bin", "phoenix")
    if not command.exists():
        missing = "AGENT_HOST_COLLECTOR names no collector: pip install arize-phoenix"
        assert not os.environ.get("CI"), missing
        pytest.skip(missing)
    port = free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(
            [command, "serve"], env={**own, **settings}, stdout=log, stderr=log
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(lambda: read(f"{address}/healthz", as_json=False), process, tmp_path / "log")
            yield address
        finally:
            process.kill()
            process.wait()


def read(address: str, *, as_json: bool = True) -> Any:
    try:
        with urlopen(address, timeout=10) as answer:
            said = answer.read()
    except (URLError, OSError):
        return None
    return json.loads(said) if as_json else True


def wait_for(look: Any, process: subprocess.Popen[bytes], log: Path) -> Any:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        if found := look():
            return found
        threading.Event().wait(0.1)
    raise AssertionError(f"the collector does not answer: {log.read_text()}")


def test_a_collector_knows_a_run_by_the_conventions(collector: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector}/v1/traces"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr
    end = time.monotonic() + 60
    spans: list[Any] = []
    while len(spans) < 4 and time.monotonic() < end:
        told = read(f"{collector}/v1/projects/default/spans") or {"data": []}
        spans = told["data"]
        threading.Event().wait(0.1)
    by_name = {each["name"].split()[0]: each for each in spans}
    assert {name: by_name[name]["parent_id"] for name in ("chat", "execute_tool")} == {
        "chat": by_name["invoke_agent"]["context"]["span_id"],
        "execute_tool": by_name["invoke_agent"]["context"]["span_id"],
    }
    assert len({each["context"]["trace_id"] for each in spans}) == 1
    assert by_name["chat"]["attributes"]["gen_ai.provider.name"] == "echo"
    assert by_name["chat"]["attributes"]["gen_ai.usage.input_tokens"] > 0
    assert by_name["execute_tool"]["attributes"]["gen_ai.tool.name"] == "look"
