"""Makes plugin packages on disk as installers leave them, and runs the host on them.

Owns nothing but files and processes: what the packages contain is each test's business.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "EXTENSION",
    "FEATURE",
    "POISON",
    "PROVIDER",
    "Run",
    "entry_points",
    "full",
    "install",
    "run_host",
    "run_python",
    "settle",
    "write_metadata",
    "write_package",
]

GROUP = "agent_host.plugins"

#: A module that shows that it was imported by failing.
POISON = 'raise AssertionError("a plugin was imported")\n'

PROVIDER = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = {name!r}

    def init(self, config):
        return {{"config": config}}

    def call_api(self, native_messages, state):
        return [], [], native_messages, state
"""

EXTENSION = """
from agent_hookspecs import ProviderExtensionPlugin


class Plugin(ProviderExtensionPlugin):
    name = {name!r}

    def finalize(self, final_messages, native_messages, state):
        return final_messages, native_messages, state
"""

FEATURE = """
from agent_hookspecs import FeaturePlugin


class Plugin(FeaturePlugin):
    name = {name!r}

    def init(self, config, state):
        return state
"""

SOURCES = {"provider": PROVIDER, "extension": EXTENSION, "feature": FEATURE}


def full(package: str, role: str, name: str, **more: Any) -> dict[str, Any]:
    """A descriptor in full form with one entry, the class ``Plugin`` in the module ``plugin``."""
    entry = {"entry": f"{package}.plugin:Plugin", "role": role, "name": name, **more}
    return {"api": ">=1,<2", "entries": [entry]}


def write_package(
    root: Path,
    package: str,
    *,
    descriptor: Mapping[str, Any] | bytes | None = None,
    source: str = POISON,
    init: str = "",
) -> Path:
    """A package with a module ``plugin``; a dotted name makes namespace packages around it."""
    folder = root.joinpath(*package.split("."))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(init, encoding="utf-8")
    (folder / "plugin.py").write_text(source, encoding="utf-8")
    if descriptor is not None:
        raw = descriptor if isinstance(descriptor, bytes) else json.dumps(descriptor).encode()
        (folder / "agent_plugin.json").write_bytes(raw)
    return folder


def entry_points(points: Mapping[str, str]) -> bytes:
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    return "\n".join([*lines, ""]).encode()


def write_metadata(
    root: Path,
    distribution: str,
    points: Mapping[str, str] | bytes,
    *,
    version: str = "1.0",
    kind: str = "dist-info",
    header: bool = True,
    **files: str,
) -> Path:
    """The metadata folder of a distribution; ``files`` are further ones, ``_`` for the dot."""
    stem = distribution.replace("-", "_")
    folder = root / f"{stem}-{version}.{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    raw = points if isinstance(points, bytes) else entry_points(points)
    (folder / "entry_points.txt").write_bytes(raw)
    if header:
        name = "METADATA" if kind == "dist-info" else "PKG-INFO"
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n\nWords.\n"
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in files.items():
        (folder / name.replace("_json", ".json")).write_text(text, encoding="utf-8")
    return folder


def install(
    root: Path,
    name: str,
    role: str = "extension",
    *,
    descriptor: Mapping[str, Any] | bytes | None = None,
    source: str | None = None,
    version: str = "1.0",
    **more: Any,
) -> Path:
    """A whole distribution ``dist-NAME`` with package ``pkg_NAME`` and bundle ``NAME``, working.

    ``descriptor`` and ``source`` replace the working ones; ``more`` goes into the full-form entry.
    """
    package = f"pkg_{name}"
    if descriptor is None:
        descriptor = full(package, role, name, **more)
    if source is None:
        source = SOURCES[role].format(name=name)
    folder = write_package(root, package, descriptor=descriptor, source=source)
    write_metadata(root, f"dist-{name}", {name: package}, version=version)
    return folder


def settle(root: Path, seconds: int = 3600) -> None:
    """Make everything under ``root`` look old, since an index does not trust what is young."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in [*files, ""]:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                found = os.stat(path)
                when = found.st_mtime_ns - seconds * 1_000_000_000
                os.utime(path, ns=(when, when))


@dataclass(frozen=True)
class Run:
    """How a process ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def plugin(self, name: str) -> dict[str, Any]:
        """The record of that name in the JSON of ``list``, ``info`` or ``explain``."""
        (found,) = [record for record in self.json["plugins"] if record["name"] == name]
        assert isinstance(found, dict)
        return found


_START = """
import site, sys
for tree in {trees!r}:
    site.addsitedir(tree)
sys.path[:0] = {first!r}
"""
_HOST = "from agent_host.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def run_python(
    code: str,
    *arguments: str,
    trees: Sequence[Path] = (),
    first: Sequence[Path] = (),
    home: Path | None = None,
    cwd: Path | None = None,
    **environment: str,
) -> Run:
    """Run code in a new process; ``trees`` are site folders, ``first`` head the search path."""
    start = _START.format(trees=[str(t) for t in trees], first=[str(f) for f in first])
    done = subprocess.run(
        [sys.executable, "-c", start + code, *arguments],
        capture_output=True,
        cwd=cwd,
        env={**_environment(home), **environment},
        timeout=60,
        check=False,
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_host(*arguments: str, **where: Any) -> Run:
    """Run ``agent-host`` in a new process, as `run_python` does."""
    return run_python(_HOST, *arguments, **where)


def _environment(home: Path | None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENT_HOST_", "COVERAGE"))}
    # Without a folder named it is that of all tests, in which no cache can be made.
    kept["AGENT_HOST_HOME"] = str(home or os.environ["AGENT_HOST_HOME"])
    kept["PYTHONUTF8"] = "1"
    if "PYTHONPATH" in kept:
        entries = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, entries))
    return kept
