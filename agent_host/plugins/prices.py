"""Asks what models cost: the user's own table first, then through pluggy the plugins that know.

Nothing is imported before the first cost is asked for, and only plugins whose descriptors say that
they know prices.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timezone
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agent_hookspecs.logs import get_logger
from agent_hookspecs.values import dataclass
from agent_host.plugins.implementation import log_failure
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.offers import announcers
from agent_host.prices import ModelPrices, read_prices
from agent_host.wire.request import without_userinfo

if TYPE_CHECKING:
    from agent_hookspecs.descriptor import Entry
    from agent_host.plugins.manager import RoleManager
    from agent_host.plugins.stacks import Stacks

__all__ = ["PricedModel", "Prices"]

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model as prices are asked for: of which provider plugin, and at which address.

    ``account`` is the name that the user has for the provider, an alias or the plugin's own.
    """

    provider: str
    model: str
    account: str
    base_url: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called in the user's table, the closest first."""
        return tuple(dict.fromkeys(f"{who}/{self.model}" for who in (self.account, self.provider)))


class Prices:
    """What the models of one application cost. ``table`` is what the config has as ``prices``."""

    def __init__(self, table: Mapping[str, Any], stacks: Stacks) -> None:
        self._table = table
        self._stacks = stacks
        self._manager: RoleManager | None = None
        self._catalog: object = None
        self._lock = threading.Lock()

    def states(self, model: PricedModel) -> bool:
        """Whether the user's own table says what a model costs now."""
        return _entry_of(self._table, model.names, time.time()) is not None

    def find(
        self, model: PricedModel, warn: Callable[[str], None] | None = None
    ) -> ModelPrices | None:
        """What a model costs now; None if nobody knows.

        Whatever a plugin does, an answer that was paid for is not lost for it: ``warn`` is told.
        """
        at = time.time()
        own = _entry_of(self._table, model.names, at) if self._table else None
        if own is not None:
            return read_prices(own)
        try:
            found = self._ask_plugins(model, at)
            return None if found is None else read_prices(found)
        except Exception as error:
            described = log_failure(log, "prices_unavailable", error, model=model.names[0])
            if warn is not None:
                warn(f"what {model.names[0]} costs is not known: {described}")
            return None

    def _ask_plugins(self, model: PricedModel, at: float) -> Mapping[str, Any] | None:
        manager = self._current_manager()
        if manager is None:
            return None
        base_url = None if model.base_url is None else without_userinfo(model.base_url)
        found: Mapping[str, Any] | None = manager.hook.model_prices(
            provider=model.provider, model=model.model, base_url=base_url, time=at
        )
        return found

    def _current_manager(self) -> RoleManager | None:
        """pluggy's manager of the plugins that know prices; None if there are none."""
        catalog, activator = self._stacks.catalog, self._stacks.activator
        with self._lock:
            if self._catalog is not catalog:
                plugins = [activator.load(record) for record in announcers(catalog, _knows_prices)]
                known = [
                    (each.key, find_implementations(each.instance, "host", each.name))
                    for each in plugins
                ]
                self._manager = activator.new_manager("host", known) if known else None
                self._catalog = catalog
            return self._manager


def _knows_prices(entry: Entry) -> bool:
    return entry.knows_prices


def _entry_of(
    table: Mapping[str, Any], names: Iterable[str], at: float
) -> Mapping[str, Any] | None:
    """What a table says of a model at a time: under its name, or else under a pattern."""
    day = datetime.fromtimestamp(at, timezone.utc).date()
    for name in names:
        keys = [name, *(key for key in table if fnmatchcase(name, key))]
        for key in keys:
            given = table.get(key, ())
            for period in (given,) if isinstance(given, Mapping) else given:
                if _holds(period, day):
                    return period
    return None


def _holds(period: Mapping[str, Any], day: date) -> bool:
    """Whether prices hold on a day: from one day on, and until another, which is not one more."""
    since, until = period.get("from"), period.get("until")
    return (since is None or date.fromisoformat(since) <= day) and (
        until is None or day < date.fromisoformat(until)
    )
