"""The models that a provider offers: asked for, checked, and remembered while they are fresh."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.authoring.knobs import KNOBS
from agent_hookspecs.errors import AnswerTooLargeError, ProtocolError
from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import Config, ModelInfo
from agent_hookspecs.values import dataclass
from agent_host.drivers.effects import Call, Open, ReadAll, Steps
from agent_host.plugins.activate import LoadedPlugin
from agent_host.plugins.hook_time import HookTime
from agent_host.plugins.implementation import log_failure
from agent_host.plugins.implementations import can_list_models
from agent_host.plugins.keys import config_key, data_key
from agent_host.plugins.request_spec import read_request_spec
from agent_host.sessions.frozen import plain_copy
from agent_host.wire.deadlines import shortest
from agent_host.wire.failures import failure
from agent_host.wire.framing import Framing, framing

if TYPE_CHECKING:
    from agent_host.plugins.key_sources import FreshKey

__all__ = ["Listing", "Listings", "ask_models", "valid_models"]

log = get_logger(__name__)

_MAX_LISTINGS = 64
_MAX_BYTES = 8 << 20
#: A list of models is a convenience: nobody should wait long for one, unless they say so.
_REQUEST_SECONDS = 10.0
_TOTAL_SECONDS = 60.0
_RETRY_SECONDS = 15.0
#: None of it changes which models there are, nor what they can do.
_SET_BY_REQUESTS = frozenset({*KNOBS, "tools"})


@dataclass(frozen=True, slots=True)
class Listing:
    """The models for one config, how to tell them from others, and until when they are fresh.

    ``config`` keeps the objects alive that the key of the config calls by their address.
    """

    config: Config
    models: list[ModelInfo]
    digest: str
    until: float


class Listings:
    """The lists of one core, each for ``seconds``. Safe to share between threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Listing] = OrderedDict()

    def fresh_listing(self, key: str) -> Listing | None:
        """What is known for the key of a config, while it is fresh."""
        with self._lock:
            known = self._known.get(key)
        return known if known is not None and time.monotonic() < known.until else None

    def list_models(
        self, provider: LoadedPlugin, config: Config, key: str, fresh_key: FreshKey | None
    ) -> Steps[Listing]:
        """Ask the provider for its models and remember them; an error gives an empty list.

        Configs that differ in what requests set, such as the tools of a client, are one here.
        """
        asking = config_key({k: v for k, v in config.items() if k not in _SET_BY_REQUESTS})
        if (known := self.fresh_listing(asking)) is not None:
            listing = replace(known, config=config)
            self._remember(listing, key)
            return listing
        seconds = self._seconds
        try:
            models = yield from ask_models(provider, config, fresh_key)
            digest = data_key(models)
        except Exception as error:
            log_failure(log, "models_unavailable", error, provider=provider.name)
            models, digest, seconds = [], "[]", min(seconds, _RETRY_SECONDS)
        listing = Listing(config, models, digest, time.monotonic() + seconds)
        self._remember(listing, key, asking)
        return listing

    def _remember(self, listing: Listing, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self._known[key] = listing
                self._known.move_to_end(key)
            while len(self._known) > _MAX_LISTINGS:
                self._known.popitem(last=False)


def valid_models(models: object) -> list[ModelInfo]:
    """The entries that have what every model must have: a non-empty string ``id``."""
    return [
        cast(ModelInfo, model)
        for model in (models if isinstance(models, list) else ())
        if isinstance(model, dict) and isinstance(model.get("id"), str) and model["id"]
    ]


def ask_models(
    provider: LoadedPlugin, config: Config, fresh_key: FreshKey | None
) -> Steps[list[ModelInfo]]:
    """Ask the provider for its models; what goes wrong is raised."""
    # A copy: what a plugin does to the config is nobody else's affair.
    return valid_models((yield from _ask(provider, plain_copy(config), fresh_key)))


def _ask(provider: LoadedPlugin, config: Config, fresh_key: FreshKey | None) -> Steps[Any]:
    """What the provider says its models are; nothing, if its descriptor says not to ask."""
    hooks = provider.implementations.keys()
    if not can_list_models(hooks):
        return []
    if "get_models" not in provider.entry.dynamic:
        log.warning(
            "models_not_asked",
            provider=provider.name,
            reason="the descriptor's 'dynamic' does not name get_models",
        )
        return []
    if {"models_request", "parse_models"} <= hooks:
        return (yield from _fetch_models(provider, config, fresh_key))
    if fresh_key is not None:
        config = {**config, "api_key": (yield from fresh_key.current())}
    patience = HookTime.of(config).max_hook_seconds
    return (yield Call(partial(provider.ask, "get_models", config=config), patience=patience))


def _fetch_models(provider: LoadedPlugin, config: Config, fresh_key: FreshKey | None) -> Steps[Any]:
    spec = provider.ask("models_request", config=config)
    if spec is None:
        return []
    if fresh_key is None:
        response, body = yield from _send(provider, config, spec)
    else:
        key = yield from fresh_key.current()
        response, body = yield from _send_with_key(provider, config, key)
        if response.status == 401 and (new := (yield from fresh_key.after_refusal(key))) != key:
            response, body = yield from _send_with_key(provider, config, new)
    if not 200 <= response.status < 300:
        raise failure(response.status, response.headers, body, provider.name)
    machine = framing("json")
    machine.decode(body)
    read = partial(_read_models, provider, machine, response.headers.get("content-type", ""))
    return (yield Call(read)) if machine.takes_long(None) else read()


def _read_models(provider: LoadedPlugin, machine: Framing, content_type: str) -> Any:
    try:
        events = machine.flush()
    except AnswerTooLargeError as error:
        # No setting is for lists.
        raise ProtocolError(error.message, hint="name the model by its id") from error
    if not events:
        raise machine.no_event_error(content_type) or ProtocolError(
            f"{provider.name} answered with an empty body where its models are listed",
            hint="name the model by its id",
        )
    return provider.ask("parse_models", body=events[0][0])


def _send_with_key(provider: LoadedPlugin, config: Config, key: str) -> Steps[tuple[Any, bytes]]:
    config = {**config, "api_key": key}
    spec = provider.ask("models_request", config=config)
    return (yield from _send(provider, config, spec))


def _send(provider: LoadedPlugin, config: Config, spec: object) -> Steps[tuple[Any, bytes]]:
    if isinstance(spec, Mapping):
        waiting = {} if config.get("timeout") is not None else {"timeout": _REQUEST_SECONDS}
        spec = {"method": "GET", **waiting, **spec}
    request = read_request_spec(spec, config, provider.name, "models_request")
    # However slowly a server sends a list: a request waits for it.
    total = shortest(request.timeouts.total, _TOTAL_SECONDS)
    response = yield Open(replace(request, timeouts=replace(request.timeouts, total=total)))
    body = yield ReadAll(_MAX_BYTES)
    return response, body
