"""What several answers have used together: the one place where tokens and costs are added."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from agent_hookspecs.messages import Usage

__all__ = ["add_usage", "cost_of"]


def add_usage(total: Usage, usage: Usage) -> Usage:
    """Both together. A count that only one of them has is that one's.

    What it costs is known only if it is known of both. The providers' own numbers stay where they
    are: with the messages.
    """
    known, more = _numbers(total), _numbers(usage)
    added = {**known, **{key: known.get(key, 0) + value for key, value in more.items()}}
    if known and more:
        costs = [cost_of(known), cost_of(more)]
        added.pop("cost", None)
        if None not in costs:
            # As decimals: what was written with few digits adds up to few digits.
            added["cost"] = float(sum(filter(None, costs), Decimal(0)))
    return cast(Usage, added)


def _numbers(usage: Usage) -> dict[str, Any]:
    given: Mapping[str, Any] = usage
    return {
        key: value
        for key, value in given.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def cost_of(usage: Mapping[str, Any]) -> Decimal | None:
    """The cost in US dollars; None if it is not known."""
    cost = usage.get("cost")
    return None if cost is None else Decimal(str(cost))
