"""Runs ``agent-host run`` with this provider against the tests' server: no key, no network.

``python tests/try_offline.py "Hello"``; further arguments go to ``agent-host run``.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

from agent_host_testing import FakeServer, Improviser

from fake_api import WIRE

MODEL = "big-think"


def main(arguments: list[str]) -> int:
    with FakeServer(WIRE, models=(MODEL,), rest=Improviser(WIRE)) as server:
        command = [
            *("agent-host", "run", "--provider", "{{ cookiecutter.plugin_id }}", "--model", MODEL),
            *("--set", f"base_url={server.base_url}", *(arguments or ["Hello"])),
        ]
        sys.stderr.write(f"$ {shlex.join(command)}\n")
        return subprocess.run([sys.executable, "-m", "agent_host", *command[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
