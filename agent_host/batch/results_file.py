"""The file of results: a line for each, added at its end and on the disk before anybody is told.

Whatever kills the process, every whole line of the file is a result, and half a line at its end is
cut off by whoever goes on. One process writes to it at a time. Once the batch is done, the file may
be put in order, in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from agent_host.batch.errors import BatchError
from agent_host.batch.lines import Key
from agent_host.batch.results import BatchResult

__all__ = [
    "ResultsFile",
    "StoredResults",
    "cut_half_line",
    "encode_result",
    "key_of",
    "sync_folder",
    "write_all",
]

#: How every result begins that we write.
_BEGIN = b'{"id": '
#: What is needed of results that are there already.
_HEAD = ("id", "line", "status", "input", "settings", "finish", "cost", "batch")


def encode_result(result: Mapping[str, Any]) -> bytes:
    """A result as a line of a file."""
    # Whatever is not of JSON was somebody's own; as text it is at least there.
    return json.dumps(result, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def key_of(result: BatchResult) -> Key:
    """What the line of a result is known by."""
    return result["line"] if result["id"] is None else str(result["id"])


class StoredResults:
    """The results of a file whose batch has ended, read anew whenever somebody iterates."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            yield from map(json.loads, file)


class ResultsFile:
    """An open file of results, which nobody else writes to until it is closed.

    ``results`` are those that it had, by their lines, without what was said.
    ``cut_bytes`` is how long a half-written line was that has been cut off.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._path = path
        self.results: dict[Key, BatchResult] = {}
        self.cut_bytes = 0
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise BatchError(
                f"{path} cannot be written: {error.strerror}", hint="name another file"
            ) from error
        try:
            self._lock()
            if fresh:
                os.ftruncate(self._file, 0)
            else:
                # Read first: what is no file of results is not touched.
                self.results = {key_of(each): _without_content(each) for each in self._read()}
                self._cut_half_line()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BatchError(
                f"another batch is writing to {self._path}", hint="wait for it, or stop it"
            ) from error

    def _cut_half_line(self) -> None:
        size = os.fstat(self._file).st_size
        end = _end_of_lines(self._file, size)
        if end == size:
            return
        begin = os.pread(self._file, len(_BEGIN), end)
        if not _BEGIN.startswith(begin):
            raise self._no_result("the last line")
        self.cut_bytes = cut_half_line(self._file)

    def _read(self) -> Iterator[BatchResult]:
        """The results, without half a line at the end."""
        with open(os.dup(self._file), "rb") as file:
            file.seek(0)
            for number, text in enumerate(file, 1):
                if text.endswith(b"\n"):
                    yield self._read_result(number, text)

    def _read_result(self, number: int, text: bytes) -> BatchResult:
        with suppress(ValueError, RecursionError):
            # Nothing is lost: what is no result is told below.
            result = json.loads(text)
            if isinstance(result, dict) and {"id", "line", "status", "input", "settings"} <= {
                *result
            }:
                return cast(BatchResult, result)
        raise self._no_result(f"line {number}")

    def _no_result(self, what: str) -> BatchError:
        return BatchError(
            f"{what} of {self._path} is no result of a batch",
            hint="name another file for the results; --fresh (fresh=True) begins anew",
        )

    def append(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Add results; they are on the disk when this returns."""
        write_all(self._file, b"".join(map(encode_result, results)))
        os.fsync(self._file)

    def arrange(self, keys: Sequence[Key]) -> None:
        """Replace the file by one with the results of these lines, in this order, each once."""
        results = {key_of(result): result for result in self._read()}
        part = self._path.with_name(f"{self._path.name}.part")
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            os.fchmod(file, os.fstat(self._file).st_mode & 0o777)
            with open(file, "wb", closefd=False) as out:
                out.writelines(encode_result(results[key]) for key in keys if key in results)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(part, self._path)
        sync_folder(self._path)

    def close(self) -> None:
        os.close(self._file)


def _without_content(result: BatchResult) -> BatchResult:
    return cast(BatchResult, {key: result.get(key) for key in _HEAD})


def _end_of_lines(file: int, size: int) -> int:
    """Where the last whole line ends."""
    end = size
    while end > 0:
        begin = max(end - 65536, 0)
        place = os.pread(file, end - begin, begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return 0


def cut_half_line(file: int) -> int:
    """Cut off what is behind the last whole line of a file; how many bytes that was."""
    size = os.fstat(file).st_size
    end = _end_of_lines(file, size)
    if end != size:
        os.ftruncate(file, end)
    return size - end


def sync_folder(path: Path) -> None:
    """Have the disk know the name of a file."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_all(file: int, content: bytes) -> None:
    """Write all of it, however little the system takes at a time."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
