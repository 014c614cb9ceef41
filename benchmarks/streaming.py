"""What a streamed chunk costs, from the socket to the events, in every wire format.

The base is the shortest loop one would write by hand: httpx, ``iter_lines`` and ``json.loads``,
which throws the chunks away. Ours delivers the whole stream of events through the provider that is
installed and its extensions, and leaves a session behind.
"""

from __future__ import annotations

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Table, growth, show
from benchmarks.peers.installed import PEERS
from benchmarks.team import BASE, FLOORS, OURS, Team, spoken_wires

CHUNKS = 2000
ROUNDS = 9
#: Of a stream whose chunks come a millisecond apart, which makes a run as long as there are chunks.
PACED_CHUNKS, PACED_ROUNDS = 400, 5
TRANSFERS = {"each": "a chunk an event", "several": "8 events a chunk", "length": "one length"}
MODES = {"stream": "sync", "astream": "async"}


def run(quick: bool) -> list[Table]:
    rounds, count = (1, 300) if quick else (ROUNDS, CHUNKS)
    with Team.of(OURS, "ours_unwarmed", BASE) as team:
        tables = [
            per_chunk(team, rounds, count),
            per_paced_chunk(team, quick),
            per_reasoning(team, rounds, count),
            linear(team, quick),
        ]
    with Team.of(OURS, "ours_unwarmed", BASE, *FLOORS, *PEERS) as team:
        tables.append(among_others(team, rounds, count))
    return tables


def per_chunk(team: Team, rounds: int, count: int) -> Table:
    table = Table(
        f"CPU per streamed text chunk, {count} chunks, provider and extensions (µs)", name="text"
    )
    for name in spoken_wires(table, team):
        for transfer, described in TRANSFERS.items():
            for what, mode in MODES.items():
                label = f"{WIRES[name].label}, {described}, {mode}"
                case = Case(name, "text", count, transfer)
                # Servers send every event as it comes.
                goal = "chunk" if transfer == "each" else None
                team.compare(table, label, what, case, rounds, each=count, goal=goal)
    return table


def per_paced_chunk(team: Team, quick: bool) -> Table:
    rounds, count = (1, 50) if quick else (PACED_ROUNDS, PACED_CHUNKS)
    table = Table(
        f"CPU per streamed text chunk, {count} chunks that come 1 ms apart (µs)", name="paced"
    )
    for name in spoken_wires(table, team):
        for what, mode in MODES.items():
            label = f"{WIRES[name].label}, {mode}"
            case = Case(name, "text", count, "paced")
            team.compare(table, label, what, case, rounds, each=count, goal="paced_chunk")
    return table


def per_reasoning(team: Team, rounds: int, count: int) -> Table:
    table = Table(
        f"CPU per streamed chunk of reasoning, {count} chunks, a chunk an event (µs)",
        name="reasoning",
    )
    for name in spoken_wires(table, team):
        for what, mode in MODES.items():
            case = Case(name, "reasoning", count)
            label = f"{WIRES[name].label}, {mode}"
            team.compare(table, label, what, case, rounds, each=count)
    return table


def linear(team: Team, quick: bool) -> Table:
    few, many = (1_000, 10_000) if quick else (20_000, 200_000)
    table = Table(
        f"{many} chunks of text against {few} (s; a ratio of 10 is linear)", name="growth"
    )
    for name in spoken_wires(table, team):
        for what, mode in MODES.items():
            label = f"{WIRES[name].label}, {mode}"
            orders = {
                "few": (OURS, what, Case(name, "text", few), 1),
                "many": (OURS, what, Case(name, "text", many), 1),
            }
            found = team.measure(orders, 2 if quick else 3)
            growth(table, label, found["few"], found["many"], many // few)
            table.add(label, found["many"], found["few"])
    return table


def among_others(team: Team, rounds: int, count: int) -> Table:
    table = Table(
        f"CPU per streamed text chunk among others, {count} chunks, a chunk an event (µs)",
        name="others",
    )
    for name in ("chat", "anthropic"):
        for what, mode in MODES.items():
            label = f"{WIRES[name].label}, {mode}"
            team.compare(table, label, what, Case(name, "text", count), rounds, each=count)
    return table


if __name__ == "__main__":
    show(run(quick=False))
