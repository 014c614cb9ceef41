"""What OpenRouter's list of models tells beyond ids: efforts, prices and window.

Owns the reading of an entry's ``reasoning`` and ``pricing``. Which parameters a model takes is read
by the base, as for every listing that has ``supported_parameters``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.authoring.knobs import EFFORTS

__all__ = ["described", "listed_efforts"]

#: Our word for a price, and the listing's. Prices are in dollars per token.
_PRICES = {
    "input": "prompt",
    "output": "completion",
    "cached_input": "input_cache_read",
    "cache_write": "input_cache_write",
    "request": "request",
}


def described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The efforts and prices of an entry under our own names."""
    found: dict[str, Any] = {"efforts": listed_efforts(entry)}
    pricing = entry.get("pricing")
    if isinstance(pricing, Mapping):
        prices = {name: _number(pricing.get(key)) for name, key in _PRICES.items()}
        found["prices"] = {name: price for name, price in prices.items() if price is not None}
    return found


def listed_efforts(entry: Mapping[str, Any]) -> list[str]:
    """The efforts that a model knows: null means all of them, no word of efforts means none."""
    reasoning = entry.get("reasoning")
    if not isinstance(reasoning, Mapping) or "supported_efforts" not in reasoning:
        return []
    efforts = reasoning["supported_efforts"]
    if efforts is None:
        return list(EFFORTS)
    return [effort for effort in EFFORTS if isinstance(efforts, list) and effort in efforts]


def _number(price: object) -> float | None:
    try:
        return float(price) if isinstance(price, (str, int, float)) else None
    except ValueError:
        # Nothing is lost: a price that is no number is none.
        return None
