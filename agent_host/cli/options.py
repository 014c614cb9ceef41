"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["parse_pairs", "parse_settings"]


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
        # Nothing is lost: what is no JSON is a text.
        return text
