"""Which tools go with a request, as features decide; the others stay on offer all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_hookspecs.tool_interop import ToolDescriptor
from agent_host.sessions.frozen import plain_copy
from agent_host.turn.history import config_of

if TYPE_CHECKING:
    from agent_host.turn.turn import Turn

__all__ = ["choose_tools", "select_tools"]

#: The tag of who shows deferred tools to the model when it searches them.
_SEARCHES = "supports_tool_search"


def select_tools(turn: Turn) -> None:
    """Leave in the request's config the tools of plugins that features want, in their order.

    Tools that no plugin has, such as those that a provider runs itself, stay before them.
    """
    offered = [*turn.stack.descriptors]
    if not offered:
        return
    config = config_of(turn, turn.state)
    tools = choose_tools(turn, config)
    if tools == offered:
        return
    names = {each.tool_name for each in offered}
    others = [each for each in config.get("tools") or () if _name(turn, each) not in names]
    config["tools"] = [*others, *(plain_copy(each.schema) for each in tools)]
    if deferred := [each.tool_name for each in tools if each.deferred]:
        turn.context["deferred_tools"] = deferred


def choose_tools(turn: Turn, config: Mapping[str, Any]) -> list[ToolDescriptor]:
    """The tools that features want in a request with this config, those deferred marked as such."""
    # A copy, for the request is made from the other one; the tools are given by themselves.
    given = plain_copy({key: value for key, value in config.items() if key != "tools"})
    chosen: list[Any] = turn.managers.feature.hook.select_tools(
        tools=[*turn.stack.descriptors], session=turn.start, config=given, context=turn.context
    )
    # Not by isinstance, which asks each of them.
    tools = [each for each in chosen if issubclass(type(each), ToolDescriptor)]
    if len(tools) < len(chosen):
        what = f"{len(chosen) - len(tools)} of the tools that features have selected are none"
        turn.warnings.add(f"{what}: select_tools gives descriptors, as it is given them", None)
    return tools if _SEARCHES in turn.context["tags"] else _without_deferring(turn, tools)


def _without_deferring(turn: Turn, tools: Sequence[ToolDescriptor]) -> list[ToolDescriptor]:
    """The tools for a provider that would show none of those that are deferred."""
    deferred = sum(each.deferred for each in tools)
    if not deferred:
        return [*tools]
    turn.warnings.add(
        f"features have deferred {deferred} of the tools, and all are sent whole: the provider "
        f"searches none, for it lacks the tag {_SEARCHES!r}"
    )
    return [replace(each, deferred=False) for each in tools]


def _name(turn: Turn, schema: object) -> str | None:
    view = turn.stack.registry.inspect_schema(schema) if isinstance(schema, Mapping) else None
    return view.name if view is not None else None
