"""Many streams in one process at a time: chunks per second, and how much memory they take.

Every contestant starts anew for each number of streams, because memory that was used once stays.
"""

from __future__ import annotations

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Samples, Table, show
from benchmarks.peers.installed import PEERS
from benchmarks.team import BASE, OURS, PEER_ROUNDS, Failure, Team

STREAMS = (200, 1_000)
#: Of all streams together.
CHUNKS = 40_000
ROUNDS = 7
IDLE = 500


def run(quick: bool) -> list[Table]:
    speed = Table("Streams at a time, async (chunks per second)", name="rate")
    space = Table(
        "Resident memory after so many streams at a time, at its peak (MB)", name="memory"
    )
    for streams in (20,) if quick else STREAMS:
        with Team.of(OURS, BASE, *(() if streams > min(STREAMS) else PEERS)) as team:
            for name in ("chat",) if quick else ("chat", "anthropic"):
                case = Case(name, "text", 200 if quick else CHUNKS // streams)
                _together(team, speed, space, case, streams, quick)
    return [speed, space, idle(quick)]


def _together(
    team: Team, speed: Table, space: Table, case: Case, streams: int, quick: bool
) -> None:
    names = team.able("together", case)
    if OURS not in names:
        speed.notes.append(f"{WIRES[case.wire].label} is left out: its provider is not installed")
        return
    peaks: dict[str, float] = {}
    rates: dict[str, list[float]] = {name: [] for name in names}
    for number in range(2 if quick else ROUNDS + 1):
        for name in list(rates):
            if name in PEERS and number > PEER_ROUNDS:
                continue
            try:
                found = team.perform(name, "together", case, streams)
            except Failure as failure:
                if name not in PEERS:
                    raise
                team.notes.append(f"{name} is left out: {failure}")
                del rates[name]
                continue
            if number:
                rates[name].append(streams * case.size / found["wall"])
            peaks[name] = found["peak_kb"] / 1000
    label = f"{streams} streams, {WIRES[case.wire].label}"
    is_goal = streams == min(STREAMS)
    for name, values in rates.items():
        goal = is_goal and name == OURS
        base = Samples(tuple(rates[BASE]))
        rate = Samples(tuple(values))
        speed.add(f"{label}: {name}", rate, base, goal="rate" if goal else None, inverse=True)
        peak, rival = Samples((peaks[name],)), Samples((peaks[BASE],))
        space.add(f"{label}: {name}", peak, rival, goal="together_memory" if goal else None)
    speed.notes += [note for note in team.notes if note not in speed.notes]


def idle(quick: bool) -> Table:
    """Memory per stream that is open and silent; each number of streams in a fresh process."""
    count = 50 if quick else IDLE
    table = Table(
        f"Memory of an open, silent stream, {count} of them, without the bytes in it (kB)",
        name="idle",
    )
    for name in ("chat",) if quick else tuple(WIRES):
        case = Case(name, "text", 50, "idle")
        taken: dict[str, list[float]] = {OURS: [], BASE: []}
        for _ in range(1 if quick else 3):
            with Team.of(OURS, BASE) as team:
                if OURS not in team.able("hold", case):
                    break
                for who, values in taken.items():
                    # The first few pay for what all share.
                    team.perform(who, "hold", case, 10)
                    grown = team.perform(who, "hold", case, count)["grown_kb"]
                    values.append(grown / count)
        if not taken[OURS]:
            table.notes.append(f"{WIRES[name].label} is left out: its provider is not installed")
            continue
        ours, base = Samples(tuple(taken[OURS])), Samples(tuple(taken[BASE]))
        label = WIRES[name].label
        table.add(f"{label}: {OURS}", ours)
        table.add(f"{label}: {BASE}", base)
        table.add(f"{label}: above {BASE}", ours.less(base), goal=None if quick else "idle_memory")
    return table


if __name__ == "__main__":
    show(run(quick=False))
