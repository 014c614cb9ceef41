"""Plans tool calls and runs them.

A call that cannot be run, or a tool that fails, becomes a result the model can read. Whether a call
may run at all is decided elsewhere.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ToolRetry
from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger, redact
from agent_hookspecs.messages import Context, CoreMessage
from agent_hookspecs.values import dataclass
from agent_host.agent.arguments import arguments_objection
from agent_host.agent.results import tool_message
from agent_host.drivers.effects import END, Call, Emit, Next, Steps, TimeUpError
from agent_host.plugins.hook_time import HookTime
from agent_host.plugins.implementation import log_failure
from agent_host.turn.calls import ToolCall, inspect_call, wire_call_id

if TYPE_CHECKING:
    from agent_host.plugins.stack import Lease, PreparedTool, Stack

__all__ = ["EmitEvents", "PlannedCall", "perform_call", "plan_call", "run_calls"]

log = get_logger(__name__)

#: Makes the effect that delivers events.
EmitEvents = Callable[[list[Event]], Emit]

#: More names than this are no help to a model, and cost it a lot.
_MOST_NAMES = 40

_PROBLEMS = {
    "invalid_json": "Invalid JSON in tool call arguments. Retry with a JSON object only.",
    "not_object": "Tool call arguments are not a JSON object. Retry with a JSON object only.",
    "too_large": "Tool call arguments are too large. Retry with smaller arguments.",
    "no_input": "The tool takes text. Retry with the text as the string 'input'.",
}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that can be run: the tool is there and the payload is what its schema asks."""

    id: str
    name: str
    payload: Any
    tool: PreparedTool


def run_calls(
    stack: Stack,
    calls: Iterable[Mapping[str, Any]],
    context: Context,
    errors: Mapping[str, str],
) -> Steps[list[CoreMessage]]:
    """Run each call in turn; one tool message for each, in the same order.

    ``errors`` are those of the message the calls stand in, by call id: such calls are not run.
    """
    messages = []
    for wire in calls:
        planned = plan_call(stack, inspect_call(stack, wire, errors.get(wire_call_id(wire))))
        if isinstance(planned, PlannedCall):
            patience = HookTime.of(stack.config).max_hook_seconds
            messages.append((yield from perform_call(planned, context, patience=patience)))
        else:
            messages.append(planned)
    return messages


def plan_call(stack: Stack, call: ToolCall) -> PlannedCall | CoreMessage:
    """What to run, or the message that tells the model why nothing is run."""
    if not call.name:
        return tool_message("Tool call not understood.", None, call.id, failed=True)
    refuse = partial(tool_message, name=call.name, call_id=call.id, failed=True)
    if call.tool is None:
        return refuse(f"Tool not found: {call.name}. {_available(stack, call.name)}.")
    if call.problem:
        default = f"The tool call cannot be run: {call.problem}."
        return refuse(_PROBLEMS.get(call.problem, default))
    descriptor = call.tool.descriptor(call.name)
    assert descriptor is not None, "the tool was found by this name"
    wrong = arguments_objection(stack.registry.inspect_schema(descriptor.schema), call.payload)
    if wrong:
        text = f"Invalid arguments for tool '{call.name}': {wrong}."
        return refuse(f"{text} Retry with corrected arguments.")
    return PlannedCall(call.id, call.name, call.payload, call.tool)


def _available(stack: Stack, name: str) -> str:
    """The tools there are, for a model that has named none of them; of many those like it."""
    names = [descriptor.tool_name for descriptor in stack.descriptors]
    if len(names) <= _MOST_NAMES:
        return f"Available: {', '.join(names) or 'none'}"
    nearest = get_close_matches(name, names, _MOST_NAMES, cutoff=0.5)
    alike = f", among them: {', '.join(nearest)}" if nearest else ", and none is called alike"
    return f"There are {len(names)} tools{alike}"


def perform_call(
    planned: PlannedCall,
    context: Context,
    emit: EmitEvents = Emit,
    seconds: float | None = None,
    *,
    patience: float,
) -> Steps[CoreMessage]:
    """Run a call; progress becomes events, a failure becomes a result the model can read.

    ``seconds`` is how long any tool may take; one may allow itself less. Without any of that,
    ``patience`` is how long the host waits for each step of one that is not in its own thread.
    """
    name, tool = planned.name, planned.tool
    own = tool.implementation("execute_tool")
    assert own is not None, "the registration guard refuses a tool without it"
    clock = _Clock(planned, context, seconds, patience)
    context = {
        **context,
        "config": tool.config,
        "call_id": planned.id,
        "cancelled": clock.is_cancelled,
    }
    shared = {"tool_name": name, "payload": planned.payload, "state": tool.state}
    try:
        execute = partial(tool.ask, "execute_tool", **shared, context=context)
        result = yield Call(
            partial(_call_on_lease, execute, tool.lease),
            starts_coroutine=own.starts_coroutine,
            seconds=clock.left(),
            patience=patience,
        )
        if isinstance(result, (Iterator, AsyncIterator)):
            result = yield from _watch_progress(planned, result, emit, clock)
        if tool.implementation("format_tool_result") is not None:
            result = tool.ask("format_tool_result", **shared, result=result, context=context)
        return tool_message(result, name, planned.id)
    except ToolRetry as retry:
        log.info("tool_retry", tool=name, plugin=tool.plugin.name, says=retry.explain())
        return tool_message(redact(retry.explain()), name, planned.id, failed=True)
    except TimeUpError:
        clock.is_up = True
        waited = clock.patience if clock.seconds is None else clock.seconds
        log.warning("tool_timeout", tool=name, plugin=tool.plugin.name, seconds=waited)
        text = f"Tool '{name}' was given up: it took longer than {waited:g} s."
        return tool_message(text, name, planned.id, failed=True)
    except Exception as error:
        described = log_failure(log, "tool_failed", error, tool=name, plugin=tool.plugin.name)
        return tool_message(f"Tool '{name}' failed: {described}", name, planned.id, failed=True)


class _Clock:
    """The time that a call has; once it is up, the tool is told that nobody waits any more."""

    def __init__(
        self, planned: PlannedCall, context: Context, seconds: float | None, patience: float
    ) -> None:
        own = planned.tool.plugin.tool_limits("timeouts").get(planned.name)
        self.seconds: float | None = min(
            (each for each in (own, seconds) if each is not None), default=None
        )
        self.patience = patience
        self._end = None if self.seconds is None else time.monotonic() + self.seconds
        self._is_cancelled: Callable[[], bool] | None = context.get("cancelled")
        self.is_up = False

    def left(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def is_cancelled(self) -> bool:
        return self.is_up or (self._is_cancelled is not None and self._is_cancelled())


def _watch_progress(
    planned: PlannedCall, items: Any, emit: EmitEvents, clock: _Clock
) -> Steps[Any]:
    """The result of a tool that reports progress: what it returns, else the last it yields."""
    source = _step_on_lease(items, planned.tool.lease) if isinstance(items, Iterator) else items
    last: Any = None
    try:
        while True:
            item = yield Next(source, clock.left(), clock.patience)
            if item is END:
                return last
            if isinstance(item, _Returned):
                return last if item.value is None else item.value
            last = item
            update: Event = {
                "type": "tool_update",
                "id": planned.id,
                "name": planned.name,
                "update": item,
            }
            yield emit([update])
    finally:
        if inspect.isgenerator(source):
            with suppress(ValueError):
                # Nothing is lost: one that is still at work in a thread ends when it next yields.
                source.close()


@dataclass(frozen=True, slots=True)
class _Returned:
    value: Any


def _step_on_lease(items: Any, lease: Lease) -> Iterator[Any]:
    """The items and then what a generator returns, which a plain iterator would lose."""
    with lease:
        yield _Returned((yield from items))


def _call_on_lease(function: Callable[[], Any], lease: Lease) -> Any:
    """Use a tool until the call has ended, even if by then nobody waits for it any more."""
    with lease:
        return function()
