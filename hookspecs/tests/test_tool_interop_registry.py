from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import ContractError
from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    GENERIC_FUNCTION,
    OPENAI_CHAT_CUSTOM,
    OPENAI_CHAT_FUNCTION,
    OPENAI_RESPONSES_CUSTOM,
    OPENAI_RESPONSES_FUNCTION,
    CallView,
    ResultView,
    SchemaView,
    ToolDescriptor,
    ToolInteropContribution,
    ToolInteropRegistry,
    ToolInteropTarget,
    Warn,
)
from agent_hookspecs.tool_interop.contents import NATIVE_ENVELOPE
from agent_hookspecs.tool_interop.openai_chat import OpenAIChatFunctionFormat
from agent_hookspecs.tool_interop.views import PayloadKind

registry = DEFAULT_TOOL_INTEROP_REGISTRY

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
SCHEMAS: dict[str, dict[str, Any]] = {
    OPENAI_CHAT_FUNCTION: {
        "type": "function",
        "function": {"name": "t", "description": "d", "parameters": PARAMETERS},
    },
    OPENAI_CHAT_CUSTOM: {
        "type": "custom",
        "custom": {
            "name": "t",
            "description": "d",
            "format": {
                "type": "grammar",
                "grammar": {"syntax": "lark", "definition": "start: /.+/"},
            },
        },
    },
    OPENAI_RESPONSES_FUNCTION: {
        "type": "function",
        "name": "t",
        "description": "d",
        "parameters": PARAMETERS,
        "strict": False,
    },
    OPENAI_RESPONSES_CUSTOM: {
        "type": "custom",
        "name": "t",
        "description": "d",
        "format": GRAMMAR,
    },
    GENERIC_FUNCTION: {"name": "t", "description": "d", "parameters": PARAMETERS},
}
CALLS: dict[str, dict[str, Any]] = {
    OPENAI_CHAT_FUNCTION: {
        "id": "c",
        "type": "function",
        "function": {"name": "t", "arguments": '{ "path": "a" }'},
    },
    OPENAI_CHAT_CUSTOM: {"id": "c", "type": "custom", "custom": {"name": "t", "input": "raw {"}},
    OPENAI_RESPONSES_FUNCTION: {
        "type": "function_call",
        "call_id": "c",
        "name": "t",
        "arguments": '{ "path": "a" }',
    },
    OPENAI_RESPONSES_CUSTOM: {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "t",
        "input": "raw {",
    },
    GENERIC_FUNCTION: {"id": "c", "name": "t", "arguments": '{ "path": "a" }'},
}
TEXT_FORMATS = {OPENAI_CHAT_CUSTOM, OPENAI_RESPONSES_CUSTOM}


def convert(schema: object, target: str, *formats: str, warnings: list[str] | None = None) -> Any:
    heard: list[str] = []
    (converted,) = registry.convert_schemas(
        [schema],
        target=ToolInteropTarget(target),
        target_formats=formats,
        warn=(heard if warnings is None else warnings).append,
    )
    assert heard == []
    return converted


def convert_call(call: object, target: str, **more: Any) -> Any:
    (converted,) = registry.convert_tool_calls([call], target=ToolInteropTarget(target), **more)
    return converted


def convert_result(result: object, target: str, **more: Any) -> Any:
    (converted,) = registry.convert_tool_results([result], target=ToolInteropTarget(target), **more)
    return converted


# Recognition.


@pytest.mark.parametrize("format", SCHEMAS)
def test_each_built_in_format_is_recognised(format: str) -> None:
    assert registry.format_of_schema(SCHEMAS[format]) == format
    assert registry.format_of_call(CALLS[format]) == format
    schema, call = registry.inspect_schema(SCHEMAS[format]), registry.inspect_call(CALLS[format])
    assert schema is not None
    assert call is not None
    kind = "text" if format in TEXT_FORMATS else "object"
    assert (schema.name, schema.description, schema.payload_kind) == ("t", "d", kind)
    assert (call.tool_name, call.call_id, call.payload_kind) == ("t", "c", kind)
    assert call.payload == ("raw {" if kind == "text" else {"path": "a"})
    assert schema.parameters == (None if kind == "text" else PARAMETERS)
    assert schema.payload_format == (GRAMMAR if kind == "text" else None)
    assert (schema.source, call.source) == (SCHEMAS[format], CALLS[format])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "web_search"},
        {"name": "t", "description": "d", "input_schema": PARAMETERS},
        {"name": "t", "inputSchema": PARAMETERS},
        {"functionDeclarations": []},
        {"type": "function"},
        {"type": "function", "function": {"description": "no name"}},
        {"type": "custom", "name": ""},
        {},
        None,
        "t",
    ],
)
def test_foreign_declarations_are_nobodys(schema: object) -> None:
    assert registry.inspect_schema(schema) is None
    assert registry.format_of_schema(schema) is None


def test_a_call_of_parsed_arguments_or_of_the_legacy_form_is_understood() -> None:
    parsed = registry.inspect_call({"function": {"name": "t", "arguments": {"a": 1}}})
    legacy = registry.inspect_call({"name": "t", "arguments": ""})
    assert parsed is not None
    assert legacy is not None
    assert (parsed.payload, parsed.call_id) == ({"a": 1}, None)
    assert (legacy.payload, legacy.problem) == ({}, None)


def test_broken_and_large_arguments_are_a_problem_of_the_view() -> None:
    call = CALLS[OPENAI_RESPONSES_FUNCTION]
    broken = registry.inspect_call({**call, "arguments": '{"path":'})
    large = registry.inspect_call(call, limit=3)
    assert broken is not None
    assert large is not None
    assert (broken.problem, broken.payload, broken.text) == ("invalid_json", None, '{"path":')
    assert (large.problem, large.payload) == ("too_large", None)


# Pass-through.


@pytest.mark.parametrize("format", SCHEMAS)
def test_native_objects_pass_through_as_the_same_object(format: str) -> None:
    family = format.rpartition(".")[0]
    for target, formats in [(format, ()), (family, ()), (family, (format,)), ("other", (format,))]:
        assert convert(SCHEMAS[format], target, *formats) is SCHEMAS[format]
        assert convert_call(CALLS[format], target, target_formats=formats) is CALLS[format]


def test_accepted_formats_narrow_the_family_down() -> None:
    custom = SCHEMAS[OPENAI_RESPONSES_CUSTOM]
    assert convert(custom, "openai.responses") is custom
    narrowed = convert(custom, "openai.responses", OPENAI_RESPONSES_FUNCTION)
    assert registry.format_of_schema(narrowed) == OPENAI_RESPONSES_FUNCTION


def test_an_accepted_format_that_nobody_makes_lets_only_its_own_objects_pass() -> None:
    schema = SCHEMAS[OPENAI_RESPONSES_FUNCTION]
    hosted = "openai.responses.web_search"
    assert convert(schema, "openai.responses", hosted) is schema
    made = convert(SCHEMAS[GENERIC_FUNCTION], "openai.responses", hosted)
    assert registry.format_of_schema(made) == OPENAI_RESPONSES_FUNCTION


def test_accepted_formats_may_be_a_family() -> None:
    schema = SCHEMAS[OPENAI_CHAT_FUNCTION]
    assert convert(schema, "openai.chat_completions", "openai.chat_completions") is schema


def test_freeform_tools_of_the_chat_api_are_made_on_request_only() -> None:
    custom = SCHEMAS[OPENAI_RESPONSES_CUSTOM]
    plain = convert(custom, "openai.chat_completions")
    asked = convert(custom, "openai.chat_completions", OPENAI_CHAT_FUNCTION, OPENAI_CHAT_CUSTOM)
    assert registry.format_of_schema(plain) == OPENAI_CHAT_FUNCTION
    assert asked == convert(custom, OPENAI_CHAT_CUSTOM) == SCHEMAS[OPENAI_CHAT_CUSTOM]


def test_unknown_declarations_are_sent_as_they_are_with_a_warning() -> None:
    heard: list[str] = []
    hosted = {"type": "web_search"}
    assert convert(hosted, "openai.responses", warnings=heard) is hosted
    assert len(heard) == 1
    assert "'web_search'" in heard[0]


def test_entries_that_are_no_dicts_are_left_out_with_a_warning() -> None:
    heard: list[str] = []
    assert (
        registry.convert_schemas(
            [None, "t"], target=ToolInteropTarget("openai.responses"), warn=heard.append
        )
        == []
    )
    assert len(heard) == 2


def test_without_a_listener_a_loss_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        registry.convert_schemas([{"type": "x"}], target=ToolInteropTarget("openai.responses"))
    assert "'x' is sent as it is" in caplog.text


def test_a_target_that_nobody_builds_is_an_error_with_a_way_out() -> None:
    with pytest.raises(ContractError, match=r"'nobody\.knows'") as caught:
        convert(SCHEMAS[GENERIC_FUNCTION], "nobody.knows")
    assert caught.value.hint


# Conversion.


def test_functions_of_all_formats_are_the_same_function() -> None:
    functions = [format for format in SCHEMAS if format not in TEXT_FORMATS]
    for source in functions:
        for target in functions:
            expected = copy.deepcopy(SCHEMAS[target])
            if source == OPENAI_RESPONSES_FUNCTION and target != source:
                # What the source says about strictness is kept.
                expected.get("function", expected)["strict"] = False
            assert convert(SCHEMAS[source], target) == expected
            assert convert_call(CALLS[source], target) == CALLS[target]


def test_converted_schemas_share_nothing_with_the_source() -> None:
    source = copy.deepcopy(SCHEMAS[GENERIC_FUNCTION])
    converted = convert(source, "openai.chat_completions")
    converted["function"]["parameters"]["properties"]["path"]["type"] = "integer"
    converted["function"]["parameters"]["required"].append("x")
    assert source == SCHEMAS[GENERIC_FUNCTION]


def test_a_function_without_parameters_gets_an_empty_object() -> None:
    chat = convert({"name": "t"}, OPENAI_CHAT_FUNCTION)
    assert chat["function"] == {"name": "t", "parameters": {"type": "object", "properties": {}}}
    item = convert({"type": "function", "function": {"name": "t"}}, OPENAI_RESPONSES_FUNCTION)
    assert item["parameters"] == {"type": "object", "properties": {}}
    assert item["strict"] is False


def test_keys_that_a_format_has_no_place_for_are_told() -> None:
    heard: list[str] = []
    source = {**SCHEMAS[OPENAI_CHAT_FUNCTION], "cache_control": {"type": "ephemeral"}}
    convert(source, OPENAI_RESPONSES_FUNCTION, warnings=heard)
    assert heard == ["tool 't': cache_control of its declaration is dropped"]


def test_a_function_for_a_freeform_only_target_is_described_and_comes_back() -> None:
    heard: list[str] = []
    source = SCHEMAS[GENERIC_FUNCTION]
    custom = convert(source, OPENAI_RESPONSES_CUSTOM, warnings=heard)
    assert custom["description"].startswith("d\n\n")
    assert '"path"' in custom["description"]
    assert len(heard) == 1
    assert convert(custom, GENERIC_FUNCTION) == source


def test_the_description_of_an_authored_input_is_told_when_it_goes() -> None:
    heard: list[str] = []
    value = {"type": "string", "description": "Patch text."}
    parameters = {"type": "object", "properties": {"input": value}, "required": ["input"]}
    source = {"name": "t", "parameters": parameters}
    assert convert(source, OPENAI_RESPONSES_CUSTOM, warnings=heard) == {
        "type": "custom",
        "name": "t",
    }
    assert len(heard) == 1
    assert "'input'" in heard[0]


@pytest.mark.parametrize(
    "format", [None, {"type": "text"}, GRAMMAR, {"type": "regex", "pattern": 'a\n"b'}]
)
@pytest.mark.parametrize("through", [OPENAI_CHAT_FUNCTION, OPENAI_RESPONSES_FUNCTION])
def test_a_freeform_tool_comes_back_from_a_function(format: Any, through: str) -> None:
    source: dict[str, Any] = {"type": "custom", "name": "t", "description": "d"}
    if format:
        source["format"] = format
    there = convert(source, through)
    back = convert(there, OPENAI_RESPONSES_CUSTOM, warnings=[])
    assert back == {key: value for key, value in source.items() if value != {"type": "text"}}


@pytest.mark.parametrize("text", ["", '*** Begin Patch\n\u2028é"{', '{"input": "x"}', "\ud800"])
@pytest.mark.parametrize("through", [OPENAI_CHAT_FUNCTION, OPENAI_RESPONSES_FUNCTION, "generic"])
def test_a_freeform_call_comes_back_from_a_function_call(text: str, through: str) -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "t", "input": text}
    there = convert_call(call, through)
    view = registry.inspect_call(there)
    assert view is not None
    assert (view.payload, view.payload_kind) == ({"input": text}, "object")
    assert convert_call(there, OPENAI_RESPONSES_CUSTOM) == call
    authored = SCHEMAS[OPENAI_RESPONSES_CUSTOM]
    native = through == OPENAI_RESPONSES_FUNCTION
    expected = there if native else call
    assert convert_call(there, "openai.responses", schemas=[authored]) == expected


def test_an_authored_schema_decides_what_the_tool_gets() -> None:
    patch = ToolDescriptor("files", "t", SCHEMAS[OPENAI_RESPONSES_CUSTOM])
    call = {"id": "c", "type": "function", "function": {"name": "t"}}

    def seen(arguments: str, schema: Any) -> tuple[Any, str, str | None]:
        function = {"name": "t", "arguments": arguments}
        view = registry.inspect_call({**call, "function": function}, schema)
        assert view is not None
        return view.payload, view.payload_kind, view.problem

    assert seen('{"input": "p"}', patch) == ("p", "text", None)
    assert seen('{"input": "p"}', SCHEMAS[GENERIC_FUNCTION]) == ({"input": "p"}, "object", None)
    assert seen("{}", patch) == (None, "object", "no_input")
    assert seen('{"input": 3}', patch) == (None, "object", "no_input")
    assert seen('{"input":', patch) == (None, "object", "invalid_json")

    view = registry.inspect_call(CALLS[OPENAI_RESPONSES_CUSTOM], patch)
    assert view is not None
    assert (view.payload, view.payload_format) == ("raw {", GRAMMAR)


def test_a_function_that_was_offered_as_freeform_gets_its_object() -> None:
    schema = SCHEMAS[GENERIC_FUNCTION]
    call = {"type": "custom_tool_call", "call_id": "c", "name": "t", "input": '{ "path": "a" }'}
    view = registry.inspect_call(call, schema)
    assert view is not None
    assert (view.payload, view.payload_kind, view.problem) == ({"path": "a"}, "object", None)
    assert (
        convert_call(call, "openai.chat_completions", schemas=[schema])
        == (CALLS[OPENAI_CHAT_FUNCTION])
    )
    broken = registry.inspect_call({**call, "input": "{"}, schema)
    assert broken is not None
    assert broken.problem == "invalid_json"


def test_a_function_that_takes_only_input_gets_it_wrapped() -> None:
    value = {"type": "string"}
    parameters = {"type": "object", "properties": {"input": value}, "required": ["input"]}
    schema = {"name": "t", "parameters": parameters}
    view = registry.inspect_call(CALLS[OPENAI_RESPONSES_CUSTOM], schema)
    assert view is not None
    assert (view.payload, view.payload_kind) == ({"input": "raw {"}, "object")


def test_large_payloads_are_a_problem_to_execute_and_none_to_convert() -> None:
    text = "x" * 200_001
    call = {"type": "custom_tool_call", "call_id": "c", "name": "t", "input": text}
    chat = convert_call(call, "openai.chat_completions")
    assert json.loads(chat["function"]["arguments"]) == {"input": text}
    assert convert_call(chat, OPENAI_RESPONSES_CUSTOM) == call
    for made in (call, chat):
        for schema in (None, SCHEMAS[OPENAI_RESPONSES_CUSTOM], SCHEMAS[GENERIC_FUNCTION]):
            view = registry.inspect_call(made, schema)
            assert view is not None
            assert (view.problem, view.payload) == ("too_large", None)


def test_conversion_keeps_broken_arguments_and_sanitising_repairs_them() -> None:
    call = {**CALLS[OPENAI_RESPONSES_FUNCTION], "arguments": '{"path":'}
    chat = convert_call(call, "openai.chat_completions")
    assert chat["function"]["arguments"] == '{"path":'
    assert registry.sanitize_tool_call(chat)["function"]["arguments"] == "{}"


def test_unknown_calls_and_results_are_kept_with_a_warning() -> None:
    heard: list[str] = []
    call, result = {"type": "tool_use", "id": "c"}, {"type": "tool_result", "tool_use_id": "c"}
    assert convert_call(call, "openai.responses", warn=heard.append) is call
    assert convert_result(result, "openai.responses", warn=heard.append) is result
    assert len(heard) == 2


# Results.


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (OPENAI_CHAT_FUNCTION, {"role": "tool", "tool_call_id": "c", "content": "done"}),
        (OPENAI_CHAT_CUSTOM, {"role": "tool", "tool_call_id": "c", "content": "done"}),
        (
            OPENAI_RESPONSES_FUNCTION,
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ),
        (
            OPENAI_RESPONSES_CUSTOM,
            {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        ),
        (GENERIC_FUNCTION, {"type": "tool_result", "text": "done", "call_id": "c"}),
    ],
)
def test_text_results_convert_to_each_format_and_back(target: str, expected: Any) -> None:
    call = CALLS[OPENAI_CHAT_FUNCTION]
    made = convert_result("done", target, calls=[call])
    assert made == expected
    assert convert_result(made, target) == made
    assert convert_result(made, target.rpartition(".")[0]) is made
    view = registry.inspect_result(made)
    assert view is not None
    assert (view.text, view.call_id) == ("done", "c")
    assert convert_result(made, GENERIC_FUNCTION) == {
        "type": "tool_result",
        "text": "done",
        "call_id": "c",
    }


def test_the_result_of_a_freeform_call_is_answered_as_such() -> None:
    call = CALLS[OPENAI_RESPONSES_CUSTOM]
    made = convert_result("done", "openai.responses", calls=[call])
    assert made == {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
    chat = convert_result(made, "openai.chat_completions")
    assert convert_result(chat, "openai.responses", calls=[call]) == made


def test_results_need_as_many_calls() -> None:
    with pytest.raises(ContractError, match=r"1 tool results .* 2 calls"):
        convert_result("done", "openai.responses", calls=[{}, {}])


@pytest.mark.parametrize("through", [GENERIC_FUNCTION, OPENAI_RESPONSES_FUNCTION])
def test_images_and_files_survive_other_formats(through: str) -> None:
    content = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:,x", "filename": "x.txt"}},
    ]
    chat = {"role": "tool", "tool_call_id": "c", "content": content}
    there = convert_result(chat, through)
    assert registry.format_of_result(there) == through
    assert convert_result(there, OPENAI_CHAT_FUNCTION) == chat


def test_parts_that_a_family_does_not_have_are_told() -> None:
    heard: list[str] = []
    audio = {"type": "input_audio", "input_audio": {"data": "AA"}}
    chat = {"role": "tool", "content": [{"type": "text", "text": "hear"}, audio]}
    made = convert_result(chat, "openai.responses", warn=heard.append)
    assert made["output"] == [
        {"type": "input_text", "text": "hear"},
        {"type": "input_text", "text": "[input_audio omitted]"},
    ]
    assert len(heard) == 1
    assert "'input_audio'" in heard[0]
    neutral = convert_result(chat, GENERIC_FUNCTION)
    assert convert_result(json.loads(json.dumps(neutral)), OPENAI_CHAT_FUNCTION) == chat


def test_an_envelope_of_a_family_that_is_not_active_still_has_its_text() -> None:
    heard: list[str] = []
    envelope = {
        "type": NATIVE_ENVELOPE,
        "format": "somebody.else",
        "content": [{"type": "text", "text": "a"}, {"type": "blob"}],
    }
    assert registry.format_of_result(envelope) == NATIVE_ENVELOPE
    made = convert_result(envelope, OPENAI_CHAT_FUNCTION, warn=heard.append)
    assert [part["text"] for part in made["content"]] == ["a", "[blob omitted]"]
    assert len(heard) == 1


def test_a_core_message_is_not_mistaken_for_a_native_result() -> None:
    message = {
        "role": "tool",
        "content": "x",
        "toolResult": {"type": "tool_result", "text": "x"},
        "metadata": {},
    }
    assert registry.inspect_result(message) is None


# Contributions.


class Pipes:
    """A whole format of somebody's own: ``{"pipe": name, "args": {...}}``."""

    format = "pipes.pipe"
    source_format: str | None = None
    payload_kind: PayloadKind = "object"

    def __init__(self, mark: str = "") -> None:
        self.mark = mark

    def matches_schema(self, schema: dict[str, Any]) -> bool:
        return "pipe" in schema

    def inspect_schema(self, schema: dict[str, Any]) -> SchemaView:
        return SchemaView(
            name=schema["pipe"] + self.mark, parameters=schema["args"], format=self.format
        )

    def build_schema(self, view: SchemaView, warn: Warn) -> dict[str, Any]:
        return {"pipe": view.name, "args": view.parameters, "made_by": self.mark}

    def matches_call(self, call: dict[str, Any]) -> bool:
        return "pipe" in call

    def inspect_call(self, call: dict[str, Any], limit: int) -> CallView:
        return CallView(tool_name=call["pipe"], payload=call["args"], format=self.format)

    def sanitize_call(self, call: dict[str, Any]) -> dict[str, Any]:
        return call if isinstance(call.get("args"), dict) else {**call, "args": {}}

    def build_call(self, view: CallView) -> dict[str, Any]:
        return {"pipe": view.tool_name, "args": view.payload}

    def matches_result(self, result: object) -> bool:
        return isinstance(result, dict) and "piped" in result

    def inspect_result(self, result: Any) -> ResultView:
        parts = tuple(result.get("parts", ()))
        return ResultView(text=result["piped"], parts=parts, format=self.format)

    def build_result(self, view: ResultView, warn: Warn) -> dict[str, Any]:
        return {"piped": view.text}


class Direct(Pipes):
    source_format = GENERIC_FUNCTION

    def build_schema(self, view: SchemaView, warn: Warn) -> dict[str, Any]:
        return {"pipe": view.name, "original": view.source}


def test_a_contributed_format_converts_to_and_from_all_others() -> None:
    pipes = ToolInteropRegistry(ToolInteropContribution.of_formats(Pipes()))
    target = ToolInteropTarget("pipes")
    for format, schema in SCHEMAS.items():
        (made,) = pipes.convert_schemas([schema], target=target)
        assert made["pipe"] == "t"
        (back,) = pipes.convert_schemas(
            [made], target=ToolInteropTarget(format), warn=lambda message: None
        )
        assert pipes.format_of_schema(back) == format
    for call in CALLS.values():
        (made,) = pipes.convert_tool_calls([call], target=target)
        assert made["args"] in ({"path": "a"}, {"input": "raw {"})
    assert pipes.convert_tool_results(["x"], target=target) == [{"piped": "x"}]
    pictures = {"piped": "", "parts": [{"type": "image", "content": {"url": "u"}}, {"type": "odd"}]}
    (made,) = pipes.convert_tool_results(
        [pictures], target=ToolInteropTarget(OPENAI_CHAT_FUNCTION), warn=lambda message: None
    )
    assert [part["type"] for part in made["content"]] == ["image_url", "text"]
    assert pipes.sanitize_tool_call({"pipe": "t", "args": None}) == {"pipe": "t", "args": {}}
    assert registry.inspect_schema({"pipe": "t", "args": {}}) is None


def test_earlier_contributions_win_and_built_ins_rank_last() -> None:
    config, provider, tool = (ToolInteropContribution.of_formats(Pipes(m)) for m in "cpt")
    schema = {"pipe": "n", "args": PARAMETERS}
    target = ToolInteropTarget("pipes.pipe")

    def winner(active: ToolInteropRegistry) -> tuple[str, str]:
        view = active.inspect_schema(schema)
        assert view is not None
        (made,) = active.convert_schemas([SCHEMAS[GENERIC_FUNCTION]], target=target)
        return view.name, made["made_by"]

    assert winner(ToolInteropRegistry(config, provider, None, tool)) == ("nc", "c")
    base = ToolInteropRegistry(tool)
    assert winner(base.with_contributions(provider)) == ("np", "p")
    assert winner(base.with_contributions(provider).with_contributions(config)) == ("nc", "c")
    assert winner(base) == ("nt", "t")


def test_a_contribution_may_replace_a_built_in() -> None:
    class Louder(OpenAIChatFunctionFormat):
        def build_schema(self, view: SchemaView, warn: Warn) -> dict[str, Any]:
            return {**super().build_schema(view, warn), "loud": True}

    louder = registry.with_contributions({"schema_adapters": [Louder()]})
    (made,) = louder.convert_schemas(
        [SCHEMAS[GENERIC_FUNCTION]], target=ToolInteropTarget("openai.chat_completions")
    )
    assert made["loud"] is True
    assert "loud" not in convert(SCHEMAS[GENERIC_FUNCTION], "openai.chat_completions")


def test_a_direct_adapter_overrides_the_builder_for_its_pair_only() -> None:
    active = ToolInteropRegistry(
        ToolInteropContribution.of_formats(Pipes()), {"schema_adapters": [Direct()]}
    )
    target = ToolInteropTarget("pipes")
    generic, chat = SCHEMAS[GENERIC_FUNCTION], SCHEMAS[OPENAI_CHAT_FUNCTION]
    direct, built = active.convert_schemas([generic, chat], target=target)
    assert direct["original"] is generic
    assert built["args"] == PARAMETERS


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "is list"),
        ({"schemas": []}, "has schemas"),
        ({"call_accessors": 3}, "call_accessors"),
        ({"call_accessors": [Pipes]}, "Pipes in call_accessors"),
        ({"schema_adapters": [object()]}, "object in schema_adapters .* build_schema"),
    ],
)
def test_a_wrong_contribution_is_an_error_that_names_its_plugin(value: Any, words: str) -> None:
    with pytest.raises(ContractError, match=f"mine: .*{words}") as caught:
        ToolInteropContribution.of(value, plugin="mine")
    assert (caught.value.plugin, caught.value.hook) == ("mine", "get_tool_interop_contribution")
    assert caught.value.hint
    with pytest.raises(ContractError, match=words):
        ToolInteropRegistry(value)


# Recorded traffic.


def recorded_tools() -> list[Any]:
    found = []
    for file in sorted(CORPUS.glob("*/*.json")) if CORPUS.is_dir() else []:
        recording = json.loads(file.read_text("utf-8"))
        body = recording["request"]["body"]
        if recording["protocol"] in ("openai.chat", "openai.responses") and isinstance(body, dict):
            found += [(recording["protocol"], tool) for tool in body.get("tools") or []]
    return found


def test_recorded_declarations_keep_their_meaning_through_every_function_format() -> None:
    tools = recorded_tools()
    if not tools:
        pytest.skip("no recorded traffic beside the repository")
    explained = 0
    for protocol, tool in tools:
        view = registry.inspect_schema(tool)
        if view is None:
            assert tool["type"] not in ("function", "custom")
            continue
        explained += 1
        assert view.format.startswith(
            "openai.responses" if protocol == "openai.responses" else "openai.chat_completions"
        )
        before = copy.deepcopy(tool)
        for through in (OPENAI_CHAT_FUNCTION, OPENAI_RESPONSES_FUNCTION, GENERIC_FUNCTION):
            back = registry.inspect_schema(convert(convert(tool, through), view.format))
            assert back is not None
            assert (back.name, back.description) == (view.name, view.description)
            kept = {key: value for key, value in (view.parameters or {}).items() if value != []}
            assert back.parameters == kept
        assert tool == before
    assert explained >= 20


@pytest.mark.parametrize("format", [OPENAI_CHAT_FUNCTION, OPENAI_RESPONSES_FUNCTION])
def test_an_empty_required_is_dropped_from_a_declaration_that_needs_no_conversion(
    format: str,
) -> None:
    inner = {
        "type": "object",
        "properties": {"required": {"type": "string", "default": {"required": []}}},
        "required": [],
    }
    parameters = {"type": "object", "properties": {"inner": inner}, "required": []}
    declared: dict[str, Any] = {"name": "look", "parameters": parameters}
    wrapped = {"type": "function", "function": declared}
    schema = wrapped if format == OPENAI_CHAT_FUNCTION else {"type": "function", **declared}
    before = copy.deepcopy(schema)
    (made,) = registry.convert_schemas(
        [schema], target=ToolInteropTarget(format.rpartition(".")[0]), target_formats=[format]
    )
    found = made["function"] if format == OPENAI_CHAT_FUNCTION else made
    assert "required" not in found["parameters"]
    assert found["parameters"]["properties"]["inner"] == {
        key: value for key, value in inner.items() if key != "required"
    }
    assert schema == before


def test_a_declaration_that_requires_something_is_sent_as_the_same_object() -> None:
    schema = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
    (made,) = registry.convert_schemas(
        [schema], target=ToolInteropTarget("openai.chat_completions")
    )
    assert made is schema
