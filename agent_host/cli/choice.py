"""The options with which the commands of ``plugins`` choose a config and a request, as one value.

What they say about plugins is laid over the config file's own lists, so that everything after that
takes the way that a run takes. Nothing heavy is imported before there is a config to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_hookspecs.values import dataclass
from agent_host.cli.options import REQUEST_OPTIONS, parse_pairs
from agent_host.places import find_config_file

if TYPE_CHECKING:
    from agent_host.config import LoadedConfig
    from agent_host.plugins.catalog import Catalog

__all__ = ["Choice", "choice_options", "find_provider", "load_chosen_catalog"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Choice:
    """A config file, whom to ask, and what to change about plugins for the time being."""

    config_file: str | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    sources: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    force: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)

    @property
    def request(self) -> dict[str, str | None]:
        """Whom to ask, as a run takes it."""
        return {"agent": self.agent, "provider": self.provider, "model": self.model}

    def load_config(self) -> LoadedConfig | None:
        """The config that a run would obey, with the options laid over it; None if nothing is said.

        Without a file and without options there is nothing to read, and nothing is imported for it.
        """
        changes = (self.sources, self.allow, self.deny, self.enable, self.force, self.prefer)
        named = self.config_file or self.agent or any(changes)
        if not named and find_config_file() is None:
            return None
        from pathlib import Path

        from agent_host.config import load_config

        return self._change(load_config(Path(self.config_file) if self.config_file else None))

    def _change(self, config: LoadedConfig) -> LoadedConfig:
        values = dict(config.values)
        here = os.getcwd()
        # What is typed is meant from here, wherever the config file lies.
        moved = os.path.realpath(config.folder) != os.path.realpath(here)
        sources = [_from_folder(each, here) if moved else each for each in self.sources]
        for key, more in (
            ("plugins", sources),
            ("denied_plugins", self.deny),
            ("enabled_plugins", self.enable),
            ("force_enabled_plugins", self.force),
        ):
            if more:
                values[key] = [*values.get(key, ()), *more]
        if self.allow:
            values["allowed_plugins"] = [*self.allow]
        if self.prefer:
            values["prefer_plugins"] = {**values.get("prefer_plugins", {}), **self.prefer}
        return replace(config, values=values)


def _from_folder(source: str, folder: str) -> str:
    kind, _, value = source.partition(":")
    if kind != "path" or not value:
        return source
    return f"path:{os.path.join(folder, os.path.expanduser(value))}"


def find_provider(choice: Choice, config: LoadedConfig | None, catalog: Catalog) -> str | None:
    """The provider plugin that a run would use; None if none is named, an error if it is not there.

    One that is there and cannot be used is no error: a list has to show it.
    """
    named = choice.provider if config is None else config.provider_plugin(**choice.request)
    if named is not None and not catalog.usable(None):
        known = {record.name for record in catalog if record.role in ("provider", None)}
        if named not in known:
            catalog.provider(named)
    return named


def load_chosen_catalog(config: LoadedConfig | None) -> Catalog:
    """The catalog that a run with this config would have."""
    if config is None:
        from agent_host.plugins.load import load_catalog

        return load_catalog()
    from agent_host.config.catalog import configured_catalog

    return configured_catalog(config)


_OPTIONS = (
    click.option("--config", "config_file", type=click.Path(dir_okay=False), metavar="FILE",
                 help="The config file; by default the one that run would use."),
    *REQUEST_OPTIONS,
    click.option("--plugin", "sources", multiple=True, metavar="SOURCE",
                 help="Add path:FOLDER, path:FILE.py, pkg:PACKAGE or git+https://…@COMMIT."),
    click.option("--allow", multiple=True, metavar="BUNDLE", help="Use only these bundles."),
    click.option("--deny", multiple=True, metavar="BUNDLE", help="Never use these bundles."),
    click.option("--enable", multiple=True, metavar="NAME",
                 help="Let a plugin take part that is off by default."),
    click.option("--force", multiple=True, metavar="NAME",
                 help="Let a plugin take part whatever the tags say."),
    click.option("--prefer", multiple=True, callback=parse_pairs, metavar="ROLE:NAME=OWNER",
                 help="Say which distribution wins a collision."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts."),
    click.option("--strict", is_flag=True, help="Exit with 1 if any plugin failed."),
)  # fmt: skip


def choice_options(command: F) -> F:
    """Give a subcommand the options that all of them have; those about the request as one value."""

    @wraps(command)
    def call_with_choice(**given: Any) -> Any:
        chosen = {name: given.pop(name) for name in Choice.__match_args__}
        return command(choice=Choice(**chosen), **given)

    decorated: Any = call_with_choice
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
