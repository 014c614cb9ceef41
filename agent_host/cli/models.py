"""``agent-host models``: what can be asked, of all providers, and why some offer nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_host.cli.findings import format_count
from agent_host.cli.options import complete_with
from agent_host.cli.outside import clean_text
from agent_host.cli.render import is_terminal, print_json, print_table, print_wrapped, style_text
from agent_host.cli.screen import quiet_logs

if TYPE_CHECKING:
    from agent_host.application import AgentApplication
    from agent_host.listing import Listed, Unready
    from agent_host.plugins.model_facts import ModelFacts
    from agent_host.plugins.prices import PricedModel

__all__ = ["describe_age", "models", "show_progress"]

#: Younger than this, a list is as good as new.
_NEW_SECONDS = 60.0


@click.command(
    epilog="\b\nExamples:\n  agent-host models\n  agent-host models --provider echo\n"
    "  agent-host models tools mini --refresh\n  agent-host models --json"
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--provider", "providers", multiple=True, metavar="NAME",
              shell_complete=complete_with("complete_provider"),
              help="Only of this provider or alias; may be given again.")  # fmt: skip
@click.option("--refresh", is_flag=True, help="Ask again, also where a list is in the cache.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="How long to wait for each provider.")  # fmt: skip
@click.option("--config", "config_file", type=click.Path(path_type=Path, dir_okay=False),
              help="The config file.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def models(
    words: tuple[str, ...],
    providers: tuple[str, ...],
    refresh: bool,
    timeout: float | None,
    config_file: Path | None,
    as_json: bool,
) -> int:
    """List the models of all providers that can be asked; WORDs narrow it down.

    Size of the window and abilities are shown where the provider's listing has them, prices where
    it, the config or a plugin has them. Lists are kept for a day. Exits with 1 if no provider could
    be asked.
    """
    from agent_host.application import AgentApplication
    from agent_host.listing import ask_providers, find_askable

    quiet_logs()
    with AgentApplication(config_file) as app:
        ready, unready = find_askable(app)
        if providers:
            for name in providers:
                app.request_config(provider=name)
            ready, unready = list(providers), []
        with show_progress(len(ready)) as on_done:
            found = ask_providers(app, ready, refresh=refresh, timeout=timeout, on_done=on_done)
        rows = list(_model_rows(app, found, [word.lower() for word in words]))
    if as_json:
        print_json({"models": rows, "providers": _provider_rows(found, unready)})
    else:
        _print_models(rows, words)
        _print_notes(found, unready, providers)
    return 0 if any(each.error is None for each in found) else 1


def _model_rows(
    app: AgentApplication, found: Iterable[Listed], words: list[str]
) -> Iterator[dict[str, Any]]:
    from agent_host.plugins.model_facts import read_facts
    from agent_host.plugins.prices import PricedModel

    for listed in found:
        base_url = app.request_config(provider=listed.name).get("base_url") or None
        for model in listed.models:
            facts = read_facts(model)
            text = f"{listed.name}/{model['id']} {model.get('name')} {' '.join(facts.abilities)}"
            if all(word in text.lower() for word in words):
                priced = PricedModel(listed.provider, model["id"], listed.name, base_url)
                yield {
                    "provider": listed.name,
                    **_describe_model(model, _add_prices(app, priced, facts)),
                }


def _add_prices(app: AgentApplication, model: PricedModel, facts: ModelFacts) -> ModelFacts:
    """What is known of a model, with its prices: the user's own count more than a listing's."""
    listed = facts.input_price is not None and facts.output_price is not None
    prices = app.prices.find(model) if app.prices.states(model) or not listed else None
    if prices is None:
        return facts
    return replace(facts, input_price=prices.input, output_price=prices.output)


def _describe_model(model: Any, facts: ModelFacts) -> dict[str, Any]:
    return {
        "id": model["id"],
        "name": str(model.get("name") or ""),
        "window": facts.window,
        "abilities": list(facts.abilities),
        "input_price": _plain_number(facts.input_price),
        "output_price": _plain_number(facts.output_price),
    }


def _plain_number(price: Decimal | None) -> str | None:
    return None if price is None else f"{price.normalize():f}"


def _provider_rows(found: Iterable[Listed], unready: Iterable[Unready]) -> list[dict[str, Any]]:
    rows = [
        {
            "name": each.name,
            "provider": each.provider,
            "models": len(each.models),
            "age": round(each.age),
            "problem": each.error.message if each.error else None,
            "hint": each.error.hint if each.error else None,
        }
        for each in found
    ]
    return rows + [
        {"name": each.name, "provider": None, "models": 0, "age": None,
         "problem": f"set {' and '.join(each.missing)}", "hint": f"agent-host keys set {each.name}"}
        for each in unready
    ]  # fmt: skip


def _print_models(rows: list[dict[str, Any]], words: tuple[str, ...]) -> None:
    if not rows:
        click.echo(
            f"No model fits {' '.join(map(clean_text, words))!r}." if words else "No models."
        )
        return
    cells = [
        (
            clean_text(f"{row['provider']}/{row['id']}"),
            _short_count(row["window"]),
            _short_price(row),
            clean_text(", ".join(row["abilities"])),
        )
        for row in rows
    ]
    headings = ("MODEL", "WINDOW", "$ PER MILLION", "CAN")
    # A column in which nothing stands would only take room.
    used = [column for column in range(4) if any(row[column] for row in cells) or not column]
    print_table(
        [headings[column] for column in used], [[row[column] for column in used] for row in cells]
    )


def _short_count(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count / 1e6:.3g}M" if count >= 1_000_000 else f"{count / 1000:.4g}k"


def _short_price(row: dict[str, Any]) -> str:
    prices = [row["input_price"], row["output_price"]]
    return "" if None in prices else " / ".join(prices)


def _print_notes(found: list[Listed], unready: list[Unready], wanted: tuple[str, ...]) -> None:
    """Of how old the lists are, who gave none and why, and who was not asked."""
    old = [each for each in found if each.error is None and each.age > _NEW_SECONDS]
    if old:
        age = describe_age(max(each.age for each in old))
        _print_note(f"listed up to {age} ago; --refresh asks again")
    silent = [each.name for each in found if each.is_silent and each.name not in wanted]
    if silent:
        _print_note(f"no server answers for: {', '.join(silent)}")
    for each in found:
        if each.name in silent:
            continue
        if each.error is not None:
            _print_note(f"{each.name}: {each.error.explain()}", fg="yellow")
        elif not each.models:
            _print_note(f"{each.name}: it lists no models", fg="yellow")
    if unready:
        names = ", ".join(each.name for each in unready)
        count = format_count(len(unready), "provider")
        _print_note(f"{count} without a key or an address: {names}")


def _print_note(text: str, **how: Any) -> None:
    print_wrapped(style_text(clean_text(text), **(how or {"dim": True})))


def describe_age(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return format_count(int(seconds // size), unit)
    return format_count(int(seconds), "second")


@contextmanager
def show_progress(count: int) -> Iterator[Callable[[Listed], None]]:
    """A line on the terminal that says how many have answered, gone when all have."""
    if not is_terminal(sys.stderr) or not count:
        yield lambda listed: None
        return
    done = 0

    def show(listed: Listed | None = None) -> None:
        nonlocal done
        done += listed is not None
        text = f"asking {format_count(count, 'provider')}… {done} of {count}"
        click.echo(f"\r\x1b[K{style_text(text, dim=True)}", nl=False, err=True)

    show()
    try:
        yield show
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
