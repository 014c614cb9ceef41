"""What it costs to add twenty plugins at once, beside the bare installer with the same wheels.

All install with caches that are warm into an environment from which they are removed before every
run. From a folder, the CPU of all processes is taken, because installers wait a lot and a
busy machine would be measured; the time until the end stands beside it. From an index that answers
late, it is the time until the end, as on a network.

The bare installer leaves neither a lock nor hashes. What one would type to have them too, a lock of
host and plugins and then the plugins, is the row "with a lock".
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
#: Seconds for which an index lets every request wait.
LATE = 0.02
NAMES = [f"bench-{number:02}" for number in range(COUNT)]


def run(quick: bool) -> list[Table]:
    table = Table(
        f"CPU of adding {COUNT} plugins (s; ratios to the bare installer)",
        extra=("until the end",),
        name="adding",
    )
    late = Table(
        f"Time of adding {COUNT} plugins from an index that answers after {LATE * 1000:.0f} ms "
        "(s; ratios to the bare installer)",
        extra=("CPU",),
        name="adding_late",
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
            _measure(table, late, at, maker, wheels, 1 if quick else ROUNDS)
    return [table, late]


def _measure(table: Table, late: Table, at: Place, maker: str, wheels: Path, rounds: int) -> None:
    installer = {"uv": "uv pip", "venv": "pip"}[maker]
    progress(f"adding with {installer}")
    folder = at.folder / maker
    with serve_index(wheels) as index:
        prefix = make_environment(maker, folder, index).prefix
    # A host that has run before has its bytecode; the template in it is no Python.
    compileall.compile_dir(prefix / "lib", quiet=2)
    python = str(prefix / "bin" / "python")
    wanted = folder / "wanted.txt"
    wanted.write_text("\n".join(["agent-host-core", *NAMES]), encoding="utf-8")
    # The pip of a new environment is too old for `pip lock`; its report has the same in it.
    resolve = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", os.devnull]
    lock, bare = {
        "uv": (
            ["uv", "pip", "compile", "--quiet", "--generate-hashes", "--python", python],
            ["uv", "pip", "install", "--quiet", "--python", python, *NAMES],
        ),
        "venv": (
            [python, "-m", "pip", *resolve, "-r"],
            [python, "-m", "pip", "install", "--quiet", *NAMES],
        ),
    }[maker]
    ours = [str(prefix / "bin" / "agent-host"), "plugins", "add", "--yes", *NAMES]
    contestants = {
        f"{installer}": [bare],
        f"{installer} with a lock": [[*lock, str(wanted)], bare],
        "agent-host plugins add": [ours],
    }

    def compete(variables: dict[str, str], shown: Table, *, is_late: bool) -> None:
        used: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
        tasks: dict[str, Task] = {
            name: partial(_install, commands, prefix, variables, used[name], is_late)
            for name, commands in contestants.items()
        }
        found = interleaved(tasks, rounds)
        for name in contestants:
            # The first round only warmed up.
            other = Samples(tuple(pair[0 if is_late else 1] for pair in used[name][1:])).least
            goal = "adding" if name == [*contestants][-1] and not is_late else None
            label = f"{installer}: {name}"
            shown.add(label, found[name], found[installer], goal=goal, other=other)

    compete(_variables(folder, wheels), table, is_late=False)
    with serve_index(wheels, LATE) as index:
        compete(_variables(folder, wheels, f"{index.url}/simple/"), late, is_late=True)


def _variables(folder: Path, wheels: Path, index: str = "") -> dict[str, str]:
    """One folder of wheels for both installers and no index, or an index and no folder."""
    settings = folder / "uv.toml"
    offered = f'no-index = true\nfind-links = ["{wheels}"]\n'
    settings.write_text(f'index-url = "{index}"\n' if index else offered, encoding="utf-8")
    kept = {key: text for key, text in environment().items() if not key.startswith(("PIP_", "UV_"))}
    kept |= (
        {"PIP_INDEX_URL": index} if index else {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}
    )
    return kept | {
        "AGENT_HOST_HOME": str(folder / "home"),
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "UV_CONFIG_FILE": str(settings),
    }


def _install(
    commands: list[list[str]],
    prefix: Path,
    variables: dict[str, str],
    used: list[tuple[float, float]],
    is_late: bool,
) -> float:
    """CPU, or time, of commands and of all that they start; both are noted on the side."""
    for left in prefix.glob("lib/python*/site-packages/bench_*"):
        shutil.rmtree(left)
    shutil.rmtree(variables["AGENT_HOST_HOME"], ignore_errors=True)
    before, started = _spent_by_children(), time.perf_counter()
    for command in commands:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:4])} failed: {done.stderr[-500:]}")
    spent = (_spent_by_children() - before, time.perf_counter() - started)
    used.append(spent)
    there = [*prefix.glob("lib/python*/site-packages/bench_*.dist-info")]
    assert len(there) == COUNT, there
    return spent[is_late]


def _spent_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    show(run(quick=False))
