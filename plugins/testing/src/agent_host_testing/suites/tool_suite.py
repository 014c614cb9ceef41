"""What a suite of a tool plugin is told, and the plugin as a stack has it.

Owns the samples, the world that they need, and what is offered. It must not know any check.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, SchemaView
from agent_host.drivers.blocking import complete
from agent_host.plugins.stack import PreparedTool
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import CANARY, Host, prepared_tool
from agent_host_testing.suites.package import PackageConformance
from agent_host_testing.violations import require

__all__ = ["ToolSuite"]


class ToolSuite(PackageConformance):
    """What the checks of a tool are told.

    ``samples`` has a payload for each tool that may be run, as its schema asks; a tool without one
    is not run. `prepare_world` makes what the payloads need, and gives settings for it.
    """

    role = "tool"
    needs = ("agent_host_echo",)
    samples: ClassVar[Mapping[str, Any]] = {}

    def prepare_world(self, folder: Path) -> Mapping[str, Any]:
        """Make in ``folder`` what the samples need; further settings, such as where that is."""
        return {}

    @pytest.fixture(autouse=True)
    def _world(self, tmp_path: Path) -> None:
        self._made = dict(self.prepare_world(tmp_path))

    def config(self, **more: Any) -> dict[str, Any]:
        # The key is there for every check, as it is in any request; tools must never see it.
        return super().config(api_key=CANARY, **self._made, **more)

    def prepared(self, host: Host) -> PreparedTool:
        """The plugin as a stack has it: with its state and what it offers."""
        stack = complete(host.core.stacks.stack(self.config()), host.core.wire)
        return prepared_tool(stack, self.plugin)

    def views(self, host: Host) -> dict[str, SchemaView]:
        offered = self.prepared(host).descriptors
        views = {
            d.tool_name: DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema(d.schema) for d in offered
        }
        unknown = sorted(name for name, view in views.items() if view is None)
        require(not unknown, f"no built-in format explains the schemas of {', '.join(unknown)}")
        return {name: view for name, view in views.items() if view is not None}

    def runnable(self, host: Host) -> dict[str, Any]:
        if not self.samples:
            not_claimed("'samples' has no payloads, so nothing is run")
        unknown = sorted({*self.samples} - {*self.views(host)})
        require(
            not unknown,
            f"'samples' names {', '.join(unknown)}, which is not on offer",
            "mend 'samples' or prepare_world of the suite, or what get_tool_schemas gives for it",
        )
        return deepcopy(dict(self.samples))
