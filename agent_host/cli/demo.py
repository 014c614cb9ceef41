"""``agent-host demo``: a short tour that needs neither network nor configuration."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.render import print_json, print_table, print_text, printable, styled
from agent_host.cli.screen import Screen, ask, quiet_logs

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.sessions.session import Session

__all__ = ["demo"]

#: Between two words of an answer, so that it can be seen to stream.
_PACE_SECONDS = 0.04

_GREETING = "/think A visitor. I should say hello.\nHello! I live inside this process."
_CALL = '/call take_note {"text": "plugins are fun"}'


@click.command(epilog="\b\nExamples:\n  agent-host demo\n  agent-host demo --yes")
@click.option("--yes", is_flag=True, help="Answer the question with yes.")
@click.option("--json", "as_json", is_flag=True, help="Print what happened as JSON.")
def demo(yes: bool, as_json: bool) -> None:
    """Tour discovery, gating, a stream, and a tool call with approval; offline."""
    from agent_hookspecs.authoring import tool
    from agent_host.application import AgentApplication

    quiet_logs()
    notes: list[str] = []

    @tool(effect="write")
    def take_note(text: str) -> str:
        """Write a note down for the rest of this demo."""
        notes.append(text)
        return f"noted ({len(notes)} so far)"

    person = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    approve: Any = ask if person and not yes else lambda approval: "once"
    with AgentApplication({}, tools=[take_note], approve=approve) as app:
        if as_json:
            print_json(_summary(app, notes))
        else:
            _tour(app)


def _tour(app: AgentApplication) -> None:
    print_text("Agent Host in a minute. Nothing here leaves this machine.")
    _discovery(app)
    _gating(app)
    _step(
        "A stream",
        "The echo model does what the lines of a prompt say. What it thinks is dimmed, what it "
        "says comes word by word.",
    )
    session = _talk(app, _GREETING, None)
    _step("A tool call", "The tool writes, so it does not run before somebody has said yes.")
    session = _talk(app, _CALL, session)
    _afterwards(app, session)
    _step("What next")
    print_table(
        ("TRY", "TO"),
        [
            ('agent-host run "Hello"', "send a prompt of your own"),
            ("agent-host plugins explain", "see a whole decision, round by round"),
            ("agent-host config schema", "see what can be configured"),
        ],
    )


def _step(title: str, text: str = "") -> None:
    click.echo(f"\n{styled(title, bold=True)}")
    if text:
        print_text(text)
    click.echo()


def _discovery(app: AgentApplication) -> None:
    _step("Discovery", "Plugins announce themselves in package metadata; none is imported yet.")
    print_table(
        ("NAME", "ROLE", "FROM"),
        [
            (printable(record.name), record.role or "?", printable(record.bundle.owner))
            for record in app.core.stacks.catalog
        ],
    )


def _gating(app: AgentApplication) -> None:
    _step("Gating", "Tags decide who takes part. The same request, to two models:")
    models = [model["id"] for model in app.core.get_models({})][:2]
    decisions = {model: app.core.resolution({"model": model}).gating for model in models}
    everywhere = set.intersection(*(set(gating.rejected) for gating in decisions.values()))
    for model, gating in decisions.items():
        click.echo(f"  {printable(model)}")
        for plugin in gating.enabled:
            print_text(printable(plugin), indent=6, first=styled("    +", fg="green"))
        for plugin in sorted(set(gating.rejected) - everywhere):
            text = printable(f"{plugin}: {gating.rejected[plugin]}")
            print_text(text, indent=6, first=styled("    -", fg="red"))
    if everywhere:
        click.echo(f"  {len(everywhere)} more take part in neither; plugins explain says why.")


def _talk(app: AgentApplication, prompt: str, session: Session | None) -> Session:
    for line in prompt.splitlines():
        click.echo(f"{styled('>', bold=True)} {line}")
    click.echo()
    screen = Screen(together=True)
    with app.stream(prompt, session=session) as stream:
        for event in stream:
            screen.show(event)
            if event["type"] == "partial" and sys.stdout.isatty():
                time.sleep(_PACE_SECONDS)
    return stream.session


def _afterwards(app: AgentApplication, session: Session) -> None:
    click.echo()
    for decision in app.decisions:
        verdict = "allowed" if decision.allowed else "denied"
        print_text(f"Recorded: {decision.use.name} was {verdict}, {decision.reason}.")
    kept = len(session.metadata.get("native_messages", ()))
    print_text(
        f"Kept: a session of {len(session.messages)} messages, and the {kept} native ones "
        "that the provider would get back, byte for byte."
    )


def _summary(app: AgentApplication, notes: list[str]) -> dict[str, Any]:
    answer = app.run(_CALL)
    return {
        "plugins": [record.key for record in app.core.stacks.catalog],
        "tags": app.core.get_tags({}),
        "answer": answer.text,
        "notes": notes,
        "decisions": [{"tool": d.use.name, "allowed": d.allowed} for d in app.decisions],
    }
