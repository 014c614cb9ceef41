"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["pairs", "settings"]


def pairs(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """``KEY=VALUE`` options as a dict."""
    found = dict(value.partition("=")[::2] for value in values)
    for key, value in found.items():
        if not key or not value:
            raise click.BadParameter("write it as KEY=VALUE", context, option)
    return found


def settings(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """`pairs` with values as JSON where they are JSON, so that ``false`` is not a string."""
    return {key: _value(text) for key, text in pairs(context, option, values).items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
