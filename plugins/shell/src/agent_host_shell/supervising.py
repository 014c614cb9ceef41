"""The process between the host and a command that runs without a sandbox. Run, never imported.

It takes in whoever the command leaves behind, also those who fork twice and begin a session of
their own, and ends them all: when the command is over, when the host says so by closing the pipe,
and when the host is gone, which closes the pipe too. It imports the standard library alone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

_SUBREAPER = 36
#: Seconds after which whoever cannot be ended is left to the system.
_PATIENCE = 5.0


def main() -> None:
    status, words = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(status, False)
    adopt_orphans()
    command = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    tell(status, {"child-pid": command.pid})
    # What the command says goes to the host alone.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    pipe = select.poll()
    # The reader's end is looked at, not ours: an error is told when nobody reads any more.
    pipe.register(status, 0)
    while command.poll() is None and not pipe.poll(20):
        continue
    code = command.poll()
    if code is not None:
        tell(status, {"exit-code": code if code >= 0 else 128 - code})
    end_all(command)


def adopt_orphans() -> None:
    """Become the parent of whoever loses theirs; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def tell(status: int, what: dict[str, int]) -> None:
    try:
        os.write(status, json.dumps(what).encode() + b"\n")
    except OSError:
        # Nothing is lost: there is nobody left to be told.
        return


def end_all(command: subprocess.Popen[bytes]) -> None:
    """End the command's group and all who descend from us, also those who come meanwhile."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with suppress(OSError):
            # Nothing is lost: the group is empty.
            os.killpg(command.pid, signal.SIGKILL)
        left = descendants(os.getpid())
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                # Nothing is lost: the process has ended by itself.
                continue
        command.poll()
        reap()
        if not left:
            return


def descendants(process: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        # Nothing is lost: where there is no list of processes, their group is all that is known.
        return []
    for name in filter(str.isdigit, names):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            # Nothing is lost: the process has ended meanwhile.
            continue
        if fields[0] != b"Z":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    waiting = [process]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except OSError:
        # Nothing is lost: there is no child whose end is not known.
        return


if __name__ == "__main__":
    main()
