"""What the commands about stored sessions and runs share: opening the store, ids, times, JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from agent_host.application import AgentApplication

__all__ = ["open_application", "short_id", "show_time", "stored_options", "to_plain"]

F = TypeVar("F", bound=Callable[..., Any])

#: As many characters of an id as tell apart what was made in different milliseconds.
_SHORT = 12


def stored_options(command: F) -> F:
    """Give a command the options that all of them have."""
    config = click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The config file, which may name the store.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
    return config(as_json(command))


@contextmanager
def open_application(config_file: Path | None) -> Iterator[AgentApplication]:
    """An application with the store of the config, or the user's own; imports no plugin."""
    from agent_host.application import AgentApplication

    with AgentApplication(config_file, store=True) as app:
        yield app


def short_id(full: str, among: Iterable[str]) -> str:
    """The beginning of an id that tells it from the others."""
    others = [other for other in among if other != full]
    length = _SHORT
    while length < len(full) and any(other.startswith(full[:length]) for other in others):
        length += 2
    return full[:length]


def show_time(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""


def to_plain(value: Any) -> Any:
    """A value of the store as JSON can hold it."""
    from dataclasses import fields, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, Decimal) else value
