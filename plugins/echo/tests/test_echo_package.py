"""What the descriptor of the package promises beyond what every package is asked."""

from __future__ import annotations

import json
from importlib.resources import files

from agent_hookspecs.descriptor import DESCRIPTOR_NAME
from agent_host.plugins.descriptor import parse_descriptor
from agent_host_echo.provider import EchoProvider

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_echo").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)


def test_the_provider_is_the_only_fallback() -> None:
    assert [entry.name for entry in DESCRIPTOR.entries if entry.fallback] == ["echo"]


def test_static_tags_are_what_every_model_has() -> None:
    (entry,) = (entry for entry in DESCRIPTOR.entries if entry.role == "provider")
    provider = EchoProvider()
    models = provider.get_models()
    tags = [set(provider.get_tags({"model": model["id"]}, models)) for model in models]
    assert set(entry.provides_tags) == set.intersection(*tags, set(provider.get_tags({}, [])))
