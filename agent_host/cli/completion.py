"""``agent-host completion``: scripts that let a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from agent_host.cli.render import print_json

__all__ = ["completion"]


@click.command(
    epilog="\b\nExamples:\n"
    '  eval "$(agent-host completion bash)"\n'
    "  agent-host completion zsh > ~/.zfunc/_agent-host\n"
    "  agent-host completion fish > ~/.config/fish/completions/agent-host.fish"
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    script = kind(context.find_root().command, {}, "agent-host", "_AGENT_HOST_COMPLETE").source()
    # click's script for fish would break descriptions off at their first comma.
    script = script.replace('string split ","', 'string split --max 1 ","')
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
