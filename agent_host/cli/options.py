"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "REQUEST_OPTIONS",
    "check_exclusive",
    "check_session_options",
    "complete_with",
    "decode_value",
    "parse_pairs",
    "parse_settings",
    "request_options",
]

F = TypeVar("F", bound=Callable[..., Any])


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


#: Whom to ask, as every command says it that is about a request.
REQUEST_OPTIONS = (
    click.option("--agent", metavar="NAME", shell_complete=complete_with("complete_agent"),
                 help="An agent of the config."),
    click.option("--provider", metavar="NAME", shell_complete=complete_with("complete_provider"),
                 help="A provider alias of the config, or a plugin id."),
    click.option("--model", metavar="ID", shell_complete=complete_with("complete_model"),
                 help="The model."),
)  # fmt: skip


def request_options(command: F) -> F:
    """Give a command the options that say whom to ask."""
    decorated: Any = command
    for option in reversed(REQUEST_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def check_exclusive(options: Mapping[str, object]) -> None:
    """Refuse two of these options at once."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other")


def check_session_options(
    *, no_store: bool, go_on: bool, session: str | None, session_name: str | None
) -> None:
    """Refuse two answers to the question which session it is."""
    check_exclusive(
        {
            "--no-store": no_store,
            "--continue": go_on,
            "--session": session,
            "--name": session_name,
        }
    )


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
    return {key: decode_value(text) for key, text in parse_pairs(context, option, values).items()}


def decode_value(text: str) -> Any:
    """A value as it is typed: JSON if it is some, else text."""
    try:
        return json.loads(text)
    except ValueError:
        # Nothing is lost: what is no JSON is a text.
        return text
