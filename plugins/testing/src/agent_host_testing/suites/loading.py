"""Finding the package under test the way the host finds it, and nothing else that is installed.

Owns the catalog of a check, and the probe that imports a package in a process of its own. It must
not know what a check is about.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from agent_hookspecs.descriptor import split_entry
from agent_host.loading.bundle import Bundle
from agent_host.loading.catalog import Catalog, LoaderSettings, PluginRecord, build_catalog
from agent_host.loading.discovery import discover
from agent_host.loading.sources import bundles_of_sources

__all__ = ["catalog_of", "find_record", "side_effects"]


@cache
def _installed() -> tuple[Bundle, ...]:
    return tuple(discover())


@cache
def _bundles(package: str, folder: str) -> tuple[Bundle, ...]:
    """The bundles of a package: from ``folder`` if there is one, as installed, or as importable."""
    if folder:
        found = bundles_of_sources([f"path:{folder}"], base=Path.cwd(), cache=None)
        return tuple(bundle for bundle in found if bundle.name == package or bundle.problem)
    installed = [b for b in _installed() if b.source.partition(":")[0].split(".")[0] == package]
    if installed:
        return tuple(installed)
    return tuple(bundles_of_sources([f"pkg:{package}"], base=Path.cwd(), cache=None))


def catalog_of(
    packages: Iterable[str], *, folder: str = "", enabled: Iterable[str] = ()
) -> Catalog:
    """A catalog of these packages alone; the first may be in a ``folder`` and not installed."""
    first, *others = packages
    bundles = [*_bundles(first, folder), *(b for name in others for b in _bundles(name, ""))]
    return build_catalog(bundles, LoaderSettings(enabled=frozenset(enabled)))


def find_record(catalog: Catalog, package: str, role: str, plugin: str) -> PluginRecord:
    """The plugin under test; a LookupError says why it is not there."""
    for record in catalog:
        if record.role == role and record.name == plugin:
            if record.usable:
                return record
            raise LookupError(f"{role} {plugin!r} of {package} is {record.state}: {record.reason}")
    reasons = [record.reason for record in catalog if record.reason]
    there = ", ".join(record.key for record in catalog if record.entry) or "nothing"
    raise LookupError(
        f"package {package!r} has no {role} {plugin!r}; there is {there}"
        + (f" ({'; '.join(reasons)})" if reasons else "")
    )


#: Runs in a new interpreter: what may not happen while modules are imported is noted, not stopped.
_PROBE = """
import json, sys
modules, strangers, root = json.loads(sys.argv[1])
if root:
    sys.path.append(root)
import agent_hookspecs, agent_hookspecs.mixins, agent_hookspecs.tool_interop
before = set(sys.modules)
seen = []
CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".zip", ".pth")
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]
        if not path.endswith(CODE):
            seen.append(f"opens {path}")
    elif event.startswith("socket.") and event != "socket.gethostname":
        seen.append(event)
    elif event in ("subprocess.Popen", "os.system", "os.fork"):
        seen.append(event)
sys.addaudithook(watch)
import importlib, threading
start = threading.Thread.start
def started(self):
    seen.append(f"starts the thread {self.name}")
    start(self)
threading.Thread.start = started
for module in modules:
    importlib.import_module(module)
noted = list(seen)
news = set(sys.modules) - before
noted += sorted(f"imports {name}" for name in strangers if name in news)
print(json.dumps(noted))
"""

#: What no package may import merely because it is imported itself.
_STRANGERS = (
    "agent_host",
    "aiohttp",
    "anthropic",
    "boto3",
    "cohere",
    "google.genai",
    "httpx",
    "httpx2",
    "litellm",
    "mistralai",
    "ollama",
    "openai",
    "requests",
)


def side_effects(records: Sequence[PluginRecord]) -> list[str]:
    """What importing the modules of these plugins does besides defining things."""
    entries = [record.entry.entry for record in records if record.entry]
    modules = list(dict.fromkeys(split_entry(entry)[0] for entry in entries))
    root = records[0].bundle.import_root
    done = subprocess.run(
        [sys.executable, "-B", "-c", _PROBE, json.dumps([modules, _STRANGERS, root])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        timeout=60,
        check=False,
    )
    if done.returncode:
        return [f"cannot be imported on its own: {done.stderr.strip().splitlines()[-1]}"]
    noted: list[str] = json.loads(done.stdout.splitlines()[-1])
    return noted
