"""What the descriptor of the package promises beyond what every package is asked."""

from __future__ import annotations

import json
from importlib.resources import files

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_host.plugins.descriptor import parse_descriptor

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_openai").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)


def test_the_key_is_secret_and_has_a_variable() -> None:
    provider = DESCRIPTOR.entries[0]
    assert provider.config_schema["api_key"]["secret"] is True
    assert provider.key_variable == "OPENAI_API_KEY"
