"""Tools that a program gives one run: a stack with them, and their end.

The stack itself is shared by all runs of its config and is not touched. What the tools of a run
have opened is closed with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_host.drivers.effects import Steps
from agent_host.plugins.build import close_tools, prepare_tools, refuse_shared_names
from agent_host.plugins.register import record_plugin
from agent_host.plugins.stack import Lease, PlainWarning, PreparedTool, Stack

__all__ = ["OwnTools"]


class OwnTools:
    """The tools of one run: functions, classes, objects or modules."""

    def __init__(self, given: Sequence[object]) -> None:
        self._given = given
        self._prepared: list[PreparedTool] = []
        self._lease = Lease(self._close_tools)

    def add_to(self, stack: Stack) -> Steps[Stack]:
        """The stack with these tools; itself if there are none."""
        if not self._given:
            return stack
        activator, catalog = stack.activator.for_one_run(), stack.resolution.catalog
        plugins = []
        for given in self._given:
            record = record_plugin(given, "tool", catalog, activator)
            catalog = replace(catalog, records=(*catalog.records, record))
            plugins.append(activator.load(record))
        manager = activator.new_manager("tool", [(p.name, p.implementations) for p in plugins])
        warnings: list[PlainWarning] = []
        yield from prepare_tools(
            plugins,
            manager,
            stack.schema,
            stack.config,
            stack.registry,
            self._lease,
            warnings,
            self._prepared,
            stack.protected,
        )
        refuse_shared_names([*stack.tools, *self._prepared])
        own = [descriptor for tool in self._prepared for descriptor in tool.descriptors]
        schemas = [descriptor.schema for descriptor in own]
        return replace(
            stack,
            config={**stack.config, "tools": [*(stack.config.get("tools") or ()), *schemas]},
            tools=(*stack.tools, *self._prepared),
            tool_names=(*stack.tool_names, *(descriptor.tool_name for descriptor in own)),
            warnings=(*stack.warnings, *warnings),
        )

    def close(self) -> None:
        """Close them as soon as no call is at work."""
        self._lease.end()

    def _close_tools(self) -> None:
        close_tools(self._prepared)
