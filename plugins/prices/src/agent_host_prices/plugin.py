"""The plugin: it says what models cost, and takes no part in requests."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import FeaturePlugin

__all__ = ["GenaiPrices"]

#: Providers that run on the user's own machine: nobody bills them, and nothing is imported.
_OWN_MACHINE = frozenset({"echo", "llamacpp", "lmstudio", "ollama", "vllm"})


class GenaiPrices(FeaturePlugin):
    """What the models of most vendors cost, as the installed genai-prices has it."""

    name = "prices"
    label = "Prices of models"
    default_enabled = False

    def model_prices(
        self, provider: str, model: str, base_url: str | None, time: float
    ) -> dict[str, Any] | None:
        if base_url is None and provider in _OWN_MACHINE:
            return None
        # Not above: the data and what it is checked with take half a second to import.
        from agent_host_prices.vendors import find_prices

        return find_prices(provider, model, base_url, time)
