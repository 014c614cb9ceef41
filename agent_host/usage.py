"""What several answers have used together: the one place where tokens and costs are added.

What comes in is looked at first: a negative cost would give back what a budget has counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from agent_hookspecs.messages import Usage

__all__ = ["add_usage", "check_usage", "cost_of", "describe_wrong_usage"]


def check_usage(usage: Mapping[str, Any]) -> tuple[Usage, list[str]]:
    """The usage without numbers that nothing can have used, and those in words."""
    wrong = [
        key
        for key, value in usage.items()
        if isinstance(value, (int, float)) and not 0 <= value < math.inf
    ]
    known = {key: value for key, value in usage.items() if key not in wrong}
    return cast(Usage, known), [f"{key} is {usage[key]}" for key in wrong]


def describe_wrong_usage(provider: str, wrong: list[str]) -> str:
    """What to say of numbers that `check_usage` has left out."""
    return f"{provider} says of its answer that {' and '.join(wrong)}, which is not counted"


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
