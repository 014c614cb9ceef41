"""Any built-in format to any other and back, over generated tools."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.tool_interop import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    GENERIC_FUNCTION,
    OPENAI_CHAT_CUSTOM,
    OPENAI_CHAT_FUNCTION,
    OPENAI_RESPONSES_CUSTOM,
    OPENAI_RESPONSES_FUNCTION,
    SchemaDialect,
    SchemaView,
    ToolInteropTarget,
    adapt_schema,
)
from agent_hookspecs.tool_interop.dialect import without_empty_required

jsonschema: Any = pytest.importorskip("jsonschema")
registry = DEFAULT_TOOL_INTEROP_REGISTRY

FUNCTIONS = [OPENAI_CHAT_FUNCTION, OPENAI_RESPONSES_FUNCTION, GENERIC_FUNCTION]
FREEFORM = [OPENAI_CHAT_CUSTOM, OPENAI_RESPONSES_CUSTOM]
FORMATS = FUNCTIONS + FREEFORM

names = st.text(alphabet="abcXYZ019_-", min_size=1, max_size=12)
keys = st.sampled_from(["a", "b", "input", "required", "type", "$ref", "é"])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "\u2028"])
instances = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
types = st.sampled_from(["string", "integer", "boolean", "null", "array", "object"])


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(keys, inner, max_size=3)},
        optional={
            "required": st.lists(keys, unique=True, max_size=2),
            "additionalProperties": st.booleans() | inner,
        },
    )


schemas = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"type": types}, optional={"description": st.text(max_size=5)}),
        st.fixed_dictionaries({"type": st.lists(types, unique=True, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": scalars}),
        st.fixed_dictionaries({"type": st.just("string"), "maxLength": st.integers(0, 2)}),
        st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]),
    ),
    lambda inner: st.one_of(
        _objects(inner),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=5,
)
parameters = st.builds(
    lambda root, a, b: {**root, "$defs": {"a": a, "b": b}},
    _objects(schemas),
    st.sampled_from([{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/b"}}]),
    st.sampled_from([{"type": "integer"}, {"enum": ["a", 1]}]),
)
formats = st.none() | st.fixed_dictionaries(
    {
        "type": st.just("grammar"),
        "syntax": st.sampled_from(["lark", "regex"]),
        "definition": st.text(),
    }
)
views = st.one_of(
    st.builds(SchemaView, name=names, description=st.text(), parameters=st.none() | parameters),
    st.builds(
        SchemaView,
        name=names,
        description=st.text(),
        payload_kind=st.just("text"),
        payload_format=formats,
    ),
)


def declared(view: SchemaView, format: str) -> dict[str, Any]:
    """The tool of the view, authored in a format of its kind."""
    named: dict[str, Any] = {"name": view.name}
    if view.description:
        named["description"] = view.description
    if format == OPENAI_CHAT_FUNCTION:
        return {"type": "function", "function": {**named, "parameters": view.parameters}}
    if format == OPENAI_RESPONSES_FUNCTION:
        return {"type": "function", **named, "parameters": view.parameters}
    if format == GENERIC_FUNCTION:
        return {**named, "parameters": view.parameters}
    given = view.payload_format
    if given and format == OPENAI_CHAT_CUSTOM:
        given = {
            "type": "grammar",
            "grammar": {key: given[key] for key in ("syntax", "definition")},
        }
    if given:
        named["format"] = given
    if format == OPENAI_CHAT_CUSTOM:
        return {"type": "custom", "custom": named}
    return {"type": "custom", **named}


def convert(schema: dict[str, Any], format: str) -> dict[str, Any]:
    (converted,) = registry.convert_schemas(
        [schema], target=ToolInteropTarget(format), warn=lambda message: None
    )
    return converted


def inspect(schema: dict[str, Any]) -> SchemaView:
    view = registry.inspect_schema(schema)
    assert view is not None
    return view


def accepts(schema: dict[str, Any] | None, instance: object) -> bool:
    validator = jsonschema.Draft202012Validator(schema or {"type": "object"})
    return bool(validator.is_valid(instance))


@given(views, st.sampled_from(FORMATS), st.sampled_from(FORMATS), st.lists(instances, max_size=6))
def test_there_and_back_keeps_name_description_and_accepted_inputs(
    view: SchemaView, source: str, through: str, given_instances: list[Any]
) -> None:
    kinds = FUNCTIONS if view.payload_kind == "object" else FREEFORM
    source = source if source in kinds else kinds[0]
    schema = declared(view, source)
    before = copy.deepcopy(schema)
    there = convert(schema, through)
    back = inspect(convert(there, source))
    assert schema == before
    assert inspect(there).name == view.name
    assert (back.name, back.description) == (view.name, view.description)
    assert (back.payload_kind, back.payload_format) == (view.payload_kind, view.payload_format)
    if (through in FREEFORM) == (view.payload_kind == "text"):
        assert inspect(there).description == view.description
    for instance in given_instances:
        wanted = accepts(view.parameters, instance)
        if view.payload_kind == "object":
            assert accepts(back.parameters, instance) == wanted
            if through in FUNCTIONS:
                assert accepts(inspect(there).parameters, instance) == wanted
        elif through in FUNCTIONS:
            wrapped = isinstance(instance, dict) and isinstance(instance.get("input"), str)
            assert accepts(inspect(there).parameters, instance) == wrapped


@given(views, st.sampled_from(FORMATS))
def test_a_native_declaration_is_the_same_object_unless_it_requires_nothing(
    view: SchemaView, format: str
) -> None:
    kinds = FUNCTIONS if view.payload_kind == "object" else FREEFORM
    format = format if format in kinds else kinds[0]
    schema = declared(view, format)
    for target in (format, format.rpartition(".")[0]):
        made = convert(schema, target)
        assert made == without_empty_required(schema)
        assert made is schema or made != schema


@given(st.dictionaries(keys, instances), st.sampled_from(FUNCTIONS), st.sampled_from(FORMATS))
def test_function_calls_keep_their_text_there_and_back(
    payload: dict[str, Any], source: str, through: str
) -> None:
    text = json.dumps(payload, indent=1)
    authored = {"name": "f", "parameters": {"type": "object"}}
    call = {"id": "c", "name": "f", "arguments": text}

    def converted(made: Any, format: str) -> Any:
        (result,) = registry.convert_tool_calls(
            [made], target=ToolInteropTarget(format), schemas=[authored]
        )
        return result

    start = converted(call, source)
    there = converted(start, through)
    assert converted(there, source) == start
    if through in FREEFORM:
        view = registry.inspect_call(there, authored)
        assert view is not None
        assert (view.payload, view.problem) == (payload, None)


@given(st.text(), st.sampled_from(FREEFORM), st.sampled_from(FORMATS))
def test_freeform_calls_keep_their_text_there_and_back(
    text: str, source: str, through: str
) -> None:
    calls: list[Any] = [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": text}]
    for format in (source, through, source):
        calls += registry.convert_tool_calls(calls[-1:], target=ToolInteropTarget(format))
    assert calls[-1] == calls[1]


@pytest.mark.parametrize("lists", [True, False])
@given(schema=parameters, given_instances=st.lists(instances, min_size=1, max_size=8))
def test_inlined_references_accept_the_same(
    lists: bool, schema: dict[str, Any], given_instances: list[Any]
) -> None:
    heard: list[str] = []
    dialect = SchemaDialect(name="Flat", refs=False, type_lists=lists, const=False)
    adapted = adapt_schema(schema, dialect, heard.append)
    assert heard == []
    for instance in given_instances:
        assert accepts(adapted, instance) == accepts(schema, instance)
