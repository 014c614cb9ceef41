"""Work of a package beside itself: threads that take turns at each of its lines, and what stays.

Owns how threads are made to disturb each other, and where a package can keep what outlives a
request. It must not know any role or check.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeVar

from agent_host_testing.suites.hosting import PATIENCE

__all__ = ["kept_texts", "places_with", "run_in_turns"]

T = TypeVar("T")
#: Seconds until a thread whose turn it is counts as waiting for another, and the lines after which
#: it is given a turn again.
_WAIT, _PAUSE = 0.05, 200


def run_in_turns(package: str, jobs: Sequence[Callable[[], T]]) -> list[T]:
    """What the jobs give, each in a thread; after each line of the package it is another's turn.

    So whatever a line leaves where all of them can see it, the others see. What a job raises is
    raised here.
    """
    turns = _Turns(len(jobs))
    given: dict[int, T] = {}
    raised: dict[int, BaseException] = {}

    together = threading.Barrier(len(jobs))

    def run(number: int) -> None:
        together.wait(PATIENCE)
        sys.settrace(_tracer(package, lambda: turns.pass_on(number)))
        try:
            given[number] = jobs[number]()
        except BaseException as error:
            raised[number] = error
        finally:
            sys.settrace(None)
            turns.leave(number)

    threads = [
        threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for number, thread in enumerate(threads):
        if number in raised:
            raise raised[number]
        if thread.is_alive():
            raise TimeoutError(f"it still runs after {PATIENCE:.0f} s")
    return [given[number] for number in range(len(jobs))]


class _Turns:
    """Whose turn it is. A thread that waits for another's lock is passed over for a while."""

    def __init__(self, count: int) -> None:
        self._changed = threading.Condition()
        self._there: list[int] = [*range(count)]
        self._now = 0
        self._paused = 0

    def pass_on(self, number: int) -> None:
        """Let the next one run, until it is this one's turn again."""
        with self._changed:
            self._paused -= self._paused > 0
            if self._paused or self._there == [number]:
                return
            self._now = self._next(number)
            self._changed.notify_all()
            mine = self._changed.wait_for(
                lambda: self._now == number or self._there == [number], _WAIT
            )
            if not mine:
                self._now, self._paused = number, _PAUSE

    def leave(self, number: int) -> None:
        with self._changed:
            self._now = self._next(number)
            self._there.remove(number)
            self._changed.notify_all()

    def _next(self, number: int) -> int:
        return self._there[(self._there.index(number) + 1) % len(self._there)]


def _tracer(package: str, passed: Callable[[], None]) -> Callable[..., Any]:
    def at_line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            passed()
        return at_line

    def at_call(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        module = str(frame.f_globals.get("__name__", ""))
        return at_line if module.split(".")[0] == package else None

    return at_call


def places_with(markers: Iterable[str], package: str, instances: Iterable[object]) -> list[str]:
    """Where instances, their classes or modules of the package hold one of these texts."""
    wanted = tuple(markers)
    kept = kept_texts(package, instances)
    return [place for place, texts in kept.items() if any(m in t for t in texts for m in wanted)]


def kept_texts(package: str, instances: Iterable[object]) -> dict[str, list[str]]:
    """The texts that instances, their classes and modules of the package hold, by place."""
    found: dict[str, list[str]] = {}
    for place, value in _kept(package, instances):
        found.setdefault(place, []).extend(_texts_in(value, set()))
    return found


def _kept(package: str, instances: Iterable[object]) -> Iterator[tuple[str, Any]]:
    """What lives longer than a request: instances, their classes, and the package's modules."""
    for instance in instances:
        if type(instance).__module__.split(".")[0] != package:
            continue
        yield f"the instance of {type(instance).__name__}", getattr(instance, "__dict__", {})
        for base in type(instance).__mro__:
            if base.__module__.split(".")[0] == package:
                yield f"the class {base.__name__}", dict(vars(base))
    for name, loaded in list(sys.modules.items()):
        if name.split(".")[0] == package:
            yield f"the module {name}", dict(vars(loaded))


def _texts_in(value: Any, seen: set[int], depth: int = 6) -> Iterator[str]:
    """The texts in a value and in what that holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif depth and id(value) not in seen:
        seen.add(id(value))
        for each in _held_by(value):
            yield from _texts_in(each, seen, depth - 1)


def _held_by(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [each for pair in value.items() for each in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [*value]
    held = getattr(value, "__dict__", None)
    if isinstance(value, type) or callable(value) or not isinstance(held, dict):
        return ()
    return (held,)
