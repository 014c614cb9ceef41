"""Session-scoped actions: found in the active stack, run by name or at a lifecycle trigger.

An action works on the session's native history and gives back a replacement, a metadata patch, or
an error. A failed action leaves the session as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import (
    ConfigError,
    HookResultError,
    SessionError,
    UnknownPluginError,
)
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Action, ActionResult
from agent_hookspecs.roles import PluginRole
from agent_hookspecs.values import dataclass
from agent_host.checking import suggest_name
from agent_host.drivers.effects import Call, Steps
from agent_host.plugins.implementation import Implementation, check_result, log_failure
from agent_host.sessions.natives import retain_natives
from agent_host.turn.context import action_context
from agent_host.turn.history import apply_excerpt, find_history

if TYPE_CHECKING:
    from agent_host.sessions.session import Session
    from agent_host.turn.turn import Turn

__all__ = ["TRIGGERS", "Offer", "execute_action", "offered_actions", "run_trigger"]

log = get_logger(__name__)

TRIGGERS = (
    "session_save_prepare",
    "session_load",
    "request_start",
    "request_end",
    "context_refused",
    "session_close",
)

_ROLES: tuple[PluginRole, ...] = ("provider", "extension", "feature")


@dataclass(frozen=True, slots=True)
class Offer:
    """An action, who offers it, and what runs it."""

    role: PluginRole
    plugin: str
    action: Action
    execute: Implementation


def offered_actions(turn: Turn) -> list[dict[str, Any]]:
    """Every action on offer, with the plugin that offers it."""
    return [
        {**offer.action, "plugin": offer.plugin, "role": offer.role} for offer in _find_offers(turn)
    ]


def _find_offers(turn: Turn) -> list[Offer]:
    """What is on offer in an attempt, for which plugins are asked once."""
    if turn.offers is None:
        turn.offers = [*_ask_offers(turn)]
    return turn.offers


def _ask_offers(turn: Turn) -> Iterator[Offer]:
    for role in _ROLES:
        manager = turn.managers.role(role)
        for asked in manager.implementations("get_actions"):
            execute = manager.implementation(asked.plugin, "execute_action")
            try:
                actions = [*(manager.ask(asked.plugin, "get_actions", state=turn.state) or ())]
            except Exception as error:
                log_failure(log, "actions_unavailable", error, plugin=asked.plugin)
                continue
            for action in actions:
                if execute is not None and isinstance(action, dict) and action.get("id"):
                    yield Offer(role, asked.plugin, cast(Action, action), execute)


def execute_action(
    turn: Turn, action_id: str, params: Mapping[str, Any]
) -> Steps[tuple[Session, ActionResult]]:
    """Run the action of that id; the session it leaves behind, and what it returned."""
    offers = _find_offers(turn)
    for offer in offers:
        if action_id == offer.action["id"]:
            _check_inputs(offer, params)
            return (yield from _execute(turn, turn.start, offer, params, {}))
    raise UnknownPluginError(
        f"no active plugin offers the action {action_id!r}",
        hint=suggest_name(action_id, [offer.action["id"] for offer in offers]),
    )


def run_trigger(turn: Turn, session: Session, trigger: str, **known: Any) -> Steps[Session]:
    """Run every action that names the trigger, in order; one that fails is told and skipped.

    ``known`` are further keys of the actions' context. What an action says is told as a warning,
    and what it has used is counted.
    """
    if trigger not in TRIGGERS:
        raise ConfigError(
            f"there is no lifecycle trigger {trigger!r}",
            key="trigger",
            hint=f"use one of {', '.join(TRIGGERS)}",
        )
    if not turn.stack.has_actions:
        return session
    for offer in _find_offers(turn):
        if trigger not in _triggers(offer.action):
            continue
        action = offer.action["id"]
        failure: object = None
        try:
            keys = {"lifecycle": trigger, **known}
            session, result = yield from _execute(turn, session, offer, {}, keys)
            failure = result.get("error")
            if result.get("usage"):
                yield turn.emit([{"type": "usage", "usage": result["usage"]}])
            if result.get("message"):
                turn.warnings.add(result["message"], offer.plugin)
            if failure:
                log.warning("action_failed", plugin=offer.plugin, action=action, error=failure)
        except Exception as error:
            failure = log_failure(log, "action_failed", error, plugin=offer.plugin, action=action)
        if failure:
            turn.warnings.add(f"the action {action!r} at {trigger} failed: {failure}", offer.plugin)
    return session


def _triggers(action: Action) -> Sequence[str]:
    named = action.get("trigger") or ()
    return (named,) if isinstance(named, str) else named


def _check_inputs(offer: Offer, params: Mapping[str, Any]) -> None:
    for name, described in (offer.action.get("inputs") or {}).items():
        required = isinstance(described, Mapping) and described.get("required")
        if required and params.get(name) is None:
            raise ConfigError(
                f"action {offer.action['id']!r} of {offer.plugin!r} needs {name!r}",
                key=name,
                hint="give it in params",
            )


def _execute(
    turn: Turn,
    session: Session,
    offer: Offer,
    params: Mapping[str, Any],
    known: Mapping[str, Any],
) -> Steps[tuple[Session, ActionResult]]:
    arguments: dict[str, Any] = {
        "action_id": offer.action["id"],
        "session": session,
        "params": dict(params),
        "context": action_context(turn.stack, turn.context, session, known),
        "state": turn.state,
    }
    if offer.role != "feature":
        find_history(turn, session)
        arguments["native_messages"] = turn.natives
    ask = partial(turn.managers.role(offer.role).ask, offer.plugin, "execute_action", **arguments)
    try:
        result = yield Call(
            ask,
            starts_coroutine=offer.execute.starts_coroutine,
            patience=turn.hook_time.max_hook_seconds,
        )
        check_result(offer.execute, result)
    except Exception as error:
        offer.execute.raise_failure(error)
    given = cast(ActionResult, dict(result))
    if given.get("error"):
        return session, given
    if isinstance(result.get("session_metadata"), Mapping):
        session = session.with_metadata(result["session_metadata"])
    if offer.role != "feature" and isinstance(result.get("native_messages"), list):
        natives = result["native_messages"]
        session = retain_natives(session, natives, turn.origin, turn.retained, is_sent=False)
    if result.get("excerpt") is not None:
        session = _take_excerpt(turn, session, offer, result["excerpt"])
    return session, given


def _take_excerpt(turn: Turn, session: Session, offer: Offer, items: object) -> Session:
    if not isinstance(items, (list, tuple)):
        raise offer.execute.wrong_result("a list as its excerpt", items)
    try:
        return apply_excerpt(turn, session, items)
    except SessionError as error:
        raise HookResultError(
            f"plugin {offer.plugin!r}: the excerpt does not fit the session: {error.message}",
            plugin=offer.plugin,
            hook="execute_action",
            hint=error.hint,
        ) from error
