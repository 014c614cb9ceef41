"""The steps before a request is sent: state, native history, and what the plugins make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.logs import remember_secrets
from agent_host.drivers.effects import Steps
from agent_host.plugins.access import KEY_SETTINGS
from agent_host.turn.history import config_of, find_retained, make_natives
from agent_host.turn.selected_tools import select_tools
from agent_host.turn.speech import add_context, add_instructions

if TYPE_CHECKING:
    from agent_host.turn.turn import Turn

__all__ = ["begin_state", "prepare_turn"]


def begin_state(turn: Turn) -> Steps[None]:
    """The state after every ``init``: provider, extensions, features."""
    stack, managers, config = turn.stack, turn.managers, turn.context["config"]
    # Again at every request, because the oldest are forgotten.
    remember_secrets(stack.secrets)
    if stack.fresh_key is not None:
        config["api_key"] = turn.key = yield from stack.fresh_key.current()
    state = managers.provider.hook.init(config=config)
    if state is None:
        state = {"request": {}}
    state = {"config": config, "partial": None, **state}
    if config.get("debug_stream"):
        state.setdefault("debug_stream", True)
    stack.schema.remember_new_secrets(turn.known_config, state)
    for manager in (managers.extension, managers.feature):
        if manager.implements("init"):
            state = manager.hook.init(config=config_of(turn, state), state=state)
    config_of(turn, state)
    stack.schema.remember_new_secrets(turn.known_config, state, with_tools=True)
    turn.state = dict(state)


def prepare_turn(turn: Turn) -> Steps[None]:
    """Native history, what features say, and ``initialize_request`` of everybody, in order."""
    # Only after every init: a feature may have brought the key.
    _require_access(turn)
    turn.stack.schema.check_required(turn.state["config"], turn.stack.models)
    turn.context["session"] = turn.start
    if turn.managers.feature.implements("select_tools"):
        select_tools(turn)
    rest = find_retained(turn, turn.start)
    if turn.managers.feature.implements("get_context_parts"):
        rest = yield from add_context(turn, rest)
    turn.natives = make_natives(turn, rest)
    if turn.instructions or turn.managers.feature.implements("get_instructions"):
        yield from add_instructions(turn)
    turn.context["retained"] = turn.retained
    turn.state["tool_call_ids"] = turn.start.tool_call_ids
    natives, state = turn.natives, turn.state
    managers = turn.managers
    for manager in (managers.provider, managers.extension, managers.feature):
        if manager.implements("initialize_request"):
            natives, state = manager.hook.initialize_request(
                native_messages=natives, state=state, context=turn.context
            )
    if turn.retained.unsent and len(natives) != len(turn.natives):
        turn.retained = turn.retained.forget_places()
    turn.natives, turn.state = natives, state


def _require_access(turn: Turn) -> None:
    """Refuse to ask a provider without the key or address that it says it needs."""
    entry, config = turn.stack.provider.entry, config_of(turn, turn.state)
    for key, needed, variable in (
        ("api_key", entry.requires_api_key, entry.key_variable),
        ("base_url", entry.requires_base_url, None),
    ):
        if needed and config.get(key) in (None, ""):
            also = f", or {variable} in the environment" if variable else ""
            raise ConfigError(
                f"provider {turn.provider!r} needs the setting {key!r}",
                key=key,
                hint=f"{_first_way(turn, key)}set {_one_of(key)} in the config{also}",
            )


def _first_way(turn: Turn, key: str) -> str:
    return f"run: agent-host keys set {turn.provider}; or " if key == "api_key" else ""


def _one_of(key: str) -> str:
    return ", ".join(KEY_SETTINGS[:-1]) + f" or {KEY_SETTINGS[-1]}" if key == "api_key" else key
