"""The plugin in the host: a run knows its cost, and nothing is imported before."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("agent_host")

from agent_hookspecs import ProviderPlugin
from agent_host import AgentApplication
from agent_host_testing import FeatureConformance


class TestPrices(FeatureConformance):
    package = "agent_host_prices"
    plugin = "prices"


class Vendor(ProviderPlugin):
    """A provider that goes by the name of a vendor."""

    name = "openai"

    def call_api(self, native_messages: list[dict[str, Any]], state: dict[str, Any]) -> Any:
        usage = {"input": 1000, "output": 100, "cached_input": 800, "reasoning": 50}
        said = {"role": "assistant", "content": "Yes.", "_metadata": {"usage": usage}}
        return [], [said], native_messages, state


def run(**agent: Any) -> Any:
    config = {
        "allowed_plugins": ["prices"],
        "agents": {"default": {"provider": "openai", "model": "gpt-5", **agent}},
    }
    with AgentApplication(config) as app:
        app.core.register_provider(Vendor)
        return app.run("go")


def test_a_run_knows_what_it_costs() -> None:
    # 200 × 1.25 + 800 × 0.125 + 100 × 10 for a million.
    assert run().cost == Decimal("0.00135")


def test_what_no_vendor_serves_has_no_cost() -> None:
    assert run(base_url="http://localhost:1").cost is None
    assert run(model="of-my-own").cost is None
