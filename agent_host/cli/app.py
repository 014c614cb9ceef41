"""The root command: finds its subcommands without importing them, and ends every run cleanly.

Exit codes are documented in ``EXIT_CODES``. No traceback reaches a user unless AGENT_HOST_DEBUG is
set.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from agent_hookspecs.errors import AgentError, PluginError
from agent_host.cli.lazy import LazyGroup
from agent_host.cli.render import print_error, print_json

__all__ = ["EXIT_CODES", "root", "run"]

EXIT_CODES = {
    0: "done",
    1: "something failed, or --strict or doctor found a problem",
    2: "the command line is wrong",
    70: "a fault of agent-host itself",
    130: "interrupted",
}

#: Command, the module that has it, and the line that stands in the help.
_COMMANDS = {
    "config": ("agent_host.cli.config", "Check and show the configuration."),
    "demo": ("agent_host.cli.demo", "Tour the host offline, in a minute."),
    "run": ("agent_host.cli.run", "Send a prompt to an agent."),
    "completion": ("agent_host.cli.completion", "Print the completion script of your shell."),
    "plugins": ("agent_host.cli.plugins", "See, explain and check plugins."),
}


class _Root(LazyGroup):
    """The root group; plugins may add commands of their own."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Here, because click itself would make an error of it.
            return _unheard()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_plugin_commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _plugin_command(cmd_name)

    def help_rows(self, ctx: click.Context) -> dict[str, str]:
        added = {name: f"From plugin {plugin}." for name, plugin in _plugin_commands().items()}
        return super().help_rows(ctx) | added


def _plugin_commands() -> dict[str, str]:
    """The commands that descriptors announce, and whose they are; built-in ones are not theirs."""
    from agent_host.plugins.load import load_catalog

    return {
        command: record.name
        for record in load_catalog()
        if record.usable and record.entry is not None
        for command in record.entry.commands
        if command not in _COMMANDS
    }


def _plugin_command(name: str) -> click.Command | None:
    from agent_host.plugins.activate import Activator
    from agent_host.plugins.load import load_catalog

    for record in load_catalog():
        if record.usable and record.entry is not None and name in record.entry.commands:
            command = Activator().load(record).ask_host("cli_command", name=name)
            if isinstance(command, click.Command):
                return command
            raise PluginError(
                f"plugin {record.name!r} announces the command {name!r} but does not give it",
                plugin=record.name,
                hint="its cli_command hook must return a click command for that name",
            )
    return None


def _exit_code_help() -> str:
    lines = [f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["\b", "Exit codes:", *lines])


@click.group(
    cls=_Root,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  agent-host plugins list\n"
    "  agent-host plugins explain --model echo-reasoner\n"
    f"  agent-host plugins doctor --json\n\n{_exit_code_help()}",
)
@click.option("-V", "--version", is_flag=True, help="Print the version and exit; --json with it.")
def root(version: bool) -> None:
    """Run LLM agents whose every capability is a plugin."""
    if version:
        from agent_host.cli import main

        raise click.exceptions.Exit(main(["--version"]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    as_json = "--json" in arguments
    for stream in (sys.stdout, sys.stderr):
        # Plugins may be called anything; a terminal that cannot show it is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        result = root.main(list(arguments), prog_name="agent-host", standalone_mode=False)
        # What is still buffered may meet a closed pipe; that belongs to this run, not to exit.
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except click.UsageError as wrong:
        if not as_json and wrong.ctx is not None and wrong.message == wrong.ctx.get_help():
            # Nothing is wrong with a command that was only begun; newer versions of click say so.
            click.echo(wrong.message)
            return 0
        return _report(wrong.format_message(), _usage_hint(wrong), wrong.exit_code, as_json)
    except click.ClickException as wrong:
        return _report(wrong.format_message(), _usage_hint(wrong), wrong.exit_code, as_json)
    except BrokenPipeError:
        return _unheard()
    except AgentError as error:
        if as_json:
            print_json({"error": error.to_dict()})
        else:
            print_error(error.message, error.hint)
        return 1
    except Exception as error:
        if os.environ.get("AGENT_HOST_DEBUG"):
            raise
        message = f"agent-host itself failed: {type(error).__name__}: {error}"
        return _report(
            message, "set AGENT_HOST_DEBUG=1 for the traceback and report it", 70, as_json
        )


def _unheard() -> int:
    """Whoever read our output has seen enough; Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _usage_hint(wrong: click.ClickException) -> str:
    context = getattr(wrong, "ctx", None)
    return f"see {context.command_path} --help" if context else ""


def _report(message: str, hint: str, code: int, as_json: bool) -> int:
    if as_json:
        kind = "UsageError" if code == 2 else "InternalError"
        document: dict[str, Any] = {"type": kind, "message": message, "hint": hint}
        print_json({"error": document})
    else:
        print_error(message, hint)
    return code
