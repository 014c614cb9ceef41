"""``agent-host serve``: the gateway, and the keys of its clients."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agent_hookspecs import ConfigError
from agent_host_gateway.keys import Key, Keys

__all__ = ["make_group"]

OpenApplication = Callable[..., Any]

_CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The config file of the application.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def make_group(open_application: OpenApplication) -> click.Group:
    """The group of commands; the application is opened when one of them needs it."""

    @contextmanager
    def open_keys(config_file: Path | None) -> Iterator[Keys]:
        with open_application(config_file) as application:
            store = application.open_store()
            if store.url.endswith(":memory:"):
                raise ConfigError(
                    "the store of this config is memory, which nobody else could look into",
                    key="store",
                    hint="name a file or a database, or leave it out for the user's own file",
                )
            yield Keys(store)

    @click.group(
        "serve",
        invoke_without_command=True,
        epilog="\b\nExamples:\n  agent-host serve\n"
        "  agent-host serve keys add laptop --expires 30d\n"
        "  agent-host serve --host 0.0.0.0 --port 8080 --workers 4",
    )
    @click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
    @click.option("--port", default=4180, show_default=True, type=click.IntRange(0, 65535))
    @click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64))
    @_CONFIG
    @click.pass_context
    def group(
        context: click.Context, host: str, port: int, workers: int, config_file: Path | None
    ) -> None:
        """Offer all models and agents at one address, in the forms of three APIs.

        Clients of OpenAI's Chat Completions and Responses and of Anthropic's Messages find them
        under /v1, people a console at the address itself. Without keys only this machine is
        answered.
        """
        if context.invoked_subcommand is not None:
            return
        from agent_host_gateway.serving import AppMaker, is_open_to_all, serve

        with open_application(config_file) as application:
            # Once for all workers: one that is begun later may find other keys than there were.
            is_open = is_open_to_all(host, Keys(application.open_store()))
        maker = AppMaker(open_application, config_file, is_open)
        serve(maker, host, port, workers)

    @group.group(
        "keys",
        epilog="\b\nExamples:\n  agent-host serve keys add laptop\n  agent-host serve keys list",
    )
    def keys_group() -> None:
        """The keys of clients; providers' keys stay here."""

    @keys_group.command(
        "add",
        epilog="\b\nExamples:\n  agent-host serve keys add laptop\n"
        "  agent-host serve keys add ci --models 'openai/*' --expires 30d --budget 5",
    )
    @click.argument("name")
    @click.option("--models", multiple=True, help="A pattern of models; several times if need be.")
    @click.option("--expires", help="After how long it ends: 12h, 30d, 8w.")
    @click.option("--budget", type=click.FloatRange(0), help="US dollars that it may cost.")
    @click.option("--budget-tokens", type=click.IntRange(0), help="Tokens that it may use.")
    @click.option(
        "--per-minute", type=click.IntRange(1), help="Requests that it may make a minute."
    )
    @click.option("--console", is_flag=True, help="Let it open the console, and see all stored.")
    @_CONFIG
    @_JSON
    def add(
        name: str,
        models: tuple[str, ...],
        expires: str | None,
        budget: float | None,
        budget_tokens: int | None,
        per_minute: int | None,
        console: bool,
        config_file: Path | None,
        as_json: bool,
    ) -> None:
        """Make a key, and print it; it cannot be shown again."""
        with open_keys(config_file) as keys:
            key, secret = keys.add(
                name,
                models=models or None,
                expires=None if expires is None else time.time() + _seconds(expires),
                budget=budget,
                budget_tokens=budget_tokens,
                requests_per_minute=per_minute,
                console=console,
            )
        if as_json:
            click.echo(json.dumps({**_describe(key), "key": secret}))
        else:
            click.echo(secret)
            click.echo("It is shown this once; only its hash is kept.", err=True)

    @keys_group.command("list", epilog="\b\nExamples:\n  agent-host serve keys list")
    @_CONFIG
    @_JSON
    def list_keys(config_file: Path | None, as_json: bool) -> None:
        """List the keys, and what they allow."""
        with open_keys(config_file) as keys:
            found = keys.list()
        if as_json:
            click.echo(json.dumps([_describe(key) for key in found]))
            return
        if not found:
            click.echo("There are no keys.")
        for key in found:
            click.echo(f"{key.id}  {key.name}  {_summary(key)}")

    @keys_group.command("revoke", epilog="\b\nExamples:\n  agent-host serve keys revoke laptop")
    @click.argument("name")
    @_CONFIG
    @_JSON
    def revoke(name: str, config_file: Path | None, as_json: bool) -> None:
        """Take a key away, by its name or id; two seconds later it opens nothing any more."""
        with open_keys(config_file) as keys:
            key = keys.revoke(name)
        click.echo(json.dumps(_describe(key)) if as_json else f"{key.name} is revoked.")

    return group


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise click.BadParameter(
            f"{text!r} is no time; give 12h, 30d or 8w", param_hint="--expires"
        )
    return float(found[1]) * _UNITS[found[2]]


def _describe(key: Key) -> dict[str, Any]:
    return {name: value for name, value in asdict(key).items() if name != "hash"}


def _summary(key: Key) -> str:
    parts = [", ".join(key.models)]
    if key.expires is not None:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(key.expires))
        parts.append(f"{'expired' if key.is_expired else 'until'} {day}")
    if key.budget is not None:
        parts.append(f"at most {key.budget:g} US dollars")
    if key.budget_tokens is not None:
        parts.append(f"at most {key.budget_tokens} tokens")
    if key.requests_per_minute is not None:
        parts.append(f"{key.requests_per_minute} requests a minute")
    if key.console:
        parts.append("opens the console")
    return "; ".join(parts)
