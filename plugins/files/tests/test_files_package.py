"""The package as the host finds it: a descriptor that tells the truth, and quiet imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.resources import files
from typing import Any

import pytest

from agent_hookspecs import API_VERSION, DESCRIPTOR_NAME
from agent_hookspecs.descriptor import split_entry
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
)
from agent_host.plugins.descriptor import parse_descriptor
from agent_host.plugins.implementations import find_implementations, require_contract
from agent_host_files.declarations import SCHEMAS
from agent_host_files.patching import GRAMMAR
from agent_host_files.plugin import FilesTools

DESCRIPTOR = parse_descriptor(
    json.loads(files("agent_host_files").joinpath(DESCRIPTOR_NAME).read_text(encoding="utf-8"))
)
(ENTRY,) = DESCRIPTOR.entries


def test_the_descriptor_is_of_this_contract_and_has_no_unknown_keys() -> None:
    assert DESCRIPTOR.supports(API_VERSION)
    assert DESCRIPTOR.unknown_keys == ()


def test_the_descriptor_agrees_with_the_class() -> None:
    module, name = split_entry(ENTRY.entry)
    plugin = getattr(import_module(module), name)()
    assert isinstance(plugin, FilesTools)
    assert (ENTRY.role, ENTRY.name, ENTRY.label) == (plugin.role, plugin.name, plugin.label)
    assert ENTRY.default_enabled is plugin.default_enabled
    assert dict(ENTRY.tools) == dict(plugin.effects)
    assert ENTRY.config_schema == plugin.get_config_schema()
    assert ENTRY.dynamic == ()
    require_contract("tool", plugin, "files")
    found = find_implementations(plugin, "tool", "files")
    assert not {"is_enabled", "get_tags", "required_tags", "forbidden_tags"} & set(found)
    assert not any(each.by_position for several in found.values() for each in several)


def test_every_tool_has_a_schema_and_an_effect() -> None:
    views = [DEFAULT_TOOL_INTEROP_REGISTRY.inspect_schema(schema) for schema in SCHEMAS]
    assert [view.name for view in views if view] == list(ENTRY.tools)
    assert all(view is not None and view.description for view in views)


def converted(target: str) -> dict[str, dict[str, Any]]:
    warnings: list[str] = []
    schemas = DEFAULT_TOOL_INTEROP_REGISTRY.convert_schemas(
        FilesTools().get_tool_schemas(), target=ToolInteropTarget(target), warn=warnings.append
    )
    assert warnings == []
    return {(schema.get("function") or schema)["name"]: schema for schema in schemas}


def test_as_a_chat_function_apply_patch_takes_a_required_string_with_the_grammar() -> None:
    function = converted("openai.chat_completions.function")["apply_patch"]["function"]
    parameters = function["parameters"]
    assert parameters["required"] == ["input"]
    assert parameters["properties"]["input"]["type"] == "string"
    assert GRAMMAR in parameters["properties"]["input"]["description"]


def test_as_a_responses_tool_apply_patch_stays_freeform_and_the_others_are_functions() -> None:
    schemas = converted("openai.responses")
    assert schemas["apply_patch"] == SCHEMAS[-1]
    assert {name for name, schema in schemas.items() if schema["type"] == "function"} == {
        "read_file",
        "list_files",
        "search_files",
        "write_file",
    }


def test_schemas_are_handed_out_as_copies() -> None:
    FilesTools().get_tool_schemas()[0]["parameters"]["properties"].clear()
    assert "path" in FilesTools().get_tool_schemas()[0]["parameters"]["properties"]


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


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("agent_host_files", {"agent_host_files"}),
        ("agent_host_files.plugin", {"agent_host_files", "agent_hookspecs", "pluggy"}),
    ],
)
def test_imports_bring_nothing_but_the_contract(module: str, allowed: set[str]) -> None:
    assert imported_by(module) <= allowed
