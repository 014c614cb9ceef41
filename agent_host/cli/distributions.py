"""``agent-host plugins add`` and its like: what is wanted, locked and installed.

Each command shows what it would do before it does it; what the installers are asked is in
``agent_host.distributions``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_host.cli.outside import clean_text
from agent_host.cli.render import is_terminal, print_json, print_table, print_text, style_text
from agent_host.distributions.changes import Change, Objection
from agent_host.distributions.drift import lock_file, wanted_file
from agent_host.distributions.environment import Environment, InstallerName, find_environment
from agent_host.distributions.errors import DistributionError
from agent_host.distributions.installers import open_installer
from agent_host.distributions.manage import COOLDOWN, Manager, Plan, open_manager
from agent_host.distributions.pins import Pin, read_lock
from agent_host.distributions.published import EXTRA, can_verify
from agent_host.distributions.verify import find_forgeries, verify_environment
from agent_host.distributions.wanted import parse_wanted, read_wanted
from agent_host.private import config_home

if TYPE_CHECKING:
    from agent_host.distributions.attestations import Attested

__all__ = ["add", "lock", "outdated", "remove", "sync", "upgrade", "verify"]

F = TypeVar("F", bound=Callable[..., Any])

_MARKS = {"add": ("+", "green"), "remove": ("-", "red")}
_OTHER = ("~", "yellow")
_LEVELS = {"problem": "red", "question": "magenta", "warning": "yellow"}


def _common_options(command: F) -> F:
    """The options of all commands here: whose list and lock, which installer, how it is shown."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts."),
        click.option(
            "--installer",
            type=click.Choice(["pip", "uv"]),
            help="Who installs, in place of whoever made the environment.",
        ),
        click.option(
            "--project",
            is_flag=True,
            help="Use plugins.txt and pylock.toml of this folder, not your own.",
        ),
    ):
        command = option(command)
    return command


def _change_options(command: F) -> F:
    """The options of commands that change the environment."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    ):
        command = option(command)
    return _common_options(command)


_cooldown = click.option(
    "--cooldown",
    "days",
    type=click.FloatRange(min=0),
    default=COOLDOWN / timedelta(days=1),
    show_default=True,
    metavar="DAYS",
    help="Refuse releases younger than this.",
)


_accept = click.option(
    "--accept-publisher",
    "accepted",
    multiple=True,
    metavar="DIST",
    help="Take this distribution from whoever publishes it now.",
)


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins add agent-host-files\n"
    "  agent-host plugins add 'agent-host-files>=0.1' ./my-plugin --yes\n"
    "  agent-host plugins add dist/agent_host_acme-0.1.0-py3-none-any.whl --dry-run"
)
@click.argument("names", nargs=-1, required=True, metavar="DIST...")
@_cooldown
@_accept
@_change_options
def add(names: Sequence[str], days: float, **how: Any) -> int:
    """Install plugins, and remember that they are wanted.

    DIST is a name with or without a version, a wheel, a folder, or NAME @ git+https://HOST/REPO@COMMIT.
    What would change is resolved, looked at without running it, and shown first.
    """
    wanted = [parse_wanted(each) for each in names]
    return _change(lambda manager: manager.plan_add(wanted, timedelta(days=days)), **how)


@click.command(epilog="\b\nExamples:\n  agent-host plugins remove agent-host-files")
@click.argument("names", nargs=-1, required=True, metavar="DIST...")
@_change_options
def remove(names: Sequence[str], **how: Any) -> int:
    """Uninstall plugins, with what they alone needed."""
    return _change(lambda manager: manager.plan_remove(names), **how)


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins upgrade\n"
    "  agent-host plugins upgrade agent-host-files --dry-run"
)
@click.argument("names", nargs=-1, metavar="[DIST...]")
@_cooldown
@_accept
@_change_options
def upgrade(names: Sequence[str], days: float, **how: Any) -> int:
    """Install the newest versions that fit, of the distributions named or of all."""
    return _change(lambda manager: manager.plan_upgrade(names, timedelta(days=days)), **how)


@click.command(epilog="\b\nExamples:\n  agent-host plugins lock")
@_cooldown
@_accept
@_change_options
def lock(days: float, **how: Any) -> int:
    """Write down what is wanted with versions and hashes, and install what is missing of it."""
    return _change(lambda manager: manager.plan_lock(timedelta(days=days)), **how)


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins sync\n  agent-host plugins sync --frozen --yes"
)
@click.option("--frozen", is_flag=True, help="Never make or change the lock; for CI.")
@_change_options
def sync(frozen: bool, **how: Any) -> int:
    """Make the environment what the lock says.

    After an upgrade of the host or of Python that threw plugins away, this brings them back.
    """
    return _change(lambda manager: manager.plan_sync(frozen=frozen), **how)


@click.command(
    epilog="\b\nExamples:\n  agent-host plugins verify\n  agent-host plugins verify --json"
)
@_common_options
def verify(as_json: bool, installer: InstallerName | None, project: bool) -> int:
    """Compare every installed file with its hash, and the distributions with the lock.

    Exits with 1 if anything is not as it should be.
    """
    folder = _folder(project)
    locked = read_lock(lock_file(folder))
    if not locked:
        raise DistributionError(
            f"there is no lock at {lock_file(folder)}", hint="make one: agent-host plugins lock"
        )
    environment = find_environment(installer)
    attested = _check_publishers(environment, locked)
    found = [*verify_environment(environment, locked), *find_forgeries(locked, attested)]
    if as_json:
        print_json(
            {
                "sound": not found,
                "distributions": len(locked),
                "found": [*map(asdict, found)],
                "attestations": [*map(asdict, attested)] if can_verify() else None,
            }
        )
    for each in () if as_json else found:
        where = " ".join(part for part in (each.distribution, each.file) if part)
        click.echo(f"{style_text('problem', fg='red')}  {clean_text(f'{where} {each.message}')}")
    if not as_json and not found:
        click.echo(f"{len(locked)} distributions are what the lock says.")
    if not as_json:
        _show_publishers(attested)
    return 1 if found else 0


def _check_publishers(environment: Environment, locked: Mapping[str, Pin]) -> list[Attested]:
    if not can_verify():
        return []
    from agent_host.distributions.attestations import verify_published

    return verify_published(locked, open_installer(environment).find_indexes())


def _show_publishers(attested: Sequence[Attested]) -> None:
    """A line for each publisher that is proved, and one for all of whom nothing is."""
    if not can_verify():
        click.echo(f"Who published them is not verified: that needs {EXTRA}.")
        return
    for each in attested:
        if each.state == "verified":
            shown = clean_text(f"{each.distribution} {each.version} by {each.publisher}")
            click.echo(f"{style_text('attested', fg='green')}  {shown}")
    for state, words in (("absent", "Nobody attests"), ("unknown", "Not known is who attests")):
        named = [each for each in attested if each.state == state]
        if named:
            names = ", ".join(each.distribution for each in named)
            why = f" ({named[0].reason})" if named[0].reason else ""
            click.echo(clean_text(f"{words} {names}{why}."))


@click.command(epilog="\b\nExamples:\n  agent-host plugins outdated")
@_common_options
def outdated(as_json: bool, installer: InstallerName | None, project: bool) -> None:
    """List the wanted and locked distributions of which the index has newer versions."""
    folder = _folder(project)
    known = {*read_wanted(wanted_file(folder)).by_name, *read_lock(lock_file(folder))}
    found = [
        each
        for each in open_installer(find_environment(installer)).find_outdated()
        if each.name in known
    ]
    if as_json:
        print_json({"outdated": [*map(asdict, found)]})
    elif found:
        rows = [(each.name, each.version, each.latest) for each in found]
        print_table(("DISTRIBUTION", "INSTALLED", "NEWEST"), rows)
    else:
        click.echo("All are the newest.")


def _folder(project: bool) -> Path:
    return Path.cwd() if project else config_home()


def _change(
    plan: Callable[[Manager], Plan],
    *,
    as_json: bool,
    installer: InstallerName | None,
    project: bool,
    dry_run: bool,
    yes: bool,
    accepted: Sequence[str] = (),
) -> int:
    """Plan, show, ask and carry out; exits with 1 if something forbids it or the person does."""
    environment, folder = find_environment(installer), _folder(project)
    with open_manager(environment, folder, _make_teller(quiet=as_json)) as manager:
        planned = plan(manager)
        if not as_json:
            _show(planned)
        refused = planned.is_forbidden
        if not refused and not dry_run:
            questions = planned.questions(accepted)
            if planned.changes and not (
                ((yes or as_json) and not questions) or _is_agreed(questions)
            ):
                click.echo("Nothing was changed.", err=True)
                return 1
            manager.carry_out(planned)
    if as_json:
        print_json(
            {
                "changes": [*map(asdict, planned.changes)],
                "objections": [*map(asdict, planned.objections)],
                "done": not refused and not dry_run,
            }
        )
    elif refused:
        click.echo("Nothing was changed.", err=True)
    elif not planned.changes:
        click.echo("Nothing has to be changed." if dry_run else "Nothing had to be changed.")
    elif not dry_run:
        click.echo("Done.")
    return 1 if refused else 0


def _make_teller(*, quiet: bool) -> Callable[[str], None]:
    """Says what goes on, for whoever waits."""

    def tell(step: str) -> None:
        if not quiet:
            click.echo(style_text(f"{step} ...", dim=True), err=True)

    return tell


def _is_agreed(questions: Sequence[Objection]) -> bool:
    if not is_terminal(sys.stdin):
        named = " ".join(f"--accept-publisher {each.distribution}" for each in questions)
        told = "".join(f"; {each.distribution} {each.message}" for each in questions)
        raise DistributionError(
            f"nobody can be asked whether to do this{told}",
            hint=f"say so with {named or '--yes'}",
        )
    return click.confirm("Do this?", default=True, err=True)


def _show(planned: Plan) -> None:
    for change in planned.changes:
        mark, colour = _MARKS.get(change.kind, _OTHER)
        click.echo(f"{style_text(mark, fg=colour)} {clean_text(_describe_change(change))}")
    for objection in planned.objections:
        _show_objection(objection)


def _describe_change(change: Change) -> str:
    versions = " -> ".join(each for each in (change.before, change.after) if each)
    return f"{change.name} {versions}" + (f"  ({change.why})" if change.why else "")


def _show_objection(objection: Objection) -> None:
    level = style_text(objection.level, fg=_LEVELS[objection.level])
    click.echo(f"{level}  {objection.distribution}")
    print_text(clean_text(objection.message), indent=4)
