"""Plans tool calls and runs them.

A call that cannot be run, or a tool that fails, becomes a result the model can read. Whether a call
may run at all is decided elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_hookspecs.events import Event
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Context, CoreMessage
from agent_hookspecs.tool_interop.arguments import MAX_ARGUMENT_BYTES
from agent_hookspecs.values import dataclass
from agent_host.agent.arguments import arguments_objection
from agent_host.agent.results import tool_message
from agent_host.drivers.effects import END, Call, Emit, Next, Steps
from agent_host.plugins.combining import told
from agent_host.sessions.frozen import thawed

if TYPE_CHECKING:
    from agent_host.plugins.stack import PreparedTool, Stack, Users

__all__ = ["PlannedCall", "perform", "plan_call", "run_calls"]

log = get_logger(__name__)

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
    for call in calls:
        planned = plan_call(stack, call, errors)
        if isinstance(planned, PlannedCall):
            messages.append((yield from perform(planned, context)))
        else:
            messages.append(planned)
    return messages


def plan_call(
    stack: Stack,
    call: Mapping[str, Any],
    errors: Mapping[str, str],
    limit: int = MAX_ARGUMENT_BYTES,
) -> PlannedCall | CoreMessage:
    """What to run, or the message that tells the model why nothing is run."""
    # A plain copy: tools may work on their payload, sessions may not be worked on.
    given = thawed(call)
    view = stack.registry.inspect_call(given, limit=limit)
    if view is None or not view.tool_name:
        return tool_message("Tool call not understood.", None, _identity(given), failed=True)
    name, call_id = view.tool_name, view.call_id or ""
    tool = stack.tool(name)
    if tool is None:
        offered = ", ".join(d.tool_name for d in stack.descriptors) or "none"
        text = f"Tool not found: {name}. Available: {offered}."
        return tool_message(text, name, call_id, failed=True)
    descriptor = tool.descriptor(name)
    assert descriptor is not None, "the tool was found by this name"
    view = stack.registry.inspect_call(given, descriptor, limit=limit) or view
    problem = errors.get(call_id) or view.problem
    if problem:
        text = _PROBLEMS.get(problem, f"The tool call cannot be run: {problem}.")
        return tool_message(text, name, call_id, failed=True)
    wrong = arguments_objection(stack.registry.inspect_schema(descriptor.schema), view.payload)
    if wrong:
        text = f"Invalid arguments for tool '{name}': {wrong}. Retry with corrected arguments."
        return tool_message(text, name, call_id, failed=True)
    return PlannedCall(call_id, name, view.payload, tool)


def _identity(call: object) -> str:
    """The id of a call that nobody can explain, so that it can be answered all the same."""
    found = [call.get(key) for key in ("id", "call_id")] if isinstance(call, Mapping) else ()
    return next((call_id for call_id in found if isinstance(call_id, str)), "")


def perform(planned: PlannedCall, context: Context) -> Steps[CoreMessage]:
    """Run a call; progress becomes events, a failure becomes a result the model can read."""
    name = planned.name
    hook = planned.tool.implementation("execute_tool")
    assert hook is not None, "the registration guard refuses a tool without it"
    context = {**context, "config": planned.tool.config}
    try:
        execute = partial(hook.call, name, planned.payload, planned.tool.state, context)
        result = yield Call(_Holding(execute, planned.tool.users))
        if isinstance(result, (Iterator, AsyncIterator)):
            result = yield from _watched(planned, result)
        formatted = _formatted(planned, result, context)
        return tool_message(formatted, name, planned.id)
    except Exception as error:
        owner = planned.tool.plugin.name
        log.warning("tool_failed", tool=name, plugin=owner, error=told(error))
        text = f"Tool '{name}' failed: {told(error)}"
        return tool_message(text, name, planned.id, failed=True)


def _watched(planned: PlannedCall, items: Any) -> Steps[Any]:
    """The result of a tool that reports progress: what it returns, else the last it yields."""
    source = _stepping(items, planned.tool.users) if isinstance(items, Iterator) else items
    last: Any = None
    try:
        while True:
            item = yield Next(source)
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
            yield Emit([update])
    finally:
        if inspect.isgenerator(source):
            # One that is still at work in a thread cannot be closed; it ends when it next yields.
            with suppress(ValueError):
                source.close()


@dataclass(frozen=True, slots=True)
class _Returned:
    value: Any


def _stepping(items: Any, users: Users) -> Iterator[Any]:
    """The items and then what a generator returns, which a plain iterator would lose."""
    with users:
        yield _Returned((yield from items))


@dataclass(frozen=True, slots=True)
class _Holding:
    """A call that uses a tool until it has ended, even if by then nobody waits for it any more.

    What it calls is ``func``, as of a partial, so that a driver can see what it is.
    """

    func: Callable[[], Any]
    users: Users

    def __call__(self) -> Any:
        with self.users:
            return self.func()


def _formatted(planned: PlannedCall, result: Any, context: Context) -> Any:
    hook = planned.tool.implementation("format_tool_result")
    if hook is None:
        return result
    return hook.call(planned.name, result, planned.payload, planned.tool.state, context)
