"""Finds a model in the data of genai-prices, and states its prices in the host's own terms.

The data comes with the installed package and nothing is fetched. It is asked through public names.
"""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot
from genai_prices.types import ModelPrice, TieredPrices

__all__ = ["find_prices"]

#: The host's names of prices, and those of the data.
_KEYS = {
    "input": "input_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
    "reasoning": "output_reasoning_mtok",
}
#: What the data has prices of by the thousand.
_THOUSANDS = {"request": "requests_kcount", "search": "web_searches_kcount"}

#: Vendors whose plugins have another name. The data would also take a name for that of a vendor
#: that has it in it, and whatever speaks a vendor's format is called like that.
_OTHER_NAMES = {"xai": "x-ai", "moonshot": "moonshotai"}

_SNAPSHOT = DataSnapshot(providers=providers, from_auto_update=False)
_VENDORS = {vendor.id: vendor for vendor in providers}


def find_prices(
    provider: str, model: str, base_url: str | None, time: float
) -> dict[str, Any] | None:
    """What a model of a vendor costs at a time; None if the data has no such model.

    With an address it is the vendor who has that address; what is served from elsewhere, such as
    one's own machine, has no price there.
    """
    vendor = _VENDORS.get(_OTHER_NAMES.get(provider, provider))
    if base_url is not None:
        try:
            vendor = _SNAPSHOT.find_provider(None, None, base_url)
        except LookupError:
            # Nothing is lost: what the data does not have is not known.
            return None
    found = None if vendor is None else vendor.find_model(model, all_providers=providers)
    if found is None:
        return None
    prices = _state_prices(found.get_prices(datetime.fromtimestamp(time, timezone.utc)))
    return prices if "input" in prices and "output" in prices else None


def _state_prices(prices: ModelPrice) -> dict[str, Any]:
    stated: dict[str, Any] = {}
    tiers: dict[int, dict[str, Any]] = {}
    for name, key in _KEYS.items():
        price = getattr(prices, key)
        if isinstance(price, TieredPrices):
            stated[name] = price.base
            for tier in price.tiers:
                tiers.setdefault(tier.start, {"above": tier.start})[name] = tier.price
        elif price is not None:
            stated[name] = price
    for name, key in _THOUSANDS.items():
        price = getattr(prices, key)
        if isinstance(price, Decimal):
            stated[name] = price / 1000
    if tiers:
        stated["tiers"] = [tiers[start] for start in sorted(tiers)]
    return stated
