"""``agent-host demo``: a short tour that needs neither network nor configuration."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.asking import ask_approval
from agent_host.cli.outside import clean_text
from agent_host.cli.render import print_json, print_table, print_text, style_text
from agent_host.cli.screen import Screen, quiet_logs

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.sessions.session import Session

__all__ = ["demo"]

#: The pause between two words of an answer, so that it can be seen to stream.
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
    approve: Any = ask_approval if person and not yes else lambda approval: "once"
    with AgentApplication({}, tools=[take_note], approve=approve) as app:
        if as_json:
            print_json(_summary(app, notes))
        else:
            _give_tour(app)


def _give_tour(app: AgentApplication) -> None:
    print_text("Agent Host in a minute. Nothing here leaves this machine.")
    _show_discovery(app)
    _show_gating(app)
    _print_step(
        "A stream",
        "The echo model does what the lines of a prompt say. What it thinks is dimmed, what it "
        "says comes word by word.",
    )
    session = _send_prompt(app, _GREETING, None)
    _print_step("A tool call", "The tool writes, so it does not run before somebody has said yes.")
    session = _send_prompt(app, _CALL, session)
    _show_afterwards(app, session)
    _print_step("What next")
    print_table(
        ("TRY", "TO"),
        [
            ('agent-host run "Hello"', "send a prompt of your own"),
            ("agent-host plugins explain", "see a whole decision, round by round"),
            ("agent-host config schema", "see what can be configured"),
        ],
    )


def _print_step(title: str, text: str = "") -> None:
    click.echo(f"\n{style_text(title, bold=True)}")
    if text:
        print_text(text)
    click.echo()


def _show_discovery(app: AgentApplication) -> None:
    _print_step("Discovery", "Plugins announce themselves in package metadata; none is imported.")
    print_table(
        ("NAME", "ROLE", "FROM"),
        [
            (clean_text(record.name), record.role or "?", clean_text(record.bundle.owner))
            for record in app.core.stacks.catalog
        ],
    )


def _show_gating(app: AgentApplication) -> None:
    _print_step("Gating", "Tags decide who takes part. The same request, to two models:")
    models = [model["id"] for model in app.core.get_models({})][:2]
    decisions = {model: app.core.resolution({"model": model}).gating for model in models}
    everywhere = set.intersection(*(set(gating.rejected) for gating in decisions.values()))
    for model, gating in decisions.items():
        click.echo(f"  {clean_text(model)}")
        for plugin in gating.enabled:
            print_text(clean_text(plugin), indent=6, first=style_text("    +", fg="green"))
        for plugin in sorted(set(gating.rejected) - everywhere):
            text = clean_text(f"{plugin}: {gating.rejected[plugin]}")
            print_text(text, indent=6, first=style_text("    -", fg="red"))
    if everywhere:
        click.echo(f"  {len(everywhere)} more take part in neither; plugins explain says why.")


def _send_prompt(app: AgentApplication, prompt: str, session: Session | None) -> Session:
    for line in prompt.splitlines():
        click.echo(f"{style_text('>', bold=True)} {line}")
    click.echo()
    screen = Screen(together=True)
    # Named, for nobody has to be told who answers in a demo.
    provider = app.core.stacks.catalog.provider(None).name
    with app.stream(prompt, session=session, provider=provider) as stream:
        for event in stream:
            screen.show(event)
            if event["type"] == "partial" and sys.stdout.isatty():
                time.sleep(_PACE_SECONDS)
    return stream.session


def _show_afterwards(app: AgentApplication, session: Session) -> None:
    click.echo()
    for decision in app.decisions:
        verdict = "allowed" if decision.allowed else "denied"
        print_text(f"Recorded: {decision.use.name} was {verdict}, {decision.reason}.")
    natives = len(session.metadata.get("native_messages", ()))
    print_text(
        f"Kept: a session of {len(session.messages)} messages, and the {natives} native ones "
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
