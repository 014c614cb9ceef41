from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

from agent_hookspecs.tool_interop import (
    SchemaDialect,
    adapt_schema,
)
from agent_hookspecs.tool_interop.dialect import OPENAI_DIALECT

#: An API that knows little: no references, unions or closed objects, and null by keyword.
POOR = SchemaDialect(
    name="Poor",
    refs=False,
    any_of=False,
    one_of=False,
    all_of=False,
    type_lists=False,
    nullable_keyword=True,
    const=False,
    non_string_enums=False,
    additional_properties=False,
    boolean_schemas=False,
    formats=frozenset({"date-time"}),
    unsupported=frozenset({"$schema", "pattern", "title"}),
)
FLAT = SchemaDialect(name="Flat", refs=False)


def adapt(schema: dict[str, Any], dialect: SchemaDialect) -> tuple[dict[str, Any], list[str]]:
    heard: list[str] = []
    before = copy.deepcopy(schema)
    adapted = adapt_schema(schema, dialect, heard.append)
    assert schema == before
    return adapted, heard


def adapt_property(schema: Any, dialect: SchemaDialect) -> tuple[Any, list[str]]:
    adapted, heard = adapt({"type": "object", "properties": {"p": schema}}, dialect)
    return adapted["properties"]["p"], heard


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string"]}, {"type": "string"}),
        (
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "description": "d"},
            {"description": "d", "nullable": True, "type": "string", "minLength": 1},
        ),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, {"nullable": True, "type": "integer"}),
        (
            {"anyOf": [{"type": "null", "title": "none"}, {"type": "string"}]},
            {"nullable": True, "type": "string"},
        ),
        ({"const": "a"}, {"enum": ["a"]}),
        (
            {"type": ["string", "null"], "enum": ["a", None]},
            {"type": "string", "enum": ["a"], "nullable": True},
        ),
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "object", "required": []}, {"type": "object"}),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"$schema": "x", "type": "string"}, {"type": "string"}),
        (True, {}),
        (
            {"allOf": [{"type": "object", "required": ["a"]}, {"required": ["a", "b"]}]},
            {"type": "object", "required": ["a", "b"]},
        ),
        ({"anyOf": [{"type": "string"}]}, {"type": "string"}),
    ],
)
def test_what_a_dialect_says_otherwise_is_no_loss(schema: Any, expected: Any) -> None:
    assert adapt_property(schema, POOR) == (expected, [])


@pytest.mark.parametrize(
    ("schema", "expected", "words"),
    [
        ({"type": "object", "additionalProperties": False}, {"type": "object"}, "additionalProp"),
        ({"type": "string", "pattern": "a"}, {"type": "string"}, "pattern is dropped"),
        ({"type": "string", "format": "uri"}, {"type": "string"}, "'uri'"),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}, "enum"),
        ({"type": ["string", "integer"]}, {"type": "string"}, "only string is kept"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "string"}, "only string"),
        ({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]},
         {"type": "string", "maxLength": 3}, "of oneOf the first is kept"),
        (False, {}, "accepts anything"),
        ({"type": "null"}, {"nullable": True}, "null"),
        ({"$ref": "#/$defs/none", "type": "string"}, {"type": "string"}, "leads to no schema"),
        ({"$ref": "https://x/y.json"}, {}, "leads to no schema"),
        ({"allOf": [{"minimum": 1}, {"minimum": 2}]}, {"minimum": 1}, "two minimum"),
    ],
)  # fmt: skip
def test_what_a_dialect_cannot_say_is_told(schema: Any, expected: Any, words: str) -> None:
    adapted, heard = adapt_property(schema, POOR)
    assert adapted == expected
    assert len(heard) == 1
    assert words in heard[0]
    assert "/properties/p" in heard[0]
    assert "Poor" in heard[0]


def test_one_loss_at_many_places_is_one_warning() -> None:
    closed = {"type": "object", "additionalProperties": False}
    schema = {"type": "object", "properties": dict.fromkeys("abcdefgh", closed)}
    _, heard = adapt(schema, POOR)
    assert len(heard) == 1
    assert "and 3 more" in heard[0]


def test_references_are_inlined() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/Point", "description": "mine"},
            "b": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            "c": {"$ref": "#/definitions/odd~1na~0me%20"},
            "$ref": {"type": "string"},
        },
        "$defs": {"Point": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}},
                            "description": "theirs"}, "X": {"type": "number"}},
        "definitions": {"odd/na~me ": {"type": "boolean"}},
    }  # fmt: skip
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    assert adapt(schema, FLAT) == (
        {
            "type": "object",
            "properties": {
                "a": {**point, "description": "mine"},
                "b": {"type": "array", "items": {**point, "description": "theirs"}},
                "c": {"type": "boolean"},
                "$ref": {"type": "string"},
            },
        },
        [],
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {
            "$ref": "#/$defs/Node",
            "$defs": {"Node": {"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}}}},
        },
        {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"anyOf": [{"$ref": "#"}, {"type": "object"}]},
        {"allOf": [{"$ref": "#"}]},
    ],
)
@pytest.mark.parametrize("dialect", [FLAT, POOR])
def test_recursive_references_are_cut_and_told(
    schema: dict[str, Any], dialect: SchemaDialect
) -> None:
    adapted, heard = adapt(schema, dialect)
    assert adapted["type"] == "object"
    assert "$ref" not in str(adapted)
    assert any("recursive reference" in message for message in heard)


def test_a_schema_used_twice_is_not_recursive() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/C"}],
        "$defs": {
            "B": {"properties": {"b": {"$ref": "#/$defs/D"}}},
            "C": {"properties": {"c": {"$ref": "#/$defs/D"}}},
            "D": {"type": "string"},
        },
    }
    text = {"type": "string"}
    assert adapt(schema, POOR) == ({"type": "object", "properties": {"b": text, "c": text}}, [])


def test_references_that_multiply_stay_bounded() -> None:
    twice = {f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"},
                                      "b": {"$ref": f"#/$defs/d{n + 1}"}}}
             for n in range(60)}  # fmt: skip
    schema = {"$ref": "#/$defs/d0", "$defs": {**twice, "d60": {"type": "string"}}}
    adapted, heard = adapt(schema, FLAT)
    assert len(str(adapted)) < 5_000_000
    assert any("huge" in message for message in heard)


def test_data_that_looks_like_schemas_is_left_alone() -> None:
    schema = {
        "type": "object",
        "properties": {
            "required": {"type": "array", "items": {"type": "string"}, "default": []},
            "p": {
                "enum": [{"required": []}, {"$ref": "#/x"}],
                "default": {"$ref": "#", "anyOf": []},
            },
        },
        "required": ["p"],
    }
    assert adapt(schema, FLAT) == (schema, [])
    assert adapt(schema, OPENAI_DIALECT) == (schema, [])


def test_the_openai_dialect_is_permissive_below_the_root() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "b": {"$ref": "#/$defs/B"},
            "c": {"type": ["integer", "null"], "enum": [1, None], "oneOf": [True]},
        },
        "additionalProperties": False,
        "$defs": {"B": {"const": 1}},
    }
    assert adapt(schema, OPENAI_DIALECT) == (schema, [])


def test_a_union_at_the_root_becomes_one_object() -> None:
    schema = {
        "anyOf": [
            {"$ref": "#/$defs/A"},
            {"type": "object", "properties": {"k": {"const": 2}, "y": {}}, "required": ["k", "y"]},
        ],
        "$defs": {
            "A": {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]},
        },
    }
    adapted, heard = adapt(schema, OPENAI_DIALECT)
    assert adapted == {
        "$defs": schema["$defs"],
        "type": "object",
        "properties": {"k": {"anyOf": [{"const": 1}, {"const": 2}]}, "y": {}},
        "required": ["k"],
    }
    assert len(heard) == 1
    assert "the root" in heard[0]


def test_a_root_that_is_a_reference_shows_its_object() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"x": {}}}}}
    adapted, heard = adapt(schema, OPENAI_DIALECT)
    assert adapted == {"$defs": schema["$defs"], "type": "object", "properties": {"x": {}}}
    assert heard == []


def test_a_root_without_type_is_an_object() -> None:
    assert adapt({"properties": {}}, OPENAI_DIALECT) == ({"type": "object", "properties": {}}, [])


def test_the_nullable_keyword_becomes_a_type_where_that_is_the_way() -> None:
    schema = {"type": "string", "nullable": True, "enum": ["a"]}
    assert adapt_property(schema, OPENAI_DIALECT) == (
        {"type": ["string", "null"], "enum": ["a", None]},
        [],
    )
    no_lists = SchemaDialect(name="No lists", type_lists=False)
    assert adapt_property({"type": "string", "nullable": True}, no_lists) == (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        [],
    )


def test_exclusive_unions_become_plain_ones_with_a_warning() -> None:
    dialect = SchemaDialect(name="No oneOf", one_of=False)
    options = [{"type": "string"}, {"type": "integer"}]
    adapted, heard = adapt_property({"oneOf": options}, dialect)
    assert adapted == {"anyOf": options}
    assert len(heard) == 1


def test_without_a_listener_a_loss_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        adapt_schema({"type": "object", "additionalProperties": False}, POOR)
    assert "additionalProperties is dropped" in caplog.text


def test_arrays_say_what_is_in_them_where_an_api_insists() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "pair": pair,
            "some": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "more": {"type": ["array", "null"]},
            "full": {"type": "array", "items": {"type": "integer"}},
        },
    }
    adapted, heard = adapt(schema, OPENAI_DIALECT)
    inner = adapted["properties"]
    assert inner["pair"] == {**pair, "items": {}}
    assert inner["some"]["anyOf"][0]["items"] == inner["more"]["items"] == {}
    assert inner["full"] == schema["properties"]["full"]
    assert heard == []
    assert adapt(schema, SchemaDialect(name="any"))[0] == schema
