"""What is asked of every package, whatever the role of the plugin under test.

Owns the checks of descriptor, gating and import, and how a check gets a host with the package in
it. It must not know any role's hooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, combinations
from typing import Any, ClassVar

import pytest

from agent_hookspecs.descriptor import Entry
from agent_host.plugins.activate import Activator, LoadedPlugin
from agent_host.plugins.catalog import Catalog, PluginRecord
from agent_host.plugins.gate import with_twins
from agent_host.plugins.inspect.agreement import disagreements, unknown_keys
from agent_host.plugins.inspect.misspelt import misspelt_hooks
from agent_host.plugins.resolve import Resolution, resolve, select_provider
from agent_host_testing.suites.checking import Conformance, check
from agent_host_testing.suites.hosting import Host
from agent_host_testing.suites.loading import (
    catalog_of,
    find_record,
    has_types,
    side_effects,
    why_missing,
)
from agent_host_testing.violations import require

__all__ = ["PackageConformance"]

#: What was said of suites in this process.
_REPORTED: set[str] = set()


class PackageConformance(Conformance):
    """A suite about one plugin of one package.

    ``package`` is the import package with the descriptor, ``plugin`` the plugin's id in it.
    ``settings`` go into the config of every request. ``also`` names further packages that the host
    should have, ``enabled`` plugins that are off by default.
    """

    settings: ClassVar[Mapping[str, Any]] = {}
    also: ClassVar[Sequence[str]] = ()
    enabled: ClassVar[Sequence[str]] = ()
    #: The provider of the requests, if it is not the one under test.
    provider: ClassVar[str] = "echo"

    #: Packages that the role itself needs in the host.
    needs: ClassVar[Sequence[str]] = ()

    @pytest.fixture(autouse=True)
    def _about_something(self) -> None:
        """Fail a suite about nothing once, instead of in each of its checks."""
        problem = self._naming_problem()
        if problem and problem in _REPORTED:
            pytest.skip(f"not checked: {problem}")
        elif problem:
            _REPORTED.add(problem)
            pytest.fail(problem, pytrace=False)

    def _naming_problem(self) -> str:
        """What is wrong with what the suite says of itself; empty: nothing."""
        name = type(self).__name__
        if not self.package or not self.plugin:
            return f"{name} must say its 'package' and its 'plugin'"
        missing = why_missing(self.package, str(self.folder), self.role, self.plugin)
        return f"{name}: {missing}" if missing else ""

    def catalog(self) -> Catalog:
        """The package and what it goes with, as the host finds them; nothing else."""
        return self._catalog_with(self.plugin, *self.enabled)

    def _catalog_with(self, *enabled: str) -> Catalog:
        others = dict.fromkeys((*self.also, *self.needs))
        others.pop(self.package, None)
        return catalog_of((self.package, *others), folder=str(self.folder), enabled=enabled)

    def record(self) -> PluginRecord:
        """The plugin under test in the catalog."""
        return find_record(self.catalog(), self.package, self.role, self.plugin)

    def loaded(self) -> LoadedPlugin:
        """The plugin under test, imported and checked as the host does it; one for each check."""
        if not hasattr(self, "_loaded"):
            self._loaded = Activator().load(self.record())
        return self._loaded

    def own_records(self) -> list[PluginRecord]:
        """Every plugin of the package."""
        bundle = self.record().bundle
        return [record for record in self.catalog() if record.bundle.file == bundle.file]

    def is_typed(self) -> bool | None:
        return has_types(self.package, str(self.folder))

    def config(self, **more: Any) -> dict[str, Any]:
        """The settings of a request."""
        provider = self.plugin if self.role == "provider" else self.provider
        return {"provider": provider, "retries": 0, **self.settings, **more}

    @contextmanager
    def host(self, *tools: type) -> Iterator[Host]:
        """A host with the package, and these tool classes."""
        host = Host(self.catalog(), tools)
        try:
            yield host
        finally:
            host.close()

    @check("descriptor", "docs/plugins.md#how-the-host-finds-it")
    def test_descriptor_equals_code(self) -> None:
        """What the descriptor says of a plugin is what its class says."""
        activator = Activator()
        found = [
            f"{record.key}: {message}"
            for record in self.own_records()
            for message in disagreements(activator.load(record))
        ]
        found += [f"the descriptor has an {each}" for each in unknown_keys(self.record().bundle)]
        require(not found, "\n".join(found))

    @check("hooks", "docs/testing.md#hooks-by-their-names")
    def test_hooks_are_spelt_right(self) -> None:
        """A public method that looks like a hook of the role is one."""
        activator = Activator()
        found = [
            f"{record.key}: {message}"
            for record in self.own_records()
            for message in misspelt_hooks(activator.load(record))
        ]
        require(not found, "\n".join(found))

    @check("no work at import", "docs/testing.md#importing-does-nothing")
    def test_import_does_no_work(self) -> None:
        """Importing a package opens no socket, no file and no thread, and takes in no SDK."""
        found = side_effects(self.own_records())
        require(not found, "; ".join(found))

    @check("gating", "docs/plugins.md#who-takes-part-tags")
    def test_gating_truth_table(self) -> None:
        """A plugin takes part exactly when its required tags are there and none it forbids."""
        wrong = []
        for record in self.gated_records():
            assert record.entry is not None
            for tags in _power_set(record.entry):
                resolution = self._resolve(record.entry, tags)
                expected = _takes_part(record.entry, resolution, self.config())
                if (record.key in resolution.gating.enabled) != expected:
                    state = next(r for r in resolution.catalog if r.key == record.key)
                    does = "does not take" if expected else "takes"
                    why = f": {state.reason}" if state.reason else ""
                    wrong.append(f"{record.name} {does} part with the tags {sorted(tags)}{why}")
        require(not wrong, "\n".join(wrong))

    def gated_records(self) -> list[PluginRecord]:
        """The plugins whose truth table is checked: the one under test."""
        return [self.record()]

    def _resolve(self, entry: Entry, tags: frozenset[str]) -> Resolution:
        relevant = {*entry.required_tags, *entry.forbidden_tags}
        config = self.config(add_tags=sorted(tags), remove_tags=sorted(relevant - tags))
        # What is off by default is named, so that the tags alone decide.
        catalog = self._catalog_with(*(record.name for record in self.catalog()))
        activator = Activator()
        return resolve(
            catalog, activator, select_provider(catalog, activator, config), config, models=[]
        )


def _power_set(entry: Entry) -> Iterator[frozenset[str]]:
    tags = sorted({*entry.required_tags, *entry.forbidden_tags})
    sizes = range(len(tags) + 1)
    return map(frozenset, chain.from_iterable(combinations(tags, size) for size in sizes))


def _takes_part(entry: Entry, resolution: Resolution, config: dict[str, Any]) -> bool:
    tags = with_twins(resolution.tags)
    if not set(entry.required_tags) <= tags or set(entry.forbidden_tags) & tags:
        return False
    present = [*resolution.gating.enabled, resolution.provider.key]
    names = {*present, *(key.partition(":")[2] for key in present)}
    if not set(entry.required_plugins) <= names:
        return False
    if "is_enabled" not in entry.dynamic:
        return True
    record = next(r for r in resolution.catalog if r.entry == entry)
    answer = (
        Activator()
        .load(record)
        .ask("is_enabled", config=config, tags=sorted(tags), models=[], context={})
    )
    return answer is not False
