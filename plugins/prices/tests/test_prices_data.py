"""What the data of genai-prices says, in the host's own terms."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from agent_host_prices.vendors import find_prices


def at(year: int, month: int, day: int, hour: int = 12) -> float:
    return datetime(year, month, day, hour, tzinfo=timezone.utc).timestamp()


def find(provider: str, model: str, base_url: str | None = None, time: float | None = None) -> Any:
    return find_prices(provider, model, base_url, at(2026, 11, 1) if time is None else time)


def test_a_price_has_all_that_a_vendor_bills() -> None:
    assert find("anthropic", "claude-sonnet-4-5-20250929") == {
        "input": Decimal("3"),
        "cached_input": Decimal("0.3"),
        "cache_write": Decimal("3.75"),
        "cache_write_1h": Decimal("6"),
        "output": Decimal("15"),
        "search": Decimal("0.01"),
        "tiers": [
            {
                "above": 200_000,
                "input": Decimal("6"),
                "cached_input": Decimal("0.6"),
                "cache_write": Decimal("7.5"),
                "cache_write_1h": Decimal("12"),
                "output": Decimal("22.5"),
            }
        ],
    }


def test_a_price_is_that_of_its_day() -> None:
    assert find("openai", "o3", time=at(2025, 6, 9))["input"] == 10
    assert find("openai", "o3", time=at(2025, 6, 10))["input"] == 2


@pytest.mark.parametrize(
    ("provider", "model", "base_url"),
    [
        ("echo", "echo-1", None),
        ("openai", "no-such-model", None),
        ("openai", "gpt-5", "http://localhost:8000/v1"),
        ("openai-compatible", "gpt-5", None),
    ],
    ids=["no vendor", "no model", "another server", "any server"],
)
def test_what_the_data_does_not_have_is_not_known(
    provider: str, model: str, base_url: str | None
) -> None:
    assert find(provider, model, base_url) is None


def test_an_address_says_whose_prices_hold() -> None:
    own = find("openai", "gpt-5")
    assert own == find("openai", "gpt-5", "https://api.openai.com/v1")
    elsewhere = find("openai", "openai/gpt-oss-120b", "https://api.groq.com/openai/v1")
    assert elsewhere["input"] == Decimal("0.15")


def test_whatever_the_data_has_is_a_number_of_dollars() -> None:
    from genai_prices.data import providers

    found = 0
    for provider in providers:
        for model in provider.models:
            prices = find(provider.id, model.id)
            if prices is None:
                continue
            found += 1
            tiers = prices.pop("tiers", [])
            amounts = [*prices.values(), *(value for tier in tiers for value in tier.values())]
            assert all(isinstance(each, (Decimal, int)) and each >= 0 for each in amounts)
    assert found > 500


def test_the_data_is_imported_when_a_price_is_asked_for() -> None:
    program = (
        "import sys\n"
        "from agent_host_prices.plugin import GenaiPrices\n"
        "assert 'genai_prices' not in sys.modules\n"
        "plugin = GenaiPrices()\n"
        "assert plugin.model_prices('echo', 'echo-1', None, 1.8e9) is None\n"
        "assert 'genai_prices' not in sys.modules\n"
        "assert plugin.model_prices('openai', 'gpt-5', None, 1.8e9)['output']\n"
        "assert 'genai_prices' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
