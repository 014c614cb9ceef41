"""The package as the host finds it: a descriptor that tells the truth, and quiet imports."""

from __future__ import annotations

import json
import os
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
    json.loads(files("agent_host_echo").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)
ENTRIES = pytest.mark.parametrize("entry", DESCRIPTOR.entries, ids=lambda entry: entry.name)


def made(entry: Entry) -> Plugin:
    module, name = split_entry(entry.entry)
    plugin = getattr(import_module(module), name)(**entry.options)
    assert isinstance(plugin, Plugin)
    return plugin


def test_the_descriptor_is_of_this_contract_and_has_no_unknown_keys() -> None:
    assert DESCRIPTOR.supports(API_VERSION)
    assert DESCRIPTOR.unknown_keys == ()


def test_the_provider_is_the_only_fallback() -> None:
    assert [entry.name for entry in DESCRIPTOR.entries if entry.fallback] == ["echo"]


@ENTRIES
def test_the_descriptor_agrees_with_the_class(entry: Entry) -> None:
    plugin = made(entry)
    assert (entry.role, entry.name, entry.label) == (plugin.role, plugin.name, plugin.label)
    assert entry.default_enabled is plugin.default_enabled
    assert (entry.before, entry.after) == (tuple(plugin.before), tuple(plugin.after))
    assert entry.priority == plugin.priority
    for key in ("requires_api_key", "optional_api_key", "requires_base_url"):
        assert getattr(entry, key) is getattr(plugin, key, False)


@ENTRIES
def test_the_descriptor_agrees_with_the_hooks(entry: Entry) -> None:
    assert entry.role is not None
    plugin = made(entry)
    found = find_implementations(plugin, entry.role, plugin.name)
    for key in ("required_tags", "forbidden_tags"):
        answer = found[key][0].call() if key in found else []
        assert getattr(entry, key) == tuple(answer)
    asked = {"get_models", "get_tags", "get_tool_schemas", "is_enabled"}
    assert set(entry.dynamic) == asked & set(found)
    schema = found["get_config_schema"][0].call() if "get_config_schema" in found else {}
    assert entry.config_schema == schema


def test_static_tags_are_what_every_model_has() -> None:
    (entry,) = (entry for entry in DESCRIPTOR.entries if entry.role == "provider")
    found = find_implementations(made(entry), "provider", "echo")
    models = found["get_models"][0].call({})
    tags = [set(found["get_tags"][0].call({"model": model["id"]}, models)) for model in models]
    assert set(entry.provides_tags) == set.intersection(
        *tags, set(found["get_tags"][0].call({}, []))
    )


def imported_by(*modules: str) -> set[str]:
    """Top-level packages outside the standard library that importing ``modules`` brings along."""
    source = (
        "import sys; before = set(sys.modules)\n"
        + "".join(f"import {module}\n" for module in modules)
        + "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        + "sys.stdout.write(' '.join(new - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_importing_the_package_loads_no_plugin() -> None:
    assert imported_by("agent_host_echo") == {"agent_host_echo"}


def test_the_plugins_import_only_the_contract() -> None:
    modules = [split_entry(entry.entry)[0] for entry in DESCRIPTOR.entries]
    assert imported_by(*modules) <= {"agent_host_echo", "agent_hookspecs", "pluggy"}
