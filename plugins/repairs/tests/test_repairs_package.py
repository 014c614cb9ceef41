"""The package as the host finds it: a descriptor that tells the truth, and quiet imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

from agent_hookspecs import API_VERSION, DESCRIPTOR_NAME, Entry
from agent_hookspecs.descriptor import split_entry
from agent_hookspecs.roles import Plugin
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.implementations import find_implementations
from agent_host_repairs.switch import REPAIRS

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_repairs").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
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


def test_the_entries_are_the_switch_and_the_five_repairs() -> None:
    assert [entry.name for entry in DESCRIPTOR.entries] == ["repairs", *REPAIRS]
    assert {entry.role for entry in DESCRIPTOR.entries} == {"feature"}


def test_each_repair_waits_for_a_tag_of_its_own() -> None:
    waits = {entry.name: entry.required_tags for entry in DESCRIPTOR.entries[1:]}
    assert waits == {name: (f"repair:{name}",) for name in REPAIRS}


@ENTRIES
def test_the_descriptor_agrees_with_the_class(entry: Entry) -> None:
    plugin = made(entry)
    assert (entry.role, entry.name, entry.label) == (plugin.role, plugin.name, plugin.label)
    assert entry.default_enabled is plugin.default_enabled
    assert (entry.before, entry.after) == (tuple(plugin.before), tuple(plugin.after))
    assert entry.priority == plugin.priority


@ENTRIES
def test_the_descriptor_agrees_with_the_hooks(entry: Entry) -> None:
    plugin = made(entry)
    found = find_implementations(plugin, "feature", plugin.name)
    for key in ("required_tags", "forbidden_tags"):
        answer = found[key][0].call() if key in found else []
        assert getattr(entry, key) == tuple(answer)
    assert set(entry.dynamic) == {"get_tags", "is_enabled", "get_models"} & set(found)
    schema = found["get_config_schema"][0].call() if "get_config_schema" in found else {}
    assert entry.config_schema == schema


def test_the_readme_names_every_repair_and_every_setting() -> None:
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
    known = set(re.findall(r"`([a-z_]+)`", readme))
    settings = {key for entry in DESCRIPTOR.entries for key in entry.config_schema}
    assert {*REPAIRS, *settings} <= known


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
    assert imported_by("agent_host_repairs") == {"agent_host_repairs"}


def test_the_plugins_import_only_the_contract() -> None:
    modules = [split_entry(entry.entry)[0] for entry in DESCRIPTOR.entries]
    assert imported_by(*modules) <= {"agent_host_repairs", "agent_hookspecs", "pluggy"}
