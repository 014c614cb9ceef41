"""What listing costs as plugin packages grow in number.

For each N a folder with N whole packages (metadata, descriptor, module) stands on the path of a new
process that runs ``agent-host plugins list --json``, warm: the index was written before. The runs
are interleaved, and the least of them counts; they are refused if the environment changed
meanwhile, since such runs were not warm. The promise is at most 1.5 times the cost of the bundled
plugins alone for 500 packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Table, show

SIZES = (0, 100, 500, 2000)
RUNS = 9
ENTRY = "import sys; from agent_host.cli import main; sys.exit(main(sys.argv[1:]))"


def generate(root: Path, count: int) -> None:
    """Packages as an installer would leave them, an hour ago."""
    for number in range(count):
        name = f"bench_{number:04}"
        package = root / f"pkg_{name}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("", "utf-8")
        (package / "plugin.py").write_text("raise SystemExit('imported')\n", "utf-8")
        descriptor = {
            "api": ">=1,<2",
            "entries": [
                {
                    "entry": f"pkg_{name}.plugin:Plugin",
                    "role": "extension",
                    "name": name,
                    "label": f"Benchmark {number}",
                    "required_tags": ["provider:bench", f"tag_{number}"],
                    "after": [f"bench_{number - 1:04}"] if number else [],
                }
            ],
        }
        (package / "agent_plugin.json").write_text(json.dumps(descriptor), "utf-8")
        metadata = root / f"dist_{name}-1.0.dist-info"
        metadata.mkdir()
        header = f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.0\n"
        (metadata / "METADATA").write_text(header, "utf-8")
        points = f"[agent_host.plugins]\n{name} = pkg_{name}\n"
        (metadata / "entry_points.txt").write_text(points, "utf-8")
    root.mkdir(exist_ok=True)
    then = time.time() - 3600
    for folder, _, files in os.walk(root, topdown=False):
        for path in (*(os.path.join(folder, file) for file in files), folder):
            os.utime(path, (then, then))


def timed(arguments: list[str], environment: dict[str, str], cwd: Path) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", *arguments],
        env=environment,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start


def warm(environment: dict[str, str], cwd: Path, cache: Path) -> None:
    """List until the index is written, which takes as long as something on the path is young."""
    deadline = time.monotonic() + 30
    while not list(cache.glob("index/*.json")):
        if time.monotonic() > deadline:
            raise SystemExit("the index was not written: something on sys.path keeps changing")
        timed([ENTRY, "plugins", "list", "--json"], environment, cwd)


def seen(base: Path, environment: dict[str, str]) -> dict[str, int]:
    """When the search path and the indexes were last changed."""
    shown = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.path, sep='\\n')"],
        env=environment,
        cwd=base / "cwd",
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(line) for line in shown.stdout.splitlines() if line]
    paths += base.glob("cache*/index/*")
    return {str(path): path.stat().st_mtime_ns for path in paths if path.exists()}


def run(quick: bool) -> list[Table]:
    sizes = SIZES[:2] if quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        # Processes start here, which puts it on their path; so nothing is ever written into it.
        quiet = base / "cwd"
        generate(quiet, 0)
        known = [
            os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p
        ]
        cases: dict[str, tuple[list[str], dict[str, str]]] = {}
        for size in sizes:
            tree, cache = base / f"tree{size}", base / f"cache{size}"
            generate(tree, size)
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*known, str(tree)]),
                "AGENT_HOST_CACHE_DIR": str(cache),
            }
            warm(environment, quiet, cache)
            cases[f"list, {size} packages"] = ([ENTRY, "plugins", "list", "--json"], environment)
        cases["--version"] = ([ENTRY, "--version"], environment)
        cases["python -c pass"] = (["pass"], environment)
        before = seen(base, environment)
        times: dict[str, list[float]] = {case: [] for case in cases}
        for _ in range(2 if quick else RUNS):
            for case, (arguments, environment) in cases.items():
                times[case].append(timed(arguments, environment, quiet))
        if seen(base, environment) != before:
            raise SystemExit("the environment changed while it was measured: run it again")
        best = {case: min(runs) for case, runs in times.items()}
        bundled, bare = best[f"list, {sizes[0]} packages"], best["python -c pass"]
        table = Table("Starting and listing, warm", ("command", "ms", "to bundled", "to bare"))
        for case, value in best.items():
            table.add(case, ms=value * 1000, to_bundled=value / bundled, to_bare=value / bare)
        return [table]


if __name__ == "__main__":
    show(run(quick=False))
