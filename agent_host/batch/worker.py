"""Answers lines of a batch: each is a run of the application, whose requests keep to the limits.

It must not know where lines come from, nor what becomes of results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from agent_hookspecs.batch import BatchLimits
from agent_hookspecs.errors import AgentError, OverloadedError, RateLimitError
from agent_hookspecs.values import dataclass
from agent_host.application.answer import answer_of_run
from agent_host.batch.environment import find_environment
from agent_host.batch.errors import BatchError
from agent_host.batch.limits import PATIENCE, LearntLimits
from agent_host.batch.lines import Line
from agent_host.batch.results import (
    BatchResult,
    result_of_answer,
    result_of_error,
    result_of_line,
)
from agent_host.drivers.asynchronous import acomplete
from agent_host.sessions.frozen import plain_copy
from agent_host.sessions.session import Session
from agent_host.wire.client import AsyncWireClient
from agent_host.wire.rate_limits import rate_limit_headers
from agent_host.wire.request import content_of, without_userinfo

if TYPE_CHECKING:
    from agent_host.agent.loop import AgentRun
    from agent_host.application.run_maker import RunMaker
    from agent_host.wire.deadlines import Canceller
    from agent_host.wire.request import WireRequest
    from agent_host.wire.responses import AsyncResponse

__all__ = ["LineWorker", "OpenWorker"]

#: How often a line is asked again that was refused because of the rate.
_ATTEMPTS: Final = 10
_BYTES_PER_TOKEN: Final = 4
#: Once one of these is used up, no line would have an answer.
_SHARED_BUDGETS: Final = frozenset({"max_key_cost", "max_day_cost"})
#: The keys of a line that a run takes by the same name.
_OPTIONS: Final = ("agent", "provider", "model", "settings", "use_tools")


class _PacedWire:
    """A wire whose requests wait for their turn, and whose answers tell how long that is."""

    def __init__(self, wire: AsyncWireClient, limits: BatchLimits) -> None:
        self._wire = wire
        self._limits = limits

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        server = _server_of(request)
        tokens = len(content_of(request.body)) // _BYTES_PER_TOKEN
        await _wait_for_turn(self._limits, server, tokens)
        status, headers = 0, {}
        try:
            response = await self._wire.open(request, canceller)
            status, headers = response.status, rate_limit_headers(response.headers)
            return response
        finally:
            await self._limits.report(server, status, headers)


async def _wait_for_turn(limits: BatchLimits, server: str, tokens: int) -> None:
    while (seconds := await limits.reserve(server, tokens)) > 0:
        await asyncio.sleep(seconds)


def _server_of(request: WireRequest) -> str:
    """What limits hold for: an address, and the model that a body names as most do."""
    address = without_userinfo(request.url).partition("?")[0]
    model = request.body.get("model") if isinstance(request.body, dict) else None
    return f"{address} {model}" if isinstance(model, str) else address


@dataclass(frozen=True, slots=True)
class OpenWorker:
    """Opens workers of an application; ``options`` are those of a run that a line does not name.

    What is made of it in another process, by pickling it, has an application of its own there with
    the same config, which ``close`` closes with the worker; it stores no runs.
    """

    runs: RunMaker
    options: Mapping[str, Any]
    settings_digest: str
    close: Callable[[], Awaitable[None]] | None = None

    def __call__(self, limits: BatchLimits) -> LineWorker:
        return LineWorker(self, limits)

    @property
    def find_environment(self) -> Callable[[], Mapping[str, str]]:
        """See `agent_hookspecs.batch.BatchWorkers`."""
        return find_environment

    def open_limits(self) -> LearntLimits:
        """See `agent_hookspecs.batch.BatchWorkers`."""
        return LearntLimits()

    def fail_line(self, line: Mapping[str, Any], error: AgentError) -> BatchResult:
        """See `agent_hookspecs.batch.BatchWorkers`."""
        return result_of_error(self.begin_result(line), error)

    def begin_result(self, line: Mapping[str, Any]) -> BatchResult:
        """What the result of a line begins with, as it is before anybody is asked."""
        read = Line(line["number"], line["id"], line["digest"], line["content"])
        return result_of_line(read, self.settings_digest)

    def __reduce__(self) -> tuple[Any, ...]:
        core = self.runs.core
        if type(core.async_wire) is not AsyncWireClient:
            raise BatchError(
                "a batch that is recorded or replayed is answered in this process alone",
                hint="use the engine local",
            )
        if any(record.bundle.origin == "registered" for record in core.stacks.catalog):
            raise BatchError(
                "plugins and tools that the program brings are in this process alone",
                hint="install them, or use the engine local",
            )
        values = plain_copy(self.runs.config.values)
        return _open_elsewhere, (values, dict(self.options), self.settings_digest)


def _open_elsewhere(
    values: Mapping[str, Any], options: Mapping[str, Any], settings_digest: str
) -> OpenWorker:
    # Here, because the application knows of batches.
    from agent_host.application.application import open_runs

    runs, close = open_runs(values)
    return OpenWorker(runs, options, settings_digest, close)


class LineWorker:
    """Answers lines by runs."""

    def __init__(self, made_by: OpenWorker, limits: BatchLimits) -> None:
        self._runs = made_by.runs
        self._options = made_by.options
        self._begin_result = made_by.begin_result
        self._limits = limits
        self._close = made_by.close
        self._wire = _PacedWire(made_by.runs.core.async_wire, limits)

    async def answer(self, line: Mapping[str, Any]) -> BatchResult:
        """See `agent_hookspecs.batch.BatchWorker`."""
        content = line["content"]
        head = self._begin_result(line)
        for attempt in range(_ATTEMPTS):
            try:
                run = self._begin(content)
            except AgentError as error:
                return result_of_error(head, error)
            try:
                await acomplete(run.steps(), self._wire)
            except (RateLimitError, OverloadedError) as error:
                if not await self._may_try_again(run, error, attempt):
                    return result_of_error(head, error)
            except AgentError as error:
                return result_of_error(head, error)
            else:
                answer = answer_of_run(run)
                if answer.limit in _SHARED_BUDGETS:
                    raise BatchError(
                        f"{answer.limit} was reached",
                        hint="what was answered is in the results; begin the same batch again when "
                        "there is something left to spend",
                    )
                return result_of_answer(head, answer, run.output is not None)
        raise AssertionError("the last attempt gives a result")

    async def _may_try_again(
        self, run: AgentRun, error: RateLimitError | OverloadedError, attempt: int
    ) -> bool:
        if not error.retryable:
            return False
        if (error.retry_after or 0) > PATIENCE:
            raise BatchError(
                f"the server asks to wait {error.retry_after:g} s: {error.message}",
                hint="what was answered is in the results; begin the same batch again later",
            ) from error
        if error.status is None:
            # Of a provider that has its own connections the wire has seen nothing.
            wait = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
            await self._limits.report(str(error.provider), 429, wait)
            await _wait_for_turn(self._limits, str(error.provider), 0)
            await self._limits.report(str(error.provider), 0, {})
        new = run.session.since(run.start.count)
        # What tools have done must not be done twice.
        return attempt + 1 < _ATTEMPTS and all(message["role"] != "tool" for message in new)

    def _begin(self, content: Mapping[str, Any]) -> AgentRun:
        options = dict(self._options)
        options |= {key: content[key] for key in _OPTIONS if content.get(key) is not None}
        options["settings"] = {
            **(self._options.get("settings") or {}),
            **(content.get("settings") or {}),
        }
        system = content.get("system", options.pop("system", None))
        schema = content.get("output_schema", options.pop("output_type", None))
        messages = content.get("messages")
        prompt = content["prompt"] if messages is None else messages[-1]["content"]
        if messages is not None:
            said = [{"role": "system", "content": system}] if system else []
            options["session"] = Session([*said, *messages[:-1]])
        return self._runs.begin_run(
            prompt, asynchronous=True, system=system, output_type=schema, **options
        )

    async def aclose(self) -> None:
        """Close the application, if it is there for this worker alone."""
        if self._close is not None:
            await self._close()
