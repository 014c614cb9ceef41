"""The two markers of the contract: `hookspec` declares a hook, `hookimpl` tunes an implementation.

`hookspec` wraps pluggy's marker and stores how the results of several implementations combine.
Nothing here calls a hook or knows a role.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, Literal, TypeVar

import pluggy

from agent_hookspecs.values import dataclass

__all__ = ["PROJECT", "Combining", "Mode", "combining_of", "hookimpl", "hookspec"]

PROJECT = "agent_host"

Mode = Literal["single", "first", "collect", "fold"]

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = f"{PROJECT}_combining"
_MODES = {
    "single": "single: goes to its one owner.",
    "first": "first: asked in order until one returns something other than None.",
    "collect": "collect: every implementation is called; the results form a list.",
}

_pluggy_hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Combining:
    """How the results of a hook's implementations become one result.

    ``over`` names, for a fold, the arguments that each implementation's result replaces for the
    next one. ``wrappers`` says whether ``@hookimpl(wrapper=True)`` is allowed: only on hooks that
    run once a request. ``may_be_async`` says whether an implementation may be a coroutine function.
    """

    mode: Mode
    over: tuple[str, ...] = ()
    wrappers: bool = False
    may_be_async: bool = False

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
    mode: Mode, *, over: tuple[str, ...] = (), wrappers: bool = False, may_be_async: bool = False
) -> Callable[[F], F]:
    """Declare a hook and its combining mode; the mode is added to the hook's docstring."""
    if (mode == "fold") != bool(over):
        raise ValueError("a fold, and only a fold, names the arguments it runs over")
    combining = Combining(mode, over, wrappers, may_be_async)

    def mark(function: F) -> F:
        unknown = set(over) - set(signature(function).parameters)
        if unknown:
            raise ValueError(f"{function.__name__} has no argument {', '.join(sorted(unknown))}")
        if function.__doc__:
            # Cleaned first, because compilers differ in whether they strip the indent.
            function.__doc__ = f"{cleandoc(function.__doc__)}\n\nMode: {combining.describe()}\n"
        setattr(function, _ATTRIBUTE, combining)
        return _pluggy_hookspec(firstresult=mode in ("single", "first"))(function)

    return mark


def combining_of(function: object) -> Combining | None:
    """The combining that `hookspec` stored on a function, or None if it declares no hook."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Combining) else None
