"""``agent-host plugins matrix``: released plugins on several Pythons, hosts and contracts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, style_text
from agent_host.cli.signals import Interruptions, end_on_signals, exit_code_of
from agent_host.distributions.matrix.cells import (
    CONTRACT,
    Cell,
    Outcome,
    choose_versions,
    plan_cells,
)
from agent_host.distributions.matrix.releases import Releases
from agent_host.distributions.matrix.reports import (
    count_outcomes,
    describe_outcome,
    render_junit,
    render_matrix_page,
    to_document,
)
from agent_host.distributions.matrix.trials import Trials, require_tox, work_folder
from agent_host.distributions.wanted import HOST

__all__ = ["matrix"]

_COLOURS = {"passed": "green", "failed": "red", "does not fit": "cyan", "not tested": "yellow"}
_PYTHONS = "3.10,3.11,3.12,3.13"


def _split(context: click.Context, option: click.Parameter, text: str) -> list[str]:
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise click.BadParameter("name at least one, with commas between several")
    return found


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins matrix agent-host-files --pythons 3.10,3.13\n"
    "  agent-host plugins matrix dist/acme-0.1.0-py3-none-any.whl --find-links dist\n"
    "  agent-host plugins matrix agent-host-files --junit out.xml --page out.html"
)
@click.argument("plugins", nargs=-1, required=True, metavar="PLUGIN...")
@click.option("--pythons", default=_PYTHONS, show_default=True, callback=_split,
              metavar="LIST", help="The Pythons, with commas between them.")  # fmt: skip
@click.option("--hosts", default="oldest,newest", show_default=True, callback=_split,
              metavar="LIST", help="Versions of the host: oldest, newest or numbers.")  # fmt: skip
@click.option("--contracts", default="oldest,newest", show_default=True, callback=_split,
              metavar="LIST", help="Versions of the contract, likewise.")  # fmt: skip
@click.option("--find-links", multiple=True, metavar="FOLDER",
              type=click.Path(exists=True, file_okay=False, resolve_path=True),
              help="A folder with wheels and sdists, besides the index.")  # fmt: skip
@click.option("--index-url", metavar="URL", help="The package index, in place of pip's own.")
@click.option("--timeout", "seconds", type=click.FloatRange(min=1), default=1800.0,
              show_default=True, metavar="SECONDS",
              help="How long installing, and testing, may take in each cell.")  # fmt: skip
@click.option("--allow-untested", is_flag=True,
              help="Exit with 0 though something could not be tested.")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE",
              type=click.Path(dir_okay=False, allow_dash=True),
              help="Write all as JSON; - for standard output.")  # fmt: skip
@click.option("--junit", "junit_file", metavar="FILE", type=click.Path(dir_okay=False),
              help="Write it as JUnit XML.")  # fmt: skip
@click.option("--page", "page_file", metavar="FILE", type=click.Path(dir_okay=False),
              help="Write it as a page for people.")  # fmt: skip
def matrix(
    plugins: Sequence[str],
    pythons: list[str],
    hosts: list[str],
    contracts: list[str],
    find_links: Sequence[str],
    index_url: str | None,
    seconds: float,
    allow_untested: bool,
    json_file: str | None,
    junit_file: str | None,
    page_file: str | None,
) -> int:
    """Try released plugins out on several Pythons, with several hosts and contracts.

    PLUGIN is a name with or without a version, or a wheel. For each combination tox makes a fresh
    environment, in which the tests of the plugin's sdist and the conformance kit are run. Runs the
    plugins' code. Exits with 1 if something failed or could not be tested.
    """
    require_tox()
    for file in (json_file, junit_file, page_file):
        _check_place(file)
    try:
        # The folder is removed after the last signal has been heeded, however long that takes.
        with work_folder() as folder, end_on_signals(Interruptions(), lambda: None):
            releases = Releases(folder, find_links=find_links, index_url=index_url)
            _tell(f"looking for {', '.join(plugins)}, {HOST} and {CONTRACT}")
            cells = [
                *plan_cells(
                    [releases.fetch(each) for each in plugins],
                    pythons,
                    choose_versions(HOST, hosts, releases.find_versions(HOST)),
                    choose_versions(CONTRACT, contracts, releases.find_versions(CONTRACT)),
                )
            ]
            outcomes = _try_all(cells, Trials(folder, releases, seconds))
    except KeyboardInterrupt as interruption:
        click.echo("interrupted; nothing is left behind", err=True)
        return exit_code_of(interruption)
    _write(json_file, lambda: json.dumps(to_document(outcomes), indent=1) + "\n")
    _write(junit_file, lambda: render_junit(outcomes))
    _write(page_file, lambda: render_matrix_page(outcomes))
    counts = count_outcomes(outcomes)
    if json_file == "-":
        print_json(to_document(outcomes))
    else:
        click.echo(", ".join(f"{count} {status}" for status, count in counts.items()) + ".")
    return 1 if counts["failed"] or (counts["not tested"] and not allow_untested) else 0


def _try_all(cells: Sequence[Cell], trials: Trials) -> list[Outcome]:
    outcomes = []
    for number, cell in enumerate(cells, 1):
        where = f"{number}/{len(cells)} {cell.title}"
        outcome = trials.try_cell(cell, partial(_tell_step, where))
        outcomes.append(outcome)
        status = style_text(outcome.status, fg=_COLOURS[outcome.status])
        said = describe_outcome(outcome).removeprefix(outcome.status)
        click.echo(f"{clean_text(where)}: {status}{clean_text(said)}", err=True)
    return outcomes


def _tell_step(where: str, step: str) -> None:
    _tell(f"{where}: {step}")


def _tell(step: str) -> None:
    click.echo(style_text(f"{clean_text(step)} ...", dim=True), err=True)


def _check_place(file: str | None) -> None:
    """Refuse a place before the long work, not after it."""
    folder = Path(file).absolute().parent if file and file != "-" else None
    if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise click.UsageError(
            f"{file} cannot be written: there is no such folder, or it is not yours"
        )


def _write(file: str | None, render: Callable[[], str]) -> None:
    if file and file != "-":
        Path(file).write_text(render(), encoding="utf-8")
