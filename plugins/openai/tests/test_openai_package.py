"""The package as the host finds it: a descriptor that tells the truth, and quiet imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

from agent_hookspecs import API_VERSION, DESCRIPTOR_NAME, Entry
from agent_hookspecs.descriptor import split_entry
from agent_hookspecs.roles import Plugin
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.implementations import find_implementations

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_openai").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("entry", DESCRIPTOR.entries, ids=lambda entry: entry.name)
def test_the_descriptor_agrees_with_the_code(entry: Entry) -> None:
    assert DESCRIPTOR.supports(API_VERSION)
    assert DESCRIPTOR.unknown_keys == ()
    module, name = split_entry(entry.entry)
    plugin = getattr(import_module(module), name)()
    assert isinstance(plugin, Plugin)
    assert (entry.role, entry.name, entry.label) == (plugin.role, plugin.name, plugin.label)
    assert entry.requires_api_key is getattr(plugin, "requires_api_key", False)
    assert entry.required_tags == tuple(getattr(plugin, "required_tags", ()))
    found = find_implementations(plugin, plugin.role, plugin.name)
    assert entry.config_schema == found["get_config_schema"][0].call()
    assert set(entry.dynamic) == {"get_tags"} & set(found)


def test_the_key_is_secret_and_has_a_variable() -> None:
    provider = DESCRIPTOR.entries[0]
    assert provider.config_schema["api_key"]["secret"] is True
    assert provider.key_variable == "OPENAI_API_KEY"


def test_importing_the_package_loads_no_plugin_and_no_vendor_code() -> None:
    source = (
        "import sys, agent_host_openai; assert 'agent_hookspecs' not in sys.modules;"
        "import agent_host_openai.provider;"
        "assert not {'openai', 'httpx', 'pydantic', 'agent_host'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
