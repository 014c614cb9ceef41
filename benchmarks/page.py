"""Puts the figures of a run between the markers of a page.

A page says ``<!-- figures: NAME -->`` where they begin and ``<!-- end -->`` where they end; what is
outside is the author's. What a run did not measure stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from benchmarks.peers.installed import PEERS
from benchmarks.results import Results, Row
from benchmarks.streaming import TRANSFERS
from benchmarks.team import BASE, OURS

__all__ = ["SECTIONS", "fill"]

_MARKED = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MODES = ("sync", "async")


def fill(text: str, results: Results) -> tuple[str, list[str]]:
    """The page with the figures in it, and the names of those that were not measured."""
    missing: list[str] = []

    def replace(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in SECTIONS:
            known = ", ".join(SECTIONS)
            raise ValueError(f"the page asks for figures of {name!r}; there are {known}")
        lines = SECTIONS[name](results)
        if not lines:
            missing.append(name)
            return found[0]
        return "\n".join([found[1], *lines, "", found[3]])

    return _MARKED.sub(replace, text), missing


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown; nothing where there are no rows."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body] if body else []


def _ratio(row: Row | None) -> str:
    return "–" if row is None or row.ratio is None else f"{row.ratio:.2f}"


def _both(results: Results, benchmark: str, table: str | None, *parts: str) -> str:
    """Ours to the base, sync / async."""
    rows = [results.find(benchmark, table, *parts, mode, who=OURS) for mode in _MODES]
    return " / ".join(map(_ratio, rows))


def _first_parts(results: Results, benchmark: str, table: str | None = None) -> list[str]:
    return list(dict.fromkeys(row.parts[0] for row in results.rows(benchmark, table)))


def _circumstances(results: Results) -> list[str]:
    about = results.document
    names = "" if about["whole"] else " " + " ".join(about["benchmarks"])
    processor, cores, *_ = about["machine"].split(", ")
    peers = ", ".join(f"{name} {version}" for name, version in about["peers"].items())
    smoke = " It was a smoke run, whose numbers say nothing." if about["quick"] else ""
    return [
        f"Figures are of one run of `python -m benchmarks{names}` on {about['date'][:10]}:"
        f" {about['python']}, httpx {about['versions']['httpx']}, {processor}, {cores}."
        f" Peers: {peers or 'none were installed'}.{smoke}"
    ]


def _goals(results: Results) -> list[str]:
    rows = []
    for goal in results.goals:
        if goal["measured"] is None:
            continue
        wanted = f"{'at least' if goal['at_least'] else 'at most'} {goal['limit']:g}{goal['unit']}"
        measured = f"{goal['measured']:.2f}{goal['unit']}"
        rows.append((goal["what"], wanted, measured, "met" if goal["met"] else "**missed**"))
    return _table(("what", "goal", "measured", ""), rows)


def _text(results: Results) -> list[str]:
    each, several, length = TRANSFERS.values()
    return _table(
        ("format", "text", "1 ms apart", "reasoning", "8 events an HTTP chunk", "one length"),
        (
            (
                wire,
                _both(results, "streaming", "text", wire, each),
                _both(results, "streaming", "paced", wire),
                _both(results, "streaming", "reasoning", wire),
                _both(results, "streaming", "text", wire, several),
                _both(results, "streaming", "text", wire, length),
            )
            for wire in _first_parts(results, "streaming", "text")
        ),
    )


def _growth(results: Results) -> list[str]:
    tables = results.document["benchmarks"].get("streaming", ())
    for table in tables:
        if table["name"] == "growth" and table["rows"]:
            ratios = [row["ratio"] for row in table["rows"].values()]
            what = table["title"].partition(" (")[0]
            return [f"{what}: {min(ratios):.1f} to {max(ratios):.1f} times the CPU (10 is linear)."]
    return []


def _calls(results: Results) -> list[str]:
    rows = list(results.rows("tool_calls", "cost"))
    shapes = dict.fromkeys(row.parts[1] for row in rows)
    sizes = dict.fromkeys(row.parts[3] for row in rows)

    def cell(wire: str, shape: str, size: str) -> str:
        found = [
            results.find("tool_calls", "cost", wire, shape, mode, size, who=OURS) for mode in _MODES
        ]
        return " / ".join(map(_ratio, found))

    columns = [(shape, size) for shape in shapes for size in sizes]
    return _table(
        ("format", *(f"{shape}, {int(size):,}" for shape, size in columns)),
        (
            (wire, *(cell(wire, shape, size) for shape, size in columns))
            for wire in _first_parts(results, "tool_calls", "cost")
        ),
    )


def _requests(results: Results) -> list[str]:
    def cells(wire: str) -> Iterable[str]:
        for mode in _MODES:
            row = results.find("requests", None, wire, mode, who=OURS)
            yield "–" if row is None else f"{_ratio(row)} ({row.best:,.0f} µs)"

    return _table(
        ("format", *_MODES),
        ((wire, *cells(wire)) for wire in _first_parts(results, "requests")),
    )


def _history(results: Results) -> list[str]:
    ours = [
        row
        for row in results.rows("history")
        if row.who == OURS and row.parts[-1].endswith(" messages")
    ]
    sizes = list(dict.fromkeys(row.parts[-1] for row in ours))

    def cell(wire: str, size: str) -> str:
        row = next((row for row in ours if (row.parts[0], row.parts[-1]) == (wire, size)), None)
        return "–" if row is None else f"{_ratio(row)} ({row.best / 1000:,.2f} ms)"

    return _table(
        ("format", *(f"{int(size.split()[0]):,} messages" for size in sizes)),
        (
            (wire, *(cell(wire, size) for size in sizes))
            for wire in dict.fromkeys(row.parts[0] for row in ours)
        ),
    )


def _starting(results: Results) -> list[str]:
    rows = []
    for row in results.rows("starting", "starts"):
        kind, *rest = row.parts
        if kind == "list":
            size, state = rest
            more = f"with {int(size):,} more packages" if size != "0" else "nothing more installed"
            what = f"`plugins list --json`, {more}, {state}"
        else:
            what = f"`agent-host {kind}`" if kind.startswith("--") else f"`{kind}`"
        rows.append((what, f"{row.best:,.0f} ms", _ratio(row)))
    return _table(("what", "takes", "to a bare interpreter"), rows)


def _first_chunk(results: Results) -> list[str]:
    def cell(wire: str) -> tuple[str, str, str]:
        ours = results.find("first_chunk", None, wire, who=OURS)
        base = results.find("first_chunk", None, wire, who=BASE)
        times = ["–" if row is None else f"{row.best:,.0f} ms" for row in (ours, base)]
        return times[0], times[1], _ratio(ours)

    wires = _first_parts(results, "first_chunk")
    return _table(("format", "ours", "httpx", "ratio"), ((wire, *cell(wire)) for wire in wires))


#: Columns of the table of peers: benchmark, table, and the parts of the rows that are compared.
_COMPARED = {
    "chunk, chat": ("streaming", "others", ("OpenAI chat", "sync")),
    "async": ("streaming", "others", ("OpenAI chat", "async")),
    "chunk, Anthropic": ("streaming", "others", ("Anthropic Messages", "sync")),
    "request, chat": ("requests", None, ("OpenAI chat", "sync")),
    "request, Anthropic": ("requests", None, ("Anthropic Messages", "sync")),
    "first chunk, chat": ("first_chunk", None, ("OpenAI chat",)),
    "200 streams, chat": ("concurrency", "rate", ("200 streams", "OpenAI chat")),
    "memory, chat": ("footprint", "resident", ("OpenAI chat",)),
}


def _peers(results: Results) -> list[str]:
    rows = []
    for who in (OURS, *PEERS):
        found = [results.find(*where[:2], *where[2], who=who) for where in _COMPARED.values()]
        if any(found):
            rows.append((who.replace("_", "-"), *map(_ratio, found)))
    return _table(("", *_COMPARED), rows)


def _concurrency(results: Results) -> list[str]:
    rate = [row.parts for row in results.rows("concurrency", "rate") if row.who == OURS]
    wires = list(dict.fromkeys(wire for _, wire in rate))

    def ratios(table: str, streams: str) -> list[str]:
        return [
            _ratio(results.find("concurrency", table, streams, wire, who=OURS)) for wire in wires
        ]

    streams = list(dict.fromkeys(parts[0] for parts in rate))
    rows = [(f"{each}, chunks per second, to httpx", *ratios("rate", each)) for each in streams]
    rows += [(f"{each}, peak memory, to httpx", *ratios("memory", each)) for each in streams]
    above = [results.find("concurrency", "idle", wire, who=f"above {BASE}") for wire in wires]
    silent = ["–" if row is None else f"{row.best:.1f} kB" for row in above]
    rows.append(("memory of a silent stream above httpx", *silent))
    return _table(("what", *wires), rows) if wires else []


def _resolution(results: Results) -> list[str]:
    new = {row.parts: row for row in results.rows("resolution", "new")}
    known = {row.parts: row for row in results.rows("resolution", "known")}
    return _table(
        ("plugins in the stack", "a new config", "a known config"),
        (
            (parts[0].split()[0], f"{row.best:.2f} ms", f"{known[parts].best:.1f} µs")
            for parts, row in new.items()
        ),
    )


def _gating(results: Results) -> list[str]:
    kinds = ("gate, flat", "gate, a chain", "order, free", "order, a chain")
    sizes = dict.fromkeys(row.parts[-1] for row in results.rows("gating"))

    def cell(kind: str, size: str) -> str:
        row = results.find("gating", None, *kind.split(", "), size)
        # The rows are microseconds a candidate.
        return "–" if row is None else f"{row.best * int(size.split()[0]) / 1000:.2f} ms"

    return _table(
        ("candidates", *kinds),
        ((f"{int(size.split()[0]):,}", *(cell(kind, size) for kind in kinds)) for size in sizes),
    )


def _loop(results: Results) -> list[str]:
    return _table(
        ("turn of one run", "costs the host"),
        ((row.parts[0].split()[1], f"{row.best:.2f} ms") for row in results.rows("loop")),
    )


def _fairness(results: Results) -> list[str]:
    for table in results.document["benchmarks"].get("fairness", ()):
        for row in table["rows"].values():
            return [
                f"The longest that anything else on the event loop waited was {row['best']:.1f} ms"
                f" in the best round, and {row['worst']:.1f} ms in the worst."
            ]
    return []


SECTIONS: dict[str, Callable[[Results], list[str]]] = {
    "circumstances": _circumstances,
    "goals": _goals,
    "text": _text,
    "growth": _growth,
    "calls": _calls,
    "requests": _requests,
    "history": _history,
    "starting": _starting,
    "first-chunk": _first_chunk,
    "peers": _peers,
    "concurrency": _concurrency,
    "resolution": _resolution,
    "gating": _gating,
    "loop": _loop,
    "fairness": _fairness,
}
