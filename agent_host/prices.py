"""What a model costs, and what an answer has cost by that: prices as values, and counting.

Where prices come from is not known here, nor what anybody does with a cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from agent_hookspecs.messages import Usage
from agent_hookspecs.values import dataclass

__all__ = ["ModelPrices", "count_cost", "read_prices"]

_MILLION = Decimal(1_000_000)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """US dollars for a million tokens; None where nothing is said.

    What was read from a cache or written to it costs what ``input`` does unless it says otherwise,
    and reasoning what ``output`` does. ``request`` is for one request, ``search`` for one search
    of the provider's own. ``tiers`` are the prices of requests with an input of more than so many
    tokens, the highest number first.
    """

    input: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    output: Decimal | None = None
    reasoning: Decimal | None = None
    request: Decimal | None = None
    search: Decimal | None = None
    tiers: tuple[tuple[int, ModelPrices], ...] = ()

    def for_input(self, tokens: int) -> ModelPrices:
        """The prices of a request with so many tokens of input; they hold for all of them."""
        return next((tier for above, tier in self.tiers if tokens > above), self)

    def times(self, share: Decimal) -> ModelPrices:
        """The prices where tokens cost that share of the usual; requests and searches do not."""
        tokens = {
            name: amount * share for name in _TOKENS if (amount := getattr(self, name)) is not None
        }
        tiers = tuple((above, tier.times(share)) for above, tier in self.tiers)
        return replace(self, **tokens, tiers=tiers)

    def highest_cost(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """What a request can cost at most, if it has so many tokens; None if that is not known."""
        rates = self.for_input(input_tokens)
        given = [each for each in (rates.input, rates.cache_write) if each is not None]
        said = [each for each in (rates.output, rates.reasoning) if each is not None]
        if not given or not said:
            return None
        tokens = input_tokens * max(given) + output_tokens * max(said)
        return tokens / _MILLION + (rates.request or 0)


#: The prices of tokens and requests, by the keys that they have everywhere.
_AMOUNTS = tuple(name for name in ModelPrices.__slots__ if name != "tiers")
_TOKENS = tuple(name for name in _AMOUNTS if name not in ("request", "search"))


def read_prices(given: Mapping[str, Any]) -> ModelPrices:
    """The prices that a config or a plugin states; a ValueError says what is wrong with them."""
    prices = ModelPrices(**_read_amounts(given))
    tiers = given.get("tiers", ())
    if isinstance(tiers, (str, Mapping)) or not isinstance(tiers, Iterable):
        raise ValueError(f"tiers must be a list, not {type(tiers).__name__}")
    return replace(prices, tiers=tuple(sorted(_read_tiers(prices, tiers), reverse=True)))


def _read_tiers(prices: ModelPrices, tiers: Iterable[Any]) -> Iterable[tuple[int, ModelPrices]]:
    for tier in tiers:
        above = tier.get("above") if isinstance(tier, Mapping) else None
        if not isinstance(above, int) or isinstance(above, bool) or above < 0:
            raise ValueError(f"a tier has no whole number of tokens as above: {above!r}")
        # What a tier does not mention costs what it costs below it.
        yield above, replace(prices, **_read_amounts(tier))


def _read_amounts(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _read_amount(name, given[name]) for name in _AMOUNTS if given.get(name) is not None
    }


def _read_amount(name: str, value: object) -> Decimal:
    """An amount of dollars. Numbers are taken as they are written, and not as they are stored."""
    if isinstance(value, (int, float, str, Decimal)) and not isinstance(value, bool):
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            # Nothing is lost: it is refused below.
            amount = Decimal("nan")
        if amount.is_finite() and amount >= 0:
            return amount
    raise ValueError(f"{name} is {value!r}, and no amount of dollars")


def count_cost(usage: Usage, prices: ModelPrices) -> Decimal | None:
    """What an answer has cost; None if a count or a price is missing that it takes.

    Tokens that were read from a cache or written to one are a part of the input, those of reasoning
    a part of the output: each is billed once.
    """
    whole_input, whole_output = _count(usage, "input"), _count(usage, "output")
    if whole_input is None or whole_output is None:
        return None
    rates = prices.for_input(whole_input)
    given = _first(_count(usage, "billed_input"), whole_input)
    said = _first(_count(usage, "billed_output"), whole_output)
    cached, written = _count(usage, "cached_input") or 0, _count(usage, "cache_write") or 0
    for_hour, reasoning = _count(usage, "cache_write_1h") or 0, _count(usage, "reasoning") or 0
    if "billed_input" in usage:
        # Less than the whole was billed, and nobody says of what.
        cached = written = for_hour = 0
    searches, writing = _count(usage, "searches") or 0, _first(rates.cache_write, rates.input)
    bill = (
        (given - cached - written, rates.input),
        (cached, _first(rates.cached_input, rates.input)),
        (written - for_hour, writing),
        (for_hour, _first(rates.cache_write_1h, writing)),
        (said - reasoning, rates.output),
        (reasoning, _first(rates.reasoning, rates.output)),
        (searches * 1_000_000, rates.search),
    )
    total = rates.request or Decimal(0)
    for count, rate in bill:
        if count < 0 or (count and rate is None):
            # Parts that are more than the whole are no bill that anybody could send.
            return None
        total += count * (rate or Decimal(0)) / _MILLION
    return total


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(known: T | None, otherwise: T) -> T:
    return otherwise if known is None else known
