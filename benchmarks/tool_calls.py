"""What a fragment of a tool call's arguments costs, and how that grows with their number.

The arguments are one long string or a list of many small objects, and somebody watches them grow.
Formats that send a call in one piece are not here: they have no fragments.
"""

from __future__ import annotations

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Samples, Table, growth, show
from benchmarks.peers.installed import PEERS
from benchmarks.streaming import MODES
from benchmarks.team import BASE, FLOORS, OURS, Team, spoken_wires

SIZES = (500, 2_000, 8_000, 32_000)
SHAPES = {"string": "one string", "objects": "many objects"}
ROUNDS = 5
FEW, MANY = 2_000, 32_000


def run(quick: bool) -> list[Table]:
    sizes = (500, 4_000) if quick else SIZES
    rounds = 2 if quick else ROUNDS
    with Team.of(OURS, BASE) as team:
        tables = list(by_size(team, sizes, rounds, quick))
    with Team.of(OURS, BASE, *FLOORS, *PEERS) as team:
        tables.append(among_others(team, 300 if quick else 2_000, rounds))
    return tables


def by_size(team: Team, sizes: tuple[int, ...], rounds: int, quick: bool) -> list[Table]:
    costs = Table(
        "CPU per fragment of a call's arguments, while somebody watches them grow (µs)", name="cost"
    )
    grown = Table(
        "CPU of calls as they grow (s; a ratio to the number of fragments of 1 is linear)",
        name="growth",
    )
    few, many = (sizes[0], sizes[-1]) if quick else (FEW, MANY)
    for name in spoken_wires(costs, team):
        if not WIRES[name].fragments_calls:
            continue
        for shape, described in SHAPES.items():
            for what, mode in list(MODES.items())[: 1 if quick else None]:
                label = f"{WIRES[name].label}, {described}, {mode}"
                orders = {
                    f"{who} {size}": (who, what, Case(name, shape, size), 1)
                    for size in sizes
                    for who in (OURS, BASE)
                }
                found = team.measure(orders, rounds)
                for size in sizes:
                    _add_cost(costs, f"{label}, {size}", found, size)
                first, last = found[f"{OURS} {few}"], found[f"{OURS} {many}"]
                factor = many / few
                growth(grown, label, first, last, factor)
                goal = "call_growth" if (few, many) == (FEW, MANY) else None
                share = f"{many} against {few} fragments"
                grown.add(f"{label}, {share}", last.times(1 / factor), first, goal=goal)
    return [costs, grown]


def _add_cost(table: Table, label: str, found: dict[str, Samples], size: int) -> None:
    ours, base = (found[f"{who} {size}"].times(1e6 / size) for who in (OURS, BASE))
    table.add(f"{label}: {OURS}", ours, base, goal="call_fragment" if size >= FEW else None)
    table.add(f"{label}: {BASE}", base, base)


def among_others(team: Team, size: int, rounds: int) -> Table:
    table = Table(
        f"CPU per fragment of a call's arguments among others, {size} fragments (µs)", name="others"
    )
    for name in ("chat", "anthropic"):
        for shape, described in SHAPES.items():
            label = f"{WIRES[name].label}, {described}, sync"
            case = Case(name, shape, size)
            team.compare(table, label, "stream", case, rounds, each=size)
    return table


if __name__ == "__main__":
    show(run(quick=False))
