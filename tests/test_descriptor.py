"""The descriptor's model: schema and parser agree, and every refusal says what would be right."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from jsonschema import Draft202012Validator

from agent_hookspecs.descriptor import Descriptor, Entry, split_entry
from agent_hookspecs.errors import DescriptorError
from agent_host.plugins.descriptor import descriptor_schema, parse_descriptor

SCHEMA_FILE = "agent_plugin.schema.json"
FULL: dict[str, Any] = {"entry": "pkg.mod:Class", "role": "provider", "name": "mine"}
SCHEMA = descriptor_schema()
ENTRY_KEYS = SCHEMA["properties"]["entries"]["items"]["oneOf"][1]["properties"]


def with_entry(**more: Any) -> dict[str, Any]:
    return {"entries": [{**FULL, **more}]}


def test_the_shipped_schema_is_the_model() -> None:
    shipped = json.loads(files("agent_hookspecs").joinpath(SCHEMA_FILE).read_text("utf-8"))
    assert shipped == SCHEMA, "write it anew: python docs/generate.py"


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_model_knows_every_field_of_an_entry_and_no_other() -> None:
    assert list(ENTRY_KEYS) == list(Entry.__dataclass_fields__)
    assert all("description" in schema for schema in ENTRY_KEYS.values())


def test_the_short_form_of_the_source_documents_is_valid() -> None:
    found = parse_descriptor({"entries": ["my_provider.provider.MyProvider"], "subdirectory": "."})
    assert found == Descriptor((Entry.of_class("my_provider.provider.MyProvider"),))
    assert found.entries[0].short
    assert found.supports("99.0")


def test_the_full_form_of_the_design_is_valid() -> None:
    found = parse_descriptor(
        {
            "$schema": SCHEMA_FILE,
            "api": ">=1,<2",
            "entries": [
                {
                    "entry": "my_provider.provider:MyProvider",
                    "role": "provider",
                    "name": "my_provider",
                    "label": "My Provider",
                    "provides_tags": ["provider:my_provider"],
                    "dynamic": ["get_tags"],
                    "requires_api_key": True,
                    "key_variable": "MY_API_KEY",
                    "config_schema": {"model": {"type": "string", "required": True}},
                },
                {
                    "entry": "my_provider.extension:MyTools",
                    "role": "extension",
                    "name": "my_tools",
                    "required_tags": ["provider:my_provider", "supports_tools"],
                    "after": ["my_reasoning"],
                    "priority": 0,
                    "default_enabled": True,
                },
            ],
        }
    )
    provider, extension = found.entries
    assert provider.provides_tags == ("provider:my_provider",)
    assert provider.requires_api_key
    assert provider.key_variable == "MY_API_KEY"
    assert extension.after == ("my_reasoning",)
    assert found.supports("1.7")
    assert not found.supports("2.0")
    assert found.unknown_keys == ()


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("pkg.mod:Class", ("pkg.mod", "Class")),
        ("pkg.mod.Class", ("pkg.mod", "Class")),
        ("pkg:Class", ("pkg", "Class")),
    ],
)
def test_both_ways_to_name_a_class_are_accepted(entry: str, parts: tuple[str, str]) -> None:
    assert parse_descriptor({"entries": [entry]}).entries[0].entry == entry
    assert split_entry(entry) == parts


def test_unknown_keys_are_kept_not_refused() -> None:
    found = parse_descriptor({**with_entry(required_tag=["x"]), "futur": 1})
    assert found.unknown_keys == ("futur", "entries[0].required_tag")


WRONG: list[tuple[object, str | None, str]] = [
    (None, None, "an object"),
    ([], None, "an object"),
    ({}, "entries", "add it"),
    ({"entries": []}, "entries", "not empty"),
    ({"entries": "pkg:C"}, "entries", "a list"),
    ({"entries": [3]}, "entries[0]", "a string"),
    ({"entries": ["justone"]}, "entries[0]", "package.module:Class"),
    ({"entries": ["../x:C"]}, "entries[0]", "package.module:Class"),
    ({"entries": ["pkg.mod:Class\n"]}, "entries[0]", "package.module:Class"),
    ({"entries": [{}]}, "entries[0].entry", "add it"),
    ({"entries": [{"entry": "p:C", "name": "n"}]}, "entries[0].role", "add it"),
    ({"entries": [{"entry": "p:C", "role": "tool"}]}, "entries[0].name", "add it"),
    ({**with_entry(), "api": ""}, "api", "not empty"),
    ({**with_entry(), "api": "1"}, "api", "'>=1,<2'"),
    ({**with_entry(), "api": 1}, "api", "a string"),
    ({**with_entry(), "subdirectory": ""}, "subdirectory", "not empty"),
    (with_entry(role="wizard"), "entries[0].role", "provider, extension, feature, tool"),
    (with_entry(name="with space"), "entries[0].name", "letters, digits and any of _ . : -"),
    (with_entry(name="trailing\n"), "entries[0].name", "letters, digits and any of _ . : -"),
    (with_entry(name="x" * 129), "entries[0].name", "letters, digits and any of _ . : -"),
    (with_entry(label=3), "entries[0].label", "a string"),
    (with_entry(provides_tags="tag"), "entries[0].provides_tags", "a list"),
    (with_entry(required_tags=[""]), "entries[0].required_tags[0]", "not empty"),
    (with_entry(dynamic=["init"]), "entries[0].dynamic[0]", "get_tags"),
    (with_entry(priority=True), "entries[0].priority", "a whole number"),
    (with_entry(priority="1"), "entries[0].priority", "a whole number"),
    (with_entry(default_enabled=1), "entries[0].default_enabled", "true or false"),
    (with_entry(key_variable="1X"), "entries[0].key_variable", "variables of the environment"),
    (with_entry(options=[]), "entries[0].options", "an object"),
    (with_entry(commands=["Loud"]), "entries[0].commands[0]", "small letters, digits and dashes"),
    (with_entry(after=["mine"]), "entries[0].after", "remove it"),
    (with_entry(before=["mine"]), "entries[0].before", "remove it"),
    (with_entry(required_plugins=["x"]), "entries[0].required_plugins", "require its tag"),
    (
        with_entry(role="tool", required_plugins=["tool:mine"]),
        "entries[0].required_plugins",
        "remove it",
    ),
    ({**with_entry(), "homepage": "javascript:x"}, "homepage", "https://"),
    ({**with_entry(), "tier": "best"}, "tier", "bronze, silver, gold"),
    (with_entry(tools={"t": "read"}), "entries[0].tools", "role"),
    (with_entry(role="tool", tools={"t": "magic"}), "entries[0].tools.t", "read, write"),
    (with_entry(role="tool", fallback=True), "entries[0].fallback", "role"),
]


@pytest.mark.parametrize(("document", "key", "remedy"), WRONG, ids=[str(w[1]) for w in WRONG])
def test_what_is_wrong_is_named_with_its_remedy(
    document: object, key: str | None, remedy: str
) -> None:
    with pytest.raises(DescriptorError) as caught:
        parse_descriptor(document)
    assert caught.value.key == key
    assert remedy in caught.value.hint
    assert caught.value.message.startswith(key or "the document")


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(DescriptorError) as caught:
        parse_descriptor({"entries": "x" * 10_000})
    assert len(caught.value.message) < 200


def of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Documents near the schema: mostly right, with something wrong here and there."""
    if "oneOf" in schema:
        return st.one_of(*map(of_schema, schema["oneOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | st.just("other")
    right: st.SearchStrategy[Any]
    if schema["type"] == "string":
        right = st.sampled_from(
            ["pkg.mod:Class", "pkg.mod.Class", "name", "KEY_1", ">=1", "a b", ""]
        )
    elif schema["type"] == "integer":
        right = st.integers()
    elif schema["type"] == "boolean":
        right = st.booleans()
    elif schema["type"] == "array":
        right = st.lists(of_schema(schema["items"]), max_size=2)
    else:
        optional = {k: of_schema(v) for k, v in schema.get("properties", {}).items()}
        required = {k: optional.pop(k) for k in schema.get("required", ())}
        right = st.fixed_dictionaries(required, optional={**optional, "unknown": st.integers()})
        if isinstance(schema.get("additionalProperties"), dict):
            right = st.dictionaries(st.text(max_size=3), of_schema(schema["additionalProperties"]))
    return st.integers(0, 19).flatmap(lambda dice: right if dice else JSON)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def beyond_the_schema(document: dict[str, Any]) -> bool:
    """Whether it breaks one of the rules that relate keys to each other."""
    for entry in document["entries"]:
        if isinstance(entry, dict) and (
            entry["name"] in [*entry.get("before", ()), *entry.get("after", ())]
            or (entry.get("tools") and entry["role"] != "tool")
            or (entry.get("fallback") and entry["role"] != "provider")
        ):
            return True
    return bool(document.get("api", ">=1") != ">=1")


@given(of_schema(SCHEMA))
def test_schema_and_parser_agree(document: Any) -> None:
    by_schema = Draft202012Validator(SCHEMA).is_valid(document)
    if by_schema:
        assume(not beyond_the_schema(document))
    try:
        found = parse_descriptor(document)
    except DescriptorError:
        assert not by_schema
    else:
        assert by_schema
        assert len(found.entries) == len(document["entries"])


@given(JSON)
def test_any_json_is_parsed_or_refused_and_nothing_else(document: Any) -> None:
    with suppress(DescriptorError):
        assert parse_descriptor(document).entries
