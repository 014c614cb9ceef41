"""What models of other formats are told of the tools, whose own format is not every server's."""

from __future__ import annotations

from typing import Any

from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropTarget,
)
from agent_host_files.declarations import SCHEMAS
from agent_host_files.patching import GRAMMAR
from agent_host_files.plugin import FilesTools


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
