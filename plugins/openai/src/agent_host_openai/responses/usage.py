"""Token counts as the Responses API reports them."""

from __future__ import annotations

from typing import Any

from agent_hookspecs.messages import Usage

__all__ = ["usage_of"]


def usage_of(raw: object) -> Usage | None:
    """The counts of a response; None when it has none."""
    if not isinstance(raw, dict) or not raw:
        return None
    usage: Usage = {}
    if (given := _count(raw, "input_tokens")) is not None:
        usage["input"] = given
    if (given := _count(raw, "output_tokens")) is not None:
        usage["output"] = given
    if (given := _count(raw.get("input_tokens_details"), "cached_tokens")) is not None:
        usage["cached_input"] = given
    if (given := _count(raw.get("output_tokens_details"), "reasoning_tokens")) is not None:
        usage["reasoning"] = given
    cost = raw.get("cost")
    if isinstance(cost, (int, float)) and not isinstance(cost, bool):
        usage["cost"] = float(cost)
    usage["raw"] = raw
    return usage


def _count(source: Any, key: str) -> int | None:
    value = source.get(key) if isinstance(source, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
