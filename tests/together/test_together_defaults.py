"""Every bundled provider can be asked without naming a model, from what its descriptor says."""

from __future__ import annotations

import pytest

from agent_host.plugins.catalog import PluginRecord
from agent_host.plugins.load import load_catalog

PROVIDERS = {record.name: record for record in load_catalog().usable("provider")}


@pytest.mark.parametrize("record", PROVIDERS.values(), ids=PROVIDERS)
def test_a_provider_has_a_default_model_or_is_a_server_of_ones_own(record: PluginRecord) -> None:
    entry = record.entry
    assert entry is not None
    described = entry.config_schema.get("model", {})
    # What a server of one's own has is for its owner to say: the host takes what it lists.
    is_own = not entry.requires_api_key or entry.requires_base_url
    assert entry.default_model or described.get("default") or is_own


def test_one_local_server_counts_without_a_key() -> None:
    counting = {
        name for name, record in PROVIDERS.items() if record.entry and record.entry.local_server
    }
    assert counting == {"ollama"}
