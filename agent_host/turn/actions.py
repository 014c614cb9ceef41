"""Session-scoped actions: found in the active stack, run by name or at a lifecycle trigger.

An action works on the session's native history and gives back a replacement, a metadata patch, or
an error. A failed action leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import ConfigError, HookResultError, UnknownPluginError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Action, ActionResult, Context, State
from agent_hookspecs.specs import SpecRole
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import Call, Steps
from agent_host.plugins.combining import Implementation, told
from agent_host.sessions.natives import retain_natives
from agent_host.turn.context import action_context
from agent_host.turn.prepare import initial_state, native_history

if TYPE_CHECKING:
    from agent_host.plugins.stack import Calls, Stack
    from agent_host.sessions.session import Session

__all__ = ["TRIGGERS", "actions_of", "execute_action", "lifecycle"]

log = get_logger(__name__)

TRIGGERS = ("session_save_prepare", "session_load", "request_start", "request_end", "session_close")

_ROLES: tuple[SpecRole, ...] = ("provider", "extension", "feature")


@dataclass(frozen=True, slots=True)
class _Offered:
    role: SpecRole
    plugin: str
    action: Action
    execute: Implementation


def actions_of(calls: Calls, state: State) -> list[dict[str, Any]]:
    """Every action on offer, with the plugin that offers it."""
    return [{**o.action, "plugin": o.plugin, "role": o.role} for o in _offered(calls, state)]


def _offered(calls: Calls, state: State) -> Iterator[_Offered]:
    for role in _ROLES:
        executors = {i.plugin: i for i in calls.implementations(role, "execute_action")}
        for hook in calls.implementations(role, "get_actions"):
            try:
                actions = [*(hook.call(state) or ())]
            except Exception as error:
                log.warning("actions_unavailable", plugin=hook.plugin, error=told(error))
                continue
            for action in actions:
                if hook.plugin in executors and isinstance(action, dict) and action.get("id"):
                    offered = cast(Action, action)
                    yield _Offered(role, hook.plugin, offered, executors[hook.plugin])


def execute_action(
    stack: Stack,
    session: Session,
    action_id: str,
    params: Mapping[str, Any],
    context: Context,
) -> Steps[tuple[Session, ActionResult]]:
    """Run the action of that id; the session it leaves behind, and what it returned."""
    calls = stack.calls
    state = initial_state(stack, calls, context["config"])
    offered = list(_offered(calls, state))
    for candidate in offered:
        if action_id == candidate.action["id"]:
            _check_inputs(candidate, params)
            layered = action_context(stack, context, session.to_dict(), None)
            return (yield from _execute(stack, calls, session, candidate, params, layered, state))
    raise UnknownPluginError(
        f"no active plugin offers the action {action_id!r}",
        hint=f"there are: {', '.join(o.action['id'] for o in offered) or 'none'}",
    )


def lifecycle(
    stack: Stack,
    calls: Calls,
    session: Session,
    trigger: str,
    context: Context,
    state: State | None = None,
) -> Steps[Session]:
    """Run every action that names the trigger, in order; one that fails is logged and skipped.

    ``state`` is that of the request under way; without one, a state is made.
    """
    if trigger not in TRIGGERS:
        raise ConfigError(
            f"there is no lifecycle trigger {trigger!r}",
            key="trigger",
            hint=f"use one of {', '.join(TRIGGERS)}",
        )
    if not stack.has_actions:
        return session
    if state is None:
        state = initial_state(stack, calls, context["config"])
    for offered in list(_offered(calls, state)):
        if trigger not in _triggers(offered.action):
            continue
        layered = action_context(stack, context, session.to_dict(), trigger)
        failure: object = None
        try:
            session, result = yield from _execute(
                stack, calls, session, offered, {}, layered, state
            )
            failure = result.get("error")
        except Exception as error:
            failure = told(error)
        if failure:
            log.warning(
                "action_failed", plugin=offered.plugin, action=offered.action["id"], error=failure
            )
    return session


def _triggers(action: Action) -> Sequence[str]:
    named = action.get("trigger") or ()
    return (named,) if isinstance(named, str) else named


def _check_inputs(offered: _Offered, params: Mapping[str, Any]) -> None:
    for name, described in (offered.action.get("inputs") or {}).items():
        required = isinstance(described, Mapping) and described.get("required")
        if required and params.get(name) is None:
            raise ConfigError(
                f"action {offered.action['id']!r} of {offered.plugin!r} needs {name!r}",
                key=name,
                hint="give it in params",
            )


def _execute(
    stack: Stack,
    calls: Calls,
    session: Session,
    offered: _Offered,
    params: Mapping[str, Any],
    context: Context,
    state: State,
) -> Steps[tuple[Session, ActionResult]]:
    history = None if offered.role == "feature" else native_history(stack, calls, session, state)
    natives = () if history is None else (history.natives,)
    arguments = (offered.action["id"], session, *natives, dict(params), context, state)
    try:
        result = yield Call(partial(offered.execute.call, *arguments))
    except Exception as error:
        failure = offered.execute.failed(error)
        raise failure from (None if failure is error else error)
    if not isinstance(result, Mapping):
        raise HookResultError(
            f"plugin {offered.plugin!r}: hook 'execute_action' must return a dict, "
            f"not {type(result).__name__}",
            plugin=offered.plugin,
            hook="execute_action",
        )
    given = cast(ActionResult, dict(result))
    if given.get("error"):
        return session, given
    if isinstance(result.get("session_metadata"), Mapping):
        session = session.with_metadata(result["session_metadata"])
    if history is not None and isinstance(result.get("native_messages"), list):
        session = retain_natives(session, result["native_messages"], history.origin, history.before)
    return session, given
