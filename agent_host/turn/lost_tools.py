"""Warns of tools that do not reach the model, and of calls that nobody reads.

Both are a plugin's fault and would otherwise look like a model that has nothing to say. How tools
stand in a request is not known here: what is looked for is their names, anywhere near the surface.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_hookspecs.messages import CoreMessage, NativeMessage

if TYPE_CHECKING:
    from agent_host.turn.turn import Turn

__all__ = ["warn_of_unread_calls", "warn_of_unsent_tools"]

#: Declarations stand no deeper in a request, and not in the middle of a list as long as a history.
_DEPTH = 8
_ENDS = 4
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def warn_of_unsent_tools(turn: Turn, body: object) -> None:
    """Say so if tools are on offer to a model that can call them and the request names none."""
    config = turn.state["config"]
    if "supports_tools" not in turn.stack.resolution.tags or config.get("tool_choice") == "none":
        # Where no call is wanted, some APIs are not told of tools at all.
        return
    tools = config.get("tools") or ()
    registry = turn.stack.registry
    views = [registry.inspect_schema(tool) for tool in tools if isinstance(tool, Mapping)]
    # Others may be sent under another name; these never are.
    names = {view.name for view in views if view and view.name and _PLAIN.fullmatch(view.name)}
    if names and not _names_any(body, names, _DEPTH):
        turn.warnings.add(
            f"{len(tools)} tools are on offer, but no plugin puts them into the request, so the "
            "model cannot call any; a tools extension does that, or initialize_request of the "
            "provider with state['config']['tools']",
            turn.provider,
        )


def _names_any(value: object, names: Collection[str], depth: int) -> bool:
    if isinstance(value, str):
        return value in names
    if isinstance(value, (bytes, bytearray)):
        return any(name.encode() in value for name in names)
    if not depth:
        return False
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, (list, tuple)):
        items = value if len(value) <= 2 * _ENDS else [*value[:_ENDS], *value[-_ENDS:]]
    return any(_names_any(item, names, depth - 1) for item in items)


def warn_of_unread_calls(
    turn: Turn, finals: Iterable[NativeMessage], messages: Iterable[CoreMessage]
) -> bool:
    """Say so, and return True, if the model has called tools and no call has come of it."""
    if any(message["metadata"].get("tool_calls") for message in messages):
        return False
    if not turn.state.get("answer_has_calls") and not any(f.get("tool_calls") for f in finals):
        return False
    turn.warnings.add(
        "the model has called tools, but no plugin reads its calls, so none is run; the "
        "provider merges them with accumulates = ('tool_calls',), or an extension does with "
        "accumulate_tool_calls, and from_native_messages puts them into metadata['tool_calls']",
        turn.provider,
    )
    return True
