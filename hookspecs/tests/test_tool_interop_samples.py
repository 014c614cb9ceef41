"""The samples of the source documents, run as they stand against the interop package."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from agent_hookspecs import tool_interop
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolDescriptor,
    ToolInteropRegistry,
    ToolInteropTarget,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_hookspecs.tool_interop.openai_chat import (
    OpenAIChatFunctionFormat as OpenAIChatToolCallAccessor,
)
from agent_hookspecs.tool_interop.openai_responses import (
    OpenAIResponsesCustomFormat as OpenAIResponsesCustomToolCallAccessor,
)

registry = DEFAULT_TOOL_INTEROP_REGISTRY

SOURCE_SCHEMA = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Apply a textual patch to files in the workspace.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}

CHAT_CALL = {
    "id": "call_123",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path":"README.md"}'},
}

RESPONSES_CALL = {
    "type": "function_call",
    "call_id": "call_123",
    "name": "read_file",
    "arguments": '{"path":"README.md"}',
}

RESULT_TEXT = '{"path":"README.md","content":"# Project title"}'


class Extension:
    """The provider extension of the documents, with only its imports changed."""

    def initialize_request(
        self, native_messages: Any, state: Any, *, context: Any = None
    ) -> tuple[Any, Any]:
        request = state.get("request") or {}
        payload = dict(request.get("payload") or {})
        tools = state.get("_tools") or []

        if tools and "tools" not in payload:
            registry = get_registry_from_context(context)
            target_formats = get_schema_target_formats_from_context(context)
            payload["tools"] = registry.convert_schemas(
                [tool for tool in tools if isinstance(tool, dict)],
                target=ToolInteropTarget("openai.chat_completions"),
                target_formats=target_formats,
            )
            payload["tool_choice"] = payload.get("tool_choice", "auto")

        return native_messages, {**state, "request": {**request, "payload": payload}}

    def finalize(
        self, final_messages: Any, native_messages: Any, state: Any, *, context: Any = None
    ) -> tuple[Any, Any, Any]:
        partial = state.get("partial")
        if isinstance(partial, dict):
            tool_calls = partial.get("tool_calls")
            if isinstance(tool_calls, list):
                registry = get_registry_from_context(context)
                partial["tool_calls"] = [
                    registry.sanitize_tool_call(call)
                    for call in tool_calls
                    if isinstance(call, dict)
                ]
        return final_messages, native_messages, state


def assert_converted_sample(tool: dict[str, Any]) -> None:
    """The documents' converted schema, but for the wording of the property's description."""
    note = tool["function"]["parameters"]["properties"]["input"].pop("description")
    assert "lark" in note
    assert "start: /.+/" in note
    assert tool == {
        "type": "function",
        "function": {
            "name": "apply_patch",
            "description": "Apply a textual patch to files in the workspace.",
            "parameters": {
                "type": "object",
                "properties": {"input": {"type": "string"}},
                "required": ["input"],
            },
        },
    }


def test_the_descriptor_keeps_the_authored_schema() -> None:
    descriptor = ToolDescriptor(
        plugin_name="apply_patch", tool_name="apply_patch", schema=SOURCE_SCHEMA
    )
    assert descriptor.schema is SOURCE_SCHEMA


def test_a_freeform_schema_is_converted_for_chat() -> None:
    before = copy.deepcopy(SOURCE_SCHEMA)
    payload: dict[str, Any] = {}
    payload["tools"] = registry.convert_schemas(
        [SOURCE_SCHEMA],
        target=ToolInteropTarget("openai.chat_completions"),
        target_formats=["openai.chat_completions.function"],
    )
    (tool,) = payload["tools"]
    assert_converted_sample(tool)
    assert before == SOURCE_SCHEMA


@pytest.mark.parametrize("formats", [["openai.chat_completions.function"], [], None])
def test_the_injection_sample_adds_converted_tools(formats: list[str] | None) -> None:
    context = {"tool_interop": {"registry": registry, "schema_target_formats": formats}}
    state = {"_tools": [SOURCE_SCHEMA, "not a tool"], "request": {"payload": {"model": "gpt-4.1"}}}
    natives: list[Any] = []
    same, state = Extension().initialize_request(natives, state, context=context)
    assert same is natives
    payload = state["request"]["payload"]
    assert (payload["model"], payload["tool_choice"]) == ("gpt-4.1", "auto")
    (tool,) = payload["tools"]
    assert_converted_sample(tool)


def test_the_injection_sample_keeps_what_is_there() -> None:
    request = {"payload": {"tools": ["mine"], "tool_choice": "none"}}
    _, state = Extension().initialize_request([], {"_tools": [SOURCE_SCHEMA], "request": request})
    assert state["request"] == request


def test_a_responses_call_is_converted_for_chat() -> None:
    native_item = RESPONSES_CALL
    chat_tool_calls = registry.convert_tool_calls(
        [native_item],
        target=ToolInteropTarget("openai.chat_completions"),
    )
    assert chat_tool_calls == [CHAT_CALL]


@pytest.mark.parametrize("tool_call", [CHAT_CALL, RESPONSES_CALL])
def test_the_call_of_the_documents_is_inspected(tool_call: dict[str, Any]) -> None:
    inspected = registry.inspect_call(tool_call)

    assert inspected is not None
    assert inspected.call_id == "call_123"
    assert inspected.tool_name == "read_file"
    assert inspected.payload == {"path": "README.md"}
    assert inspected.payload_kind == "object"


def test_a_freeform_call_is_inspected_as_raw_text() -> None:
    call = {
        "type": "custom_tool_call",
        "call_id": "call_patch_1",
        "name": "apply_patch",
        "input": "*** Begin Patch\n*** End Patch",
    }
    view = registry.inspect_call(call)
    assert view is not None
    assert (view.call_id, view.tool_name) == ("call_patch_1", "apply_patch")
    assert (view.payload, view.payload_kind) == ("*** Begin Patch\n*** End Patch", "text")
    assert OpenAIResponsesCustomToolCallAccessor().sanitize_call(call) is call


def test_the_sanitising_sample_repairs_a_cut_call() -> None:
    corrupted_call = {
        "id": "call_123",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path":'},
    }
    sanitized = registry.sanitize_tool_call(corrupted_call)
    assert sanitized == {
        "id": "call_123",
        "type": "function",
        "function": {"name": "read_file", "arguments": "{}"},
    }
    assert corrupted_call["function"] == {"name": "read_file", "arguments": '{"path":'}
    assert OpenAIChatToolCallAccessor().sanitize_call(corrupted_call) == sanitized

    state = {"partial": {"tool_calls": [corrupted_call, None, CHAT_CALL]}}
    context = {"tool_interop": {"registry": ToolInteropRegistry()}}
    Extension().finalize([], [], state, context=context)
    assert state["partial"]["tool_calls"] == [sanitized, CHAT_CALL]
    assert state["partial"]["tool_calls"][1] is CHAT_CALL


def test_the_result_of_the_documents_becomes_each_native_form() -> None:
    stored = {"type": "tool_result", "text": RESULT_TEXT}
    (chat,) = registry.convert_tool_results(
        [stored], target=ToolInteropTarget("openai.chat_completions"), calls=[CHAT_CALL]
    )
    assert chat == {"role": "tool", "content": RESULT_TEXT, "tool_call_id": "call_123"}
    (item,) = registry.convert_tool_results(
        [stored], target=ToolInteropTarget("openai.responses"), calls=[RESPONSES_CALL]
    )
    assert item == {"type": "function_call_output", "call_id": "call_123", "output": RESULT_TEXT}
    assert json.loads(item["output"]) == {"path": "README.md", "content": "# Project title"}


def test_the_native_envelope_keeps_its_contents_for_its_own_family() -> None:
    content = [
        {"type": "text", "text": '<image path="/tmp/image.png">'},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "</image>"},
    ]
    envelope = {
        "type": "provider_native_tool_result",
        "format": "openai.chat_completions",
        "content": content,
    }
    (chat,) = registry.convert_tool_results(
        [envelope], target=ToolInteropTarget("openai.chat_completions")
    )
    assert chat == {"role": "tool", "content": content}
    (item,) = registry.convert_tool_results(
        [envelope], target=ToolInteropTarget("openai.responses")
    )
    assert item["output"] == [
        {"type": "input_text", "text": '<image path="/tmp/image.png">'},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
    ]


@pytest.mark.parametrize(
    "context",
    [None, {}, [], "x", 3, {"tool_interop": None}, {"tool_interop": {"registry": object()}}],
)
def test_without_a_request_the_default_registry_serves(context: object) -> None:
    assert get_registry_from_context(context) is DEFAULT_TOOL_INTEROP_REGISTRY
    assert get_schema_target_formats_from_context(context) == []


def test_the_context_gives_the_requests_own_registry_and_formats() -> None:
    own = ToolInteropRegistry()
    context = {"tool_interop": {"registry": own, "schema_target_formats": ("a.b", 3, "c")}}
    assert get_registry_from_context(context) is own
    assert get_schema_target_formats_from_context(context) == ["a.b", "c"]


def test_the_package_exports_what_it_lists_and_imports_only_the_contract() -> None:
    for name in tool_interop.__all__:
        assert hasattr(tool_interop, name)
    code = "import sys, agent_hookspecs.tool_interop as t; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment()
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "agent_hookspecs" in loaded
    assert not loaded & {"agent_host", "httpx", "jsonschema", "pydantic"}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
