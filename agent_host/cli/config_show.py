"""``agent-host config show``: what is in force, and where each value comes from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_hookspecs.errors import AgentError
from agent_host.cli.options import request_options
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_heading, print_json, print_table, print_wrapped, style_text
from agent_host.cli.screen import quiet_logs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_hookspecs.descriptor import Entry
    from agent_host.config import LoadedConfig
    from agent_host.config.origins import SourcedValue

__all__ = ["show"]


@click.command(
    epilog="\b\nExamples:\n  agent-host config show\n"
    "  agent-host config show --config my.toml --json"
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file to show.",
)
@request_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def show(config_file: Path | None, as_json: bool, **asked: str | None) -> None:
    """Show the configuration in force with secrets masked, and where each value comes from.

    Also whom a run with these options would ask.
    """
    from agent_host.config import load_config
    from agent_host.config.origins import config_origins
    from agent_host.redaction import mask_config

    quiet_logs()
    loaded = load_config(config_file)
    values = list(config_origins(loaded, config_file))
    problem: AgentError | None = None
    try:
        whom = _find_request(loaded, asked)
    except AgentError as error:
        whom, problem = [], error
    if as_json:
        print_json(
            {
                "file": str(loaded.file) if loaded.file else None,
                "values": mask_config(loaded.values),
                "origins": {each.key: _describe_origin(each) for each in values},
                "request": {each.key: [each.value, _describe_origin(each)] for each in whom},
                "problem": problem.to_dict() if problem else None,
            }
        )
        return
    click.echo(f"# {clean_text(loaded.file or 'no config file: the defaults')}")
    if values:
        # The file that stands above need not stand in every row.
        there = loaded.file and str(loaded.file)
        values = [replace(each, detail="") if each.detail == there else each for each in values]
        print_table(["KEY", "VALUE", "FROM"], map(_row, values))
    if problem is not None:
        # What is in force can be shown all the same.
        print_wrapped(style_text(clean_text(f"warning: {problem.explain()}"), fg="yellow"))
        return
    print_heading("A run would ask")
    print_table(["SETTING", "VALUE", "FROM"], map(_row, whom))


def _find_request(config: LoadedConfig, asked: Mapping[str, str | None]) -> list[SourcedValue]:
    """Whom a run with these options would ask."""
    from agent_host.application import AgentApplication
    from agent_host.cli.records import access_of
    from agent_host.config.origins import request_origins
    from agent_host.config.selection import fallback

    with AgentApplication(config) as app:
        chosen = app.select(**asked, parts=True)
        request = app.request_config(asked["agent"], chosen.provider, chosen.model)
        catalog = app.core.stacks.catalog
    named = request.get("provider")
    record = catalog.provider(named) if named else fallback(catalog)
    access = access_of(record, config) if record else None
    if record is not None and record.entry is not None:
        request = {"model": _default_model(record.entry), **request, "provider": record.name}
    return [*request_origins(config, request, chosen, asked, access.where if access else "")]


def _default_model(entry: Entry) -> str | None:
    described = entry.config_schema.get("model")
    usual = described.get("default") if isinstance(described, dict) else None
    return entry.default_model or usual


def _row(each: SourcedValue) -> tuple[str, str, str]:
    value = json.dumps(each.value, ensure_ascii=False)
    return clean_text(each.key), clean_text(value), clean_text(_describe_origin(each))


def _describe_origin(each: SourcedValue) -> str:
    words = {"caller": "the command line", "default": "the default"}.get(each.origin, each.origin)
    return f"{words} ({each.detail})" if each.detail not in ("", f"the {words}") else words
