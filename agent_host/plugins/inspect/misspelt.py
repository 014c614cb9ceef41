"""Finds methods that were probably meant to be hooks: pluggy calls only what it knows by name.

A method is suspicious if its name is near that of a hook of its role, or if it takes what only a
hook is given. What is named with an underscore is the plugin's own, and what the contract's classes
bring along is the contract's. Nothing here calls the plugin.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType

from agent_hookspecs.specs import Hook, hooks_of
from agent_host.plugins.activate import LoadedPlugin
from agent_host.plugins.implementations import public_attributes

__all__ = ["misspelt_hooks"]

_CONTRACT = "agent_hookspecs"
#: Below this length one letter is enough to make another word, so that arguments must fit as well.
_LONG_NAME = 8
#: Arguments that nobody but the host gives.
_TELLING = frozenset(
    {"native_messages", "native_chunk", "partial_messages", "final_messages", "tool_name"}
)


def misspelt_hooks(plugin: LoadedPlugin) -> Iterator[str]:
    """Each public method that is no hook but looks like one, in words, with what to do."""
    hooks = {**hooks_of("host"), **hooks_of(plugin.role)}
    free = {name: hook for name, hook in hooks.items() if name not in plugin.implementations}
    for name, method in _own_methods(plugin.instance):
        if name in hooks:
            if isinstance(plugin.instance, ModuleType):
                yield (
                    f"{name!r} has the name of a hook, but of a module only functions marked with "
                    "hookimpl are hooks; mark it, or begin its name with an underscore"
                )
            continue
        arguments = _arguments(method)
        near = _nearest_hook(name, arguments, free)
        if near:
            yield (
                f"{name!r} is no hook of role {plugin.role}, so it is never called; did you mean "
                f"{near!r}? If it is your own, begin its name with an underscore"
            )
            continue
        like = _alike_hook(name, arguments, free)
        if like:
            yield (
                f"{name!r} takes {', '.join(arguments)} like the {plugin.role} hook {like!r}, but "
                "is never called; if it is your own, begin its name with an underscore"
            )


def _own_methods(plugin: object) -> Iterator[tuple[str, object]]:
    """The public methods that the plugin's author has written and not marked as hooks."""
    for name, marks in public_attributes(plugin):
        if marks is not None or _comes_from_contract(plugin, name):
            continue
        value = inspect.getattr_static(plugin, name)
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if not inspect.isfunction(value):
            continue
        if not isinstance(plugin, ModuleType) or value.__module__ == plugin.__name__:
            yield name, value


def _comes_from_contract(plugin: object, name: str) -> bool:
    owners = (owner for owner in type(plugin).__mro__ if name in vars(owner))
    return any(owner.__module__.partition(".")[0] == _CONTRACT for owner in owners)


def _arguments(function: object) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    return tuple(name for name in parameters if name not in ("self", "cls"))


def _nearest_hook(name: str, arguments: tuple[str, ...], hooks: Mapping[str, Hook]) -> str | None:
    plain = _plain_name(name)
    words = sorted(name.lower().split("_"))
    found: list[tuple[int, str]] = []
    for hook in hooks.values():
        wanted = _plain_name(hook.name)
        is_long = len(wanted) >= _LONG_NAME
        far = _distance(plain, wanted, 2 if is_long else 1)
        if words == sorted(hook.name.split("_")):
            far = 0
        if far is not None and (is_long or set(arguments) <= set(hook.args)):
            found.append((far, hook.name))
    return min(found)[1] if found else None


def _alike_hook(name: str, arguments: tuple[str, ...], hooks: Mapping[str, Hook]) -> str | None:
    if len(arguments) < 2 or not _TELLING.intersection(arguments):
        return None
    alike = [
        # The one that gives the least besides is the likeliest, then the one that sounds like it.
        (len(hook.args), _distance(name, hook.name, len(name) + len(hook.name)), hook.name)
        for hook in hooks.values()
        if set(arguments) <= set(hook.args)
    ]
    return min(alike)[2] if alike else None


def _plain_name(name: str) -> str:
    """A name without what writers of other languages do differently."""
    return name.replace("_", "").lower()


def _distance(one: str, two: str, limit: int) -> int | None:
    """How many letters are put in, left out, changed or swapped; None if more than ``limit``."""
    if abs(len(one) - len(two)) > limit:
        return None
    before: list[int] = []
    row = [*range(len(two) + 1)]
    for place, letter in enumerate(one, 1):
        earlier, before, row = before, row, [place]
        for column, other in enumerate(two, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != other))
            swapped = place > 1 and column > 1 and letter == two[column - 2]
            if swapped and one[place - 2] == other:
                cost = min(cost, earlier[column - 2] + 1)
            row.append(cost)
    return row[-1] if row[-1] <= limit else None
