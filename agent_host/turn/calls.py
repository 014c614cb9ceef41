"""`ToolCall`: a call of the model's, looked at once; every later step uses what was found then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.tool_interop.arguments import MAX_ARGUMENT_BYTES
from agent_hookspecs.values import dataclass
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.plugins.stack import PreparedTool, Stack

__all__ = ["ToolCall", "inspect_call", "wire_call_id", "wire_call_name"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a call asks for. With a ``problem`` it must not be run.

    ``payload`` is the arguments as a dict, or the text of a freeform tool. ``wire`` is the call in
    the shape in which its message has it. ``tool`` is None if no active plugin offers ``name``,
    which is empty if nobody understands the call.
    """

    id: str
    name: str
    payload: Any
    problem: str | None
    wire: Mapping[str, Any]
    tool: PreparedTool | None


def inspect_call(
    stack: Stack,
    call: Mapping[str, Any],
    problem: str | None = None,
    limit: int = MAX_ARGUMENT_BYTES,
) -> ToolCall:
    """Look at a call; ``problem`` is what is known to be wrong with it already."""
    # A plain copy: tools may work on their payload, sessions may not be worked on.
    given = plain_copy(call)
    view = stack.registry.inspect_call(given, limit=limit)
    if view is None or not view.tool_name:
        return ToolCall(wire_call_id(given), "", None, problem, call, None)
    tool = stack.tool(view.tool_name)
    if tool is not None:
        # With the tool's own schema the payload is of the kind that the tool wants.
        descriptor = tool.descriptor(view.tool_name)
        view = stack.registry.inspect_call(given, descriptor, limit=limit) or view
    return ToolCall(
        view.call_id or "", view.tool_name or "", view.payload, problem or view.problem, call, tool
    )


def wire_call_id(call: object) -> str:
    """The id of a call in whichever shape, so that it can be answered."""
    found = [call.get(key) for key in ("id", "call_id")] if isinstance(call, Mapping) else ()
    return next((each for each in found if isinstance(each, str) and each), "")


def wire_call_name(call: Mapping[str, Any]) -> str:
    """What a call names, as far as that can be seen without tool interop."""
    places = [call, *(call.get(key) for key in ("function", "custom"))]
    names = (place.get("name") for place in places if isinstance(place, Mapping))
    return next((name for name in names if isinstance(name, str)), "")
