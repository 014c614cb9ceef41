"""Everything about a request that does not depend on its session: the plugins, and their config.

A stack is immutable and shared by requests and threads. It knows nothing of sessions or sockets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import ModelInfo, State
from agent_hookspecs.roles import PLUGIN_ROLES, PluginRole
from agent_hookspecs.tool_interop import ToolDescriptor, ToolInteropRegistry
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.implementation import Implementation, log_failure
from agent_host.plugins.manager import RoleManager, Tolerate
from agent_host.plugins.resolve import Resolution
from agent_host.plugins.settings import ConfigSchema

if TYPE_CHECKING:
    from agent_host.plugins.key_sources import FreshKey

__all__ = ["Lease", "Managers", "PlainWarning", "PreparedTool", "Stack"]

log = get_logger(__name__)

#: What was left out or is ignored, in words, and the plugin that it is about.
PlainWarning = tuple[str, str | None]


class Lease:
    """Counts who uses the tools of a stack, so that none is closed while it is at work.

    Once it was ended and the last user has left, ``close`` is called. A user that comes after that
    is refused.
    """

    __slots__ = ("_close", "_count", "_ended", "_lock")

    def __init__(self, close: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._close = close
        self._count = 0
        self._ended = False

    def enter(self) -> bool:
        """Whether it could still be entered; if so, leave it in the end."""
        with self._lock:
            if self._ended and not self._count:
                return False
            self._count += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            last = self._ended and not self._count
        if last:
            self._close()

    def end(self) -> None:
        """Close as soon as nobody is there any more; only those who are there now may go on."""
        with self._lock:
            unused = not self._ended and not self._count
            self._ended = True
        if unused:
            self._close()

    def __enter__(self) -> None:
        if not self.enter():
            raise RuntimeError("the tool has been closed")

    def __exit__(self, *error: object) -> None:
        self.leave()


@dataclass(frozen=True, slots=True)
class Managers:
    """pluggy's managers of one stack, one for each role."""

    provider: RoleManager
    extension: RoleManager
    feature: RoleManager
    tool: RoleManager

    @classmethod
    def of(cls, resolution: Resolution, activator: Activator, report: Tolerate) -> Managers:
        """Managers with the plugins that take part, in the order of the resolution."""
        return cls(
            **{
                role: activator.new_manager(role, resolution.registered[role], report=report)
                for role in PLUGIN_ROLES
            }
        )

    def tolerating(
        self, resolution: Resolution, activator: Activator, tolerate: Tolerate
    ) -> Managers:
        """The managers of one request that goes on without an optional plugin that fails."""

        def copy(role: PluginRole) -> RoleManager:
            own = self.role(role)
            plugins = resolution.registered[role]
            manager = activator.new_manager(role, plugins, tolerate=tolerate, report=own.report)
            manager.watch_state = own.watch_state
            return manager

        return Managers(self.provider, copy("extension"), copy("feature"), self.tool)

    def stop_tolerating(self) -> None:
        """Let what fails from now on end the request."""
        for manager in (self.extension, self.feature):
            manager.tolerate = None

    def role(self, role: PluginRole) -> RoleManager:
        found: RoleManager = getattr(self, role)
        return found


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """A tool plugin with its own state and the tools it offers.

    ``config`` is the stack's without the secrets of others, ``lease`` is that of the stack.
    """

    plugin: LoadedPlugin
    config: dict[str, Any]
    state: State
    descriptors: tuple[ToolDescriptor, ...]
    lease: Lease
    manager: RoleManager

    def implementation(self, hook: str) -> Implementation | None:
        return self.manager.implementation(self.plugin.name, hook)

    def ask(self, hook: str, **arguments: Any) -> Any:
        """What the plugin, and no other of the stack, answers to a hook."""
        return self.manager.ask(self.plugin.name, hook, **arguments)

    def descriptor(self, name: str) -> ToolDescriptor | None:
        return next((each for each in self.descriptors if each.tool_name == name), None)


@dataclass(frozen=True, slots=True)
class Stack:
    """The plugins that take part in the requests of one config, and what they made of it.

    ``config`` has the schema's defaults and the tools' schemas in it. ``models`` is the provider's
    list after extensions and features have seen it, ``model`` the entry that is asked for, and
    ``secrets`` what is secret in the config. ``fresh_key`` gets the key if the config says where
    from. ``protected`` are the places that no tool may touch. Whoever works with its tools has
    entered ``lease``. ``changing_tools`` are those that can say that they are others by now, and
    ``header_plugins`` may add headers to requests.
    """

    resolution: Resolution
    managers: Managers
    activator: Activator
    config: dict[str, Any]
    schema: ConfigSchema
    models: tuple[ModelInfo, ...]
    model: ModelInfo | None
    tools: tuple[PreparedTool, ...]
    changing_tools: tuple[PreparedTool, ...]
    header_plugins: tuple[LoadedPlugin, ...]
    tool_names: tuple[str, ...]
    registry: ToolInteropRegistry
    schema_target_formats: tuple[str, ...]
    lease: Lease
    warnings: tuple[PlainWarning, ...]
    fresh_key: FreshKey | None
    has_actions: bool
    protected: tuple[str, ...]
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def provider(self) -> LoadedPlugin:
        return self.resolution.provider

    @property
    def descriptors(self) -> Sequence[ToolDescriptor]:
        return [descriptor for tool in self.tools for descriptor in tool.descriptors]

    @property
    def has_changed_tools(self) -> bool:
        """Whether a tool says that another stack has to be built."""
        return any(_has_changed(tool) for tool in self.changing_tools)

    def tool(self, name: str) -> PreparedTool | None:
        """The plugin that offers a tool under that wire name."""
        return next((tool for tool in self.tools if tool.descriptor(name)), None)


def _has_changed(tool: PreparedTool) -> bool:
    try:
        return bool(tool.ask("has_changed_tools", state=tool.state))
    except Exception as error:
        log_failure(log, "tool_unchanged", error, plugin=tool.plugin.name)
        return False
