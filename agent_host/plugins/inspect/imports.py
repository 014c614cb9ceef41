"""What importing a plugin does besides defining things, seen in a process of its own.

A plugin is imported in the middle of somebody's request, so that must not open a connection or a
file, start a process or a thread, print, change what all of the process shares, or bring in the
host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from agent_hookspecs.values import dataclass

__all__ = ["Imported", "import_effects"]

_SECONDS = 60
_HOST = "agent_host"

#: Run by the other process, which is given the modules and puts what it saw on its last line.
_WATCH = r"""
import importlib, io, json, logging, os, signal, socket, sys, threading
import agent_hookspecs.authoring.mixins, agent_hookspecs.tool_interop.context
seen, watching = [], True
CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".zip", ".pth")
ABOUT = {
    "socket.connect": "opens a connection",
    "socket.bind": "opens a server socket",
    "socket.getaddrinfo": "looks up a host name",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "os.mkdir": "makes a folder",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.putenv": "sets an environment variable",
}

def audit(event, args):
    if not watching:
        return
    if event in ABOUT:
        seen.append((ABOUT[event], str(args[0]) if args else ""))
    elif event == "open" and isinstance(args[0], (str, bytes)):
        path = os.fsdecode(args[0])
        if not path.endswith(CODE):
            seen.append(("opens a file", path))

start = threading.Thread.start

def watched_start(thread):
    # Not every Python tells its audit hooks of threads.
    if watching:
        seen.append(("starts a thread", thread.name))
    return start(thread)

def read_process_settings():
    mask = os.umask(0)
    os.umask(mask)
    root = logging.getLogger()
    return {
        "logging of everybody": (root.level, [*root.handlers]),
        "the timeout of all sockets": socket.getdefaulttimeout(),
        "what signals do": [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
        "the limit of recursion": sys.getrecursionlimit(),
        "the search path of modules": [*sys.path],
        "the umask": mask,
    }

request = json.loads(sys.stdin.read())
before = set(sys.modules)
printed = io.BytesIO()
real, sys.stdout = sys.stdout, io.TextIOWrapper(printed, "utf-8", write_through=True)
threading.Thread.start = watched_start
sys.addaudithook(audit)
found, failed = {}, {}
for module in request["modules"]:
    del seen[:]
    known = read_process_settings()
    try:
        importlib.import_module(module)
    except BaseException as error:
        failed[module] = f"{type(error).__name__}: {error}"
    now = read_process_settings()
    seen.extend(("changes " + what, "") for what in known if now[what] != known[what])
    text = printed.getvalue().decode(errors="replace").strip()
    printed.seek(0)
    printed.truncate()
    found[module] = [*dict.fromkeys(seen), *([("prints", text[:80])] if text else ())]
watching = False
strangers = sorted(name for name in request["strangers"] if name in set(sys.modules) - before)
real.write("\n" + json.dumps({"found": found, "failed": failed, "strangers": strangers}))
"""


@dataclass(frozen=True, slots=True)
class Imported:
    """How importing went: each effect in a sentence, and whether the process got over it."""

    effects: tuple[str, ...]
    survived: bool = True


def import_effects(
    modules: Sequence[str], roots: Sequence[str] = (), strangers: Sequence[str] = ()
) -> Imported:
    """What importing ``modules`` does besides; ``roots`` join the search path.

    ``strangers`` are modules that must not be brought in; the host is always one.
    """
    named = ", ".join(modules)
    asked = {"modules": list(modules), "strangers": [_HOST, *strangers]}
    search = [path for path in (*sys.path, *roots) if path]
    try:
        done = subprocess.run(
            [sys.executable, "-B", "-c", _WATCH],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        )
        seen = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        # Nothing is lost: that it takes too long is the finding.
        return Imported((f"importing {named} takes more than {_SECONDS} seconds",), False)
    except (IndexError, ValueError):
        # Nothing is lost: what the process said last is the finding.
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Imported((f"importing {named} ends the process: {last}",), False)
    effects = [f"{module} cannot be imported: {error}" for module, error in seen["failed"].items()]
    for module, found in seen["found"].items():
        for what, argument in found:
            effects.append(f"importing {module} {what}" + (f": {argument}" if argument else ""))
    for stranger in seen["strangers"]:
        why = "; a plugin depends on agent_hookspecs alone" if stranger == _HOST else ""
        effects.append(f"importing it imports {stranger}{why}")
    return Imported(tuple(effects))
