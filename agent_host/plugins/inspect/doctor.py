"""Examines every plugin the way ``plugins doctor`` reports it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from functools import partial
from typing import Final, Literal, TypeVar

from agent_hookspecs.descriptor import Entry
from agent_hookspecs.errors import LoadError, OrderingError, PluginError
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_hookspecs.values import dataclass
from agent_host.plugins.activate import Activator
from agent_host.plugins.catalog import Catalog, PluginRecord, complete_catalog
from agent_host.plugins.inspect.agreement import disagreements, habits, unknown_keys
from agent_host.plugins.inspect.misspelt import misspelt_hooks
from agent_host.plugins.order import Sortable, order
from agent_host.redaction import describe_error

__all__ = ["LOAD_SECONDS", "Finding", "examine"]

T = TypeVar("T")

#: How long a plugin may take to be imported and asked about itself.
LOAD_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a plugin; ``owner`` is its distribution or source.

    Of what the user decides about plugins, ``plugin`` is the setting.
    """

    level: Literal["problem", "warning"]
    plugin: str
    owner: str
    message: str


def examine(catalog: Catalog) -> Iterator[Finding]:
    """Load every usable plugin and report what is wrong; disabled ones are left alone."""
    loader = _TimedLoader()
    catalog = complete_catalog(catalog, loader.identify)
    for record in catalog:
        if record.usable:
            yield from loader.examine(record)
        elif record.state != "disabled":
            yield _finding("problem", record, record.reason)
    seen: set[str] = set()
    for record in catalog:
        if record.bundle.file not in seen:
            seen.add(record.bundle.file)
            for message in unknown_keys(record.bundle):
                yield _finding("warning", record, message)
    for unknown in catalog.unknown_names():
        hint = f" ({unknown.hint})" if unknown.hint else ""
        yield Finding("warning", unknown.setting, "settings", f"{unknown.what}{hint}")
    yield from _find_cycles(catalog)


class _TimedLoader:
    """Loads plugins and asks them, each for a limited time.

    One that takes longer is left to its thread, and the others are loaded anew.
    """

    def __init__(self) -> None:
        self._activator = Activator()

    def identify(self, record: PluginRecord) -> Entry:
        return self._in_time(record, self._activator.identify)

    def examine(self, record: PluginRecord) -> list[Finding]:
        try:
            return self._in_time(record, partial(_examine_record, activator=self._activator))
        except PluginError as error:
            return [_finding("problem", record, error.explain())]

    def _in_time(self, record: PluginRecord, ask: Callable[[PluginRecord], T]) -> T:
        outcome: Future[T] = Future()

        def work() -> None:
            try:
                outcome.set_result(ask(record))
            except BaseException as error:
                outcome.set_exception(error)

        # Not one that Python waits for when it ends.
        threading.Thread(target=work, daemon=True).start()
        wait([outcome], LOAD_SECONDS)
        if outcome.done():
            return outcome.result()
        # Whoever hangs has its locks.
        self._activator = Activator()
        raise LoadError(
            f"plugin {record.name!r}: importing it, or asking it about itself, takes more than "
            f"{LOAD_SECONDS} s",
            plugin=record.name,
            hint="an import must not wait for anything",
        )


def _examine_record(record: PluginRecord, activator: Activator) -> list[Finding]:
    plugin = activator.load(record)
    try:
        problems = [_finding("problem", record, each) for each in disagreements(plugin)]
        noted = (*habits(plugin), *misspelt_hooks(plugin))
        return [*problems, *(_finding("warning", record, each) for each in noted)]
    except (Exception, SystemExit) as error:
        # Comparing runs the plugin's properties and hooks.
        said = f"asking it about itself raised {describe_error(error)}"
        return [_finding("problem", record, said)]


def _find_cycles(catalog: Catalog) -> Iterator[Finding]:
    for role in PLUGIN_ROLES:
        records = {r.name: r for r in catalog.usable(role)}
        try:
            order(Sortable.of(r.entry) for r in records.values() if r.entry is not None)
        except OrderingError as error:
            # They may never take part together, so this is no problem yet.
            yield _finding("warning", records[error.plugins[0]], error.explain())


def _finding(level: Literal["problem", "warning"], record: PluginRecord, message: str) -> Finding:
    return Finding(level, record.name, record.bundle.owner, message)
