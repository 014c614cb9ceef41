"""`Batch` and `AsyncBatch`: from lines to results, gone on with where an earlier one has ended.

A result is given to the caller once it is in the file, if there is one. The blocking form is the
async one in a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import aclosing, closing, suppress
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from agent_hookspecs.values import dataclass
from agent_host.batch.engine import OwnEngines, open_engine
from agent_host.batch.errors import BatchError
from agent_host.batch.files import count_rows, files_of, find_elsewhere, journal_of
from agent_host.batch.lines import Key, Line, Source, count_lines, digest_of, read_lines
from agent_host.batch.progress import BatchProgress
from agent_host.batch.results import BatchResult, result_of_line
from agent_host.batch.results_file import ResultsFile, StoredResults, key_of
from agent_host.batch.worker import OpenWorker
from agent_host.redaction import without_secrets
from agent_host.sessions.frozen import plain_copy
from agent_host.threads import in_thread

if TYPE_CHECKING:
    from agent_hookspecs.batch import BatchEngine, BatchFiles
    from agent_host.application.run_maker import RunMaker

__all__ = ["AsyncBatch", "Batch", "BatchOptions", "BatchSetup"]

#: How many lines are answered at a time if nobody says so.
_CONCURRENCY: Final = 16
#: How many results may wait for a caller that blocks before no more are asked for.
_WAITING: Final = 1024
#: The keys of a config that have no say in what is answered.
_NO_MATTER: Final = frozenset(
    {"$schema", "env", "http", "plugin_cache_dir", "store", "store_options"}
)


class BatchOptions(TypedDict, total=False):
    """What a batch may be told, besides its lines.

    - ``out`` is the file of results. If it has some, the batch goes on with what is missing. A
      URL, a folder or a file of another form is written at the end, by an engine that can do so.
    - ``fresh`` begins anew, ``retry_failed`` asks again what has failed; ``strict`` refuses to
      begin if a line is wrong, and else the line has an error as its result.
    - ``ordered`` gives results in the order of the lines, and puts the file in order at the end.
    - ``concurrency`` is how many lines are answered at a time. ``engine`` is the name of what
      answers them, ``engine_options`` are its settings.
    - The others are for lines that do not say so themselves.
    """

    out: str | PathLike[str] | None
    fresh: bool
    retry_failed: bool
    strict: bool
    ordered: bool
    concurrency: int | None
    engine: str
    engine_options: Mapping[str, Any]
    agent: str | None
    provider: str | None
    model: str | None
    system: str | None
    settings: Mapping[str, Any] | None
    use_tools: list[str] | None
    output_schema: Mapping[str, Any] | None


@dataclass(slots=True)
class BatchSetup:
    """A batch before it begins: its lines, and all it was told."""

    runs: RunMaker
    source: Source
    options: BatchOptions

    def __post_init__(self) -> None:
        unknown = self.options.keys() - BatchOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"a batch has no option {', '.join(sorted(unknown))}")
        concurrency = self.options.get("concurrency")
        if concurrency is not None and concurrency < 1:
            raise BatchError(f"concurrency is {concurrency}", hint="give at least 1")

    @property
    def concurrency(self) -> int:
        return self.options.get("concurrency") or _CONCURRENCY

    @property
    def engine(self) -> str:
        return self.options.get("engine") or "local"

    @property
    def target(self) -> str | None:
        """Where results are written at the end, if that is not the local file."""
        return find_elsewhere(self.options.get("out"))

    @property
    def file(self) -> Path | None:
        """The local file of results."""
        out = self.options.get("out")
        if out is None:
            return None
        return Path(out) if self.target is None else journal_of(self.target)

    def run_options(self) -> dict[str, Any]:
        """The options of runs whose lines do not say so themselves."""
        names = ("agent", "provider", "model", "system", "settings", "use_tools")
        given: Mapping[str, Any] = self.options
        found = {name: given[name] for name in names if given.get(name) is not None}
        if given.get("output_schema") is not None:
            found["output_type"] = given["output_schema"]
        return found

    def digest(self) -> str:
        """A few letters for all that has a say in the answers, besides the lines."""
        values = {
            key: value for key, value in self.runs.config.values.items() if key not in _NO_MATTER
        }
        return digest_of(without_secrets(plain_copy([values, self.run_options()])))


class AsyncBatch:
    """A batch as an async iterator of results; the work is done while somebody iterates.

    ``progress`` says how far it is. ``file`` is the local file of results, and ``target`` where
    they are written at the end, if that is elsewhere.
    """

    def __init__(self, setup: BatchSetup) -> None:
        self._setup = setup
        self.progress = BatchProgress()
        self.file, self.target = setup.file, setup.target
        self._warnings: list[str] = []
        self._engine: BatchEngine | None = None
        self._results: AsyncGenerator[BatchResult, None] | None = None

    def __aiter__(self) -> AsyncIterator[BatchResult]:
        if self._results is None:
            self._results = self._iterate()
        return self._results

    @property
    def warnings(self) -> list[str]:
        """What the caller should know of the file of results and of workers; it grows."""
        return [*self._warnings, *(self._engine.warnings if self._engine is not None else ())]

    async def run(self) -> BatchProgress:
        """Answer all lines, for the sake of the file; how far it is then."""
        async for _ in self:
            continue
        return self.progress

    async def aclose(self) -> None:
        """Cancel what is being answered, and close the file."""
        if self._results is not None:
            await self._results.aclose()

    async def _iterate(self) -> AsyncGenerator[BatchResult, None]:
        engine = self._engine = await in_thread(self._open_engine)
        try:
            async with aclosing(self._iterate_on(engine)) as results:
                async for result in results:
                    yield result
        finally:
            await in_thread(engine.close)

    async def _iterate_on(self, engine: BatchEngine) -> AsyncGenerator[BatchResult, None]:
        options = self._setup.options
        lines = _Lines(self._setup, self.progress, engine)
        # All that may keep it from beginning comes before a file is made, or begun anew.
        target = self._files_of_target(engine)
        if target is not None:
            await in_thread(target[0].check_target, target[1])
        await in_thread(lines.look_through)
        path = self.file
        file = None if path is None else await in_thread(self._open_file, path, lines)
        try:
            plain = self._answer(engine, lines, file)
            async with aclosing(_in_order(plain, lines) if options.get("ordered") else plain) as it:
                async for result in it:
                    yield result
            if file is not None and (options.get("ordered") or lines.has_replaced):
                await in_thread(file.arrange, lines.keys)
            if target is not None and path is not None:
                await in_thread(target[0].write_results, StoredResults(path), target[1])
        finally:
            if file is not None:
                file.close()

    def _open_engine(self) -> BatchEngine:
        setup, stacks = self._setup, self._setup.runs.core.stacks
        settings = setup.options.get("engine_options") or {}
        own = OwnEngines(self.file, self.progress, fresh=bool(setup.options.get("fresh")))
        return open_engine(setup.engine, settings, stacks.catalog, stacks.activator, own)

    def _files_of_target(self, engine: BatchEngine) -> tuple[BatchFiles, str] | None:
        if self.target is None:
            return None
        return files_of(engine, self._setup.engine, self.target), self.target

    def _open_file(self, path: Path, lines: _Lines) -> ResultsFile:
        source = self._setup.source
        with suppress(OSError):
            # Nothing is lost: a file that is not there is not the same.
            if isinstance(source, (str, PathLike)) and path.samefile(source):
                raise BatchError(f"{path} has the lines", hint="name another file for the results")
        file = ResultsFile(path, fresh=bool(self._setup.options.get("fresh")))
        try:
            if file.cut_bytes:
                self._warnings.append(
                    f"cut {file.cut_bytes} bytes of a half-written result off {path}; its line is "
                    "asked again"
                )
            lines.skip_answered(file.results, path)
        except BaseException:
            file.close()
            raise
        return file

    async def _keep(self, results: list[BatchResult], file: ResultsFile | None) -> None:
        """Write the results and count them; that is not left half done if we are cancelled."""
        if file is not None and results:
            writing = asyncio.ensure_future(in_thread(file.append, results))
            try:
                await asyncio.shield(writing)
            except asyncio.CancelledError:
                await writing
                self.progress.add_all(results)
                raise
        self.progress.add_all(results)

    async def _answer(
        self, engine: BatchEngine, lines: _Lines, file: ResultsFile | None
    ) -> AsyncGenerator[BatchResult, None]:
        setup = self._setup
        worker = OpenWorker(setup.runs, setup.run_options(), lines.settings_digest)
        found: asyncio.Queue[BatchResult | Exception | None] = asyncio.Queue(setup.concurrency)

        async def collect() -> None:
            try:
                answers = engine.results(lines.to_answer(), worker, setup.concurrency)
                async with aclosing(answers):
                    async for result in answers:
                        await found.put(cast(BatchResult, result))
                await found.put(None)
            except Exception as error:
                await found.put(error)

        collecting = asyncio.create_task(collect())
        try:
            is_over = False
            while not is_over:
                # All that have come meanwhile are written at once.
                ready = [await found.get()]
                while not found.empty():
                    ready.append(found.get_nowait())
                results = [*lines.take_wrong(), *(r for r in ready if isinstance(r, dict))]
                await self._keep(results, file)
                for result in results:
                    yield result
                for end in ready:
                    is_over |= end is None
                    if isinstance(end, Exception):
                        raise end
        finally:
            collecting.cancel()
            await asyncio.gather(collecting, return_exceptions=True)


class _Lines:
    """The lines of a batch: which are answered, which are wrong, and which are next."""

    def __init__(self, setup: BatchSetup, progress: BatchProgress, engine: BatchEngine) -> None:
        self._setup = setup
        self._progress = progress
        #: Lines that somebody else reads, by their name; else None.
        self._elsewhere = find_elsewhere(setup.source)
        if self._elsewhere is not None:
            self._files = files_of(engine, setup.engine, self._elsewhere)
        #: An engine may take lines in a thread while results are taken from here.
        self._wrong: deque[BatchResult] = deque()
        self._answered: Mapping[Key, BatchResult] = {}
        #: The provider's batches that lines have failed in which are asked again.
        self._failed_in: dict[Key, str | None] = {}
        #: The lines, if they can be read only once; else they are read again.
        self._read: list[Line] | None = None
        self.settings_digest = setup.digest()
        #: The keys of all lines, in order, as far as they were read.
        self.keys: list[Key] = []
        #: Whether there are results in the file that others have taken the place of.
        self.has_replaced = False

    def _all(self) -> Iterator[Line]:
        source = self._setup.source
        if self._read is not None:
            return iter(self._read)
        if self._elsewhere is not None:
            return read_lines(self._files.read_lines(self._elsewhere))
        if isinstance(source, (str, PathLike, list, tuple)):
            return read_lines(source)
        self._read = [*read_lines(source)]
        return iter(self._read)

    def look_through(self) -> None:
        """Count the lines if that can be done, and refuse wrong ones if that is wanted."""
        if self._setup.options.get("strict"):
            wrong = next((line.error for line in self._all() if line.error is not None), None)
            if wrong is not None:
                raise wrong
        self._progress.total = self._count()

    def skip_answered(self, results: Mapping[Key, BatchResult], path: Path) -> None:
        """Leave out the lines that have results; refuse those of other lines or settings."""
        retries = self._setup.options.get("retry_failed")
        found: dict[Key, BatchResult] = {}
        missing = {*results}
        for line in self._all():
            before = results.get(line.key)
            if before is None:
                continue
            missing.discard(line.key)
            if before["input"] != line.digest:
                raise _changed_error(
                    f"line {line.number} is not the one that {path} has a result of"
                )
            if before["settings"] != self.settings_digest:
                raise _changed_error(f"the settings or the config are not those of {path}")
            if retries and before["status"] == "failed":
                self.has_replaced = True
                self._failed_in[line.key] = before.get("batch")
                continue
            found[line.key] = before
            self._progress.add(before, resumed=True)
        if missing:
            raise _changed_error(f"{path} has results of {len(missing)} lines that are not there")
        self._answered = found

    def _count(self) -> int | None:
        source = self._setup.source
        if self._elsewhere is not None:
            return count_rows(self._files.read_lines(self._elsewhere))
        if isinstance(source, (str, PathLike)):
            return count_lines(source)
        if self._read is not None:
            return len(self._read)
        return len(source) if isinstance(source, (list, tuple)) else None

    def to_answer(self) -> Iterator[dict[str, Any]]:
        """The lines that have no result yet, as engines take them; wrong ones are put aside."""
        for line in self._all():
            self.keys.append(line.key)
            if line.key in self._answered:
                continue
            if line.error is not None:
                self._wrong.append(result_of_line(line, self.settings_digest))
                continue
            yield {
                "number": line.number,
                "id": line.id,
                "digest": line.digest,
                "content": line.content,
                "failed_in": self._failed_in.get(line.key),
            }

    def take_wrong(self) -> list[BatchResult]:
        """The results of lines that are wrong, each once."""
        return [self._wrong.popleft() for _ in range(len(self._wrong))]

    def is_answered(self, key: Key) -> bool:
        """Whether the line had its result before the batch began."""
        return key in self._answered


def _changed_error(what: str) -> BatchError:
    return BatchError(
        what, hint="--fresh (fresh=True) begins anew; or name another file for the results"
    )


async def _in_order(
    results: AsyncGenerator[BatchResult, None], lines: _Lines
) -> AsyncGenerator[BatchResult, None]:
    """The results in the order of the lines."""
    waiting: dict[Key, BatchResult] = {}
    place = 0
    async with aclosing(results):
        async for result in results:
            waiting[key_of(result)] = result
            while place < len(lines.keys):
                key = lines.keys[place]
                if key in waiting:
                    yield waiting.pop(key)
                elif not lines.is_answered(key):
                    break
                place += 1
    # Behind a line that has no result, as it still waits.
    for key in lines.keys[place:]:
        if key in waiting:
            yield waiting.pop(key)


class _Changed:
    """Stands among the results where what waits has changed."""


class Batch:
    """A batch as an iterator of results, answered in a thread while somebody iterates.

    ``progress``, ``warnings``, ``file`` and ``target`` are those of `AsyncBatch`.
    """

    def __init__(self, setup: BatchSetup) -> None:
        self._batch = AsyncBatch(setup)
        self.file, self.target = setup.file, setup.target
        self._wire = setup.runs.core.async_wire
        self._results: Generator[BatchResult, None, None] | None = None

    @property
    def progress(self) -> BatchProgress:
        return self._batch.progress

    @property
    def warnings(self) -> list[str]:
        return self._batch.warnings

    def __iter__(self) -> Iterator[BatchResult]:
        if self._results is None:
            self._results = self._iterate()
        return self._results

    def run(self) -> BatchProgress:
        """Answer all lines, for the sake of the file; how far it is then."""
        with closing(self):
            for _ in self:
                continue
        return self.progress

    def close(self) -> None:
        """Cancel what is being answered, and close the file."""
        if self._results is not None:
            self._results.close()

    def _iterate(self) -> Generator[BatchResult, None, None]:
        found: SimpleQueue[BatchResult | BaseException | _Changed | None] = SimpleQueue()
        room = threading.Semaphore(_WAITING)
        stopping: list[Callable[[], object]] = []

        async def work() -> None:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            stopping.append(lambda: loop.call_soon_threadsafe(task.cancel))
            begun.set()
            try:
                async with aclosing(self._batch):
                    async for result in self._batch:
                        if not room.acquire(blocking=False):
                            await in_thread(room.acquire, needed=False)
                        found.put(result)
            finally:
                await self._wire.aclose()

        def run() -> None:
            try:
                asyncio.run(work())
                found.put(None)
            except BaseException as error:
                found.put(error)
            finally:
                begun.set()

        # Whoever watches does so where the results are taken.
        watch, self.progress.watch = self.progress.watch, lambda: found.put(_Changed())
        begun = threading.Event()
        thread = threading.Thread(target=run, name="batch", daemon=True)
        thread.start()
        try:
            while (result := found.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                if not isinstance(result, _Changed):
                    room.release()
                    yield result
                elif watch is not None:
                    watch()
        finally:
            begun.wait()
            for stop in stopping:
                with suppress(RuntimeError):
                    # Nothing is lost: the loop is closed by now.
                    stop()
            room.release()
            thread.join()
