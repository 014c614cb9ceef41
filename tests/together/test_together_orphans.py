"""A search that `agent-host run` has begun ends with it, by whichever signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="/proc says which processes there are"
)


def running() -> dict[int, int]:
    """The processes that run, each with its parent; one that is over and not asked for is none."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                # It has ended meanwhile.
                continue
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_no_search_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "text").write_text("a" * 60 + "b")
    config = {"providers": {"main": {"provider": "echo"}}}
    (tmp_path / "c.json").write_text(json.dumps(config))
    call = f"/call search_files {json.dumps({'pattern': '(a+)+$'})}"
    host = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agent_host",
            "run",
            "--config",
            "c.json",
            "--no-store",
            "--set",
            "max_search_seconds=300",
            call,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "AGENT_HOST_HOME": str(tmp_path / "home")},
    )
    with host:
        deadline = time.monotonic() + 60
        while not (searching := {each for each, parent in running().items() if parent == host.pid}):
            assert time.monotonic() < deadline, "the search never began"
            assert host.poll() is None
            threading.Event().wait(0.02)
        host.send_signal(number)
        host.wait(30)
    while searching & running().keys():
        assert time.monotonic() < deadline, "the search goes on for nobody"
        threading.Event().wait(0.02)
