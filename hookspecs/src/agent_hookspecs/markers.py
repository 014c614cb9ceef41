"""The two markers of the contract: `hookspec` declares a hook, `hookimpl` tunes an implementation.

`hookspec` wraps pluggy's marker and stores what pluggy does not know of a hook: how the results of
several implementations combine, and which shape a result has. Nothing here calls a hook or knows a
role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import cleandoc, signature
from typing import Any, Literal, TypeVar

import pluggy

from agent_hookspecs.values import dataclass

__all__ = ["hookimpl"]

PROJECT = "agent_host"

Mode = Literal["single", "first", "collect", "fold"]
#: What a part of a result must be: a dict, a list, a string, a list of dicts, of strings or of
#: both, or True, False or None.
PartKind = Literal["dict", "list", "text", "dicts", "texts", "contents", "flag"]

#: The parts that results are made of. A wrong kind would only fail in somebody else's code.
RESULT_PARTS: Mapping[str, PartKind] = {
    "state": "dict",
    "request": "dict",
    "action_result": "dict",
    "models": "list",
    "tools": "list",
    # A history may be long, so its items are not looked at.
    "native_messages": "list",
    # Those of one conversion are as many as it was given.
    "converted_messages": "dicts",
    "messages": "dicts",
    "partials": "dicts",
    "finals": "dicts",
    "partial_messages": "dicts",
    "final_messages": "dicts",
    "elements": "list",
    "changes": "dicts",
    "prompts": "dicts",
    "changed": "flag",
    "warnings": "texts",
    "tags": "texts",
    "formats": "texts",
    "enabled": "flag",
    "instructions": "text",
    "secret": "text",
    "prices": "dict",
    "headers": "dict",
    "context_parts": "contents",
}

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = f"{PROJECT}_combining"
_MODES = {
    "single": "single: goes to its one owner.",
    "first": "first: asked in order until one returns something other than None.",
    "collect": "collect: every implementation is called; the results form a list.",
}

_pluggy_hookspec = pluggy.HookspecMarker(PROJECT)
#: Marks a method as a hook, to say something of it, such as ``wrapper`` or ``tryfirst``.
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Combining:
    """How the results of a hook's implementations become one result, and what each must be.

    ``over`` names, for a fold, the arguments that each implementation's result replaces for the
    next one. ``result`` names the parts of a result, one for a plain value and several for a tuple;
    nothing is asked of a result without parts. ``optional`` says that None is an answer, too.
    ``wrappers`` says whether ``@hookimpl(wrapper=True)`` is allowed: only on hooks that run once a
    request. ``may_be_async`` says whether an implementation may be a coroutine function.
    ``per_chunk`` marks hooks that run for every chunk or event, which the host calls directly.
    ``skips`` says that the hook goes on, with a warning, without an implementation that fails.
    ``waits`` says that it may take its time although it is not async: the host calls it in a
    thread where others would have to wait for it.
    """

    mode: Mode
    over: tuple[str, ...] = ()
    wrappers: bool = False
    may_be_async: bool = False
    result: tuple[str, ...] = ()
    optional: bool = False
    per_chunk: bool = False
    skips: bool = False
    waits: bool = False

    @property
    def may_wait(self) -> bool:
        """Whether it may take its time, as everything may that may be async."""
        return self.waits or self.may_be_async

    def describe(self) -> str:
        if self.mode == "fold":
            text = f"fold: each receives the {' and '.join(self.over)} the previous one returned."
        else:
            text = _MODES[self.mode]
        if self.wrappers:
            text += " Wrappers allowed."
        if self.may_be_async:
            text += " May be async."
        return text


def hookspec(
    mode: Mode,
    *,
    over: tuple[str, ...] = (),
    result: tuple[str, ...] = (),
    optional: bool = False,
    wrappers: bool = False,
    may_be_async: bool = False,
    per_chunk: bool = False,
    skips: bool = False,
    waits: bool = False,
) -> Callable[[F], F]:
    """Declare a hook and its combining; the mode is added to the hook's docstring.

    A fold gives back what it runs over, or what ``result`` calls it. One over a single argument may
    give None, which leaves that as it was; of a tuple None is a forgotten ``return``, and is
    refused.
    """
    if (mode == "fold") != bool(over):
        raise ValueError("a fold, and only a fold, names the arguments it runs over")
    if mode == "fold":
        result, optional = result or over, len(over) == 1
    unknown_parts = [part for part in result if part not in RESULT_PARTS]
    if unknown_parts:
        raise ValueError(f"there is no part of a result called {', '.join(unknown_parts)}")
    combining = Combining(
        mode, over, wrappers, may_be_async, result, optional, per_chunk, skips, waits
    )

    def mark(function: F) -> F:
        unknown = set(over) - set(signature(function).parameters)
        if unknown:
            raise ValueError(f"{function.__name__} has no argument {', '.join(sorted(unknown))}")
        if function.__doc__:
            # Cleaned first, because compilers differ in whether they strip the indent.
            function.__doc__ = f"{cleandoc(function.__doc__)}\n\nMode: {combining.describe()}\n"
        setattr(function, _ATTRIBUTE, combining)
        # A fold has one implementation for pluggy: the host's, which runs those of the plugins.
        return _pluggy_hookspec(firstresult=mode != "collect")(function)

    return mark


def combining_of(function: object) -> Combining | None:
    """The combining that `hookspec` stored on a function, or None if it declares no hook."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Combining) else None
