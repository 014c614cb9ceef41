"""``agent-host sessions``: what was said, to be looked at, found, moved, branched and deleted."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.options import complete_with, parse_settings
from agent_host.cli.outside import clean_text
from agent_host.cli.render import (
    is_terminal,
    print_json,
    print_pairs,
    print_table,
    print_text,
    style_text,
)
from agent_host.cli.stored import open_application, short_id, show_time, stored_options, to_plain

if TYPE_CHECKING:
    from agent_hookspecs.messages import CoreMessage
    from agent_hookspecs.store.values import SessionSummary

__all__ = ["sessions"]

_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.group(
    epilog="\b\nExamples:\n  agent-host sessions list\n  agent-host sessions search colour\n"
    "  agent-host sessions export 01a1ecb391e0 > session.jsonl\n\n\b\n"
    "SESSION is an id, a name, or the beginning of an id that no other has."
)
def sessions() -> None:
    """See, search, move and branch stored sessions."""


@sessions.command(
    "list",
    epilog="\b\nExamples:\n  agent-host sessions list\n"
    "  agent-host sessions list --limit 200 --json",
)
@click.option("--limit", default=20, show_default=True, help="How many to show.")
@click.option("--skip", default=0, help="How many of the latest to leave out.")
@stored_options
def list_sessions(limit: int, skip: int, config_file: Path | None, as_json: bool) -> None:
    """List the sessions, the latest changed first."""
    with open_application(config_file) as app:
        found = app.sessions.list(limit, skip)
    if as_json:
        print_json({"sessions": [to_plain(each) for each in found]})
        return
    if not found:
        click.echo("No sessions are stored.")
        return
    ids = [each.id for each in found]
    rows = [
        (
            short_id(each.id, ids),
            show_time(each.updated),
            str(each.message_count),
            clean_text(_title(each)),
        )
        for each in found
    ]
    print_table(("session", "changed", "messages", "begins with"), rows)


def _title(session: SessionSummary) -> str:
    if not session.has_content:
        return "(content is not stored)"
    named = f"{session.name}: " if session.name else ""
    return f"{named}{session.title}"


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions show 01a1ecb391e0\n"
    "  agent-host sessions show notes --last 100"
)
@click.argument("session", shell_complete=complete_with("complete_session"))
@click.option("--last", default=20, show_default=True, help="How many messages to show.")
@stored_options
def show(session: str, last: int, config_file: Path | None, as_json: bool) -> None:
    """Show SESSION and its latest messages."""
    with open_application(config_file) as app:
        found = app.sessions.find(session)
        messages = app.sessions.read_latest(found.id, last) if found.has_content else []
        runs = app.runs.list(session=found.id, limit=5)
    if as_json:
        print_json({"session": to_plain(found), "messages": list(messages)})
        return
    _print_summary(found, f"{', '.join(f'{r.id} ({r.state})' for r in runs)}")
    if len(messages) < found.message_count and found.has_content:
        click.echo(f"\n… {found.message_count - len(messages)} earlier messages")
    for message in messages:
        _print_message(message)


def _print_summary(found: SessionSummary, runs: str = "") -> None:
    shared = f"{found.parent}, which has the first {found.shared_count} messages"
    print_pairs(
        (
            ("session", found.id),
            ("name", clean_text(found.name or "")),
            ("begins with", clean_text(found.title)),
            ("begun", show_time(found.created)),
            ("changed", show_time(found.updated)),
            ("messages", str(found.message_count)),
            ("branch of", shared if found.parent else ""),
            ("written by", found.owner.describe() if found.owner else ""),
            ("content", "" if found.has_content else "not stored"),
            ("latest runs", runs),
        )
    )


def _print_message(message: CoreMessage) -> None:
    metadata = message["metadata"]
    who: str = message["role"]
    if metadata.get("tool_name"):
        who = f"{who} {metadata['tool_name']}"
    click.echo(f"\n{style_text(clean_text(who), bold=True)}")
    for line in message["content"].split("\n") if message["content"] else ():
        print_text(clean_text(line), indent=2)
    for call in metadata.get("tool_calls") or ():
        function = call.get("function") if isinstance(call.get("function"), dict) else call
        called = f"→ {function.get('name', '')} {function.get('arguments', '')}"
        print_text(style_text(clean_text(called), fg="cyan"), indent=2)
    parts = message.get("multipartContent") or ()
    kinds = [str(part.get("type")) for part in parts if isinstance(part, dict)]
    if kinds:
        print_text(clean_text(f"[{', '.join(kinds)}]"), indent=2)


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions search 'blue sky'\n"
    "  agent-host sessions search plug --limit 5 --json"
)
@click.argument("text")
@click.option("--limit", default=20, show_default=True, help="How many messages to show.")
@stored_options
def search(text: str, limit: int, config_file: Path | None, as_json: bool) -> None:
    """Find messages that contain all words of TEXT; the last may be a beginning."""
    with open_application(config_file) as app:
        found = app.sessions.search(text, limit)
    if as_json:
        print_json({"messages": [to_plain(each) for each in found]})
        return
    if not found:
        click.echo("Nothing was found.")
        return
    ids = {each.session for each in found}
    rows = [
        (short_id(each.session, ids), str(each.place), each.role, clean_text(each.excerpt))
        for each in found
    ]
    print_table(("session", "message", "by", "text"), rows)


@sessions.command(
    "export",
    epilog="\b\nExamples:\n  agent-host sessions export 01a1ecb391e0 > session.jsonl\n"
    "  agent-host sessions export notes --format markdown --output notes.md",
)
@click.argument("session", shell_complete=complete_with("complete_session"))
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="Exactly, or for people.",
)
@click.option("--output", type=_FILE, help="The file to write; by default standard output.")
@stored_options
def export_session(
    session: str, form: str, output: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Write SESSION with its runs as lines of JSON, or as Markdown."""
    if as_json and form == "markdown":
        raise click.UsageError("--json and --format markdown exclude each other")
    with open_application(config_file) as app:
        stored = app.sessions
        lines = (
            stored.export_markdown(session) if form == "markdown" else stored.export_lines(session)
        )
        _write_lines(lines, output, is_markdown=form == "markdown")


def _write_lines(lines: Iterable[str], output: Path | None, *, is_markdown: bool) -> None:
    if output is None or str(output) == "-":
        for line in lines:
            # JSON is ASCII; what a model said is for a terminal to obey unless it is cleaned.
            click.echo(clean_text(line) if is_markdown and is_terminal(sys.stdout) else line)
        return
    from agent_host.private import replace_private

    text = "".join(f"{line}\n" for line in lines)
    # Readable by the user alone, as the store is.
    replace_private(output.absolute(), text.encode("utf-8", "replace"))


@sessions.command(
    "import",
    epilog="\b\nExamples:\n  agent-host sessions import session.jsonl\n"
    "  agent-host sessions import - < session.jsonl",
)
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--as-new", is_flag=True, help="Give the session and its runs new ids.")
@stored_options
def import_session(file: Any, as_new: bool, config_file: Path | None, as_json: bool) -> None:
    """Store the session that FILE, an export as JSONL, holds."""
    with open_application(config_file) as app:
        made = app.sessions.import_lines(file, as_new=as_new)
    _print_made(made, as_json)


def _print_made(made: SessionSummary, as_json: bool) -> None:
    if as_json:
        print_json({"session": to_plain(made)})
    else:
        _print_summary(made)


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions branch 01a1ecb391e0\n"
    "  agent-host sessions branch notes --at 4 --name other-notes"
)
@click.argument("session", shell_complete=complete_with("complete_session"))
@click.option("--at", type=click.IntRange(0), help="After how many messages; by default all.")
@click.option("--name", help="What to call the new session.")
@stored_options
def branch(
    session: str, at: int | None, name: str | None, config_file: Path | None, as_json: bool
) -> None:
    """Make a session that begins as SESSION does, and goes its own way."""
    with open_application(config_file) as app:
        made = app.sessions.branch(session, at, name=name)
    _print_made(made, as_json)


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions rename 01a1ecb391e0 notes\n"
    "  agent-host sessions rename notes"
)
@click.argument("session", shell_complete=complete_with("complete_session"))
@click.argument("name", required=False)
@stored_options
def rename(session: str, name: str | None, config_file: Path | None, as_json: bool) -> None:
    """Call SESSION by NAME; without NAME it has none any more."""
    with open_application(config_file) as app:
        made = app.sessions.rename(session, name)
    _print_made(made, as_json)


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions delete 01a1ecb391e0\n"
    "  agent-host sessions delete notes 01a1ecb3 --yes"
)
@click.argument(
    "session", nargs=-1, required=True, shell_complete=complete_with("complete_session")
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@stored_options
def delete(session: tuple[str, ...], yes: bool, config_file: Path | None, as_json: bool) -> None:
    """Delete sessions with their runs, and every trace of what only they have said."""
    with open_application(config_file) as app:
        found = [app.sessions.find(each) for each in session]
        if not yes:
            if as_json or not is_terminal(sys.stdin):
                raise click.UsageError("give --yes where nobody can be asked")
            for each in found:
                click.echo(f"{each.id}  {clean_text(_title(each))}", err=True)
            click.confirm(f"Delete {len(found)} for ever?", abort=True, err=True)
        deleted = [app.sessions.delete(each.id) for each in found]
    if as_json:
        print_json({"deleted": [each.id for each in deleted]})
        return
    for each in deleted:
        click.echo(f"{each.id} is deleted.")


@sessions.command(
    epilog="\b\nExamples:\n  agent-host sessions action 01a1ecb391e0\n"
    "  agent-host sessions action notes compact --param keep=2"
)
@click.argument("session", shell_complete=complete_with("complete_session"))
@click.argument("action", required=False)
@click.option(
    "--param",
    "params",
    multiple=True,
    callback=parse_settings,
    metavar="KEY=VALUE",
    help="An input of the action; VALUE may be JSON.",
)
@click.option("--agent", metavar="NAME", help="The agent whose plugins offer the action.",
              shell_complete=complete_with("complete_agent"))  # fmt: skip
@stored_options
def action(
    session: str,
    action: str | None,
    params: dict[str, Any],
    agent: str | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Run ACTION, which a plugin offers, on SESSION; without ACTION list what is offered."""
    with open_application(config_file) as app:
        if action is None:
            offered = app.core.get_actions(app.request_config(agent))
            _print_actions(offered, as_json)
            return
        changed, result = app.execute_session_action(session, action, params, agent=agent)
    failure = result.get("error")
    if as_json:
        print_json({"session": changed.id, "result": to_plain(dict(result))})
    elif failure:
        click.echo(clean_text(f"{failure.get('type')}: {failure.get('message')}"), err=True)
    else:
        click.echo(f"{clean_text(action)} was run on {changed.id}.")
        if result.get("message"):
            click.echo(clean_text(result["message"]))
    if failure:
        raise click.exceptions.Exit(1)


def _print_actions(offered: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"actions": offered})
        return
    if not offered:
        click.echo("No active plugin offers an action.")
        return
    rows = [
        (
            clean_text(each["id"]),
            clean_text(each["plugin"]),
            clean_text(each.get("description") or each.get("label") or ""),
        )
        for each in offered
    ]
    print_table(("action", "plugin", "what it does"), rows)
