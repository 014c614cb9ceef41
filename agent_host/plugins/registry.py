"""Finds the hooks a plugin object implements, checks them, and registers them with pluggy.

One `HookRegistry` per role, because hooks of one name take different arguments in different roles.
It knows no order and calls nothing: compiled stacks do, with the implementations it hands out.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import pluggy

from agent_hookspecs.errors import CollisionError, ContractError
from agent_hookspecs.markers import PROJECT
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.specs import SPECS, Hook, SpecRole, hooks_of
from agent_host.plugins.binding import bind
from agent_host.plugins.combining import Implementation

__all__ = ["HookRegistry", "implementations_of", "ordering_markers", "require_contract"]

_IMPL_MARK = f"{PROJECT}_impl"
#: Hooks that take no arguments and always give the same answer may be written as plain lists.
_AS_DATA = ("required_tags", "forbidden_tags")
# `initialize_request` is enough: the host's own `build_request` sends what it leaves in the state.
_SENDS = (
    "build_request",
    "call_api",
    "stream_api",
    "acall_api",
    "astream_api",
    "initialize_request",
)
_READS = (
    ("process_chunk",),
    ("extract_delta", "process_delta"),
    ("parse_response",),
    ("call_api",),
    ("acall_api",),
)


def implementations_of(
    plugin: object, role: SpecRole, name: str
) -> dict[str, list[Implementation]]:
    """The hooks of ``role`` that ``plugin`` implements, bound and checked, by hook name.

    A public method whose name is in the specification is an implementation; so is one marked with
    ``hookimpl(specname=…)``. One that is marked but fits no hook is a `ContractError`.
    """
    hooks = hooks_of(role)
    found: dict[str, list[Implementation]] = {}
    for attribute in sorted(set(dir(type(plugin))) | set(getattr(plugin, "__dict__", ()))):
        if attribute.startswith("_"):
            continue
        options = _marks(plugin, attribute)
        hook_name = options.get("specname") or attribute
        hook = hooks.get(hook_name)
        if hook is None:
            if options and not options.get("optionalhook"):
                _refuse_unknown(hook_name, attribute, role, name)
            continue
        found.setdefault(hook_name, []).append(
            _implementation(plugin, attribute, hook, options, name)
        )
    for hook_name, several in found.items():
        owners = [implementation for implementation in several if not implementation.wrapper]
        if hooks[hook_name].combining.mode == "single" and len(owners) > 1:
            raise ContractError(
                f"plugin {name!r} implements {role} hook {hook_name!r} {len(owners)} times",
                plugin=name,
                hook=hook_name,
                hint="keep one of them",
            )
    return found


def _refuse_unknown(hook: str, attribute: str, role: SpecRole, name: str) -> None:
    # A plugin is looked through once for its role and once for the hooks of the host.
    roles: Sequence[SpecRole] = tuple(SPECS) if role == "host" else (role, "host")
    known = sorted({hook for role in roles for hook in hooks_of(role)})
    if hook in known:
        return
    import difflib

    near = difflib.get_close_matches(hook, known, 1)
    raise ContractError(
        f"plugin {name!r}: {attribute!r} is marked as a hook, but there is no {role} hook {hook!r}",
        plugin=name,
        hook=hook,
        hint=f"did you mean {near[0]!r}?" if near else "remove the mark, or correct the name",
    )


def _implementation(
    plugin: object, attribute: str, hook: Hook, options: Mapping[str, Any], name: str
) -> Implementation:
    value = getattr(plugin, attribute)
    if not callable(value):
        if hook.name not in _AS_DATA or not isinstance(value, (list, tuple, set, frozenset)):
            raise ContractError(
                f"plugin {name!r}: {attribute!r} is a {hook.role} hook's name but not a method",
                plugin=name,
                hook=hook.name,
                hint="make it a list of tags or a method"
                if hook.name in _AS_DATA
                else "make it a method, or give it another name",
            )
        answer = list(value)
        return Implementation(name, hook.name, lambda: answer)
    wrapper = bool(options.get("wrapper"))
    allowed = hook.combining.wrappers and inspect.isgeneratorfunction(value)
    if options.get("hookwrapper") or (wrapper and not allowed):
        raise ContractError(
            f"plugin {name!r}: {attribute!r} cannot be a wrapper of this kind",
            plugin=name,
            hook=hook.name,
            hint="a wrapper is a generator marked hookimpl(wrapper=True), on a hook whose "
            "reference entry says that wrappers are allowed",
        )
    if not hook.combining.may_be_async and (
        inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
    ):
        raise ContractError(
            f"plugin {name!r}: hook {hook.name!r} must be a plain function, not async",
            plugin=name,
            hook=hook.name,
        )
    binding = bind(hook, value, plugin=name, wrapper=wrapper)
    return Implementation(name, hook.name, binding.call, wrapper, binding.by_position)


def _marks(plugin: object, attribute: str) -> Mapping[str, Any]:
    static = inspect.getattr_static(plugin, attribute, None)
    function = getattr(static, "__func__", static)
    marks = getattr(function, _IMPL_MARK, None)
    return marks if isinstance(marks, dict) else {}


def ordering_markers(plugin: object) -> list[str]:
    """Methods marked ``tryfirst`` or ``trylast``, which have no effect here: order is declared."""
    return [
        attribute
        for attribute in dir(type(plugin))
        if (marks := _marks(plugin, attribute)) and (marks.get("tryfirst") or marks.get("trylast"))
    ]


def require_contract(role: PluginRole, plugin: object, name: str) -> None:
    """The registration guard: refuse, naming plugin and method, what cannot do its role's work."""
    has = {hook for hook in hooks_of(role) if callable(getattr(plugin, hook, None))}
    if role == "provider":
        if getattr(plugin, "supports_tools", None) is not True:
            raise _refused(name, "supports_tools", "must have supports_tools = True", role)
        if not has.intersection(_SENDS):
            raise _refused(name, "build_request", f"has no way to send: {_either(_SENDS)}", role)
        if not any(has.issuperset(way) for way in _READS):
            ways = _either([" with ".join(way) for way in _READS])
            raise _refused(name, "process_chunk", f"has no way to read an answer: {ways}", role)
    if role == "tool":
        for hook in ("get_tool_schemas", "execute_tool"):
            if hook not in has:
                raise _refused(name, hook, f"must implement {hook!r}", role)


def _refused(name: str, hook: str, what: str, role: str) -> ContractError:
    return ContractError(
        f"plugin {name!r} {what}",
        plugin=name,
        hook=hook,
        hint=f"add it to the {role} class; the hooks reference has its signature",
    )


def _either(options: Sequence[str]) -> str:
    return f"one of {', '.join(options)}"


class HookRegistry:
    """The registered plugins of one role and their implementations."""

    def __init__(self, role: SpecRole) -> None:
        self.role = role
        self._manager = _Manager(PROJECT)
        self._manager.add_hookspecs(SPECS[role])
        self._implementations: dict[str, dict[str, list[Implementation]]] = {}

    def register(self, plugin: object, name: str) -> Mapping[str, list[Implementation]]:
        """Check and register; nothing is kept of a plugin that fails."""
        if name in self._implementations:
            raise CollisionError(
                f"two {self.role} plugins are called {name!r}",
                plugin=name,
                hint="rename one, or register only one of them",
            )
        found = implementations_of(plugin, self.role, name)
        try:
            self._manager.register(_Bound(found), name)
        except pluggy.PluginValidationError as error:
            raise ContractError(f"plugin {name!r}: {error}", plugin=name) from error
        self._implementations[name] = found
        return found

    def unregister(self, name: str) -> None:
        self._manager.unregister(name=name)
        del self._implementations[name]

    def implementations(self, name: str) -> Mapping[str, list[Implementation]]:
        """The implementations of one registered plugin, by hook name."""
        return self._implementations[name]

    def __contains__(self, name: str) -> bool:
        return name in self._implementations


class _Bound:
    """What pluggy gets to see of a plugin: its bound implementations under unique names."""

    def __init__(self, found: Mapping[str, list[Implementation]]) -> None:
        self.options: dict[str, pluggy.HookimplOpts] = {}
        for hook, implementations in found.items():
            for number, implementation in enumerate(implementations):
                attribute = f"{hook}__{number}"
                setattr(self, attribute, implementation.call)
                self.options[attribute] = {
                    "wrapper": implementation.wrapper,
                    "hookwrapper": False,
                    "optionalhook": False,
                    "tryfirst": False,
                    "trylast": False,
                    "specname": hook,
                }


class _Manager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        options: dict[str, pluggy.HookimplOpts] = plugin.options
        return options.get(name)
