"""``agent-host plugins describe``: what a descriptor can take from its classes."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import click

from agent_host.cli.findings import format_count
from agent_host.cli.options import check_exclusive
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, print_text
from agent_host.plugins.inspect.describe import (
    Description,
    describe as describe_catalog,
    render_descriptor,
)
from agent_host.plugins.inspect.target import open_target

__all__ = ["describe"]


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins describe\n"
    "  agent-host plugins describe --write path/to/my-plugin\n"
    "  agent-host plugins describe --check agent-host-echo --json"
)
@click.argument("target", metavar="[PATH|DIST]", default=".")
@click.option("--write", is_flag=True, help="Put it into the agent_plugin.json of a source folder.")
@click.option("--check", is_flag=True, help="Exit with 1 if the file says otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def describe(target: str, write: bool, check: bool, as_json: bool) -> int:
    """Print a package's descriptor with all that its classes say of themselves.

    That is settings, tags, order, effects of tools, what is asked anew, and flags about keys; what
    you wrote besides stays as it is. PATH is a source folder or a wheel, DIST an installed
    distribution; by default it is the working folder. Imports the classes.
    """
    check_exclusive({"--write": write, "--check": check})
    with open_target(target) as opened:
        if write and opened.tree is None:
            raise click.UsageError("--write needs a source folder; what is installed is left alone")
        with redirect_stdout(sys.stderr):
            # Plugins may print while they are imported; our output must stay readable by scripts.
            found = list(describe_catalog(opened.catalog))
        for each in found if write else ():
            if each.differences:
                each.write()
    if as_json:
        print_json({"target": target, "descriptors": [_as_dict(each) for each in found]})
    elif write:
        _print_differences(found, "change", "unchanged")
    elif check:
        _print_differences(found, "difference", "agrees")
        if any(each.differences for each in found):
            click.echo(
                f"To correct it, run: agent-host plugins describe --write {clean_text(target)}"
            )
    else:
        for each in found:
            click.echo(render_descriptor(each.document))
    return 1 if check and any(each.differences for each in found) else 0


def _as_dict(description: Description) -> dict[str, object]:
    return {
        "file": str(description.file),
        "agrees": not description.differences,
        "differences": list(description.differences),
        "descriptor": description.document,
    }


def _print_differences(found: list[Description], noun: str, otherwise: str) -> None:
    for each in found:
        count = len(each.differences)
        click.echo(f"{clean_text(each.file)}: {format_count(count, noun) if count else otherwise}")
        for words in each.differences:
            print_text(clean_text(words), indent=4)
