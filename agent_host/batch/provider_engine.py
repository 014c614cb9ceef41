"""The engine that has lines answered by batches of the providers: for less, in their own time.

The first request of each line goes into a batch of its account, endpoint and model; what has become
of it is read as the answer of a run. A journal beside the file of results says what was submitted,
so that whoever comes back fetches it, and nothing is paid for twice. It must not know what any
provider's batches look like.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from agent_hookspecs.batch import BatchReply, BatchWorkers, SubmittedBatch
from agent_hookspecs.errors import AgentError, ConfigError, ProviderError
from agent_hookspecs.values import dataclass
from agent_host.batch.endpoint import (
    EndpointCaller,
    PreparedRequest,
    is_refused,
    read_documents,
)
from agent_host.batch.errors import BatchError
from agent_host.batch.journal import Journal, JournalledBatch
from agent_host.batch.progress import BatchProgress, WaitingBatch
from agent_host.batch.results import BatchResult
from agent_host.batch.worker import FetchedReply, LineWorker
from agent_host.sessions.frozen import plain_copy
from agent_host.threads import in_thread
from agent_host.wire.client import AsyncWireClient
from agent_host.wire.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["EngineSettings", "ProviderEngine"]

#: Of a batch these are in memory while it is made; a share of what APIs allow, at no higher price.
_MAX_BYTES: Final = 32 << 20
#: How long it is before a batch is looked at again: at first, and by how much longer each time.
_FIRST_POLL: Final = 2.0
_POLL_GROWTH: Final = 1.5
#: So often in a row a batch may not be looked at, before the whole ends and is gone on with later.
_FAILED_POLLS: Final = 20
#: How far the clock of a server may be from ours, when a batch is looked for by its time.
_CLOCKS_APART: Final = 3600.0
_POLICY: Final = RetryPolicy(max_retries=4)
#: How servers refuse what they do not have.
_NOT_THERE: Final = frozenset({404, 405, 501})

_Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the engine waits: it looks after ``poll_seconds`` at the latest.

    Without ``wait`` it submits, fetches what is there, and ends. With ``cancel`` it submits
    nothing, and has no more of what was submitted answered. ``batch_lines`` bounds the batches.
    """

    poll_seconds: float = 300.0
    wait: bool = True
    cancel: bool = False
    batch_lines: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EngineSettings:
        """The settings that a caller has given; a `ConfigError` names what is wrong."""
        wrong = [key for key in config if key not in cls.__slots__]
        if wrong:
            raise _setting_error(
                f"the engine 'provider' has no setting {', '.join(sorted(wrong))}",
                f"it has {', '.join(cls.__slots__)}",
            )
        made = cls(**config)
        for key in ("wait", "cancel"):
            if not isinstance(config.get(key, False), bool):
                raise _setting_error(f"{key} is {config[key]!r}", "give true or false")
        for key, kinds in (("poll_seconds", (int, float)), ("batch_lines", (int,))):
            value = config.get(key, 1)
            if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
                raise _setting_error(f"{key} is {value!r}", "give a number above 0")
        return made


def _setting_error(what: str, hint: str) -> ConfigError:
    return ConfigError(what, key="engine_options", hint=hint)


@dataclass(slots=True)
class _Filling:
    """A batch that is not full yet; ``encoded`` are its requests, ``lines`` those by their keys."""

    prepared: PreparedRequest
    mark: str = field(default_factory=lambda: token_hex(8))
    encoded: list[bytes] = field(default_factory=list)
    lines: dict[str, _Place] = field(default_factory=dict)
    size: int = 0


#: Where a line stands in the file of those that wait.
_Place = tuple[int, int]


@dataclass(slots=True)
class _Waiting:
    """A submitted batch and its lines without a result; ``caller`` asks its endpoint."""

    batch: JournalledBatch
    lines: dict[str, _Place]
    caller: EndpointCaller | None = None
    answered: int | None = None
    #: Batches of an API that keeps no marks, one of which may be this one.
    candidates: list[SubmittedBatch] = field(default_factory=list)


class ProviderEngine:
    """Has lines answered by batches of the providers; see `agent_hookspecs.batch.BatchEngine`."""

    def __init__(
        self,
        settings: EngineSettings,
        out: Path,
        progress: BatchProgress,
        *,
        fresh: bool = False,
    ) -> None:
        self._settings = settings
        self._journal_path = out.with_name(f"{out.name}.batches")
        self._progress = progress
        self._fresh = fresh
        self.warnings: list[str] = []

    async def results(
        self, lines: Iterable[_Line], open_worker: BatchWorkers, concurrency: int
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """See `agent_hookspecs.batch.BatchEngine`."""
        worker = open_worker(open_worker.open_limits())
        assert isinstance(worker, LineWorker), "the host's own engine has the host's own workers"
        _check_worker(worker)
        if self._fresh:
            await in_thread(self._forget)
        results: asyncio.Queue[BatchResult | Exception | None] = asyncio.Queue(concurrency)

        async def work() -> None:
            try:
                journal = await in_thread(Journal, self._journal_path)
                with closing(journal), tempfile.TemporaryFile() as file:
                    batches = _Batches(
                        self._settings,
                        worker,
                        journal,
                        _LinesFile(file),
                        self._progress,
                        self.warnings.append,
                        results,
                        concurrency,
                    )
                    await batches.answer_all(lines)
                await results.put(None)
            except Exception as error:
                await results.put(error)

        task = asyncio.create_task(work())
        try:
            while (result := await results.get()) is not None:
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            task.cancel()
            # Whoever ends a batch early wants nothing more of what it comes to.
            await asyncio.gather(task, return_exceptions=True)
            await worker.aclose()

    def _forget(self) -> None:
        """Begin a new journal; what was submitted before goes on, and is told of."""
        if not self._journal_path.exists():
            return
        with closing(Journal(self._journal_path)) as journal:
            known = [each.id for each in journal.batches.values() if each.id is not None]
        if known:
            self.warnings.append(f"what was submitted before is not looked at: {', '.join(known)}")
        os.truncate(self._journal_path, 0)

    def close(self) -> None:
        """See `agent_hookspecs.batch.BatchEngine`; what was submitted goes on."""


def _check_worker(worker: LineWorker) -> None:
    """Refuse what would be another thing in a batch than it is line by line."""
    runs = worker.runs
    if type(runs.core.async_wire) is not AsyncWireClient:
        raise BatchError(
            "a batch that is recorded or replayed is asked line by line",
            hint="use --engine local (engine='local')",
        )
    budget = runs.limits.needs_store
    if budget is not None:
        raise BatchError(
            f"{budget} is set, and what waits at a provider is counted only once it was answered",
            hint="use --engine local (engine='local'), or max_cost, which is that of each line",
        )


class _LinesFile:
    """Lines that wait for their answers, in a file without a name: there may be very many."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, line: _Line) -> _Place:
        try:
            content = json.dumps(plain_copy(line)).encode()
        except (TypeError, ValueError) as error:
            raise BatchError(
                f"line {line['number']} holds what is no JSON: {error}",
                hint="a batch of a provider's own is gone on with later, and keeps its lines",
            ) from error
        place = self._file.seek(0, os.SEEK_END), len(content)
        self._file.write(content)
        return place

    def read(self, place: _Place) -> _Line:
        self._file.seek(place[0])
        line: _Line = json.loads(self._file.read(place[1]))
        return line


class _Batches:
    """All batches that the lines of one file are in, from submitting them to the last result."""

    def __init__(
        self,
        settings: EngineSettings,
        worker: LineWorker,
        journal: Journal,
        lines_file: _LinesFile,
        progress: BatchProgress,
        warn: Callable[[str], object],
        results: asyncio.Queue[Any],
        concurrency: int,
    ) -> None:
        self._settings = settings
        self._worker = worker
        self._wire: AsyncWireClient = worker.runs.core.async_wire
        self._journal = journal
        self._lines_file = lines_file
        self._progress = progress
        self._warn = warn
        self._results = results
        self._concurrency = concurrency
        self._filling: dict[tuple[str, ...], _Filling] = {}
        self._waiting: dict[str, _Waiting] = {}

    async def answer_all(self, lines: Iterable[_Line]) -> None:
        """Submit what was not, and fetch what there is."""
        for line in lines:
            if not self._find_batch(line) and not self._settings.cancel:
                await self._prepare(line)
        before = [each for each in self._waiting.values() if each.batch.id is None]
        for waiting in before:
            await self._find_unnoted(waiting)
        await self._submit_all()
        while self._waiting:
            following, self._waiting = self._waiting, {}
            tasks = [asyncio.create_task(self._follow(each)) for each in following.values()]
            try:
                ends = await asyncio.gather(*tasks, return_exceptions=True)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            # Not before the others have brought what they have.
            for end in ends:
                if isinstance(end, BaseException):
                    raise end
            # Lines of a batch that never was are submitted meanwhile.
            await self._submit_all()
            if not self._settings.wait:
                break

    # --- lines -----------------------------------------------------------------------------------

    def _find_batch(self, line: _Line) -> bool:
        """Whether the line is in a batch that was submitted before and may still answer it."""
        key = _key_of(line)
        batch = self._journal.latest.get(key)
        if batch is None or batch.is_lost:
            return False
        if batch.id is not None and batch.id == line.get("failed_in"):
            return False
        if batch.settings != self._worker.settings_digest:
            raise BatchError(
                f"line {line['number']} was submitted with other settings or another config, in "
                f"the batch {batch.id or batch.mark}",
                hint="take them back; or --fresh (fresh=True) begins anew, and leaves it there",
            )
        waiting = self._waiting.setdefault(batch.mark, _Waiting(batch, {}))
        waiting.lines[key] = self._lines_file.add(line)
        return True

    async def _prepare(self, line: _Line) -> None:
        """Put the first request of a line into the batch that is being made for it."""
        prepared = await self._worker.prepare(line)
        if not isinstance(prepared, PreparedRequest):
            await self._results.put(prepared)
            return
        endpoint, key = prepared.endpoint, _key_of(line)
        most = min(endpoint.max_bytes, _MAX_BYTES)
        filling = self._filling.setdefault(prepared.group, _Filling(prepared))
        encoded = self._encode(filling, key, prepared)
        if len(encoded) > most:
            problem = f"its request has {len(encoded)} bytes, and a batch takes {most}"
            await self._give(line, "", prepared, BatchReply(key, None, problem=problem))
            return
        count = min(endpoint.max_requests, self._settings.batch_lines or endpoint.max_requests)
        full = None
        if filling.size + len(encoded) > most or len(filling.encoded) >= count:
            full, filling = filling, _Filling(prepared)
            encoded = self._encode(filling, key, prepared)
            # Before anybody waits: others may have lines for it, too.
            self._filling[prepared.group] = filling
        filling.encoded.append(encoded)
        # A line has at least a character between it and the next.
        filling.size += len(encoded) + 1
        filling.lines[key] = self._lines_file.add(line)
        if full is not None:
            await self._submit(full)

    def _encode(self, filling: _Filling, key: str, prepared: PreparedRequest) -> bytes:
        with EndpointCaller(self._wire, prepared).blame():
            return prepared.endpoint.encode_request(f"{filling.mark}_{key}", prepared.spec)

    async def _give(
        self, line: _Line, batch: str, prepared: PreparedRequest, reply: BatchReply
    ) -> None:
        share = prepared.endpoint.price_share
        fetched = FetchedReply(reply, prepared.provider, batch, share)
        await self._results.put(await self._worker.answer(line, fetched))

    # --- submitting ------------------------------------------------------------------------------

    async def _submit_all(self) -> None:
        filling, self._filling = self._filling, {}
        for each in filling.values():
            if each.encoded:
                await self._submit(each)

    async def _submit(self, filling: _Filling) -> None:
        """Submit a batch, noted before; it waits from then on, be its id known or not."""
        prepared = filling.prepared
        batch = JournalledBatch(
            mark=filling.mark,
            provider=prepared.provider,
            settings=self._worker.settings_digest,
            begun=time.time(),
            lines=[*filling.lines],
        )
        waiting = _Waiting(batch, filling.lines, EndpointCaller(self._wire, prepared))
        await in_thread(self._journal.note_begun, batch)
        attempt = 0
        while batch.id is None and not waiting.candidates:
            assert waiting.caller is not None, "it was made above"
            try:
                made = await waiting.caller.carry_out(
                    prepared.endpoint.submit(filling.mark, filling.encoded)
                )
            except ProviderError as error:
                delay = _POLICY.delay(attempt, error)
                attempt += 1
                is_certain = is_refused(error)
                if is_certain and delay is None:
                    await in_thread(self._journal.note_lost, batch)
                    if error.status in _NOT_THERE:
                        raise BatchError(
                            f"{prepared.provider} takes no batches at this address: "
                            f"{error.message}",
                            hint="use --engine local (engine='local'), which asks for each line",
                        ) from error
                    raise
                await asyncio.sleep(delay or 0)
                # Whether it was made nobody said: to submit it again might be to pay twice.
                if not is_certain and not await self._look_for(waiting) and delay is None:
                    raise
            else:
                await in_thread(self._journal.note_id, batch, made.id)
        self._waiting[batch.mark] = waiting
        self._tell(waiting)

    async def _look_for(self, waiting: _Waiting) -> bool:
        """Whether there is a batch, or may be, whose id was never noted."""
        caller, batch = await self._caller_of(waiting), waiting.batch
        since = batch.begun - _CLOCKS_APART
        listed = await caller.carry_out(caller.endpoint.list_batches(since))
        for each in listed:
            if each.mark == batch.mark:
                await in_thread(self._journal.note_id, batch, each.id)
                return True
        known = {each.id for each in self._journal.batches.values()}
        waiting.candidates = [
            each
            for each in listed
            if each.mark is None
            and each.id not in known
            and each.total in (None, len(batch.lines))
            and (each.created is None or each.created >= since)
        ]
        return bool(waiting.candidates)

    async def _find_unnoted(self, waiting: _Waiting) -> None:
        """Look for a batch whose id nobody was left to note; else its lines are free."""
        if not await self._look_for(waiting):
            await self._release(waiting)

    async def _release(self, waiting: _Waiting) -> None:
        """Have the lines of a batch that never was submitted in another."""
        await in_thread(self._journal.note_lost, waiting.batch)
        self._waiting.pop(waiting.batch.mark, None)
        places, waiting.lines = waiting.lines, {}
        self._tell(waiting)
        if not self._settings.cancel:
            for place in places.values():
                await self._prepare(self._lines_file.read(place))

    async def _caller_of(self, waiting: _Waiting, *, renew: bool = False) -> EndpointCaller:
        """What asks the endpoint of a batch, by the request of one of its lines."""
        if waiting.caller is None or renew:
            line = self._lines_file.read(next(iter(waiting.lines.values())))
            prepared = await self._worker.prepare(line)
            if not isinstance(prepared, PreparedRequest):
                raise BatchError(
                    f"the batch {waiting.batch.id or waiting.batch.mark} cannot be asked about: "
                    f"{(prepared.get('error') or {}).get('message', 'a budget does not allow it')}",
                    hint="begin it with the config it was submitted with",
                )
            waiting.caller = EndpointCaller(self._wire, prepared)
        return waiting.caller

    # --- waiting and fetching --------------------------------------------------------------------

    async def _follow(self, waiting: _Waiting) -> None:
        """Wait for a batch and give what it has brought; tell at once what keeps it from that."""
        try:
            await self._follow_to_end(waiting)
        except AgentError as error:
            name = waiting.batch.id or waiting.batch.mark
            self._say(f"the batch {name} is left for now: {error.message}")
            raise

    async def _follow_to_end(self, waiting: _Waiting) -> None:
        self._tell(waiting)
        if waiting.batch.id is None and not await self._find_among_candidates(waiting):
            return
        caller, id = await self._caller_of(waiting), waiting.batch.id
        assert id is not None, "it was found by now"
        if self._settings.cancel:
            await caller.carry_out(caller.endpoint.cancel(id))
        over = await self._wait_until_over(waiting, id)
        if over is not None:
            await self._fetch(waiting, over)

    async def _find_among_candidates(self, waiting: _Waiting) -> bool:
        """Whether one of the candidates is the batch, which only its results tell."""
        batch = waiting.batch
        for candidate in waiting.candidates:
            over = await self._wait_until_over(waiting, candidate.id)
            if over is None:
                # Nobody wants to wait, so that it is not known today.
                return False
            async for reply in self._replies(await self._caller_of(waiting), over):
                if reply.id.startswith(f"{batch.mark}_"):
                    await in_thread(self._journal.note_id, batch, over.id)
                break
            if batch.id is not None:
                return True
        await self._release(waiting)
        await self._submit_all()
        return False

    async def _wait_until_over(self, waiting: _Waiting, id: str) -> SubmittedBatch | None:
        """Look at a batch until it is over; None if nobody wants to wait for that."""
        pause, failures, is_new = min(_FIRST_POLL, self._settings.poll_seconds), 0, False
        while True:
            caller = await self._caller_of(waiting)
            try:
                state = await caller.carry_out(caller.endpoint.look_up(id))
            except ProviderError as error:
                failures += 1
                if error.status == 401 and not is_new:
                    # A key may be old by now, and another be given for it.
                    is_new = True
                    await self._caller_of(waiting, renew=True)
                    continue
                if not error.retryable or failures >= _FAILED_POLLS:
                    raise
                self._say(f"the batch {id} could not be looked at: {error.message}")
            else:
                failures, is_new = 0, False
                waiting.answered = state.done
                self._tell(waiting)
                if state.is_over:
                    return state
                if not self._settings.wait:
                    return None
            await asyncio.sleep(pause)
            pause = min(pause * _POLL_GROWTH, self._settings.poll_seconds)

    async def _fetch(self, waiting: _Waiting, over: SubmittedBatch) -> None:
        """Give a result to every line that waits in a batch that is over."""
        caller = await self._caller_of(waiting)
        prepared, prefix = caller.prepared, f"{waiting.batch.mark}_"
        ready: list[tuple[_Line, BatchReply]] = []

        async def give_all() -> None:
            some = ready[:]
            ready.clear()
            await asyncio.gather(
                *(self._give(line, over.id, prepared, reply) for line, reply in some)
            )
            self._tell(waiting)

        async for reply in self._replies(caller, over):
            place = waiting.lines.pop(reply.id.removeprefix(prefix), None)
            # Others were in the file of results already.
            if place is not None:
                ready.append((self._lines_file.read(place), reply))
                if len(ready) >= self._concurrency:
                    await give_all()
        for key in [*waiting.lines]:
            line = self._lines_file.read(waiting.lines.pop(key))
            ready.append((line, BatchReply(key, None, problem=over.problem)))
            if len(ready) >= self._concurrency:
                await give_all()
        await give_all()

    async def _replies(
        self, caller: EndpointCaller, over: SubmittedBatch
    ) -> AsyncIterator[BatchReply]:
        with caller.blame():
            requests = caller.endpoint.result_requests(over)
        for request in requests:
            with tempfile.TemporaryFile() as file:
                await caller.download(request, file)
                for document in read_documents(file, request.get("framing") or "ndjson"):
                    try:
                        with caller.blame():
                            replies = [*caller.endpoint.read_replies(document)]
                    except AgentError as error:
                        # The line that it is of has an error then, and the others their answers.
                        self._say(
                            f"a result of the batch {over.id} cannot be read: {error.message}"
                        )
                        continue
                    for reply in replies:
                        yield reply

    def _say(self, warning: str) -> None:
        self._warn(warning)
        if self._progress.watch is not None:
            self._progress.watch()

    def _tell(self, waiting: _Waiting) -> None:
        batch = waiting.batch
        self._progress.note_waiting(
            WaitingBatch(batch.mark, batch.provider, batch.id, len(waiting.lines), waiting.answered)
        )


def _key_of(line: _Line) -> str:
    return f"{line['number']}-{line['digest']}"
