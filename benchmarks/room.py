"""How much room a run takes in the store: bytes and rows, of runs with and without calls of tools.

``python -m benchmarks.room --store URL`` looks at another store than a SQLite file, such as a
database of PostgreSQL that nobody else uses.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_hookspecs.authoring import tool
from agent_host import AgentApplication, AppConfig
from benchmarks.measure import Samples, Table, progress, show

RUNS = 1000
#: An answer of about a thousand characters; a result of a tool of the same length.
WORDS = 200
CALLS = 3
_CONFIG = AppConfig(agents={"default": {"provider": "echo", "tools": []}})


#: Something else each time, because the same content is stored once.
_numbers = count()


@tool(effect="read")
def look_up(number: int) -> str:
    """Look something up."""
    return f"{next(_numbers)} " + "word " * WORDS


def run(quick: bool) -> list[Table]:
    progress("room in the store")
    with TemporaryDirectory() as folder:
        file = Path(folder, "sessions.db")
        return tables(f"sqlite:///{file}", lambda: _sqlite_room(file), 20 if quick else RUNS)


def tables(url: str, find_room: Callable[[], tuple[int, int]], runs: int) -> list[Table]:
    """``find_room`` gives the bytes and the rows that there are in the store."""
    taken = Table("Room that a run takes in the store (bytes)", name="bytes")
    counted = Table("Rows that a run makes in the store", name="rows")
    calls = "\n".join(f'/call look_up {{"number": {number}}}' for number in range(CALLS))
    kinds: dict[str, Callable[[int], str]] = {
        f"question and answer of {WORDS} words": lambda number: f"{number} " + "word " * WORDS,
        f"{CALLS} calls with results of {WORDS} words": lambda number: f"{number}\n{calls}",
        "the same without content": lambda number: f"{number}\n{calls}",
    }
    _fill_store(url, 1, lambda number: "Hello", {})
    for name, prompt in kinds.items():
        options = {"content": False} if name.endswith("without content") else {}
        before = find_room()
        _fill_store(url, runs, prompt, options)
        size, rows = ((now - then) / runs for now, then in zip(find_room(), before, strict=True))
        taken.add(name, Samples((size,)))
        counted.add(name, Samples((rows,)))
    return [taken, counted]


def _fill_store(url: str, runs: int, prompt: Callable[[int], str], options: dict[str, Any]) -> None:
    config = AppConfig(**_CONFIG, store_options=options)
    with AgentApplication(config, tools=[look_up], store=url) as app:
        for number in range(runs):
            app.run(prompt(number), use_tools=["look_up"])


def _sqlite_room(file: Path) -> tuple[int, int]:
    connection = sqlite3.connect(file)
    try:
        # What was written ahead becomes part of the file.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # The index of words has tables of its own, which are no rows of anybody's.
        rows = sum(
            connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for _, name, kind, *_ in connection.execute("PRAGMA table_list").fetchall()
            if kind == "table" and not name.startswith("sqlite_")
        )
    finally:
        connection.close()
    return file.stat().st_size, rows


def _postgres_room(url: str) -> tuple[int, int]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        found = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)), sum(reltuples) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'agent_host'::regnamespace"
        ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", metavar="URL", help="postgresql://…, which nobody else uses")
    chosen = parser.parse_args()
    if chosen.store is None:
        show(run(quick=False))
    else:
        show(tables(chosen.store, lambda: _postgres_room(chosen.store), RUNS))


if __name__ == "__main__":
    main()
