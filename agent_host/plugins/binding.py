"""Fits an implementation's parameters to its hook's arguments.

The result is a callable that takes all of the hook's arguments by position, whatever subset the
implementation asked for and in whatever order. Nothing here knows roles or calls hooks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from agent_hookspecs.errors import BindingError
from agent_hookspecs.specs import Hook
from agent_hookspecs.values import dataclass

__all__ = ["Binding", "bind"]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Binding:
    """``call`` takes the hook's arguments by position; ``by_position`` says names were not used."""

    call: Callable[..., Any]
    by_position: bool


def bind(
    hook: Hook, implementation: Callable[..., Any], *, plugin: str, wrapper: bool = False
) -> Binding:
    """Bind by name, any subset; or, when a required name is unknown, by position.

    Keyword-only and defaulted parameters are bound by name as well. ``*args`` receives the
    arguments that follow when those before it are the hook's first ones, ``**kwargs`` those no
    parameter names. A signature that fits neither way is a `BindingError` naming plugin, hook and
    argument.
    """
    try:
        parameters = list(inspect.signature(implementation).parameters.values())
    except (TypeError, ValueError) as error:
        raise BindingError(
            f"plugin {plugin!r}: the arguments of hook {hook.name!r} cannot be read: {error}",
            plugin=plugin,
            hook=hook.name,
            hint="write it as a plain method",
        ) from error
    unknown = [
        p.name
        for p in parameters
        if p.kind in (*_NAMED, inspect.Parameter.KEYWORD_ONLY)
        and p.default is inspect.Parameter.empty
        and p.name not in hook.args
    ]
    leading = _positional_count(hook, parameters, unknown, plugin) if unknown else 0
    passed = _call_arguments(hook, parameters, leading, plugin)
    if passed == list(hook.args) and inspect.ismethod(implementation) and not unknown:
        # It takes exactly what the hook gives: an adapter would only be one more call.
        return Binding(implementation, by_position=False)
    make = _adapter_factory(hook.name, hook.args, ", ".join(passed), wrapper)
    return Binding(make(implementation), by_position=bool(unknown))


def _call_arguments(
    hook: Hook, parameters: list[inspect.Parameter], leading: int, plugin: str
) -> list[str]:
    """The arguments of the call, as source text; the first ``leading`` go by position."""
    passed = list(hook.args[:leading])
    taken = {*passed, *(p.name for p in parameters if p.kind not in _VARIADIC)}
    positional = True
    for parameter in parameters:
        if leading and parameter.kind in _NAMED and parameter.default is inspect.Parameter.empty:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if positional and passed == list(hook.args[: len(passed)]):
                passed, taken = list(hook.args), {*taken, *hook.args}
            positional = False
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            passed += [f"{arg}={arg}" for arg in hook.args if arg not in taken]
        elif parameter.name not in hook.args or (
            parameter.kind in _NAMED and parameter.name in passed
        ):
            # It keeps its default, so those behind it can only be reached by name.
            positional = False
        elif positional and not leading and parameter.kind in _NAMED:
            passed.append(parameter.name)
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise _binding_error(hook, [parameter.name], plugin, "cannot be given")
        else:
            passed.append(f"{parameter.name}={parameter.name}")
    return passed


def _positional_count(
    hook: Hook, parameters: list[inspect.Parameter], unknown: list[str], plugin: str
) -> int:
    """How many of the hook's arguments go by position, because names are unknown."""
    required = [p for p in parameters if p.kind in _NAMED and p.default is inspect.Parameter.empty]
    misplaced = any(
        p.name in hook.args and hook.args.index(p.name) != place for place, p in enumerate(required)
    )
    stray = [
        p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name in unknown
    ]
    if stray or misplaced or len(required) > len(hook.args):
        raise _binding_error(hook, stray or unknown, plugin, "does not have")
    return len(required)


def _binding_error(hook: Hook, names: list[str], plugin: str, why: str) -> BindingError:
    return BindingError(
        f"plugin {plugin!r}: {hook.role} hook {hook.name!r} asks for {_quote_names(names)}, "
        f"which it {why}",
        plugin=plugin,
        hook=hook.name,
        hint=f"it may take any of: {', '.join(hook.args)}"
        if hook.args
        else "it takes no arguments",
    )


def _quote_names(names: list[str]) -> str:
    return ("argument " if len(names) == 1 else "arguments ") + ", ".join(map(repr, names))


@cache
def _adapter_factory(
    name: str, args: tuple[str, ...], passed: str, wrapper: bool
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    # Source text, as dataclasses do it: a closure over argument positions costs several times as
    # much a call, and pluggy reads argument names off the code object. Every identifier in the text
    # is an argument name of our own specification.
    call = f"implementation({passed})"
    body = f"return (yield from {call})" if wrapper else f"return {call}"
    source = (
        f"def make(implementation):\n    def {name}({', '.join(args)}):\n        {body}\n"
        f"    return {name}\n"
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    make: Callable[[Callable[..., Any]], Callable[..., Any]] = namespace["make"]
    return make
