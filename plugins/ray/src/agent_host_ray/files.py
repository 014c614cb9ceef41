"""Lines and results in files of JSON lines and of Parquet, on disks and in object stores.

They go through Ray Data: a task reads each file bit by bit, and another writes each part. What has
no address but a path is this machine's, so whoever reads or writes it runs here. It must not know
what a line or a result says.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from itertools import islice
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_host_ray.errors import FilesError
from agent_host_ray.library import ray

try:
    data: Any = import_module("ray.data")
    blocks_of_data: Any = import_module("ray.data.block")
    pa: Any = import_module("pyarrow")
    pafs: Any = import_module("pyarrow.fs")
    pq: Any = import_module("pyarrow.parquet")
except ImportError as error:
    raise FilesError(
        f"Ray Data cannot be imported: {error}",
        hint="pip install 'agent-host-ray[data]' on every machine of the cluster",
    ) from error

__all__ = ["check_target", "read_lines", "write_results"]

_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet",)
#: So many lines are in a block.
_ROWS = 1000
#: So many bytes are read at a time.
_BYTES = 1 << 20
#: So many results go into a part of a folder.
_PART_ROWS = 50_000
#: The column that has lines as they stand in a file of JSON lines.
_TEXT = "line"

Result: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class _Place:
    """A path in a file system. ``is_here`` if it is on this machine's disk."""

    filesystem: Any
    path: str
    name: str
    is_here: bool

    @property
    def is_json(self) -> bool:
        return self.path.endswith(_JSON)

    @property
    def is_file(self) -> bool:
        return self.path.endswith((*_JSON, *_PARQUET))

    @property
    def label_selector(self) -> dict[str, str] | None:
        """On which nodes tasks run that read it."""
        if not self.is_here:
            return None
        return {"ray.io/node-id": ray.get_runtime_context().get_node_id()}


def _locate(name: str) -> _Place:
    scheme = urlsplit(name).scheme if "://" in name else ""
    try:
        if scheme in ("", "file", "local"):
            path = name if not scheme else name.partition("://")[2]
            return _Place(pafs.LocalFileSystem(), os.path.abspath(path), name, True)
        try:
            filesystem, path = pafs.FileSystem.from_uri(name)
        except (pa.ArrowInvalid, NotImplementedError, ValueError):
            found, path = import_module("fsspec.core").url_to_fs(name)
            filesystem = pafs.PyFileSystem(pafs.FSSpecHandler(found))
    except (OSError, ValueError, ImportError, NotImplementedError) as error:
        raise FilesError(
            f"{_without_secrets(name)} cannot be reached: {error}",
            hint="name a path, s3://, gs://, or a URL that fsspec knows, and install what it asks",
        ) from error
    return _Place(filesystem, path.rstrip("/"), _without_secrets(name), False)


def _without_secrets(name: str) -> str:
    """The URL without what may be a key before the host."""
    scheme, mark, rest = name.partition("://")
    head, at, tail = rest.partition("@")
    return f"{scheme}://{tail}" if mark and at and "/" not in head else name


@contextmanager
def _quiet_data() -> Iterator[None]:
    """Ray Data without bars and words of its own, and with rows in their order."""
    context = data.DataContext.get_current()
    before = context.enable_progress_bars, context.execution_options.preserve_order
    context.enable_progress_bars, context.execution_options.preserve_order = False, True
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        context.enable_progress_bars, context.execution_options.preserve_order = before


def read_lines(source: str) -> Iterator[Mapping[str, Any] | bytes]:
    """See `agent_hookspecs.batch.BatchFiles`."""
    place = _locate(source)
    files = _list_files(place)
    with _quiet_data():
        paths = data.from_items([{"path": path} for path in files])
        lines = paths.repartition(len(files)).map_batches(
            _ReadFile(place.filesystem),
            batch_size=1,
            batch_format="pyarrow",
            # All processors may be reserved by workers, which wait for these lines.
            num_cpus=0,
            label_selector=place.label_selector,
        )
        try:
            for table in lines.iter_batches(batch_size=None, batch_format="pyarrow"):
                for row in table.to_pylist():
                    text = row.get(_TEXT)
                    yield text if isinstance(text, bytes) else _without_nulls(row)
        except ray.exceptions.RayError as error:
            raise FilesError(
                f"{place.name} cannot be read: {_cause_of(error)}",
                hint="name files of JSON lines (.jsonl) or Parquet (.parquet), or a folder of them",
            ) from error


def _list_files(place: _Place) -> list[str]:
    try:
        info = place.filesystem.get_file_info(place.path)
        if info.type == pafs.FileType.File:
            found = [place.path]
        elif info.type == pafs.FileType.Directory:
            inside = place.filesystem.get_file_info(pafs.FileSelector(place.path, recursive=True))
            found = sorted(each.path for each in inside if each.path.endswith((*_JSON, *_PARQUET)))
        else:
            found = []
    except OSError as error:
        raise FilesError(
            f"{place.name} cannot be read: {error}",
            hint="look at its name, and at the rights to it",
        ) from error
    if not found:
        raise FilesError(
            f"{place.name} has no lines",
            hint="name files of JSON lines (.jsonl) or Parquet (.parquet), or a folder of them",
        )
    return found


@dataclass(frozen=True, slots=True)
class _ReadFile:
    """Gives the lines of a file bit by bit, in a task."""

    filesystem: Any

    def __call__(self, paths: Any) -> Iterator[Any]:
        for path in paths.column("path").to_pylist():
            if path.endswith(_PARQUET):
                with self.filesystem.open_input_file(path) as file:
                    for batch in pq.ParquetFile(file).iter_batches(_ROWS):
                        yield pa.Table.from_batches([batch])
            else:
                with BufferedReader(self.filesystem.open_input_stream(path), _BYTES) as file:
                    while lines := list(islice(file, _ROWS)):
                        yield pa.table({_TEXT: pa.array(lines, pa.large_binary())})


def _without_nulls(value: Any) -> Any:
    """The value without the keys that only other rows have."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def check_target(target: str) -> None:
    """See `agent_hookspecs.batch.BatchFiles`."""
    place = _locate(target)
    if place.is_here:
        return
    try:
        place.filesystem.get_file_info(place.path)
    except OSError as error:
        raise FilesError(
            f"{place.name} cannot be written: {error}",
            hint="look at its name, and at the rights to it",
        ) from error


def write_results(results: Iterable[Result], target: str) -> None:
    """See `agent_hookspecs.batch.BatchFiles`."""
    place = _locate(target)
    columns = None if place.is_json else _columns_of(results)
    part_rows = None if place.is_file else _PART_ROWS
    with _quiet_data():
        parts = [ray.put(table) for table in _tables(results, columns, part_rows or _ROWS)]
        written = data.from_arrow_refs(parts)
        if place.is_file:
            written = written.repartition(1)
        try:
            written.write_datasink(_Sink(place))
        except (ray.exceptions.RayError, OSError) as error:
            raise FilesError(
                f"{place.name} cannot be written: {_cause_of(error)}",
                hint="look at its name, and at the rights to it; the same command writes what is "
                "already answered",
            ) from error


def _columns_of(results: Iterable[Result]) -> dict[str, Any]:
    """Whole numbers where a column has nothing else, else text."""
    numbers: dict[str, bool] = {}
    for result in results:
        for key, value in result.items():
            if value is not None:
                is_number = isinstance(value, int) and not isinstance(value, bool)
                numbers[key] = numbers.get(key, True) and is_number
            else:
                numbers.setdefault(key, True)
    return {key: pa.int64() if number else pa.string() for key, number in numbers.items()}


def _tables(
    results: Iterable[Result], columns: Mapping[str, Any] | None, rows: int
) -> Iterator[Any]:
    rest = iter(results)
    while part := list(islice(rest, rows)):
        if columns is None:
            lines = [json.dumps(result, ensure_ascii=False).encode() + b"\n" for result in part]
            yield pa.table({_TEXT: pa.array(lines, pa.large_binary())})
        else:
            cells = {
                key: pa.array([_cell(result.get(key), kind) for result in part], kind)
                for key, kind in columns.items()
            }
            yield pa.table(cells)


def _cell(value: Any, kind: Any) -> Any:
    if value is None or isinstance(value, str) or kind == pa.int64():
        return value
    return json.dumps(value, ensure_ascii=False)


class _Sink(data.Datasink):  # type: ignore[misc]
    """Writes results to one file, or to a folder of parts."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        #: What is on a disk is written beside, and put in its place at the end.
        self._path = f"{place.path}.part" if place.is_here else place.path

    @property
    def supports_distributed_writes(self) -> bool:
        return not self._place.is_here

    def on_write_start(self, schema: Any = None) -> None:
        place = self._place
        if place.is_here:
            _remove(self._path)
            os.makedirs(os.path.dirname(place.path) if place.is_file else self._path, exist_ok=True)
        elif not place.is_file:
            place.filesystem.create_dir(self._path, recursive=True)
            place.filesystem.delete_dir_contents(self._path)

    def write(self, blocks: Iterable[Any], ctx: Any) -> None:
        place = self._place
        path = self._path if place.is_file else f"{self._path}/part-{ctx.task_idx:06}.parquet"
        with place.filesystem.open_output_stream(path) as file:
            writer = None
            for block in blocks:
                table = blocks_of_data.BlockAccessor.for_block(block).to_arrow()
                if place.is_json:
                    file.write(b"".join(table.column(_TEXT).to_pylist()))
                    continue
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()

    def on_write_complete(self, write_result: Any) -> None:
        place = self._place
        if not place.is_here:
            return
        if not place.is_file:
            _remove(place.path)
        os.replace(self._path, place.path)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def _cause_of(error: Exception) -> str:
    """What a task has raised, without the way there."""
    cause = getattr(error, "cause", None)
    while isinstance(cause, Exception) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(cause or error).strip()
    return f"{type(cause or error).__name__}: {text.splitlines()[0] if text else ''}"
