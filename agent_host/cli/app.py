"""The root command: finds its subcommands without importing them, and ends every run cleanly.

Exit codes are documented in ``EXIT_CODES``. No traceback reaches a user unless AGENT_HOST_DEBUG is
set.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_hookspecs.errors import AgentError, PluginError
from agent_host.cli.event_lines import fault_error, interruption_error, print_event
from agent_host.cli.lazy import LazyGroup
from agent_host.cli.render import (
    print_error,
    print_json,
    print_traceback,
    print_wrapped,
    style_text,
)
from agent_host.places import ignored_variables

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.plugins.catalog import PluginRecord

__all__ = ["EXIT_CODES", "root", "run"]

EXIT_CODES = {
    0: "done",
    1: "something failed, or --strict or doctor found a problem",
    2: "the command line is wrong",
    3: "the answer is not whole: refused, cut off, withheld or at a limit",
    70: "a fault of agent-host itself",
    130: "interrupted; 143 if by SIGTERM, 129 if its terminal is gone",
}

#: Of a command whose terminal is gone.
_HUNG_UP = 129

#: Each command with the module that has it and its line in the help.
_COMMANDS = {
    "chat": ("agent_host.cli.chat.command", "Talk with an agent."),
    "compare": ("agent_host.cli.compare", "Ask several models the same, and check it."),
    "config": ("agent_host.cli.config", "Make, change, check and show the configuration."),
    "keys": ("agent_host.cli.keys", "Keep and try out the keys of providers."),
    "models": ("agent_host.cli.models", "List the models that can be asked."),
    "demo": ("agent_host.cli.demo", "Tour the host offline, in a minute."),
    "run": ("agent_host.cli.run", "Send a prompt to an agent."),
    "batch": ("agent_host.cli.batch", "Send many prompts, and go on where it ended."),
    "runs": ("agent_host.cli.runs", "See, decide, stop and resume runs."),
    "tools": ("agent_host.cli.tools", "See tools, and those you need not be asked about."),
    "sessions": ("agent_host.cli.sessions", "See, search, move and branch sessions."),
    "completion": ("agent_host.cli.completion", "Print the completion script of your shell."),
    "plugins": ("agent_host.cli.plugins", "See, explain and check plugins."),
}


#: What people do, and with which commands; what is in none of them is from plugins.
_GROUPS = {
    "Talk": ("chat", "run", "batch", "compare", "demo"),
    "Set up": ("keys", "models", "config", "completion"),
    "Look back": ("sessions", "runs"),
    "Extend and understand": ("plugins", "tools"),
}


class _Root(LazyGroup):
    """The root group; plugins may add commands of their own."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Nothing is lost: whoever read our output has seen enough; click would make an error
            # of it.
            return _close_output()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_plugin_commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _load_plugin_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = self.help_rows(ctx)
        for title, names in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, rows.pop(name)) for name in names if name in rows])
        if rows:
            with formatter.section("From plugins"):
                formatter.write_dl(sorted(rows.items()))

    def help_rows(self, ctx: click.Context) -> dict[str, str]:
        added = {name: f"From plugin {record.name}." for name, record in _plugin_commands().items()}
        return super().help_rows(ctx) | added


def _plugin_commands() -> dict[str, PluginRecord]:
    """The commands that descriptors announce, each with the first that does; never a built-in."""
    from agent_host.plugins.load import load_catalog

    return {
        command: record
        for record in reversed(load_catalog().records)
        if record.usable and record.entry is not None
        for command in record.entry.commands
        if command not in _COMMANDS
    }


def _load_plugin_command(name: str) -> click.Command | None:
    from agent_host.plugins.activate import Activator

    record = _plugin_commands().get(name)
    if record is None:
        return None
    plugin = Activator().load(record)
    command = plugin.ask_host("cli_command", name=name, open_application=_open_application)
    if isinstance(command, click.Command):
        return command
    raise PluginError(
        f"plugin {record.name!r} announces the command {name!r} but does not give it",
        plugin=record.name,
        hint="its cli_command hook must return a click command for that name",
    )


def _open_application(config_file: str | Path | None = None) -> AgentApplication:
    from agent_host.application import AgentApplication

    return AgentApplication(config_file)


@click.group(
    cls=_Root,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  agent-host run --model echo/echo-1 'Hello'\n"
    "  agent-host keys list\n"
    "  agent-host models --provider echo\n"
    "  agent-host config path\n"
    "  agent-host sessions list\n"
    "  agent-host plugins explain --model echo/echo-reasoner\n\n\b\nExit codes:\n"
    + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items()),
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
    lines = as_json and _prints_events(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A plugin may have any name; a terminal that cannot show it is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for ignored in ignored_variables():
        print_wrapped(style_text(f"warning: {ignored}", fg="yellow"))
    try:
        result = root.main(list(arguments), prog_name="agent-host", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if code == _HUNG_UP:
            # Where the terminal was nothing can be written, and Python would exit with a code of
            # its own.
            return _close_output(code)
        # What is still buffered may meet a closed pipe; that belongs to this run, not to exit.
        sys.stdout.flush()
        return code
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return _report_error(interruption_error(), 130, as_json, lines) if lines else 130
    except click.ClickException as wrong:
        context = getattr(wrong, "ctx", None)
        if context and not as_json and wrong.message == context.get_help():
            # Nothing is wrong with a command that was only begun; newer versions of click say so.
            click.echo(wrong.message)
            return 0
        hint = f"see {context.command_path} --help" if context else ""
        error = {"type": "UsageError", "message": wrong.format_message(), "hint": hint}
        return _report_error(error, wrong.exit_code, as_json, lines)
    except BrokenPipeError:
        # Nothing is lost: whoever read our output has seen enough of it.
        return _close_output()
    except AgentError as failure:
        print_traceback(failure)
        return _report_error(failure.to_dict(), 1, as_json, lines)
    except Exception as fault:
        print_traceback(fault)
        return _report_error(fault_error(fault), 70, as_json, lines)


def _close_output(code: int = 0) -> int:
    """Write no more: nobody reads our output any more, and Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _prints_events(arguments: Sequence[str]) -> bool:
    """Whether the command prints a line of JSON for each event; then its end is one, too."""
    words = [each for each in arguments if not each.startswith("-")][:2]
    return words[:1] in (["run"], ["batch"]) or words in (["runs", "resume"], ["runs", "watch"])


def _report_error(error: Mapping[str, Any], code: int, as_json: bool, lines: bool) -> int:
    if lines:
        print_event({"type": "error", "error": error})
    elif as_json:
        print_json({"error": error})
    else:
        print_error(error["message"], error["hint"])
    return code
