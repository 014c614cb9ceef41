"""The steps before a request is sent: state, native history, and what the plugins make of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from agent_hookspecs.errors import ConfigError, ContractError, HookResultError
from agent_hookspecs.logs import remember_secrets
from agent_hookspecs.messages import Config, Context, CoreMessage, NativeMessage, State
from agent_hookspecs.specs import SpecRole
from agent_hookspecs.values import dataclass
from agent_host.plugins.stack import Calls, Stack, answered, listed
from agent_host.sessions.natives import Origin, RetainedHistory, retained_history
from agent_host.sessions.session import Session
from agent_host.wire.request import without_userinfo

__all__ = ["Prepared", "default_to_native", "initial_state", "native_history", "prepare"]

_ADDITIONS: tuple[SpecRole, ...] = ("extension", "feature")


@dataclass(slots=True)
class Prepared:
    """A request that is ready to be sent."""

    state: State
    natives: list[NativeMessage]
    before: RetainedHistory
    origin: Origin


def prepare(
    stack: Stack, calls: Calls, session: Session, state: State, context: Context
) -> Prepared:
    """Native history and ``initialize_request``: provider, extensions, features."""
    # Only after every init: a feature may have brought the key.
    _require_access(stack, state["config"])
    stack.schema.check_required(state["config"])
    prepared = native_history(stack, calls, session, state)
    context["retained"] = prepared.before
    natives, state = prepared.natives, prepared.state
    state["tool_call_ids"] = session.tool_call_ids
    if calls.has("provider", "initialize_request"):
        result = calls.call("provider", "initialize_request")(natives, state, context)
        natives, state = answered(
            stack.provider.name, "initialize_request", result, "native_messages", "state"
        )
    for role in _ADDITIONS:
        if calls.has(role, "initialize_request"):
            fold = calls.call(role, "initialize_request")
            natives, state = fold(natives, state, context)
    # Copied only if it is somebody else's: a history can be long.
    prepared.natives = natives if natives is prepared.natives else list(natives)
    prepared.state = state
    return prepared


def initial_state(stack: Stack, calls: Calls, config: Config) -> State:
    """The state after every ``init``: provider, extensions, features."""
    # Again at every request, because the oldest are forgotten.
    remember_secrets(stack.secrets)
    # Tools are many and seldom what an init changes: they are looked at once, in the end.
    watch = partial(_remember_news, stack, config.get("tools"))
    state = calls.call("provider", "init")(config)
    if state is None:
        state = {"request": {}}
    if not isinstance(state, dict):
        raise HookResultError(
            f"plugin {stack.provider.name!r}: hook 'init' must return a dict, "
            f"not {type(state).__name__}",
            plugin=stack.provider.name,
            hook="init",
        )
    state = {"config": config, "partial": None, **state}
    if config.get("debug_stream"):
        state.setdefault("debug_stream", True)
    watch(state)
    for role in _ADDITIONS:
        if calls.has(role, "init"):
            state = calls.call(role, "init", watch)(_config(stack, state), state)
    _config(stack, state)
    _remember_news(stack, None, state)
    return dict(state)


def _remember_news(stack: Stack, but: object, state: State) -> None:
    """Remember the secrets that some ``init`` has put into the config: the next one may fail."""
    config, known = state.get("config"), stack.config
    if not isinstance(config, dict):
        return
    news = {
        key: value
        for key, value in config.items()
        if value is not (was := known.get(key))
        and value is not but
        and not (isinstance(value, (dict, list)) and value == was)
    }
    if news:
        remember_secrets(stack.schema.secrets(news))


def _require_access(stack: Stack, config: Config) -> None:
    """Refuse to ask a provider without the key or address that it says it needs."""
    entry = stack.provider.entry
    variable = f", or {entry.key_variable} in the environment" if entry.key_variable else ""
    for key, needed, also in (
        ("api_key", entry.requires_api_key, variable),
        ("base_url", entry.requires_base_url, ""),
    ):
        if needed and config.get(key) in (None, ""):
            raise ConfigError(
                f"provider {stack.provider.name!r} needs the setting {key!r}",
                key=key,
                hint=f"set {key} in the config{also}",
            )


def _config(stack: Stack, state: State) -> Config:
    config = state.get("config")
    if not isinstance(config, dict):
        raise ContractError(
            f"after init, state['config'] is {type(config).__name__} and not a dict",
            plugin=stack.provider.name,
            hook="init",
            hint="plugins may change the config's keys; state['config'] itself stays a dict",
        )
    return config


def native_history(stack: Stack, calls: Calls, session: Session, state: State) -> Prepared:
    """The retained natives that still hold, and the rest of the session converted."""
    # A session is kept and handed on, and who asks does not matter for who has answered.
    address = without_userinfo(str(_config(stack, state).get("base_url") or ""))
    origin = Origin(stack.provider.name, address, str(state.get("native_format") or ""))
    before = retained_history(session, origin)
    # Not list(): of a subclass that is twice as slow.
    natives: list[NativeMessage] = before.natives[:]
    tail = session.since(before.covered)
    if tail:
        natives += _converted(stack, calls, tail, state)
    return Prepared(state, natives, before, origin)


def _converted(
    stack: Stack, calls: Calls, messages: list[CoreMessage], state: State
) -> list[NativeMessage]:
    if calls.has("provider", "to_native_messages"):
        given = calls.call("provider", "to_native_messages")(messages, state)
        natives = listed(stack.provider.name, "to_native_messages", given)
    else:
        natives = [default_to_native(message) for message in messages]
    if calls.has("extension", "to_native_messages"):
        natives = list(calls.call("extension", "to_native_messages")(messages, natives))
    return natives


def default_to_native(message: CoreMessage) -> NativeMessage:
    """Role and content; what else there is travels in ``_metadata``, which is never sent."""
    native: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    metadata = {k: v for k, v in message["metadata"].items() if k != "native_indices"}
    if metadata:
        native["_metadata"] = metadata
    return native
