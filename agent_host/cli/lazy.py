"""Groups whose commands are imported when they are called, so that the others start at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group with commands of its own, and with some that are named only.

    ``lazy`` maps each of those to the module that has it, under its name or as ``module:name``,
    and to the line that stands in the help.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), name or cmd_name)
        assert isinstance(command, click.Command)
        return command

    def help_rows(self, ctx: click.Context) -> dict[str, str]:
        """What the help says of each command; imports none."""
        own = {name: each.get_short_help_str(limit=100) for name, each in self.commands.items()}
        return own | {name: text for name, (_, text) in self.lazy.items()}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.help_rows(ctx).items()))
