"""What it costs to add twenty plugins at once, beside the bare installer with the same wheels.

Both install from one folder, with caches that are warm, into an environment that is put back to
what it was before every run. The CPU of all processes is taken, because installers wait a lot and
a busy machine would be measured; the time until the end stands beside it.
"""

from __future__ import annotations

import compileall
import os
import resource
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.measure import Samples, Table, Task, interleaved, progress, show
from benchmarks.processes import Place, place
from benchmarks.surroundings import environment

# The tests make wheels of the host from what is installed, and environments with it.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from indexes import make_environment, make_wheel, pack_host, serve_index

COUNT = 20
ROUNDS = 5
NAMES = [f"bench-{number:02}" for number in range(COUNT)]


def run(quick: bool) -> list[Table]:
    table = Table(
        f"CPU of adding {COUNT} plugins (s; ratios to the bare installer)",
        extra=("until the end",),
        name="adding",
    )
    with place() as at:
        wheels = at.folder / "wheels"
        wheels.mkdir()
        progress("packing the host")
        pack_host(wheels)
        for name in NAMES:
            make_wheel(wheels, name)
        for maker in ("uv",) if quick else ("uv", "venv"):
            if maker == "uv" and shutil.which("uv") is None:
                table.notes.append("uv is left out: it is not installed")
                continue
            _measure(table, at, maker, wheels, 1 if quick else ROUNDS)
    return [table]


def _measure(table: Table, at: Place, maker: str, wheels: Path, rounds: int) -> None:
    installer = {"uv": "uv pip", "venv": "pip"}[maker]
    progress(f"adding with {installer}")
    folder = at.folder / maker
    with serve_index(wheels) as index:
        prefix = make_environment(maker, folder, index).prefix
    # A host that has run before has its bytecode; the template in it is no Python.
    compileall.compile_dir(prefix / "lib", quiet=2)
    pristine = folder / "pristine"
    shutil.copytree(prefix, pristine, symlinks=True)
    python = str(prefix / "bin" / "python")
    bare = {
        "uv": ["uv", "pip", "install", "--quiet", "--python", python, *NAMES],
        "venv": [python, "-m", "pip", "install", "--quiet", *NAMES],
    }[maker]
    ours = [str(prefix / "bin" / "agent-host"), "plugins", "add", "--yes", *NAMES]
    variables = _variables(folder, wheels)
    ends: dict[str, list[float]] = {"bare": [], "ours": []}
    tasks: dict[str, Task] = {
        "bare": partial(_install, bare, prefix, pristine, variables, ends["bare"]),
        "ours": partial(_install, ours, prefix, pristine, variables, ends["ours"]),
    }
    found = interleaved(tasks, rounds)
    for who, label in (("bare", installer), ("ours", "agent-host plugins add")):
        # The first round only warmed up.
        end = Samples(tuple(ends[who][1:])).least
        goal = "adding" if who == "ours" else None
        table.add(f"{installer}: {label}", found[who], found["bare"], goal=goal, end=end)


def _variables(folder: Path, wheels: Path) -> dict[str, str]:
    """One folder of wheels for both installers, and no index."""
    settings = folder / "uv.toml"
    settings.write_text(f'no-index = true\nfind-links = ["{wheels}"]\n', encoding="utf-8")
    kept = {key: text for key, text in environment().items() if not key.startswith(("PIP_", "UV_"))}
    return kept | {
        "AGENT_HOST_HOME": str(folder / "home"),
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "UV_CONFIG_FILE": str(settings),
    }


def _install(
    command: list[str], prefix: Path, pristine: Path, variables: dict[str, str], ends: list[float]
) -> float:
    """The CPU of a command and of all that it starts; how long it took is noted on the side."""
    shutil.rmtree(prefix)
    shutil.copytree(pristine, prefix, symlinks=True)
    shutil.rmtree(variables["AGENT_HOST_HOME"], ignore_errors=True)
    before, started = _spent_by_children(), time.perf_counter()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    ends.append(time.perf_counter() - started)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {done.stderr[-500:]}")
    there = [*prefix.glob("lib/python*/site-packages/bench_*.dist-info")]
    assert len(there) == COUNT, there
    return _spent_by_children() - before


def _spent_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    show(run(quick=False))
