"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["complete_with", "parse_pairs", "parse_settings"]


def complete_with(
    name: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What completes an option by a function of `agent_host.cli.complete`, imported when called."""

    def complete(
        context: click.Context, parameter: click.Parameter, begun: str
    ) -> list[CompletionItem]:
        found: list[CompletionItem] = getattr(import_module("agent_host.cli.complete"), name)(
            context, parameter, begun
        )
        return found

    return complete


def parse_pairs(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Make a dict of ``KEY=VALUE`` options."""
    found = dict(value.partition("=")[::2] for value in values)
    for key, value in found.items():
        if not key or not value:
            raise click.BadParameter("write it as KEY=VALUE", context, option)
    return found


def parse_settings(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """`parse_pairs` with JSON values decoded, so that ``false`` is not a string."""
    return {key: _decode_value(text) for key, text in parse_pairs(context, option, values).items()}


def _decode_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
