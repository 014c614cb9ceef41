"""A search leaves no process behind, however the host that asked for it ends."""

from __future__ import annotations

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

SEARCH = """
import sys
from agent_host_files.searching import Matcher

print("begun", flush=True)
with Matcher("(a+)+$", ignore_case=False, seconds=300) as matcher:
    print(matcher._process.pid, flush=True)
    matcher.matches("a" * 60 + "b", 1)
"""


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    # A zombie is over; whoever inherited it has not asked yet how it ended.
    return state != "Z"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda n: n.name)
def test_the_process_of_a_search_ends_with_its_host(number: signal.Signals) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", SEARCH],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with host:
        assert host.stdout is not None
        assert host.stdout.readline() == "begun\n"
        searching = int(host.stdout.readline())
        assert is_running(searching)
        host.send_signal(number)
        host.wait(30)
        deadline = time.monotonic() + 10
        while is_running(searching):
            assert time.monotonic() < deadline, "the search goes on for nobody"
            threading.Event().wait(0.02)
