"""What a run costs: its answers priced, and budgets that stop it before they are passed.

Counting is the prices' affair, adding up that of a run. What the next request will cost is
estimated here: it is known for certain only afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.messages import CoreMessage, Limit, Usage
from agent_hookspecs.values import dataclass
from agent_host.agent.limits import Dollars
from agent_host.plugins.prices import PricedModel, Prices
from agent_host.prices import ModelPrices, count_cost

if TYPE_CHECKING:
    from agent_host.plugins.stack import Stack

__all__ = ["Budget", "RunCosts", "estimate_input", "find_passed"]

#: So many bytes make a token, in English as in scripts that take three bytes for a letter; most
#: text has fewer tokens than this says.
_BYTES_OF_TOKEN = 3
#: What a picture or a file is taken for, whose tokens nobody knows.
_TOKENS_OF_PART = 2000


@dataclass(slots=True)
class RunCosts:
    """Prices the answers of one run. ``account`` is whom the user calls the provider.

    ``share`` is what tokens cost from now on, of what they usually cost; None if nobody knows.
    """

    prices: Prices
    account: str | None = None
    share: Decimal | None = Decimal(1)
    #: The latest usage that was priced, and what came of it: it is asked for more than once.
    _latest: tuple[Usage, Usage] | None = field(default=None)

    def account_of(self, stack: Stack) -> str:
        """Who is billed: the provider under the name that the user has for it."""
        return self.account or stack.provider.name

    def find(self, stack: Stack, warn: Callable[[str], None]) -> ModelPrices | None:
        """What the model of a stack costs now."""
        model, base_url = stack.config.get("model"), stack.config.get("base_url")
        if not isinstance(model, str) or not model or self.share is None:
            return None
        address = base_url if isinstance(base_url, str) and base_url else None
        named = PricedModel(stack.provider.name, model, self.account_of(stack), address)
        found = self.prices.find(named, warn)
        return found if found is None or self.share == 1 else found.times(self.share)

    def add_cost(self, usage: Usage, stack: Stack, warn: Callable[[str], None]) -> Usage:
        """The usage with its cost, if the provider has told none and prices are known."""
        if usage.get("cost") is not None:
            return usage
        if self._latest is not None and self._latest[0] is usage:
            return self._latest[1]
        prices = self.find(stack, warn)
        cost = None if prices is None else count_cost(usage, prices)
        priced = usage if cost is None else cast(Usage, {**usage, "cost": float(cost)})
        self._latest = usage, priced
        return priced


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of dollars that is not to be passed, and what was spent of it."""

    limit: Limit
    amount: Decimal
    spent: Decimal

    @classmethod
    def of(cls, limit: Limit, amount: Dollars, spent: Decimal) -> Budget:
        return cls(limit, Decimal(str(amount)), spent)

    def describe(self, next_cost: Decimal | None) -> str:
        """Why nothing more is sent, for people."""
        text = f"{self.limit} is {_dollars(self.amount)}, and {_dollars(self.spent)} were spent"
        if next_cost is not None and self.spent < self.amount:
            text += f"; the next request may cost {_dollars(next_cost)}"
        also = "--budget or " if self.limit == "max_cost" else ""
        return f"{text}. Nothing more is sent; {also}tools.{self.limit} sets another amount"


def find_passed(budgets: Iterable[Budget], next_cost: Decimal | None) -> Budget | None:
    """The first budget that is used up, or that a request of this cost would pass.

    Where that cost is not known, it is the one that is used up.
    """
    for budget in budgets:
        left = budget.amount - budget.spent
        if left <= 0 or (next_cost is not None and next_cost > left):
            return budget
    return None


def estimate_input(messages: Iterable[CoreMessage], tools: Iterable[Mapping[str, Any]]) -> int:
    """About how many tokens a request has that sends these messages, rather more than fewer.

    What the latest answer has used is known; only what came after it is estimated.
    """
    tokens = 0
    for message in reversed(list(messages)):
        usage = message["metadata"].get("usage") or {}
        if message["role"] == "assistant" and isinstance(usage.get("input"), int):
            return tokens + int(usage["input"]) + int(usage.get("output") or 0)
        tokens += _tokens_of(message)
    return tokens + sum(_tokens_of_text(json.dumps(tool, default=str)) for tool in tools)


def _tokens_of(message: CoreMessage) -> int:
    calls = message["metadata"].get("tool_calls")
    text = message["content"] + (json.dumps(calls, default=str) if calls else "")
    parts = message.get("multipartContent") or ()
    return _tokens_of_text(text) + sum(map(_tokens_of_part, parts))


def _tokens_of_part(part: Mapping[str, Any]) -> int:
    content = part.get("content")
    text = content.get("text") if isinstance(content, Mapping) else None
    return _tokens_of_text(text) if isinstance(text, str) else _TOKENS_OF_PART


def _tokens_of_text(text: str) -> int:
    # Every message has a few tokens around it.
    return len(text.encode("utf-8", "replace")) // _BYTES_OF_TOKEN + 8


def _dollars(amount: Decimal) -> str:
    return f"${amount:.4f}".rstrip("0").rstrip(".") if amount >= Decimal("0.0001") else f"${amount}"
