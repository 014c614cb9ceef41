"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "REQUEST_OPTIONS",
    "cassette_options",
    "check_exclusive",
    "complete_with",
    "config_option",
    "decode_value",
    "offer_options",
    "parse_pairs",
    "parse_settings",
    "request_options",
    "talk_options",
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


def check_exclusive(options: Mapping[str, object]) -> None:
    """Refuse two of these options at once."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other")


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


#: Whom to ask, as every command says it that is about a request.
REQUEST_OPTIONS = (
    click.option("--agent", metavar="NAME", shell_complete=complete_with("complete_agent"),
                 help="An agent of the config."),
    click.option("--provider", metavar="NAME", shell_complete=complete_with("complete_provider"),
                 help="A provider alias of the config, or a plugin id."),
    click.option("--model", metavar="ID", shell_complete=complete_with("complete_model"),
                 help="The model: PROVIDER/ID, an alias, an id, or a part of one."),
)  # fmt: skip

#: Which tools are on offer and what else is set, of a request that is made or explained.
_OFFER_OPTIONS = (
    click.option("--tools", multiple=True, metavar="PATTERN", help="Offer only tools that match.",
                 shell_complete=complete_with("complete_tool")),
    click.option("--no-tools", is_flag=True, help="Offer no tools."),
    click.option("--set", "settings", multiple=True, callback=parse_settings, metavar="KEY=VALUE",
                 help="A further setting of the requests; VALUE may be JSON.",
                 shell_complete=complete_with("complete_setting")),
)  # fmt: skip

#: In which session, and how it looks, as both ``run`` and ``chat`` say it.
_SESSION_OPTIONS = (
    click.option("--system", metavar="TEXT", help="The system prompt of a new session."),
    click.option("--continue", "go_on", is_flag=True, help="Go on with the latest session."),
    click.option("--session", metavar="ID|NAME", help="The stored session to go on with.",
                 shell_complete=complete_with("complete_session")),
    click.option("--name", "session_name", metavar="NAME", help="What to call a new session."),
    click.option("--no-store", is_flag=True, help="Store nothing of it."),
    click.option("--budget", type=click.FloatRange(min=0), metavar="USD",
                 help="Send nothing more once a run would cost more US dollars than this."),
    click.option("--plain", is_flag=True,
                 help="Lines alone, nothing drawn: for screen readers and simple terminals."),
)  # fmt: skip
#: Of these only one says which session it is.
_SESSION_CHOICES = {
    "--no-store": "no_store",
    "--continue": "go_on",
    "--session": "session",
    "--name": "session_name",
}
#: The config file of a command that makes requests.
config_option = click.option(
    "--config", "config_file", type=click.Path(path_type=Path, dir_okay=False),
    help="The config file; by default agent-host.json or .toml here, then your own.",
)  # fmt: skip


#: Whether what goes over the wire is kept, or comes from what was kept.
_CASSETTE_OPTIONS = (
    click.option("--record", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
                 help="Write every request and its answer into FOLDER."),
    click.option("--replay", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
                 help="Send nothing: take all answers from FOLDER. No key is needed."),
)  # fmt: skip


def cassette_options(command: F) -> F:
    """Give a command ``record`` and ``replay``, of which only one may be given."""

    @wraps(command)
    def call_with_cassettes(**given: Any) -> Any:
        check_exclusive({f"--{name}": given[name] for name in ("record", "replay")})
        return command(**given)

    return cast(F, _add_options(call_with_cassettes, _CASSETTE_OPTIONS))


def request_options(command: F) -> F:
    """Give a command the options that say whom to ask."""
    return _add_options(command, REQUEST_OPTIONS)


def offer_options(command: F) -> F:
    """Give a command the options about tools and settings, as ``use_tools`` and ``settings``."""

    @wraps(command)
    def call_with_tools(*, tools: tuple[str, ...], no_tools: bool, **given: Any) -> Any:
        check_exclusive({"--tools": tools, "--no-tools": no_tools})
        return command(use_tools=() if no_tools else (tools or None), **given)

    return cast(F, _add_options(call_with_tools, _OFFER_OPTIONS))


def talk_options(command: F) -> F:
    """Give a command all that a run takes: whom to ask, with what, and in which session."""

    @wraps(command)
    def call_with_session(*, budget: float | None, **given: Any) -> Any:
        check_exclusive({option: given[name] for option, name in _SESSION_CHOICES.items()})
        return command(limits=None if budget is None else {"max_cost": budget}, **given)

    in_session = _add_options(call_with_session, _SESSION_OPTIONS)
    with_offer = offer_options(in_session)
    return cast(F, _add_options(with_offer, (config_option, *REQUEST_OPTIONS)))


def _add_options(command: F, options: Sequence[Callable[[Any], Any]]) -> F:
    """The command with these options, before those that it has."""
    decorated: Any = command
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
