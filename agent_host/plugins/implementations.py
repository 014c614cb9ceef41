"""Finds the hooks that a plugin implements, and checks them before anything is registered.

A plugin is an object with methods, or a module with marked functions. Nothing here calls a hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import pluggy

from agent_hookspecs.errors import ContractError
from agent_hookspecs.markers import PROJECT
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.specs import SPECS, Hook, SpecRole, hooks_of
from agent_host.checking import suggest
from agent_host.plugins.binding import bind
from agent_host.plugins.implementation import Implementation

__all__ = [
    "Implementations",
    "can_list_models",
    "find_implementations",
    "public_attributes",
    "require_contract",
]

#: The implementations of one plugin by hook.
Implementations = Mapping[str, Sequence[Implementation]]

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
#: Reads the marks of `hookimpl`; nothing is ever registered with it.
_READER = pluggy.PluginManager(PROJECT)


def find_implementations(plugin: object, role: SpecRole, name: str) -> Implementations:
    """The hooks of ``role`` that ``plugin`` implements, bound and checked, by hook name.

    A public method whose name is in the specification is an implementation; so is one marked with
    ``hookimpl(specname=…)``. Of a module only marked functions are. One that is marked but fits no
    hook is a `ContractError`.
    """
    hooks = hooks_of(role)
    found: dict[str, list[Implementation]] = {}
    for attribute, marks in public_attributes(plugin):
        hook_name = (marks or {}).get("specname") or attribute
        hook = hooks.get(hook_name)
        if hook is None:
            if marks and not marks.get("optionalhook"):
                _refuse_unknown_hook(hook_name, attribute, role, name)
        elif marks or not isinstance(plugin, ModuleType):
            implementation = _read_implementation(plugin, attribute, hook, marks or {}, name)
            found.setdefault(hook_name, []).append(implementation)
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


def public_attributes(plugin: object) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """The names of what everybody may see of a plugin, each with its marks."""
    names = set(dir(type(plugin))) | set(getattr(plugin, "__dict__", ()))
    for name in sorted(names):
        if not name.startswith("_"):
            yield name, _READER.parse_hookimpl_opts(plugin, name)


def _refuse_unknown_hook(hook: str, attribute: str, role: SpecRole, name: str) -> None:
    # A plugin is looked through once for its role and once for the hooks of the host.
    roles: Sequence[SpecRole] = tuple(SPECS) if role == "host" else (role, "host")
    known = sorted({hook for role in roles for hook in hooks_of(role)})
    if hook in known:
        return
    raise ContractError(
        f"plugin {name!r}: {attribute!r} is marked as a hook, but there is no {role} hook {hook!r}",
        plugin=name,
        hook=hook,
        hint=suggest(hook, known) or "remove the mark, or correct the name",
    )


def _read_implementation(
    plugin: object, attribute: str, hook: Hook, marks: Mapping[str, Any], name: str
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
        return Implementation(name, hook, lambda: answer)
    wrapper = bool(marks.get("wrapper"))
    allowed = hook.combining.wrappers and inspect.isgeneratorfunction(value)
    if marks.get("hookwrapper") or (wrapper and not allowed):
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
    return Implementation(
        name,
        hook,
        binding.call,
        wrapper,
        binding.by_position,
        first=bool(marks.get("tryfirst")),
        last=bool(marks.get("trylast")),
        starts_coroutine=inspect.iscoroutinefunction(value),
    )


def can_list_models(hooks: Collection[str]) -> bool:
    """Whether a provider with these hooks can say its models, by itself or through the host.

    In a descriptor, ``get_models`` under ``dynamic`` stands for either way.
    """
    return "get_models" in hooks or ("models_request" in hooks and "parse_models" in hooks)


def require_contract(role: PluginRole, plugin: object, name: str) -> None:
    """The registration guard: refuse, naming plugin and method, what cannot do its role's work."""
    has = {hook for hook in hooks_of(role) if callable(getattr(plugin, hook, None))}
    missing: tuple[str, str] | None = None
    if role == "provider":
        if getattr(plugin, "supports_tools", None) is not True:
            missing = "supports_tools", "must have supports_tools = True"
        elif not has.intersection(_SENDS):
            missing = "build_request", f"has no way to send: one of {', '.join(_SENDS)}"
        elif not any(has.issuperset(way) for way in _READS):
            ways = ", ".join(" with ".join(way) for way in _READS)
            missing = "process_chunk", f"has no way to read an answer: one of {ways}"
    elif role == "tool":
        absent = [hook for hook in ("get_tool_schemas", "execute_tool") if hook not in has]
        missing = (absent[0], f"must implement {absent[0]!r}") if absent else None
    if missing is not None:
        hook, what = missing
        raise ContractError(
            f"plugin {name!r} {what}",
            plugin=name,
            hook=hook,
            hint=f"add it to the {role} class; the hooks reference has its signature",
        )
