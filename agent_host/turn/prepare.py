"""The steps before a request is sent: state, native history, and what the plugins make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_hookspecs.errors import ConfigError, ContractError
from agent_hookspecs.logs import remember_secrets
from agent_hookspecs.messages import Config, CoreMessage, NativeMessage
from agent_host.drivers.effects import Steps
from agent_host.plugins.access import KEY_SETTINGS
from agent_host.sessions.natives import Origin, retained_history
from agent_host.wire.request import without_userinfo

if TYPE_CHECKING:
    from agent_host.sessions.session import Session
    from agent_host.turn.turn import Turn

__all__ = ["begin_state", "default_to_native", "find_history", "prepare_turn"]


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
    stack.schema.remember_new_secrets(stack.config, state)
    for manager in (managers.extension, managers.feature):
        if manager.implements("init"):
            state = manager.hook.init(config=_config_of(turn, state), state=state)
    _config_of(turn, state)
    stack.schema.remember_new_secrets(stack.config, state, with_tools=True)
    turn.state = dict(state)


def prepare_turn(turn: Turn) -> None:
    """Native history and ``initialize_request``: provider, extensions, features."""
    # Only after every init: a feature may have brought the key.
    _require_access(turn)
    turn.stack.schema.check_required(turn.state["config"], turn.stack.models)
    find_history(turn, turn.start)
    turn.context["retained"] = turn.retained
    turn.state["tool_call_ids"] = turn.start.tool_call_ids
    natives, state = turn.natives, turn.state
    managers = turn.managers
    for manager in (managers.provider, managers.extension, managers.feature):
        if manager.implements("initialize_request"):
            natives, state = manager.hook.initialize_request(
                native_messages=natives, state=state, context=turn.context
            )
    turn.natives, turn.state = natives, state


def find_history(turn: Turn, session: Session) -> None:
    """The retained natives that still hold, and the rest of the session converted."""
    # A session is kept and handed on, and who asks does not matter for who has answered.
    address = without_userinfo(str(_config_of(turn, turn.state).get("base_url") or ""))
    turn.origin = Origin(turn.provider, address, str(turn.state.get("native_format") or ""))
    turn.retained = retained_history(session, turn.origin)
    # Not list(): of a subclass that is twice as slow.
    natives: list[NativeMessage] = turn.retained.natives[:]
    rest = session.since(turn.retained.covered)
    if rest:
        natives += _convert_messages(turn, rest)
    turn.natives = natives


def _convert_messages(turn: Turn, messages: list[CoreMessage]) -> list[NativeMessage]:
    provider, extension = turn.managers.provider, turn.managers.extension
    natives: list[NativeMessage]
    if provider.implements("to_native_messages"):
        natives = provider.hook.to_native_messages(messages=messages, state=turn.state)
    else:
        natives = [default_to_native(message) for message in messages]
    if extension.implements("to_native_messages"):
        natives = extension.hook.to_native_messages(messages=messages, native_messages=natives)
    return natives


def default_to_native(message: CoreMessage) -> NativeMessage:
    """Role and content; what else there is travels in ``_metadata``, which is never sent."""
    native: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    metadata = {k: v for k, v in message["metadata"].items() if k != "native_indices"}
    if metadata:
        native["_metadata"] = metadata
    return native


def _require_access(turn: Turn) -> None:
    """Refuse to ask a provider without the key or address that it says it needs."""
    entry, config = turn.stack.provider.entry, turn.state["config"]
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


def _config_of(turn: Turn, state: dict[str, Any]) -> Config:
    config = state.get("config")
    if not isinstance(config, dict):
        raise ContractError(
            f"after init, state['config'] is {type(config).__name__} and not a dict",
            plugin=turn.provider,
            hook="init",
            hint="plugins may change the config's keys; state['config'] itself stays a dict",
        )
    return config
