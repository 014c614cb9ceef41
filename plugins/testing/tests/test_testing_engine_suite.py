"""Mistakes that an engine may make, and the checks that see each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from agent_host.batch.engine import LocalEngine
from agent_host.batch.limits import LearntLimits
from agent_host_testing import BatchEngineConformance, Violation
from agent_host_testing.suites.checking import checks_of

Results = AsyncIterator[Any]


async def _drop_the_last(lines: Any, open_worker: Any, concurrency: int) -> Results:
    last = None
    async for result in LocalEngine().results(lines, open_worker, concurrency):
        if last is not None:
            yield last
        last = result


async def _give_one_without_lines(lines: Any, open_worker: Any, concurrency: int) -> Results:
    yield {"n": 0}


async def _answer_more_at_a_time(lines: Any, open_worker: Any, concurrency: int) -> Results:
    async for result in LocalEngine().results(lines, open_worker, 3 * concurrency):
        yield result


async def _take_all_lines(lines: Any, open_worker: Any, concurrency: int) -> Results:
    async for result in LocalEngine().results([*lines], open_worker, concurrency):
        yield result


async def _wait_at_the_end(lines: Any, open_worker: Any, concurrency: int) -> Results:
    source = LocalEngine().results(lines, open_worker, concurrency)
    try:
        async for result in source:
            yield result
    finally:
        try:
            await asyncio.wait_for(anext(source), 0.2)
        except asyncio.TimeoutError as error:
            raise RuntimeError("it would have waited for ever") from error


async def _hide_what_is_raised(lines: Any, open_worker: Any, concurrency: int) -> Results:
    try:
        async for result in LocalEngine().results(lines, open_worker, concurrency):
            yield result
    except ConnectionError:
        return


async def _have_limits_for_each(lines: Any, open_worker: Any, concurrency: int) -> Results:
    for line in lines:
        worker = open_worker(LearntLimits())
        yield await worker.answer(line)
        await worker.aclose()


async def _leave_workers_open(lines: Any, open_worker: Any, concurrency: int) -> Results:
    worker = open_worker(LearntLimits())
    for line in lines:
        yield await worker.answer(line)


def _answer_here(open_worker: Any, line: Any) -> Any:
    return asyncio.run(open_worker(LearntLimits()).answer(line))


async def _open_workers_anywhere(lines: Any, open_worker: Any, concurrency: int) -> Results:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        for line in lines:
            yield await loop.run_in_executor(processes, _answer_here, open_worker, line)


MISTAKES: dict[str, Callable[..., Results]] = {
    "test_every_line_has_one_result": _drop_the_last,
    "test_no_lines_are_no_results": _give_one_without_lines,
    "test_no_more_are_answered_at_a_time_than_was_said": _answer_more_at_a_time,
    "test_lines_are_taken_as_there_is_room": _take_all_lines,
    "test_closing_ends_what_is_being_answered": _wait_at_the_end,
    "test_what_a_worker_raises_ends_the_batch": _hide_what_is_raised,
    "test_all_workers_share_the_limits": _have_limits_for_each,
    "test_no_worker_is_opened_where_something_else_is_installed": _open_workers_anywhere,
    "test_every_worker_is_closed": _leave_workers_open,
}


class BrokenEngine:
    def __init__(self, mistake: Callable[..., Results]) -> None:
        self.results = mistake
        self.warnings: list[str] = []

    def close(self) -> None:
        pass


class Suite(BatchEngineConformance):
    """The suite on a broken engine, as somebody who has one would run it."""

    plugin = "broken"

    def __init__(self, folder: Path, mistake: Callable[..., Results]) -> None:
        self.place, self.mistake = folder, mistake
        self.servers = []

    def open_engine(self) -> Any:
        return BrokenEngine(self.mistake)


@pytest.mark.parametrize("check", MISTAKES)
def test_a_mistake_turns_its_check_red(check: str, tmp_path: Path) -> None:
    with pytest.raises(Violation, match="the contract asks"):
        getattr(Suite(tmp_path, MISTAKES[check]), check)()


def test_every_check_is_turned_red_by_some_mistake() -> None:
    assert checks_of(BatchEngineConformance) == [*MISTAKES]
