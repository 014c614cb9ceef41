"""The plugins of one resolved request, compiled: for each hook one callable, made once.

A stack is immutable and shared by requests and threads. It knows nothing of sessions or sockets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from agent_hookspecs.errors import AgentError, HookResultError
from agent_hookspecs.messages import ModelInfo, State
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.specs import SpecRole, hooks_of
from agent_hookspecs.tool_interop import ToolDescriptor, ToolInteropRegistry
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import LoadedPlugin
from agent_host.plugins.combining import Implementation, Watch, combine
from agent_host.plugins.resolve import Resolution
from agent_host.plugins.settings import ConfigSchema

__all__ = [
    "Calls",
    "PreparedTool",
    "SkippingCalls",
    "Stack",
    "Users",
    "answered",
    "calls_of",
    "listed",
]

HookCall = Callable[..., Any]

#: Lists that are short enough for every item to be looked at; a history is not.
_OF_DICTS = ("partials", "finals", "partial_messages", "final_messages")


class Users:
    """Counts who uses the tools of a stack, so that none is closed while it is at work.

    Once it was let go and the last user has left, ``close`` is called. A user that comes after that
    is refused.
    """

    __slots__ = ("_close", "_count", "_let_go", "_lock")

    def __init__(self, close: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._close = close
        self._count = 0
        self._let_go = False

    def enter(self) -> bool:
        """Whether it could still be entered; if so, leave it in the end."""
        with self._lock:
            if self._let_go and not self._count:
                return False
            self._count += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            last = self._let_go and not self._count
        if last:
            self._close()

    def let_go(self) -> None:
        """Nobody is going to need it but those who are there now."""
        with self._lock:
            unused = not self._let_go and not self._count
            self._let_go = True
        if unused:
            self._close()

    def __enter__(self) -> None:
        if not self.enter():
            raise RuntimeError("the tool has been closed")

    def __exit__(self, *error: object) -> None:
        self.leave()


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """A tool plugin with its own state and the tools it offers.

    ``config`` is the stack's without the secrets of others, ``users`` are those of the stack.
    """

    plugin: LoadedPlugin
    config: dict[str, Any]
    state: State
    descriptors: tuple[ToolDescriptor, ...]
    users: Users

    def implementation(self, hook: str) -> Implementation | None:
        return next(iter(self.plugin.implementations.get(hook, ())), None)

    def descriptor(self, name: str) -> ToolDescriptor | None:
        return next((each for each in self.descriptors if each.tool_name == name), None)


class Calls:
    """The hooks of a stack as callables, compiled when first used."""

    def __init__(
        self, implementations: Mapping[tuple[SpecRole, str], tuple[Implementation, ...]]
    ) -> None:
        self._implementations = implementations
        self._compiled: dict[tuple[SpecRole, str], HookCall] = {}

    def has(self, role: SpecRole, hook: str) -> bool:
        return (role, hook) in self._implementations

    def implementations(self, role: SpecRole, hook: str) -> tuple[Implementation, ...]:
        return self._implementations.get((role, hook), ())

    def call(self, role: SpecRole, hook: str, watch: Watch | None = None) -> HookCall:
        """The compiled hook, which takes its arguments by position."""
        if watch is not None:
            return combine(hooks_of(role)[hook], self.implementations(role, hook), watch=watch)
        compiled = self._compiled.get((role, hook))
        if compiled is None:
            compiled = combine(hooks_of(role)[hook], self.implementations(role, hook))
            self._compiled[role, hook] = compiled
        return compiled


class SkippingCalls(Calls):
    """The calls of one request that goes on without an optional plugin that fails.

    An extension or feature that raises while ``skipping`` is absent from every later hook of the
    request; the provider never is.
    """

    def __init__(self, calls: Calls, tell: Callable[[str, AgentError], None]) -> None:
        super().__init__(calls._implementations)
        self._dropped: set[tuple[SpecRole, str]] = set()
        self._tell = tell
        self.skipping = True

    def implementations(self, role: SpecRole, hook: str) -> tuple[Implementation, ...]:
        return tuple(
            implementation
            for implementation in super().implementations(role, hook)
            if (role, implementation.plugin) not in self._dropped
        )

    def has(self, role: SpecRole, hook: str) -> bool:
        return bool(self.implementations(role, hook))

    def call(self, role: SpecRole, hook: str, watch: Watch | None = None) -> HookCall:
        optional = role in ("extension", "feature") and self.skipping
        return combine(
            hooks_of(role)[hook],
            self.implementations(role, hook),
            partial(self._drop, role) if optional else None,
            watch,
        )

    def _drop(self, role: SpecRole, implementation: Implementation, error: AgentError) -> None:
        self._dropped.add((role, implementation.plugin))
        self._tell(implementation.plugin, error)


@dataclass(frozen=True, slots=True)
class Stack:
    """Everything about a request that does not depend on its session.

    ``config`` has the schema's defaults and the tools' schemas in it. ``models`` is the provider's
    list after extensions and features have seen it, ``model`` the entry that is asked for. Whoever
    works with its tools is among its ``users``.
    """

    resolution: Resolution
    config: dict[str, Any]
    schema: ConfigSchema
    models: tuple[ModelInfo, ...]
    model: ModelInfo | None
    tools: tuple[PreparedTool, ...]
    registry: ToolInteropRegistry
    schema_target_formats: tuple[str, ...]
    calls: Calls
    users: Users
    warnings: tuple[str, ...] = ()
    has_actions: bool = field(init=False)
    #: What is secret in the config.
    secrets: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        roles: tuple[PluginRole, ...] = ("provider", "extension", "feature")
        offered = any(self.calls.has(role, "get_actions") for role in roles)
        object.__setattr__(self, "has_actions", offered)
        object.__setattr__(self, "secrets", tuple(self.schema.secrets(self.config)))

    @property
    def provider(self) -> LoadedPlugin:
        return self.resolution.provider

    @property
    def descriptors(self) -> Sequence[ToolDescriptor]:
        return [descriptor for tool in self.tools for descriptor in tool.descriptors]

    def tool(self, name: str) -> PreparedTool | None:
        """The plugin that offers a tool under that wire name."""
        return next((tool for tool in self.tools if tool.descriptor(name)), None)


def calls_of(resolution: Resolution) -> Calls:
    """The implementations of the plugins that take part, each hook's in calling order."""
    found: dict[tuple[SpecRole, str], tuple[Implementation, ...]] = {}
    for role, plugins in resolution.plugins.items():
        for hook in hooks_of(role):
            implementations = tuple(
                implementation
                for plugin in plugins
                for implementation in plugin.implementations.get(hook, ())
            )
            if implementations:
                found[role, hook] = implementations
    everyone = [plugin for plugins in resolution.plugins.values() for plugin in plugins]
    for hook in hooks_of("host"):
        implementations = tuple(
            implementation
            for plugin in everyone
            for implementation in plugin.host_implementations.get(hook, ())
        )
        if implementations:
            found["host", hook] = implementations
    return Calls(found)


def answered(plugin: str, hook: str, result: object, *shape: str) -> tuple[Any, ...]:
    """``result`` if it is a tuple of what ``shape`` names, else an error that says what is wanted.

    A ``state`` is a dict; all else is a list, and partials and finals are dicts.
    """
    if not isinstance(result, tuple) or len(result) != len(shape):
        given = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise _wrong_result(plugin, hook, f"a tuple of ({', '.join(shape)})", given)
    for name, value in zip(shape, result, strict=True):
        kind = dict if name == "state" else list
        if not isinstance(value, kind):
            raise _wrong_result(plugin, hook, f"a {kind.__name__} as {name}", type(value).__name__)
        if name in _OF_DICTS:
            for item in value:
                if not isinstance(item, Mapping):
                    raise _wrong_result(plugin, hook, f"dicts as {name}", type(item).__name__)
    return result


def listed(plugin: str, hook: str, result: object) -> list[Any]:
    """``result`` if it is a list, else an error that says what is wanted."""
    if not isinstance(result, (list, tuple)):
        raise _wrong_result(plugin, hook, "a list", type(result).__name__)
    return list(result)


def _wrong_result(plugin: str, hook: str, wanted: str, given: str) -> HookResultError:
    return HookResultError(
        f"plugin {plugin!r}: hook {hook!r} must return {wanted}, not {given}",
        plugin=plugin,
        hook=hook,
    )
