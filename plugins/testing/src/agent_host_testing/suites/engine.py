"""`BatchEngineConformance`: what is asked of an engine that has the lines of a batch answered.

The workers of the checks say what they do in files, because an engine may have them in other
processes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent_hookspecs.batch import BatchEngine, BatchLimits, BatchWorker
from agent_hookspecs.errors import AgentError
from agent_host_testing.suites.checking import Conformance, check
from agent_host_testing.violations import Violation, require

__all__ = ["BatchEngineConformance"]

PAGE = "docs/batch.md"
_AT_A_TIME = 4
_MANY = 100_000
#: Enough for an engine that starts processes on a busy machine.
_SECONDS = 120.0

Line = Mapping[str, Any]
#: What a worker of a check does with a line, in the folder of the check.
Answering = Callable[[Path, BatchLimits, Line], Any]


@dataclass(frozen=True)
class _TrialWorker:
    folder: Path
    limits: BatchLimits
    answering: Answering

    async def answer(self, line: Line) -> Line:
        """Note that the line is being answered, and answer it."""
        note = self.folder / f"begun-{line['n']}"
        require(not note.exists(), f"line {line['n']} was answered twice")
        note.touch()
        return {"n": line["n"], **(await self.answering(self.folder, self.limits, line) or {})}

    async def aclose(self) -> None:
        _count(self.folder / "closed")


@dataclass(frozen=True)
class _OpenTrialWorker:
    folder: Path
    answering: Answering

    find_environment: Callable[[], Mapping[str, str]] = dict

    def __call__(self, limits: BatchLimits) -> BatchWorker:
        _count(self.folder / "opened")
        return _TrialWorker(self.folder, limits, self.answering)

    def open_limits(self) -> BatchLimits:
        # Not above: a process that only wants the suites' names does not pay for the host.
        from agent_host.batch.limits import LearntLimits

        return LearntLimits()

    def fail_line(self, line: Line, error: AgentError) -> Line:
        return {"n": line["n"], "error": error.to_dict()}


def _differ_by_process() -> dict[str, str]:
    return {"process": str(os.getpid())}


def _count(file: Path) -> None:
    with file.open("a") as counted:
        counted.write("x")


async def _answer_at_once(folder: Path, limits: BatchLimits, line: Line) -> None:
    await asyncio.sleep(0)


async def _count_at_once(folder: Path, limits: BatchLimits, line: Line) -> dict[str, int]:
    mark = folder / f"open-{line['n']}"
    mark.touch()
    open_now = len(list(folder.glob("open-*")))
    await asyncio.sleep(0.01)
    mark.unlink()
    return {"open": open_now}


async def _wait_for_ever(folder: Path, limits: BatchLimits, line: Line) -> None:
    if line["n"]:
        await asyncio.Event().wait()


async def _fail_on_the_third(folder: Path, limits: BatchLimits, line: Line) -> None:
    if line["n"] == 2:
        raise ConnectionError("this ends the batch")


async def _report_refusal(folder: Path, limits: BatchLimits, line: Line) -> dict[str, float]:
    refused = folder / "refused"
    if line["n"] == 0:
        await limits.report("server", 429, {"retry-after": "300"})
        refused.touch()
    while not refused.exists():
        await asyncio.sleep(0.01)
    return {"wait": await limits.reserve("server", 1)}


async def _tell_process(folder: Path, limits: BatchLimits, line: Line) -> dict[str, str]:
    return _differ_by_process()


class BatchEngineConformance(Conformance):
    """Subclass it in a test file, and name the engine with ``plugin`` and its ``options``."""

    role = "engine"
    options: ClassVar[Mapping[str, Any]] = {}

    def open_engine(self) -> BatchEngine:
        """The engine, as the host opens it."""
        # Not above: a process that only wants the suites' names does not pay for the host.
        from agent_host.batch.engine import open_engine
        from agent_host.plugins.activate import Activator
        from agent_host.plugins.load import load_catalog

        return open_engine(self.plugin, self.options, load_catalog(), Activator())

    @pytest.fixture(autouse=True)
    def _place(self, _prepare: None, tmp_path: Path) -> None:
        self.place = tmp_path

    def _answer(
        self,
        count: int,
        answering: Answering,
        first: int | None = None,
        find_environment: Callable[[], Mapping[str, str]] = dict,
    ) -> tuple[list[Line], int]:
        """The results, of which the iteration may end early, and how many lines were taken."""
        engine = self.open_engine()
        taken = [0]

        def lines() -> Iterator[Line]:
            for n in range(count):
                taken[0] = n + 1
                yield {"n": n}

        async def collect() -> list[Line]:
            found: list[Line] = []
            worker = _OpenTrialWorker(self.place, answering, find_environment)
            results = engine.results(lines(), worker, _AT_A_TIME)
            async with aclosing(results) as iterated:
                async for result in iterated:
                    found.append(result)
                    if len(found) == first:
                        break
            return found

        try:
            # An engine that never ends is a finding, not a suite that never ends.
            return asyncio.run(asyncio.wait_for(collect(), _SECONDS)), taken[0]
        except asyncio.TimeoutError:
            raise Violation(f"the batch has not ended after {_SECONDS:.0f} s") from None
        finally:
            engine.close()

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_every_line_has_one_result(self) -> None:
        """Each line is answered once, and its result is given once."""
        found, _ = self._answer(50, _answer_at_once)
        require(
            sorted(result["n"] for result in found) == [*range(50)],
            "the results are not one for each line",
        )

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_no_lines_are_no_results(self) -> None:
        """A batch without lines ends."""
        require(self._answer(0, _answer_at_once) == ([], 0), "there are results of no lines")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_no_more_are_answered_at_a_time_than_was_said(self) -> None:
        """All workers together answer no more lines at a time than the concurrency."""
        found, _ = self._answer(40, _count_at_once)
        most = max(result["open"] for result in found)
        require(most <= _AT_A_TIME, f"{most} were answered at a time, and not {_AT_A_TIME}")
        require(most > 1, "they were answered one after the other")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_lines_are_taken_as_there_is_room(self) -> None:
        """Lines are taken as they can be answered, and never all at once."""
        _, taken = self._answer(_MANY, _answer_at_once, first=1)
        require(taken < _MANY // 2, f"{taken} of {_MANY} lines were taken for one result")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_closing_ends_what_is_being_answered(self) -> None:
        """Whoever closes the iterator early is not kept waiting by lines without an end."""
        found, _ = self._answer(10, _wait_for_ever, first=1)
        require([result["n"] for result in found] == [0], "a line without an end has a result")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_what_a_worker_raises_ends_the_batch(self) -> None:
        """What a worker raises is raised to whoever iterates."""
        with suppress(ConnectionError):
            # Nothing is lost: that it is raised is what is asked for.
            self._answer(10, _fail_on_the_third)
            raise Violation("what a worker raised was not raised")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_all_workers_share_the_limits(self) -> None:
        """A refusal that one worker reports holds all of them up."""
        found, _ = self._answer(40, _report_refusal)
        require(
            min(result["wait"] for result in found) > 0,
            "a request went out to a server that had asked to wait",
        )

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_no_worker_is_opened_where_something_else_is_installed(self) -> None:
        """A worker in another process, where another environment is found, is refused."""
        try:
            found, _ = self._answer(5, _tell_process, find_environment=_differ_by_process)
        except AgentError:
            # Nothing is lost: to refuse it is what is asked, and only when is looked at.
            begun = [*self.place.glob("begun-*")]
            require(not begun, "lines were answered before it was refused")
            return
        elsewhere = {result["process"] for result in found} - {str(os.getpid())}
        require(not elsewhere, "lines were answered where something else is installed")

    @check("engine", f"{PAGE}#writing-an-engine")
    def test_every_worker_is_closed(self) -> None:
        """Every worker that was opened is closed at the end."""
        self._answer(5, _answer_at_once)
        opened, closed = (
            len(file.read_text()) if file.exists() else 0
            for file in (self.place / "opened", self.place / "closed")
        )
        require(opened > 0 and opened == closed, f"{opened} were opened and {closed} closed")
