"""Calls the implementations of one hook in order and makes one result of theirs.

`combine` compiles; what it returns is a plain callable that takes the hook's arguments by position.
Order is decided elsewhere: implementations are called as they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent_hookspecs.authoring.partial import plain
from agent_hookspecs.errors import AgentError, ContractError, HookError, HookResultError
from agent_hookspecs.logs import redact
from agent_hookspecs.specs import Hook
from agent_hookspecs.values import dataclass

__all__ = ["Implementation", "Watch", "combine", "told"]

Call = Callable[..., Any]

#: What hooks hand on to each other; a wrong kind would only fail in somebody else's code.
_KINDS: Mapping[str, type] = {
    "state": dict,
    "models": list,
    "messages": list,
    "native_messages": list,
    "partial_messages": list,
    "final_messages": list,
}
#: Of these, which are short, every item is looked at as well; a history may be long.
_OF_DICTS = frozenset({"messages", "final_messages"})


@dataclass(frozen=True, slots=True)
class Implementation:
    """A hook of one plugin, its arguments bound: ``call`` takes them all by position."""

    plugin: str
    hook: str
    call: Call
    wrapper: bool = False
    by_position: bool = False

    def failed(self, error: Exception) -> AgentError:
        """What to raise for an exception of the plugin's: its own, if it is of our tree."""
        if isinstance(error, AgentError):
            return error
        return HookError(
            f"plugin {self.plugin!r}: hook {self.hook!r} raised {told(error)}",
            plugin=self.plugin,
            hook=self.hook,
        )


def told(error: BaseException) -> str:
    """A foreign exception in words, without secrets; its ``__str__`` may fail as well."""
    try:
        text = redact(str(error))
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


#: Told of what is folded whenever a plugin has had its turn.
Watch = Callable[..., None]
#: Told of what failed; it raises to end the call, or returns to go on without that result.
Tolerate = Callable[[Implementation, AgentError], None]


def combine(
    hook: Hook,
    implementations: Sequence[Implementation],
    tolerate: Tolerate | None = None,
    watch: Watch | None = None,
) -> Call:
    """One callable for all implementations of a hook, as the hook's mode says.

    An exception ends the call as a `HookError` that names plugin and hook, with the plugin's own as
    its cause; errors of the contract's tree pass as they are. Wrappers enclose the whole, the first
    one outermost. With no implementation a fold returns what it was given, ``collect`` an empty
    list, the others None. With ``tolerate``, a fold or ``collect`` may go on without a plugin that
    failed, from the values before it, which the plugin then got only copies of; a wrapper that
    fails by itself is passed over. ``watch`` is for folds.
    """
    own = [i for i in implementations if not i.wrapper]
    call: Call
    if hook.combining.mode == "fold":
        call = _fold(hook, own, tolerate, watch)
    elif hook.combining.mode == "collect":
        call = _collect(own, tolerate)
    else:
        if hook.combining.mode == "single" and len(own) > 1:
            raise ContractError(
                f"hook {hook.name!r} has one owner, but {', '.join(i.plugin for i in own)} "
                "implement it",
                hook=hook.name,
            )
        call = _first(own)
    for wrapper in reversed([i for i in implementations if i.wrapper]):
        call = _wrap(wrapper, call, tolerate)
    return call


def _first(implementations: Sequence[Implementation]) -> Call:
    def first(*args: Any) -> Any:
        for implementation in implementations:
            try:
                result = implementation.call(*args)
            except Exception as error:
                _failed(implementation, error, None)
            else:
                if result is not None:
                    return result
        return None

    return first


def _collect(implementations: Sequence[Implementation], tolerate: Tolerate | None) -> Call:
    def collect(*args: Any) -> list[Any]:
        results = []
        for implementation in implementations:
            try:
                results.append(implementation.call(*args))
            except Exception as error:
                _failed(implementation, error, tolerate)
        return results

    return collect


def _fold(
    hook: Hook,
    implementations: Sequence[Implementation],
    tolerate: Tolerate | None,
    watch: Watch | None,
) -> Call:
    over = hook.combining.over
    places = [hook.args.index(name) for name in over]
    kinds = [_KINDS.get(name, object) for name in over]
    of_dicts = [place for place, name in enumerate(over) if name in _OF_DICTS]

    def fold(*args: Any) -> Any:
        values = list(args)
        for implementation in implementations:
            given = values if tolerate is None else _copied(values, places)
            try:
                result = implementation.call(*given)
                if result is not None:
                    news = result if len(places) > 1 else (result,)
                    if (
                        not isinstance(news, tuple)
                        or len(news) != len(places)
                        or not all(map(isinstance, news, kinds))
                    ):
                        raise _unfoldable(implementation, over, news)
                    for place in of_dicts:
                        _check_items(implementation, over[place], news[place])
                    for place, value in zip(places, news, strict=True):
                        values[place] = value
            except Exception as error:
                if watch is not None:
                    # It may have changed something before it failed.
                    watch(*(given[place] for place in places))
                _failed(implementation, error, tolerate)
            else:
                if watch is not None:
                    watch(*(values[place] for place in places))
        return tuple([values[p] for p in places]) if len(places) > 1 else values[places[0]]

    return fold


def _copied(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """The arguments with copies of what is folded, so that a failure leaves no half-made change."""
    return [plain(value) if place in places else value for place, value in enumerate(values)]


def _unfoldable(
    implementation: Implementation, over: Sequence[str], given: object
) -> HookResultError:
    """Says which argument a fold's result cannot take the place of."""
    if not isinstance(given, tuple) or len(given) != len(over):
        wanted = f"a tuple of ({', '.join(over)})"
        return _misshapen(implementation, wanted, _shape(given))
    name, kind, value = next(
        (name, kind, value)
        for name, value in zip(over, given, strict=True)
        if not isinstance(value, kind := _KINDS.get(name, object))
    )
    return _misshapen(implementation, f"a {kind.__name__} as {name}", _shape(value))


def _check_items(implementation: Implementation, name: str, items: Sequence[object]) -> None:
    for item in items:
        if not isinstance(item, Mapping):
            raise _misshapen(implementation, f"dicts as {name}", _shape(item))


def _misshapen(implementation: Implementation, wanted: str, given: str) -> HookResultError:
    return HookResultError(
        f"plugin {implementation.plugin!r}: hook {implementation.hook!r} must return {wanted}, "
        f"not {given}",
        plugin=implementation.plugin,
        hook=implementation.hook,
    )


def _failed(implementation: Implementation, error: Exception, tolerate: Tolerate | None) -> None:
    failure = implementation.failed(error)
    if failure is not error:
        failure.__cause__ = error
    if tolerate is None:
        raise failure
    tolerate(implementation, failure)


def _shape(result: object) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {len(result)}"
    return f"a value of type {type(result).__name__}"


def _wrap(wrapper: Implementation, inner: Call, tolerate: Tolerate | None) -> Call:
    def wrapped(*args: Any) -> Any:
        try:
            around = _entered(wrapper, args)
        except AgentError as error:
            if tolerate is None:
                raise
            tolerate(wrapper, error)
            return inner(*args)
        try:
            result = inner(*args)
        except Exception as failure:
            return _finish(wrapper, around, partial(around.throw, failure), failure)
        try:
            return _finish(wrapper, around, partial(around.send, result), None)
        except AgentError as error:
            if tolerate is None:
                raise
            tolerate(wrapper, error)
            return result

    return wrapped


def _entered(wrapper: Implementation, args: Sequence[Any]) -> Any:
    """The wrapper's generator, run up to its yield."""
    around = wrapper.call(*args)
    try:
        next(around)
    except StopIteration:
        raise _misused(wrapper, "did not yield") from None
    except Exception as error:
        failure = wrapper.failed(error)
        raise failure from (None if failure is error else error)
    return around


def _finish(
    wrapper: Implementation, around: Any, resume: Callable[[], Any], failure: Exception | None
) -> Any:
    try:
        resume()
    except StopIteration as stop:
        return stop.value
    except Exception as error:
        if error is failure:
            raise
        raised = wrapper.failed(error)
        raise raised from (None if raised is error else error)
    around.close()
    raise _misused(wrapper, "yielded twice")


def _misused(wrapper: Implementation, what: str) -> HookError:
    return HookError(
        f"plugin {wrapper.plugin!r}: the wrapper of hook {wrapper.hook!r} {what}",
        plugin=wrapper.plugin,
        hook=wrapper.hook,
        hint="a wrapper yields once and returns the result",
    )
