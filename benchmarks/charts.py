"""Which charts are made of a run's results, and what each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.peers.installed import PEERS
from benchmarks.results import Results, Row
from benchmarks.svg import Bar, Chart, Group, Line, draw
from benchmarks.team import BASE, OURS

__all__ = ["CHARTS", "plot"]

_MODES = (("sync", "ours"), ("async", "ours-second"))
_SIZES = ("ours", "ours-second", "ours-third")
#: What contestants are called on a chart.
_NAMES = {
    OURS: "Agent Host",
    BASE: "plain httpx",
    "openai": "openai SDK",
    "anthropic": "anthropic SDK",
    "pydantic_ai": "pydantic-ai",
    "any_llm": "any-llm",
}


def plot(results: Results, folder: Path) -> tuple[list[Path], list[str]]:
    """Write the charts that the results have the numbers for; those written, and those not."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    missing: list[str] = []
    for name, make in CHARTS.items():
        chart = make(results)
        if not any(group.bars for group in chart.groups):
            missing.append(name)
            continue
        file = folder / f"{name}.svg"
        file.write_text(draw(chart), encoding="utf-8")
        written.append(file)
    return written, missing


def _chunk(results: Results) -> Chart:
    return _by_format(
        results,
        "CPU per streamed chunk, by wire format",
        "Agent Host with its extensions, every event and a session, to a loop that keeps nothing; "
        "less is better",
        lambda wire, mode: results.find(
            "streaming", "text", wire, "a chunk an event", mode, who=OURS
        ),
        goal="chunk",
    )


def _paced(results: Results) -> Chart:
    return _by_format(
        results,
        "CPU per streamed chunk when chunks come 1 ms apart",
        "each chunk is a read of its own, as from a model that is slower than the wire; "
        "less is better",
        lambda wire, mode: results.find("streaming", "paced", wire, mode, who=OURS),
    )


def _request(results: Results) -> Chart:
    return _by_format(
        results,
        "CPU per request that is answered in one piece",
        "stack, native history, request, answer and new session, to client.post; less is better",
        lambda wire, mode: results.find("requests", None, wire, mode, who=OURS),
        "httpx client.post = 1",
    )


def _by_format(
    results: Results,
    title: str,
    subtitle: str,
    find: Callable[[str, str], Row | None],
    line: str = "plain httpx loop = 1",
    goal: str = "",
) -> Chart:
    """Ratios of ours to the base, sync and async, for every format."""
    groups = []
    for wire in _wires(results):
        rows = [(mode, colour, find(wire, mode)) for mode, colour in _MODES]
        bars = [
            Bar(mode, row.ratio, f"{row.ratio:.2f}", colour)
            for mode, colour, row in rows
            if row is not None and row.ratio is not None
        ]
        groups.append(Group(wire, bars))
    lines = [Line(1.0, line)]
    limit = next((each["limit"] for each in results.goals if each["key"] == goal), 1.0)
    # Two labels need room between them.
    if limit <= 0.6:
        lines.append(Line(limit, f"goal ≤ {limit:g}"))
    return Chart(title, subtitle, _footer(results), _without_empty(groups), lines)


def _wires(results: Results) -> list[str]:
    """Every format that a table speaks of, in the order of the tables."""
    found = [
        row.parts[0]
        for benchmark, table in (("streaming", "text"), ("requests", None))
        for row in results.rows(benchmark, table)
    ]
    return list(dict.fromkeys(found))


def _history(results: Results) -> Chart:
    found: dict[str, list[tuple[str, float]]] = {}
    for row in results.rows("history"):
        if row.who == OURS and row.ratio is not None and row.parts[-1].endswith("messages"):
            found.setdefault(row.parts[0], []).append((row.parts[-1], row.ratio))
    groups = [
        Group(
            wire,
            [
                Bar(_with_commas(size), ratio, f"{ratio:.2f}", colour)
                for (size, ratio), colour in zip(sizes, _SIZES, strict=False)
            ],
        )
        for wire, sizes in found.items()
    ]
    return Chart(
        "CPU of a whole turn by the length of its conversation",
        "to httpx that writes and sends the same body and does nothing else; less is better",
        _footer(results),
        groups,
        [Line(1.0, "httpx with the same body = 1")],
    )


def _with_commas(text: str) -> str:
    number, _, rest = text.partition(" ")
    return f"{int(number):,} {rest}" if number.isdigit() else text


def _starting(results: Results) -> Chart:
    def bars(labels: Iterable[tuple[str, str, str]]) -> list[Bar]:
        found: list[Bar] = []
        for measured, label, colour in labels:
            row = results.find("starting", "starts", *measured.split(", "))
            if row is not None:
                found.append(Bar(label, row.best, f"{row.best:,.0f} ms", colour))
        return sorted(found, key=lambda bar: bar.value if bar.colour == "other" else 0)

    imports = [
        ("import agent_host", "agent_host", "ours"),
        ("import httpx", "httpx", "base"),
        *((f"import {peer.module}", peer.module, "other") for peer in PEERS.values()),
    ]
    commands = [
        ("python -c pass", "python -c pass", "base"),
        ("--version", "agent-host --version", "ours"),
        ("list, 0, warm", "plugins list", "ours"),
        ("list, 500, warm", "… 500 more packages", "ours-second"),
        ("list, 2000, warm", "… 2,000 more packages", "ours-second"),
        ("llm --version", "llm --version", "other"),
        ("llm plugins", "llm plugins", "other"),
    ]
    return Chart(
        "Starting a process until it ends",
        "milliseconds with a warm index; less is better",
        _footer(results),
        _without_empty([Group("Commands", bars(commands)), Group("Imports", bars(imports))]),
    )


def _first_chunk(results: Results) -> Chart:
    return _among_others(
        results,
        "From a cold process to its first streamed chunk",
        "milliseconds that a person at a terminal waits; less is better",
        "first_chunk",
        None,
        lambda wire: (wire,),
        lambda value: f"{value:,.0f} ms",
    )


def _peers_chunk(results: Results) -> Chart:
    return _among_others(
        results,
        "CPU per streamed chunk, among others",
        "microseconds, sync, a chunk of HTTP for each event; less is better",
        "streaming",
        "others",
        lambda wire: (wire, "sync"),
        _microseconds,
    )


def _peers_request(results: Results) -> Chart:
    return _among_others(
        results,
        "CPU per request answered in one piece, among others",
        "microseconds, sync, over a connection that is kept; less is better",
        "requests",
        None,
        lambda wire: (wire, "sync"),
        _microseconds,
    )


def _concurrency(results: Results) -> Chart:
    groups = []
    for parts in dict.fromkeys(row.parts for row in results.rows("concurrency", "rate")):
        rows = sorted(results.everybody("concurrency", "rate", *parts), key=lambda row: -row.best)
        bars = [_bar(row, lambda value: f"{value / 1000:,.1f} thousand") for row in rows]
        groups.append(Group(" of ".join(parts), bars))
    return Chart(
        "Chunks per second of many streams in one process",
        "asyncio on one core; more is better",
        _footer(results),
        groups,
    )


def _resident(results: Results) -> Chart:
    return _among_others(
        results,
        "Memory of a new process after its first request",
        "megabytes resident; less is better",
        "footprint",
        "resident",
        lambda wire: (wire,),
        lambda value: f"{value:,.0f} MB",
    )


def _among_others(
    results: Results,
    title: str,
    subtitle: str,
    benchmark: str,
    table: str | None,
    parts: Callable[[str], tuple[str, ...]],
    text: Callable[[float], str],
) -> Chart:
    """Everybody's best, for the formats that peers speak."""
    wires = dict.fromkeys(row.parts[0] for row in results.rows(benchmark, table))
    groups: list[Group] = []
    for wire in wires:
        rows = [row for row in results.everybody(benchmark, table, *parts(wire)) if _is_shown(row)]
        # Peers speak two of the formats; where nobody stands beside us there is nothing to compare.
        if groups and not any(row.who in PEERS for row in rows):
            continue
        rows.sort(key=lambda row: row.best)
        groups.append(Group(wire, [_bar(row, text) for row in rows]))
    return Chart(title, subtitle, _footer(results), _without_empty(groups))


def _is_shown(row: Row) -> bool:
    return row.who in (OURS, BASE) or row.who in PEERS


def _bar(row: Row, text: Callable[[float], str]) -> Bar:
    colour = {OURS: "ours", BASE: "base"}.get(row.who, "other")
    return Bar(_NAMES.get(row.who, row.who), row.best, text(row.best), colour)


def _microseconds(value: float) -> str:
    return f"{value:,.1f} µs" if value < 100 else f"{value:,.0f} µs"


def _without_empty(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.bars]


def _footer(results: Results) -> str:
    about = results.document
    smoke = "; a smoke run, whose numbers say nothing" if about["quick"] else ""
    return f"{about['python']}, {about['date'][:10]}, best of interleaved rounds{smoke}"


CHARTS: dict[str, Callable[[Results], Chart]] = {
    "chunk": _chunk,
    "paced": _paced,
    "request": _request,
    "history": _history,
    "starting": _starting,
    "first-chunk": _first_chunk,
    "concurrency": _concurrency,
    "peers-chunk": _peers_chunk,
    "peers-request": _peers_request,
    "memory": _resident,
}
