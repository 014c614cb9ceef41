"""What it costs to start: imports, the command line, and listing as packages grow in number.

For each number a folder with so many whole packages (metadata, descriptor, module) stands on the
path of a new process. Warm: the index was written before. Cold: there is none. The packages refuse
to be imported, so that a run in which one is cannot succeed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.measure import Table, interleaved, progress, show
from benchmarks.packages import install
from benchmarks.peers.installed import PEERS, is_installed, python_of
from benchmarks.processes import LIST, Place, place
from benchmarks.team import PEER_ROUNDS

SIZES = (0, 100, 500, 2_000)
RUNS = 9
BARE = "python -c pass"
GOALS = {"--version": "version", "list, 500, warm": "list_500", "list, 2000, warm": "list_2000"}

_INDEXING = """\
import time
from agent_host.plugins import discover, load
started = time.process_time()
load.load_catalog()
print(time.process_time() - started)
"""


def run(quick: bool) -> list[Table]:
    sizes, runs = (SIZES[:2], 1) if quick else (SIZES, RUNS)
    with place() as at:
        trees = {size: at.folder / f"tree{size}" for size in sizes}
        for size, tree in trees.items():
            install(tree, size)
        return [starts(at, trees, runs), indexing(at, trees, runs)]


def starts(at: Place, trees: dict[int, Path], runs: int) -> Table:
    title = "Starting a process until it ends (ms; ratios to a bare interpreter)"
    table = Table(title, name="starts")
    tasks: dict[str, Callable[[], float]] = {}
    for size, tree in trees.items():
        warm = at.environment(f"warm{size}", [tree])
        at.warm(warm)
        tasks[f"list, {size}, warm"] = partial(at.timed, at.cli(*LIST), warm)
        cold = at.environment(f"cold{size}", [tree])
        tasks[f"list, {size}, cold"] = partial(_cold, at, at.cli(*LIST), cold)
    plain = at.environment(f"warm{max(trees)}", [trees[max(trees)]])
    tasks["--version"] = partial(at.timed, at.cli("--version"), plain)
    for module in ("agent_host", "httpx"):
        tasks[f"import {module}"] = partial(at.timed, ["-c", f"import {module}"], plain)
    peers = _peers(at, plain)
    tasks.update(peers)
    tasks[BARE] = partial(at.timed, ["-c", "pass"], plain)
    progress("starting processes")
    before = at.indexes()
    found = interleaved(dict(tasks), runs, fewer=dict.fromkeys(peers, PEER_ROUNDS))
    if at.indexes() != before:
        table.notes.append("what is installed changed meanwhile: some runs were not warm")
    bare = found[BARE].times(1000)
    for label, samples in found.items():
        table.add(label, samples.times(1000), bare, goal=GOALS.get(label))
    return table


def _peers(at: Place, environment: dict[str, str]) -> dict[str, Callable[[], float]]:
    """Imports of the peers that are installed, and what one of them has for a command line."""
    tasks: dict[str, Callable[[], float]] = {}
    for name in filter(is_installed, PEERS):
        code = f"import {PEERS[name].module}"
        tasks[code] = partial(at.timed, ["-c", code], environment, python_of(name))
    for command in (["--version"], ["plugins"]) if is_installed("llm") else ():
        arguments, python = ["-m", "llm", *command], python_of("llm")
        tasks[f"llm {' '.join(command)}"] = partial(at.timed, arguments, environment, python)
    return tasks


def _cold(at: Place, arguments: list[str], environment: dict[str, str]) -> float:
    shutil.rmtree(environment["AGENT_HOST_HOME"], ignore_errors=True)
    return at.timed(arguments, environment)


def indexing(at: Place, trees: dict[int, Path], runs: int) -> Table:
    """CPU of finding and indexing packages, without that of what is installed anyway."""
    most = max(trees)

    def build(size: int) -> float:
        environment = at.environment(f"index{size}", [trees[size]])
        shutil.rmtree(environment["AGENT_HOST_HOME"], ignore_errors=True)
        return float(at.output(["-c", _INDEXING], environment))

    progress("building cold indexes")
    found = interleaved({str(size): partial(build, size) for size in (0, most)}, runs)
    table = Table(
        "Building a cold index (µs per package above those that are installed anyway)", name="index"
    )
    each = found[str(most)].less(found["0"]).times(1e6 / most)
    table.add(f"{most} packages", each, goal="index")
    return table


if __name__ == "__main__":
    show(run(quick=False))
