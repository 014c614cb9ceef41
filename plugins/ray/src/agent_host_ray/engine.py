"""The engine: workers on a cluster, lines and limits for them, and others for those that are lost.

A result is handed over as soon as a worker says it, so that whatever is lost with a worker was not
finished. It must not know what a line says, nor what a worker does with one.
"""

from __future__ import annotations

import asyncio
import math
import pickle
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeAlias, cast

from agent_hookspecs.batch import BatchLimits, BatchWorkers
from agent_host_ray.cluster import Cluster
from agent_host_ray.errors import ClusterError, LostLineError
from agent_host_ray.library import ray
from agent_host_ray.lines import MOST_LOSSES, LineSource
from agent_host_ray.nodes import check_nodes, difference_error, usable_nodes
from agent_host_ray.settings import RaySettings
from agent_host_ray.worker import Message, RayWorker, Reply

__all__ = ["RayEngine"]

failures: Any = import_module("ray.exceptions")

#: So many lines at a time are for a worker, unless it is said how many workers there are.
_LINES_OF_A_WORKER = 8
#: How often a worker may be lost before it has begun, one after the other.
_MOST_STARTS = 3
#: How long a worker may take to close its connections: people who interrupt a batch wait for it.
_CLOSE_SECONDS = 1.5
#: Between two tries to reach a worker.
_RETRY_SECONDS = 0.25

Line: TypeAlias = "Mapping[str, Any]"


class RayEngine:
    """Answers lines by workers on a Ray cluster, and reads and writes files through Ray Data."""

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._cluster = Cluster(settings)
        self.warnings: list[str] = []

    async def results(
        self, lines: Iterable[Line], open_worker: BatchWorkers, concurrency: int
    ) -> AsyncGenerator[Line, None]:
        """See `agent_hookspecs.batch.BatchEngine`."""
        settings = self._settings
        # First, because what cannot be sent is no matter of a cluster.
        pickled = pickle.dumps(open_worker)
        source = LineSource(lines)
        if not await source.wait():
            return
        await asyncio.to_thread(self._cluster.connect)
        await check_nodes(open_worker, settings.cpus_per_worker, settings.start_seconds)
        shares = _divide(concurrency, self._count_workers(concurrency))
        work = _Work(settings, open_worker, pickled, source, self.warnings)
        tasks = [asyncio.create_task(work.serve(share)) for share in shares]
        try:
            while (found := await work.results.get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
        finally:
            for task in tasks:
                task.cancel()
            # Whoever ends a batch early wants nothing more of what they come to.
            await asyncio.gather(*tasks, return_exceptions=True)

    def _count_workers(self, concurrency: int) -> int:
        wanted, cpus = self._settings.workers, self._settings.cpus_per_worker
        if wanted is None:
            room = sum(
                int(node["Resources"].get("CPU", 0) // (cpus or 1)) for node in usable_nodes(cpus)
            )
            wanted = min(max(room, 1), math.ceil(concurrency / _LINES_OF_A_WORKER))
        return min(wanted, concurrency)

    def read_lines(self, source: str) -> Iterator[Mapping[str, Any] | bytes]:
        """See `agent_hookspecs.batch.BatchFiles`."""
        from agent_host_ray.files import read_lines

        self._cluster.connect()
        return read_lines(source)

    def check_target(self, target: str) -> None:
        """See `agent_hookspecs.batch.BatchFiles`."""
        from agent_host_ray.files import check_target

        check_target(target)

    def write_results(self, results: Iterable[Line], target: str) -> None:
        """See `agent_hookspecs.batch.BatchFiles`."""
        from agent_host_ray.files import write_results

        if next(iter(results), None) is None:
            self.warnings.append(f"there are no results, so that nothing is written to {target}")
            return
        self._cluster.connect()
        write_results(results, target)

    def close(self) -> None:
        """See `agent_hookspecs.batch.BatchEngine`."""
        self._cluster.close()


def _divide(concurrency: int, workers: int) -> list[int]:
    """How many lines each worker answers at a time."""
    share, rest = divmod(concurrency, workers)
    return [share + (number < rest) for number in range(workers)]


class _LostError(Exception):
    """A worker is gone."""


class _Work:
    """What the workers of one batch share.

    ``results`` has what they come to, an error if one ends the batch, and None once there is all.
    """

    def __init__(
        self,
        settings: RaySettings,
        open_worker: BatchWorkers,
        pickled: bytes,
        lines: LineSource,
        warnings: list[str],
    ) -> None:
        self._settings = settings
        self._open_worker = open_worker
        self._pickled = pickled
        self._find_environment = pickle.dumps(open_worker.find_environment)
        self._expected = dict(open_worker.find_environment())
        self._lines = lines
        self._limits: BatchLimits = open_worker.open_limits()
        self._warnings = warnings
        self._serving = 0
        self._actor = ray.remote(RayWorker).options(
            num_cpus=settings.cpus_per_worker,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
        )
        # Bounded, so that nothing is asked for whose answers nobody takes.
        self.results: asyncio.Queue[Line | Exception | None] = asyncio.Queue(1024)

    async def serve(self, at_a_time: int) -> None:
        """Have lines answered until there are none, by one worker after the other if need be."""
        self._serving += 1
        try:
            if await self._serve(at_a_time):
                # Whoever only waits for room by now is not waited for.
                await self.results.put(None)
        except Exception as error:
            await self.results.put(error)
        finally:
            self._serving -= 1

    async def _serve(self, at_a_time: int) -> bool:
        """Whether all lines have their results; else there is no room for a worker."""
        starts = 0
        while await self._lines.wait():
            worker = _Worker(self._actor.remote(), self._settings)
            try:
                if not await self._open(worker, at_a_time):
                    return False
                starts = 0
                await self._answer(worker, at_a_time)
            except _LostError as lost:
                starts += not worker.is_open
                if starts >= _MOST_STARTS:
                    raise ClusterError(
                        f"{starts} workers were lost one after the other before they had begun: "
                        f"{lost}",
                        hint="the logs of Ray say why; perhaps a node has too little memory",
                    ) from lost
                await self._replace(worker, lost)
            finally:
                await worker.end()
        return True

    async def _open(self, worker: _Worker, at_a_time: int) -> bool:
        """Whether there is room for the worker; if there is, it is open."""
        seconds = self._settings.start_seconds
        try:
            node, found = await worker.call_within(
                seconds, "find_environment", self._find_environment
            )
            worker.place = _name_of(node)
            if found != self._expected:
                # A node that came later.
                raise difference_error(worker.place, found, self._expected)
            problem = await worker.call_within(seconds, "open", self._pickled, at_a_time)
        except asyncio.TimeoutError as error:
            what = f"no worker could begin on the cluster for {seconds:g} s"
            if self._serving > 1:
                self._warnings.append(
                    f"{what}; {self._serving - 1} go on without it, with fewer lines at a time"
                )
                return False
            raise ClusterError(
                what,
                hint="free some of its processors, or set workers, cpus_per_worker or "
                "start_seconds",
            ) from error
        if problem is not None:
            raise _unpickle_error(problem)
        worker.is_open = True
        return True

    async def _answer(self, worker: _Worker, at_a_time: int) -> None:
        limits: list[tuple[int, float | None]] = []
        # Whether it has a single line, because that may be what ends workers.
        is_alone = False
        while True:
            lines: list[tuple[int, Line]] = []
            if not (is_alone and worker.lines):
                room = at_a_time + self._settings.block - len(worker.lines)
                lines = await self._lines.take_lines(room) if room > 0 else []
                is_alone = not worker.lines and not lines
                if is_alone:
                    lines = self._lines.take_suspect()
            if not worker.lines and not lines:
                if not await self._lines.wait():
                    return
                continue
            worker.lines.update(lines)
            reply = await worker.exchange(lines, limits)
            if reply.error is not None:
                raise _unpickle_error(reply.error)
            limits = []
            for number, what, arguments in reply.limits:
                answer = await getattr(self._limits, what)(*arguments)
                if number is not None:
                    limits.append((number, answer))
            for number, _ in reply.results:
                del worker.lines[number]
            for _, result in reply.results:
                await self.results.put(result)
            # Not before: who waits for the end must find them all.
            self._lines.finish(len(reply.results))

    async def _replace(self, worker: _Worker, lost: _LostError) -> None:
        count = len(worker.lines)
        self._warnings.append(
            f"a worker{f' on node {worker.place}' if worker.place else ''} was lost ({lost}); "
            f"another one takes its place, and answers its {count} unfinished lines again"
        )
        hopeless = self._lines.give_back(worker.lines)
        worker.lines.clear()
        for line in hopeless:
            error = LostLineError(
                f"{MOST_LOSSES} workers were lost that answered this line, the last one with "
                "nothing else to do",
                hint="the logs of Ray say why; if it was their nodes' end, --retry-failed "
                "(retry_failed=True) asks it again",
            )
            await self.results.put(self._open_worker.fail_line(line, error))
        self._lines.finish(len(hopeless))


class _Worker:
    """An actor and the lines that it has. ``place`` is the name of its node, once that is known."""

    def __init__(self, actor: Any, settings: RaySettings) -> None:
        self._actor = actor
        self._patience = settings.lost_after_seconds
        self._messages = 0
        self.lines: dict[int, Line] = {}
        self.place = ""
        self.is_open = False

    async def call_within(self, seconds: float, method: str, *arguments: Any) -> Any:
        """What a method gives, in so much time."""
        return await asyncio.wait_for(self._call(method, *arguments), seconds)

    async def exchange(
        self, lines: list[tuple[int, Line]], limits: list[tuple[int, float | None]]
    ) -> Reply:
        """Send a message, as often as it takes to have its answer."""
        self._messages += 1
        message = Message(self._messages, lines, limits)
        return cast(Reply, await self._call("exchange", message))

    async def _call(self, method: str, *arguments: Any) -> Any:
        away_since = None
        while True:
            try:
                return await getattr(self._actor, method).remote(*arguments)
            except failures.ActorUnavailableError as error:
                # Perhaps only the network is; what was said is said again.
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since >= self._patience:
                    raise _LostError("it is out of reach") from error
                await asyncio.sleep(_RETRY_SECONDS)
            except failures.RayTaskError as error:
                raise ClusterError(
                    f"a worker on node {self.place} failed: {error.cause!r}",
                    hint="have the same agent-host-ray on every node",
                ) from error
            except failures.RayError as error:
                raise _LostError(_reason_of(error)) from error

    async def end(self) -> None:
        """Cancel what it answers, and end it."""
        with suppress(asyncio.TimeoutError, _LostError, ClusterError):
            # Nothing is lost: whatever it is up to ends with its process.
            if self.is_open:
                await asyncio.wait_for(self._close(), _CLOSE_SECONDS)
        with suppress(failures.RayError, ValueError):
            # Nothing is lost: what cannot be ended is gone already.
            ray.kill(self._actor)

    async def _close(self) -> None:
        try:
            await self._actor.close.remote()
        except failures.RayError as error:
            raise _LostError(_reason_of(error)) from error


def _unpickle_error(error: bytes) -> Exception:
    raised: Exception = pickle.loads(error)
    return raised


def _name_of(node_id: str) -> str:
    for node in ray.nodes():
        if node["NodeID"] == node_id:
            return str(node["NodeManagerHostname"])
    return node_id


def _reason_of(error: Exception) -> str:
    """What Ray says of a loss, without the many lines of advice around it."""
    for line in str(error).splitlines():
        if "died" in line or "dead" in line:
            return line.strip().rstrip(".:")
    return type(error).__name__
