"""What is known of models before anybody asks their provider.

A provider keeps it as data in its package: rows with a ``match`` pattern and whatever the provider
wants to know, the first row that fits being the one that counts. A model of which nothing is known
has no facts, and works with the tags its provider gives to strangers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pkgutil import get_data
from typing import Any

from agent_hookspecs.messages import Config, ModelInfo

__all__ = ["facts_about", "load_facts", "selected_model"]

Facts = dict[str, Any]

_MAX_FOUND = 256


class _Rows(tuple[Facts, ...]):
    """Rows that do not change, and what was found in them before."""

    found: dict[str, Facts]


@cache
def load_facts(package: str, name: str = "models.json") -> tuple[Facts, ...]:
    """The rows of a data file in ``package``, read once and shared: nobody may change them."""
    rows = _Rows(json.loads(get_data(package, name) or b""))
    rows.found = {}
    return rows


def facts_about(model: object, rows: Iterable[Facts]) -> Facts:
    """The first row whose ``match`` fits the model's id, whatever the case; ``{}`` if none does.

    ``match`` is a shell pattern or a list of them.
    """
    if not isinstance(model, str) or not model:
        return {}
    if not isinstance(rows, _Rows):
        return _find_facts(model, rows)
    # Plugins ask several times a request, and there may be many rows.
    known = rows.found.get(model)
    if known is None:
        if len(rows.found) >= _MAX_FOUND:
            rows.found.clear()
        known = rows.found[model] = _find_facts(model, rows)
    return known


def _find_facts(model: str, rows: Iterable[Facts]) -> Facts:
    wanted = model.lower()
    for row in rows:
        patterns = row.get("match", ())
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if fnmatchcase(wanted, pattern.lower()):
                return row
    return {}


def selected_model(config: Config, models: Sequence[ModelInfo]) -> ModelInfo | None:
    """The entry of the list that ``config["model"]`` names, if the list has it."""
    wanted = config.get("model")
    return next((model for model in models if model.get("id") == wanted), None)
