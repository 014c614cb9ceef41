"""What a request costs that is answered in one piece, over a connection that is kept.

The base is ``client.post`` of httpx and ``json.loads`` of the answer; ours finds a stack, makes
natives and a request, and leaves a session with the answer and its native history.
"""

from __future__ import annotations

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Table, show
from benchmarks.peers.installed import PEERS
from benchmarks.team import BASE, FLOORS, OURS, Team, spoken_wires

REQUESTS = 100
ROUNDS = 9
WORDS = 50


def run(quick: bool) -> list[Table]:
    count, rounds = (20, 1) if quick else (REQUESTS, ROUNDS)
    table = Table(f"CPU per request answered in one piece, {count} over one connection (µs)")
    with Team.of(OURS, BASE, *FLOORS, *PEERS) as team:
        for name in spoken_wires(table, team):
            for what, mode in (("request", "sync"), ("arequest", "async")):
                label = f"{WIRES[name].label}, {mode}"
                case = Case(name, "whole", WORDS, "length")
                goal = f"{mode}_request"
                team.compare(table, label, what, case, rounds, each=count, times=count, goal=goal)
    return [table]


if __name__ == "__main__":
    show(run(quick=False))
