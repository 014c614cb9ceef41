"""``agent-host config trust``: shows what there is to trust, asks, and remembers the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_host.cli.outside import show_exactly
from agent_host.cli.render import is_terminal, print_heading, print_json, style_text

if TYPE_CHECKING:
    from agent_host.trust import Difference

__all__ = ["trust"]

#: Files of one kind that are listed one by one, and lines of the config that are shown.
_MOST_FILES = 50
_MOST_LINES = 200
_MARKS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}


@click.command(
    epilog="\b\nExamples:\n  agent-host config trust\n  agent-host config trust ../project --revoke"
)
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, file_okay=False, exists=True)
)
@click.option("--revoke", is_flag=True, help="Trust it no longer.")
@click.option("--yes", is_flag=True, help="Do not ask, whatever has changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def trust(folder: Path, revoke: bool, yes: bool, as_json: bool) -> None:
    """Trust the config that lies in FOLDER: it may then name plugins, policy and keys.

    Trust is of what is there now: the config, and the files of the plugins that it names by path.
    When any of it changes, this command shows what has changed, and asks.
    """
    from agent_host import trust as trusted
    from agent_host.config.folders import read_folder

    shown = show_exactly(folder.resolve())
    if revoke:
        trusted.untrust(folder)
        if as_json:
            print_json({"folder": str(folder.resolve()), "trusted": False})
        else:
            click.echo(f"{shown} is no longer trusted.")
        return
    # Read once: what is remembered is what was shown.
    contents, before = read_folder(folder), trusted.read_trusted(folder)
    difference = trusted.compare_contents(before or trusted.Contents({}), contents)
    is_asked = before is not None and difference and not (yes or as_json)
    if not as_json:
        _show_difference(difference, is_new=before is None or not before.digests)
    if is_asked and is_terminal(sys.stdin) and not _confirm(f"Trust {shown} as it is now?"):
        click.echo(f"{shown} is not trusted as it is now.")
        raise click.exceptions.Exit(1)
    trusted.trust(folder, contents)
    if as_json:
        changes = {verb: [*getattr(difference, verb)] for verb in _MARKS}
        print_json({"folder": str(folder.resolve()), "trusted": True, **changes})
    else:
        click.echo(f"{shown} is now trusted, until any of these files changes.")


def _confirm(question: str) -> bool:
    # Not above: without a terminal there is nothing to ask.
    from agent_host.cli.asking import ask_yes

    return ask_yes(question)


def _show_difference(difference: Difference, *, is_new: bool) -> None:
    for verb, (mark, colour) in _MARKS.items():
        paths: tuple[str, ...] = getattr(difference, verb)
        for path in paths[:_MOST_FILES]:
            line = show_exactly(path) if is_new else f"{mark} {show_exactly(path)}"
            click.echo(style_text(line, fg=None if is_new else colour))
        if len(paths) > _MOST_FILES:
            click.echo(f"  and {len(paths) - _MOST_FILES} more files were {verb}")
    if difference.lines:
        print_heading("The config, without secrets")
    for line in difference.lines[:_MOST_LINES]:
        click.echo(show_exactly(line))
    if len(difference.lines) > _MOST_LINES:
        click.echo(f"  and {len(difference.lines) - _MOST_LINES} more lines")
