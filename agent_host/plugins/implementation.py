"""One hook of one plugin, and the one seam where plugin code is called.

Everything that a plugin raises or returns in the wrong shape becomes an error here that names
plugin and hook. Nothing here knows in which order implementations run, or what their results are
for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from functools import cache
from itertools import islice
from time import monotonic
from types import CoroutineType
from typing import Any, NoReturn, cast

from agent_hookspecs.errors import AgentError, HookError, HookResultError
from agent_hookspecs.logs import Logger
from agent_hookspecs.markers import RESULT_PARTS
from agent_hookspecs.specs import Hook
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import TimeUpError
from agent_host.plugins.hook_time import NOTICED_SECONDS, note_time
from agent_host.redaction import describe_error

__all__ = [
    "Fail",
    "Implementation",
    "check_result",
    "check_state",
    "describe_failure",
    "guard_implementation",
    "log_failure",
]


@dataclass(frozen=True, slots=True)
class Implementation:
    """A hook of one plugin, its arguments bound: ``call`` takes them all by position.

    ``by_position`` says that its own names for the arguments were not used. ``first`` and ``last``
    are pluggy's ``tryfirst`` and ``trylast``, which break ties. Of one that ``starts_coroutine``
    nothing runs before that is awaited.
    """

    plugin: str
    hook: Hook
    call: Callable[..., Any]
    wrapper: bool = False
    by_position: bool = False
    first: bool = False
    last: bool = False
    starts_coroutine: bool = False

    def failure(self, error: BaseException) -> AgentError:
        """What to raise for an exception of the plugin's: its own, if it is of our tree."""
        if isinstance(error, AgentError):
            return error
        what, hint = f"raised {describe_error(error)}", ""
        if isinstance(error, TimeUpError):
            what = "took longer than the host waits for it"
            hint = "set max_hook_seconds higher if that is to be expected"
        failure = HookError(
            f"plugin {self.plugin!r}: hook {self.hook.name!r} {what}",
            plugin=self.plugin,
            hook=self.hook.name,
            hint=hint,
        )
        failure.__cause__ = error
        return failure

    def raise_failure(self, error: BaseException) -> NoReturn:
        """Raise what stands for an exception of the plugin's."""
        failure = self.failure(error)
        raise failure from failure.__cause__

    def wrong_result(self, wanted: str, result: object) -> HookResultError:
        """The error for a result that is not what the hook's specification says."""
        # Not by isinstance, which asks the result itself.
        is_tuple = issubclass(type(result), tuple)
        given = f"a tuple of {len(cast(Any, result))}" if is_tuple else type(result).__name__
        return HookResultError(
            f"plugin {self.plugin!r}: hook {self.hook.name!r} must return {wanted}, not {given}",
            plugin=self.plugin,
            hook=self.hook.name,
            hint="end it with a return" if result is None else "",
        )


def describe_failure(error: BaseException) -> str:
    """What a plugin has raised, in words, and not our own words for it."""
    raised = error.__cause__ if type(error) is HookError else None
    return describe_error(raised or error)


def log_failure(log: Logger, event: str, error: BaseException, **values: Any) -> str:
    """Log what a plugin has raised, which ends nothing; gives it in words."""
    described = describe_failure(error)
    log.failure(event, error, **values, error=described)
    return described


def check_result(implementation: Implementation, result: Any) -> Any:
    """``result`` if it has the shape that its hook declares, else a `HookResultError`."""
    combining = implementation.hook.combining
    if type(result) is CoroutineType and not combining.may_be_async:
        # Nobody awaits it.
        result.close()
        raise implementation.wrong_result("what it is to say, and not be async", result)
    names = combining.result
    # None leaves what is folded as it was, but what a wrapper returns is the result itself.
    if (
        result is None
        and combining.optional
        and not (implementation.wrapper and combining.mode == "fold")
    ):
        return result
    if len(names) == 1:
        if not _FITS[names[0]](result):
            # What is folded goes on to the next plugin under its name.
            raise _wrong_part(implementation, names[0], result, named=combining.mode == "fold")
    elif names:
        if not isinstance(result, tuple) or len(result) != len(names):
            raise implementation.wrong_result(f"a tuple of ({', '.join(names)})", result)
        for name, part in zip(names, result, strict=True):
            if not _FITS[name](part):
                raise _wrong_part(implementation, name, part, named=True)
    return result


#: What is looked at of one result, breadth first, so that no result takes long.
_MAX_LOOKED_AT = 1000
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def _check_closely(implementation: Implementation, result: Any) -> Any:
    """As `check_result`, and that what is in it can be looked at.

    What the host reads by itself must not raise in its own code, where nobody would be named.
    """
    waiting = deque([check_result(implementation, result)])
    for _ in range(_MAX_LOOKED_AT):
        if not waiting:
            break
        value = waiting.popleft()
        kind = type(value)
        if kind is dict:
            waiting.extend(islice(value.values(), _MAX_LOOKED_AT))
        elif kind is list or kind is tuple:
            waiting.extend(value[:_MAX_LOOKED_AT])
        elif kind not in _PLAIN:
            try:
                # It asks the value for its class, which may raise whatever it likes.
                isinstance(value, Mapping)
            except Exception as error:
                raise implementation.wrong_result("what can be looked at", value) from error
    return result


def _wrong_part(
    implementation: Implementation, name: str, part: object, *, named: bool
) -> HookResultError:
    if RESULT_PARTS[name] == "dicts" and isinstance(part, list):
        item = next(item for item in part if not _is_dict(item))
        return implementation.wrong_result(f"dicts as {name}", item)
    wanted = _KINDS[RESULT_PARTS[name]][0]
    return implementation.wrong_result(f"{wanted} as {name}" if named else wanted, part)


def _are_texts(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(
        isinstance(item, str) for item in value
    )


def _is_dict(value: object) -> bool:
    # A dict is told from other mappings at once, and nearly all are.
    return isinstance(value, (dict, Mapping))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _are_dicts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_dict, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_contents(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(item) or _is_dict(item) for item in value)


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "dict": ("a dict", _is_dict),
    "list": ("a list", _is_list),
    "dicts": ("a list", _are_dicts),
    "text": ("a string", _is_text),
    "texts": ("a list of strings", _are_texts),
    "contents": ("a list of strings and parts", _are_contents),
    "flag": ("True, False or None", lambda value: value is None or isinstance(value, bool)),
}

_FITS = {name: _KINDS[kind][1] for name, kind in RESULT_PARTS.items()}

#: Told of an implementation that has failed: it raises the error, or gives what goes on instead.
Fail = Callable[[Implementation, BaseException], Any]


def guard_implementation(implementation: Implementation, fail: Fail) -> Callable[..., Any]:
    """The function that pluggy calls: it checks the result, and ``fail`` is told what goes wrong.

    What an awaitable comes to is checked by whoever awaits it.
    """
    hook = implementation.hook
    # A tool's state is its own, and may be anything.
    shares_state = "state" in hook.args and hook.role != "tool"
    combining = hook.combining
    # What goes on to the next if the plugin gives None; it may have been spoilt in place.
    left = combining.over[0] if combining.mode == "fold" and combining.optional else ""
    make = _guard_factory(hook.name, hook.args, implementation.wrapper, shares_state, left)
    finish = check_result
    if combining.may_be_async:
        finish = _leave_result
    elif _is_read_by_host(hook):
        finish = _check_closely
    guard: Callable[..., Any] = make(
        implementation, fail, _run_wrapper if implementation.wrapper else finish
    )
    return guard


def _is_read_by_host(hook: Hook) -> bool:
    """Whether the host itself looks into what a hook gives, and that is short.

    Chunks and histories are looked at where they are used; a state is its plugins' own affair.
    """
    parts = hook.combining.result
    is_short = not parts or parts in (("models",), ("elements",), ("headers",))
    return is_short and not hook.combining.per_chunk and hook.name != "init"


def _leave_result(implementation: Implementation, result: Any) -> Any:
    return result


@cache
def _guard_factory(
    name: str, args: tuple[str, ...], wrapper: bool, shares_state: bool, left: str
) -> Callable[..., Any]:
    # Source text, as dataclasses do it, because pluggy reads the names of arguments off the code.
    # Every identifier in the text is an argument name of our own specification.
    given = ", ".join(args)
    checked = f"{left} if result is None else result" if left else "result"
    if wrapper:
        body = f"        return (yield from finish(implementation, fail, call({given})))\n"
    else:
        body = (
            "        start = monotonic()\n"
            + ("        has_config = holds_config(state)\n" if shares_state else "")
            + "        try:\n"
            f"            result = call({given})\n"
            f"            finish(implementation, {checked})\n"
            + (
                "            if has_config:\n                check_state(implementation, state)\n"
                if shares_state
                else ""
            )
            + "            return result\n"
            # A plugin does not end the process that it is a guest in.
            "        except (Exception, SystemExit) as error:\n"
            "            return fail(implementation, error)\n"
            "        finally:\n"
            "            if monotonic() - start > noticed:\n"
            "                note(implementation, start)\n"
        )
    source = (
        "def make(implementation, fail, finish):\n"
        "    call = implementation.call\n"
        f"    def {name}({given}):\n{body}"
        f"    return {name}\n"
    )
    namespace: dict[str, Any] = {
        "monotonic": monotonic,
        "noticed": NOTICED_SECONDS,
        "note": _note_time,
        "holds_config": _holds_config,
        "check_state": check_state,
    }
    exec(source, namespace)
    make: Callable[..., Any] = namespace["make"]
    return make


def _holds_config(state: object) -> bool:
    return isinstance(state, dict) and isinstance(state.get("config"), dict)


def check_state(implementation: Implementation, state: object) -> None:
    """Refuse what a plugin has done to the shared state, before others are blamed for it."""
    if not _holds_config(state):
        raise HookResultError(
            f"plugin {implementation.plugin!r}: hook {implementation.hook.name!r} has taken the "
            "config out of the state that it was given",
            plugin=implementation.plugin,
            hook=implementation.hook.name,
            hint="return a new state in place of emptying the one that others use",
        )


def _note_time(implementation: Implementation, start: float) -> None:
    if not implementation.hook.combining.may_wait:
        note_time(implementation.plugin, implementation.hook.name, start)


def _run_wrapper(
    implementation: Implementation, fail: Fail, around: Generator[None, Any, Any]
) -> Generator[None, Any, Any]:
    """Run the generator of a wrapper; what it raises by itself names it.

    If ``fail`` does not raise, the wrapper is passed over and the result stays what it was.
    """
    try:
        next(around)
    except StopIteration:
        fail(implementation, _wrapper_misuse(implementation, "did not yield"))
        return (yield)
    except (Exception, SystemExit) as error:
        fail(implementation, error)
        return (yield)
    inner: Exception | None = None
    result: Any = None
    try:
        result = yield
    except Exception as error:
        inner = error
    try:
        if inner is None:
            around.send(result)
        else:
            around.throw(inner)
    except StopIteration as stop:
        try:
            return check_result(implementation, stop.value)
        except HookResultError as error:
            fail(implementation, error)
    except (Exception, SystemExit) as error:
        if error is inner:
            raise
        fail(implementation, error)
    else:
        around.close()
        fail(implementation, _wrapper_misuse(implementation, "yielded twice"))
    if inner is not None:
        raise inner
    return result


def _wrapper_misuse(implementation: Implementation, what: str) -> HookError:
    return HookError(
        f"plugin {implementation.plugin!r}: the wrapper of hook {implementation.hook.name!r} "
        f"{what}",
        plugin=implementation.plugin,
        hook=implementation.hook.name,
        hint="a wrapper yields once and returns the result",
    )
