"""What the host takes: memory after a first request, and room on disk with one provider."""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from benchmarks.cases import WIRES, Case
from benchmarks.measure import Samples, Table, progress, show
from benchmarks.peers.installed import PEERS
from benchmarks.team import BASE, OURS, Failure, Team

ROUNDS = 3
HOST = "agent-host-core"
#: Distributions whose package does not bear their name.
_PACKAGES = {HOST: "agent_host"}


def run(quick: bool) -> list[Table]:
    return [resident_table(quick), *disk_tables()]


def resident_table(quick: bool) -> Table:
    table = Table("Resident memory of a new process after its first request (MB)", name="resident")
    for name in ("chat",) if quick else tuple(WIRES):
        case = Case(name, "whole", 50, "length")
        taken: dict[str, list[float]] = {}
        # They take long to start, and all of them speak one of these.
        peers = PEERS if name in ("chat", "anthropic") else ()
        progress(f"memory, {name}")
        for _ in range(1 if quick else ROUNDS):
            with Team.of("ours_unwarmed", OURS, BASE, *peers) as team:
                for who in team.able("request", case):
                    try:
                        found = team.perform(who, "request", case)["resident_kb"]
                    except Failure as failure:
                        if who not in PEERS:
                            raise
                        team.notes.append(f"{who} is left out: {failure}")
                    else:
                        taken.setdefault(who, []).append(found / 1000)
                table.notes += [note for note in team.notes if note not in table.notes]
        if OURS not in taken:
            table.notes.append(f"{WIRES[name].label} is left out: its provider is not installed")
            continue
        base = Samples(tuple(taken[BASE]))
        for who, values in taken.items():
            goal = "resident" if who in (OURS, "ours_unwarmed") else None
            table.add(f"{WIRES[name].label}: {who}", Samples(tuple(values)), base, goal=goal)
    return table


def disk_tables() -> list[Table]:
    room = Table("Room on disk of the host with one provider, without bytecode (MB)", name="disk")
    number = Table("Distributions that the host with one provider brings", name="distributions")
    for wire in WIRES.values():
        try:
            needed = closure(HOST, wire.distribution)
        except PackageNotFoundError as missing:
            room.notes.append(f"{wire.label} is left out: {missing.name} is not installed")
            continue
        size = sum(map(size_of, needed.values()))
        room.add(wire.distribution, Samples((size / 1e6,)), goal="disk")
        number.add(wire.distribution, Samples((len(needed),)), goal="distributions")
    return [room, number]


def closure(*names: str) -> dict[str, Distribution]:
    """The distributions and all that they need here, by normalised name."""
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in found:
            continue
        found[name] = distribution(name)
        for requirement in found[name].requires or ():
            needed, _, marker = requirement.partition(";")
            match = re.match(r"\s*([\w.-]+)", needed)
            if match and _applies(match[1], marker):
                wanted.append(match[1])
    return found


def _applies(name: str, marker: str) -> bool:
    """Whether a requirement counts: not those of extras, and of others what is installed here."""
    if "extra" in marker:
        return False
    if not marker:
        return True
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def size_of(found: Distribution) -> int:
    """Bytes of what a distribution installs; of an editable one, of the package it stands for."""
    direct = json.loads(found.read_text("direct_url.json") or "{}")
    if direct.get("dir_info", {}).get("editable"):
        name = found.metadata["Name"]
        spec = find_spec(_PACKAGES.get(name, name.replace("-", "_")))
        folders = list(spec.submodule_search_locations or ()) if spec else []
        files = [file for folder in folders for file in Path(folder).rglob("*")]
    else:
        files = [Path(str(file.locate())) for file in found.files or ()]
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc")


if __name__ == "__main__":
    show(run(quick=False))
