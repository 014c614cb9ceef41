"""How long it takes until a person can type: `chat` on a pseudo-terminal, with plugins installed.

The goal is three times what Python and prompt_toolkit take by themselves. Neither the application
nor rich are loaded by then, which a person would have to wait for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.measure import Table, interleaved, progress
from benchmarks.packages import install
from benchmarks.processes import Place, place

PLUGINS = 20
RUNS = 9
BASE = "python, importing prompt_toolkit"
PROMPT = f"chat, {PLUGINS} plugins, until its line is there"


def run(quick: bool) -> list[Table]:
    if sys.platform == "win32":
        return []
    with place() as at:
        tree = at.folder / "tree"
        install(tree, PLUGINS)
        environment = at.environment("warm", [tree])
        at.warm(environment)
        title = "Until a person can type (ms; ratios to Python with prompt_toolkit)"
        table = Table(title, name="prompting")
        tasks: dict[str, Callable[[], float]] = {
            BASE: partial(at.timed, ["-c", "import prompt_toolkit"], environment),
            PROMPT: partial(until_prompt, at, at.cli("chat", "--no-store"), environment),
        }
        progress("waiting for a prompt")
        found = interleaved(tasks, 1 if quick else RUNS)
        base = found[BASE].times(1000)
        for label, samples in found.items():
            table.add(label, samples.times(1000), base, goal="prompt" if label == PROMPT else None)
        return [table]


def until_prompt(at: Place, arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds until the sign stands there behind which a person types."""
    import pty

    master, slave = pty.openpty()
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={**environment, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"},
        cwd=at.cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    seen = b""
    try:
        while "›".encode() not in seen:
            data = os.read(master, 65536)
            if not data:
                raise RuntimeError(f"there was no prompt, but {seen!r}")
            seen += data
        return time.perf_counter() - started
    finally:
        process.kill()
        process.wait()
        os.close(master)
