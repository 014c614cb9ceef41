"""``agent-host plugins search``: what a catalog offers that could be added.

Reads the index of a catalog, which somebody else has made: all of its text is from outside.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.cli.options import complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, print_table, print_wrapped, style_text
from agent_host.distributions.catalog_source import CATALOG_VARIABLE, open_catalog
from agent_host.distributions.search import TIERS, Wish, search_index
from agent_host.places import find_config_file

__all__ = ["find_catalog_source", "search"]

#: As much of a summary as a table has use for.
_SHOWN = 200


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins search shell\n"
    "  agent-host plugins search --role provider --tier silver\n"
    "  agent-host plugins search web --catalog catalog/index.json --json"
)
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@click.option("--role", type=click.Choice(PLUGIN_ROLES), help="Only with plugins of this role.")
@click.option("--tag", "tags", multiple=True, shell_complete=complete_with("complete_tag"),
              help="Only with this tag; several must all be there.")  # fmt: skip
@click.option("--tier", type=click.Choice(TIERS), help="Only of this quality tier or a higher one.")
@click.option("--catalog", "source", metavar="FILE|URL",
              help="The index of a catalog, in place of that of the config.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def search(
    words: tuple[str, ...],
    role: str | None,
    tags: tuple[str, ...],
    tier: str | None,
    source: str | None,
    as_json: bool,
) -> int:
    """Find plugins in a catalog by words; without any, list all.

    The best come first. Exits with 1 if nothing is found.
    """
    opened = open_catalog(source or find_catalog_source())
    found = search_index(opened.index, Wish(words, role or "", tags, tier or ""))
    if opened.note:
        print_wrapped(f"{style_text('note:', fg='yellow')} {clean_text(opened.note)}")
    if as_json:
        document = [each.model_dump(exclude={"description"}) for each in found]
        print_json(
            {
                "source": opened.source,
                "made": opened.index.made,
                "note": opened.note,
                "distributions": document,
            }
        )
    elif found:
        rows = [
            (
                clean_text(each.name),
                clean_text(each.version),
                clean_text(", ".join(each.roles())),
                each.tier,
                clean_text(each.summary[:_SHOWN]),
            )
            for each in found
        ]
        _print(rows)
        click.echo(f"\nAdd one: agent-host plugins add {clean_text(found[0].name)}")
    else:
        click.echo(f"Nothing of the {len(opened.index.distributions)} distributions fits.")
    return 0 if found else 1


def _print(rows: Sequence[Sequence[str]]) -> None:
    headings = ("DISTRIBUTION", "VERSION", "ROLES", "TIER", "SUMMARY")
    # A column in which nothing stands would only take room.
    used = [column for column in range(5) if any(row[column] for row in rows) or not column]
    print_table([headings[n] for n in used], [[row[n] for n in used] for row in rows])


def find_catalog_source() -> str:
    """The catalog that the config or the environment names."""
    named = os.environ.get(CATALOG_VARIABLE, "")
    if find_config_file() is not None:
        from agent_host.config import load_config

        config = load_config(None)
        source = str(config.values.get("catalog") or "")
        if source:
            is_path = "://" not in source
            return os.path.join(config.folder, os.path.expanduser(source)) if is_path else source
    if not named:
        raise ConfigError(
            "no catalog is named",
            key="catalog",
            hint=f"name one with --catalog FILE|URL, set {CATALOG_VARIABLE}, "
            "or: agent-host config set catalog URL",
        )
    return named
