"""The contestants of a benchmark: starts their processes, gives them orders, ends them.

Whoever is not installed is left out with a hint; a peer that fails is left out with its reason.
Our own side and the floors may not fail.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Samples, Table, interleaved, progress
from benchmarks.peers.installed import PEERS, is_installed, python_of
from benchmarks.server import ROOT, running
from benchmarks.surroundings import environment

__all__ = ["BASE", "FLOORS", "OURS", "PEER_ROUNDS", "Failure", "Team", "spoken_wires"]

OURS, BASE = "ours", "httpx_lines"
FLOORS = ("raw_socket", "http_client", "httpx_bytes")
#: Peers take many times as long, and are here for the order of magnitude.
PEER_ROUNDS = 2


class Failure(Exception):
    """A contestant could not do what it was told to."""


class _Contestant:
    def __init__(self, name: str, server: str) -> None:
        folder = "peers" if name in PEERS else "drivers"
        self.name = name
        self._process = subprocess.Popen(
            [python_of(name), "-m", "benchmarks.worker", f"benchmarks.{folder}.{name}", server],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if name not in PEERS else subprocess.DEVNULL,
            text=True,
        )
        try:
            hello = self._answer()
            if "missing" in hello:
                raise ImportError(f"it needs {hello['missing']}")
        except (ImportError, Failure):
            self.close()
            raise
        self.speaks: list[str] = hello["speaks"]
        self.does: list[str] = hello["does"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failure(f"{self.name} ended by itself, with {self._process.wait(10)}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Failure(f"{self.name}: {found['error']}")
        return found

    def perform(self, what: str, case: Case, times: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        order = {"do": what, "case": list(case), "times": times}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        found = self._answer()
        least = 1 if "request" in what or what == "hold" else case.size
        if found.get("seen", least) < least:
            raise Failure(f"{self.name} saw {found['seen']} of {case}")
        return found

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


class Team:
    """Contestants on one server. ``notes`` says who is missing and why."""

    def __init__(self, server: str, names: Sequence[str]) -> None:
        self.server = server
        self.notes: list[str] = []
        self._members: dict[str, _Contestant] = {}
        for name in names:
            self._enlist(name)

    @classmethod
    @contextlib.contextmanager
    def of(cls, *names: str) -> Iterator[Team]:
        """A server and the contestants that are installed."""
        with running() as server:
            team = cls(server, names)
            try:
                yield team
            finally:
                team.close()

    def _enlist(self, name: str) -> None:
        if name in PEERS and not is_installed(name):
            self.notes.append(f"{name} is not installed: pip install {PEERS[name].wanted!r}")
            return
        try:
            self._members[name] = _Contestant(name, self.server)
        except (ImportError, Failure) as error:
            if name not in PEERS:
                raise
            self.notes.append(f"{name} is left out: {error}")

    def close(self) -> None:
        for member in self._members.values():
            member.close()

    def able(self, what: str, case: Case) -> list[str]:
        """Who can do that in that format."""
        needed = "astream" if what == "together" else what
        return [
            name
            for name, member in self._members.items()
            if needed in member.does and case.wire in member.speaks
        ]

    def perform(self, name: str, what: str, case: Case, times: int = 1) -> dict[str, Any]:
        return self._members[name].perform(what, case, times)

    def measure(
        self,
        orders: dict[str, tuple[str, str, Case, int]],
        rounds: int,
        found: Callable[[dict[str, Any]], float] = lambda result: float(result["cpu"]),
    ) -> dict[str, Samples]:
        """Orders by label (who, what, case, how often), interleaved; CPU unless ``found`` differs.

        Peers that fail are left out.
        """

        def task(label: str) -> Callable[[], float]:
            name, what, case, times = orders[label]
            return lambda: found(self.perform(name, what, case, times))

        tasks: dict[str, Callable[[], float | None]] = {}
        for label, (name, what, case, _) in orders.items():
            try:
                if name in PEERS:
                    self.perform(name, what, case)
            except Failure as failure:
                self.notes.append(f"{name} is left out of {case.wire}, {case.content}: {failure}")
            else:
                tasks[label] = task(label)
        progress(", ".join(dict.fromkeys(str(tuple(order[2])) for order in orders.values())))
        fewer = {label: PEER_ROUNDS for label in tasks if orders[label][0] in PEERS}
        return interleaved(tasks, rounds, fewer=fewer)

    def compare(
        self,
        table: Table,
        label: str,
        what: str,
        case: Case,
        rounds: int,
        *,
        each: int,
        times: int = 1,
        goal: str | None = None,
    ) -> dict[str, Samples]:
        """Rows of CPU per unit of work, in microseconds, for everybody who can do it."""
        names = self.able(what, case)
        if OURS not in names:
            return {}
        orders = {name: (name, what, case, times) for name in names}
        scaled = {
            name: samples.times(1e6 / each)
            for name, samples in self.measure(orders, rounds).items()
        }
        for name, samples in scaled.items():
            judged = goal if name == OURS else None
            table.add(f"{label}: {name}", samples, scaled[BASE], goal=judged)
        table.notes += [note for note in self.notes if note not in table.notes]
        return scaled


def spoken_wires(table: Table, team: Team) -> list[str]:
    """The formats that ours can speak here; the others are noted with what is missing."""
    spoken = [name for name in WIRES if OURS in team.able("stream", Case(name, "text", 1))]
    for name, wire in WIRES.items():
        if name not in spoken:
            hint = f"{wire.label} is left out: {wire.distribution} is not installed"
            table.notes.append(hint)
    return spoken
