"""One contestant in a process of its own: takes orders as lines of JSON, answers in the same way.

Everybody is measured alike, and nobody pays for what another has imported.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from importlib import import_module
from typing import Any

from benchmarks.cases import Case
from benchmarks.limits import lift_file_limit

_METHODS = ("stream", "astream", "request", "arequest", "hold")


def main() -> None:
    lift_file_limit()
    module, server = sys.argv[1:]
    replies = sys.stdout
    # Some libraries talk; they must not talk into the answers.
    sys.stdout = sys.stderr

    def reply(**values: Any) -> None:
        print(json.dumps(values), file=replies, flush=True)

    try:
        driver = import_module(module).Driver(server)
    except ImportError as error:
        reply(missing=error.name or str(error))
        return
    does = [name for name in _METHODS if hasattr(driver, name)]
    reply(speaks=list(driver.speaks), does=does)
    performance = _Performance(driver)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            reply(**performance.perform(Case(*order["case"]), order["do"], order["times"]))
        except Exception as error:
            reply(error=f"{type(error).__name__}: {error}")
    performance.close()


class _Performance:
    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._loop: Any = None

    def perform(self, case: Case, what: str, times: int) -> dict[str, Any]:
        """Do something so many times: one after the other, or, if it is async, together."""
        gc.collect()
        before = resident_kb()
        cpu, wall = time.process_time(), time.perf_counter()
        if what in ("stream", "request"):
            act = getattr(self._driver, what)
            seen = [act(case) for _ in range(times)]
        elif what == "hold":
            return {"grown_kb": self._run(self._resident_while_open(case, times)) - before}
        elif what == "together":
            seen = self._run(self._together(case, times))
        else:
            seen = self._run(self._in_turn(getattr(self._driver, what), case, times))
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        return {**spent, "seen": min(seen), "peak_kb": peak_kb(), "resident_kb": resident_kb()}

    def _run(self, steps: Any) -> Any:
        if self._loop is None:
            import asyncio

            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(steps)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _in_turn(self, act: Any, case: Case, times: int) -> list[int]:
        return [await act(case) for _ in range(times)]

    async def _together(self, case: Case, times: int) -> list[int]:
        import asyncio

        return list(await asyncio.gather(*(self._driver.astream(case) for _ in range(times))))

    async def _resident_while_open(self, case: Case, times: int) -> int:
        """How much is resident while so many streams are open."""
        import asyncio

        closers = [await self._driver.hold(case) for _ in range(times)]
        gc.collect()
        found = resident_kb()
        await asyncio.gather(*(close() for close in closers))
        closers.clear()
        # What was let go of ends its generators in tasks of their own.
        await asyncio.sleep(0)
        return found


def resident_kb() -> int:
    return _status("VmRSS:")


def peak_kb() -> int:
    return _status("VmHWM:")


def _status(key: str) -> int:
    """A number of this process's status; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
