"""Who writes to a session: a process, and whether it is still alive.

A process id alone says little: it is used again, and means something else in a container or on
another machine. So it is believed dead only by whoever sees the same processes.
"""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from typing import Any

from agent_hookspecs.values import dataclass

__all__ = ["Owner", "current_owner"]


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that writes, or wrote, to a session.

    ``started`` tells two processes of one id apart, ``machine`` says where the id means anything.
    """

    process: int
    host: str
    machine: str
    started: str
    since: float

    def is_dead(self) -> bool:
        """Whether the process is known to have ended; of another machine nobody here can know."""
        if self.machine != _machine():
            return False
        started = _process_start(self.process)
        return started is None or bool(self.started and started and started != self.started)

    def is_current(self) -> bool:
        """Whether it is this very process."""
        return (
            self.process == os.getpid()
            and self.machine == _machine()
            and self.started == (_process_start(self.process) or "")
        )

    def describe(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.process} on {self.host}, since {since}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "process": self.process,
            "host": self.host,
            "machine": self.machine,
            "started": self.started,
            "since": self.since,
        }


def current_owner() -> Owner:
    """This process, from now on."""
    process = os.getpid()
    return Owner(process, _host(), _machine(), _own_start(process), time.time())


@cache
def _own_start(process: int) -> str:
    """When this process was started; by its id, because a fork has another."""
    return _process_start(process) or ""


@cache
def _host() -> str:
    return socket.gethostname()


@cache
def _machine() -> str:
    """Where ids of processes mean the same: one start of one machine, and one container in it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Nothing is lost: other systems have another name for it.
        return socket.gethostname()


def _process_start(process: int) -> str | None:
    """When a process was started, in whatever the system counts; None if there is none.

    Empty where the system does not say.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name of a program stands in brackets and may contain anything.
            state, *others = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:  # Nothing is lost: that it is not there is the answer.
        if os.path.exists("/proc/self/stat"):
            return None
    except OSError:
        # Nothing is lost: it ended while it was looked at, or is not ours to look at.
        pass
    else:
        # One that ended and that its parent has not asked about yet cannot write any more.
        return None if state in (b"Z", b"X") else others[18].decode("ascii")
    return "" if _answers(process) else None


def _answers(process: int) -> bool:
    if os.name == "nt":
        # There is no signal that asks without ending it; leases end by their time.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:  # Nothing is lost: that it has ended is the answer.
        return False
    except OSError:  # Nothing is lost: it is there, and not ours to signal.
        return True
    return True
