"""Answers lines of a batch: each is a run of the application, whose requests keep to the limits.

The answer to the first request of a run may have been fetched before, from a batch of the provider:
it is read as any other. It must not know where lines come from, nor what becomes of results.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_hookspecs.batch import BatchLimits, BatchReply
from agent_hookspecs.errors import AgentError, OverloadedError, ProviderError, RateLimitError
from agent_hookspecs.values import dataclass
from agent_host.application.answer import answer_of_run
from agent_host.batch.endpoint import PreparedRequest, find_endpoint
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
from agent_host.wire.cassettes.clients import play_answer
from agent_host.wire.cassettes.folder import RecordedAnswer
from agent_host.wire.client import AsyncWireClient
from agent_host.wire.rate_limits import rate_limit_headers
from agent_host.wire.request import content_of, without_userinfo

if TYPE_CHECKING:
    from agent_host.agent.costs import RunCosts
    from agent_host.agent.loop import AgentRun
    from agent_host.application.run_maker import RunMaker
    from agent_host.wire.deadlines import Canceller
    from agent_host.wire.request import WireRequest
    from agent_host.wire.responses import AsyncResponse

__all__ = ["FetchedReply", "LineWorker", "OpenWorker"]

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


@dataclass(frozen=True, slots=True)
class FetchedReply:
    """What a batch of the provider has brought for a line.

    ``price_share`` is what its tokens cost of what they usually cost; None if nobody knows.
    """

    reply: BatchReply
    provider: str
    batch: str
    price_share: float | None

    @property
    def is_refusal(self) -> bool:
        return (self.reply.status or 0) >= 400

    def error(self) -> ProviderError:
        """Why there is no answer to the request of the line."""
        why = self.reply.problem or "nothing was said of this line"
        return ProviderError(
            f"{self.provider} has not answered it in the batch {self.batch}: {why}",
            provider=self.provider,
            retryable=True,
            hint="--retry-failed (retry_failed=True) asks again",
        )


class _FetchedWire:
    """Gives the fetched answer to the first request of a run; what follows on it is sent.

    ``sent`` counts what was, which has the usual price.
    """

    def __init__(self, fetched: FetchedReply, wire: _PacedWire, costs: RunCosts | None) -> None:
        reply = fetched.reply
        content = json.dumps(reply.body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json"}
        self._answer = RecordedAnswer(reply.status or 0, headers, content)
        self._first: WireRequest | None = None
        self._wire = wire
        self._costs = costs
        self.sent = 0
        if costs is not None:
            share = fetched.price_share
            costs.share = None if share is None else Decimal(str(share))

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        if self._first is None or request.body == self._first.body:
            # Another attempt at the same request is another look at the same answer.
            self._first = request
            return play_answer(self._answer, request, canceller)
        self.sent += 1
        if self._costs is not None:
            self._costs.share = Decimal(1)
        return await self._wire.open(request, canceller)


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
        self._settings_digest = made_by.settings_digest
        self._begin_result = made_by.begin_result
        self._limits = limits
        self._close = made_by.close
        self._wire = _PacedWire(made_by.runs.core.async_wire, limits)

    @property
    def runs(self) -> RunMaker:
        """What makes the runs."""
        return self._runs

    @property
    def settings_digest(self) -> str:
        """What stands for all that has a say in the answers, besides the lines."""
        return self._settings_digest

    async def prepare(self, line: Mapping[str, Any]) -> PreparedRequest | BatchResult:
        """The first request of a line and the endpoint for it; its result if none is to be sent."""
        try:
            run = self._begin(line["content"], stream=False)
            # It is not carried out: that is for the run that gets the answer.
            run.observe = None
            has_budget = run.setup.limits.cost is not None
            if not (has_budget and await acomplete(run.look_at_budgets(), self._wire)):
                looking = run.look_at_request(partial(find_endpoint, run))
                return await acomplete(looking, self._wire)
        except BatchError:
            raise
        except AgentError as error:
            return result_of_error(self._begin_result(line), error)
        return await self.answer(line)

    async def answer(
        self, line: Mapping[str, Any], fetched: FetchedReply | None = None
    ) -> BatchResult:
        """See `agent_hookspecs.batch.BatchWorker`; the first answer may have been ``fetched``."""
        content, head = line["content"], self._begin_result(line)
        if fetched is not None:
            head["batch"] = fetched.batch
            if fetched.reply.status is None:
                return result_of_error(head, fetched.error())
        for attempt in range(_ATTEMPTS):
            try:
                run = self._begin(content, fetched)
            except AgentError as error:
                return result_of_error(head, error)
            wire = None if fetched is None else _FetchedWire(fetched, self._wire, run.setup.costs)
            try:
                await acomplete(run.steps(), wire or self._wire)
            except (RateLimitError, OverloadedError) as error:
                is_fetched = wire is not None and not wire.sent
                if is_fetched or not await self._may_try_again(run, error, attempt):
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
                result = result_of_answer(head, answer, run.output is not None)
                if wire is not None and wire.sent:
                    more = "1 more request" if wire.sent == 1 else f"{wire.sent} more requests"
                    told = f"sent {more} for this line at the usual price"
                    result["warnings"] = [*result.get("warnings", ()), told]
                return result
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

    def _begin(
        self,
        content: Mapping[str, Any],
        fetched: FetchedReply | None = None,
        *,
        stream: bool = True,
    ) -> AgentRun:
        options = dict(self._options)
        options |= {key: content[key] for key in _OPTIONS if content.get(key) is not None}
        options["settings"] = {
            **(self._options.get("settings") or {}),
            **(content.get("settings") or {}),
            # The same refusal would come again and again.
            **({"retries": 0} if fetched is not None and fetched.is_refusal else {}),
        }
        system = content.get("system", options.pop("system", None))
        schema = content.get("output_schema", options.pop("output_type", None))
        messages = content.get("messages")
        prompt = content["prompt"] if messages is None else messages[-1]["content"]
        if messages is not None:
            said = [{"role": "system", "content": system}] if system else []
            options["session"] = Session([*said, *messages[:-1]])
        return self._runs.begin_run(
            prompt,
            asynchronous=True,
            stream=stream and fetched is None,
            system=system,
            output_type=schema,
            **options,
        )

    async def aclose(self) -> None:
        """Close the application, if it is there for this worker alone."""
        if self._close is not None:
            await self._close()
