"""The journal of a batch that is answered by providers' own batches: what was submitted, and when.

It stands beside the file of results. A batch is noted before it is submitted, so that one whose id
nobody was left to note is looked for, and not submitted twice. Whatever kills the process, every
whole line of the file counts. Keys and what lines say are not in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from agent_hookspecs.values import dataclass
from agent_host.batch.errors import BatchError
from agent_host.batch.results_file import cut_half_line, sync_folder, write_all

__all__ = ["Journal", "JournalledBatch"]


@dataclass(slots=True)
class JournalledBatch:
    """A batch that was about to be submitted; ``id`` is the provider's, once it is known.

    ``lines`` are the keys of its lines: number and digest. ``is_lost`` says that there is none.
    """

    mark: str
    provider: str
    settings: str
    begun: float
    lines: list[str] = field(default_factory=list)
    id: str | None = None
    is_lost: bool = False


class Journal:
    """An open journal. Whoever writes to the file of results is the only one to write to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.batches: dict[str, JournalledBatch] = {}
        #: The latest batch that each line was in.
        self.latest: dict[str, JournalledBatch] = {}
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(path, flags, 0o666)
            sync_folder(path)
        except OSError as error:
            raise BatchError(
                f"{path} cannot be written: {error.strerror}",
                hint="it notes what was submitted, and has to stand beside the results",
            ) from error
        try:
            self._read()
            cut_half_line(self._file)
        except BaseException:
            os.close(self._file)
            raise

    def _read(self) -> None:
        with open(os.dup(self._file), "rb") as file:
            for number, text in enumerate(file, 1):
                if text.endswith(b"\n"):
                    entry = None
                    with suppress(ValueError, RecursionError):
                        # Nothing is lost: what is no entry is told below.
                        entry = json.loads(text)
                    self._take_entry(number, entry)

    def _take_entry(self, number: int, entry: Any) -> None:
        try:
            mark = entry["mark"]
            if "lines" in entry:
                self._add(JournalledBatch(**entry))
            else:
                batch = self.batches[mark]
                batch.id = entry.get("id", batch.id)
                batch.is_lost = entry.get("is_lost", batch.is_lost)
        except (KeyError, TypeError) as error:
            raise BatchError(
                f"line {number} of {self._path} is no entry of a journal of batches",
                hint="it says what was submitted and is paid for: restore it, or take it away",
            ) from error

    def _add(self, batch: JournalledBatch) -> None:
        self.batches[batch.mark] = batch
        self.latest.update(dict.fromkeys(batch.lines, batch))

    def note_begun(self, batch: JournalledBatch) -> None:
        """Note that a batch is about to be submitted; on the disk when this returns."""
        self._add(batch)
        self._write(
            {
                "mark": batch.mark,
                "provider": batch.provider,
                "settings": batch.settings,
                "begun": batch.begun,
                "lines": batch.lines,
            }
        )

    def note_id(self, batch: JournalledBatch, id: str) -> None:
        """Note what a batch is known by at its provider."""
        batch.id = id
        self._write({"mark": batch.mark, "id": id})

    def note_lost(self, batch: JournalledBatch) -> None:
        """Note that there is no such batch, so that its lines are free for another."""
        batch.is_lost = True
        self._write({"mark": batch.mark, "is_lost": True})

    def _write(self, entry: Mapping[str, Any]) -> None:
        write_all(self._file, json.dumps(entry).encode() + b"\n")
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
