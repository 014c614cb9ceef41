"""Arguments: read defensively, checked against the schema, and refused in words a model can use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import ToolPlugin
from agent_hookspecs.tool_interop import SchemaView
from agent_host.agent.arguments import arguments_objection
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    check_history,
    events_of,
    of_kind,
    saying,
    scripted,
    session_of,
)


def objection(parameters: Any, payload: Any) -> str | None:
    return arguments_objection(SchemaView(name="f", parameters=parameters), payload)


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        (
            {**an_object(n=NUMBER), "required": ["n"]},
            {},
            "the arguments must contain ['n'] properties",
        ),
        (an_object(n=NUMBER), {"n": "one"}, "n must be integer"),
        (an_object(data=NUMBER), {"data": "data.data"}, "data must be integer"),
        (an_object(n={"enum": ["a", "b"]}), {"n": "c"}, "n must be one of ['a', 'b']"),
        (an_object(n={"type": "array", "items": NUMBER}), {"n": [1, "x"]}, "n[1] must be integer"),
        (an_object(o=an_object(n=NUMBER)), {"o": {"n": None}}, "o.n must be integer"),
        (
            {**an_object(n=NUMBER), "additionalProperties": False},
            {"m": 1},
            "the arguments must not contain {'m'} properties",
        ),
        (
            an_object(n={"type": "integer", "minimum": 3}),
            {"n": 2},
            "n must be bigger than or equal to 3",
        ),
        (
            {**an_object(p={"$ref": "#/$defs/Point"}), "$defs": {"Point": an_object(x=NUMBER)}},
            {"p": {"x": "far"}},
            "p.x must be integer",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(schema: Any, payload: Any, words: str) -> None:
    assert objection(schema, payload) == words


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (an_object(n=NUMBER), {"n": 1}),
        (an_object(n=NUMBER), {"other": 1}),
        ({}, {"anything": 1}),
        (None, {"anything": 1}),
        (
            {
                **an_object(p={"$ref": "#/$defs/P"}),
                "$defs": {"P": an_object(left={"$ref": "#/$defs/P"})},
            },
            {"p": {"left": {"left": {}}}},
        ),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **an_object(n=NUMBER)},
            {"n": 1},
        ),
        ({**an_object(n={"anyOf": [NUMBER, {"type": "null"}]})}, {"n": None}),
    ],
)
def test_what_fits_is_let_through(schema: Any, payload: Any) -> None:
    assert objection(schema, payload) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "wizard"},
        an_object(n={"$ref": "#/nowhere"}),
        an_object(n={"$ref": "https://example.invalid/schema.json"}),
        an_object(n={"$ref": "file:///etc/passwd"}),
        an_object(n={"type": "string", "pattern": "("}),
        {"properties": 5},
    ],
)
def test_a_schema_that_cannot_be_used_leaves_the_check_to_the_tool(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert objection(schema, {"n": "x"}) is None
    assert "not_checked" in caplog.text


def test_defaults_are_left_to_the_tool() -> None:
    payload: dict[str, Any] = {}
    assert objection(an_object(n={"type": "integer", "default": 5}), payload) is None
    assert payload == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.dictionaries(st.text(), JSON))
@settings(max_examples=100, deadline=None)
def test_whatever_schema_and_payload_are_nothing_is_raised_or_changed(
    schema: dict[str, Any], payload: dict[str, Any]
) -> None:
    before = json.dumps(payload)
    words = objection({"type": "object", **schema}, payload)
    assert words is None or words
    assert json.dumps(payload) == before


# --- in a run ---


class Recording(ToolPlugin):
    """Two tools that keep what they were given: one takes an object, one takes text."""

    name = "recording"
    effects = {"take": "read", "patch": "read"}  # noqa: RUF012
    given: list[Any]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        number = {"type": "integer", "default": 7}
        take = {"type": "object", "properties": {"n": number, "s": {"type": "string"}}}
        return [
            {"name": "take", "parameters": take},
            {"type": "custom", "name": "patch", "description": "Text.", "format": {"type": "text"}},
        ]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        self.given.append(payload)
        return "taken"


def run(way: Way, *calls: dict[str, Any], **tools: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """What the tool was given, the results, and the history that is sent back."""
    sent: list[Any] = []
    plugin = type("Recording", (Recording,), {"given": []})
    provider = scripted([calling(*calls), saying("Done.")], sent)
    events = events_of(app_with(provider, plugin, config={"tools": tools}), way=way)
    check_history(session_of(events).messages)
    results = [event["message"]["content"] for event in of_kind(events, "tool_result")]
    given: list[Any] = plugin.given  # type: ignore[attr-defined]
    return given, results, sent[-1]


ways = pytest.mark.parametrize("way", WAYS)


@ways
@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        '```json\n{"n": 1}\n```',
        '```\n{"n": 1}```',
        json.dumps('{"n": 1}'),
        json.dumps('```json\n{"n": 1}\n```'),
    ],
)
def test_fenced_and_twice_encoded_arguments_are_accepted(way: Way, text: str) -> None:
    given, results, history = run(way, call("take", text))
    assert given == [{"n": 1}]
    assert results == ["taken"]
    stored = history[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(stored) == {"n": 1}
    if text == '{"n": 1}':
        assert stored == text


@ways
@pytest.mark.parametrize("text", ["", "   ", "{}"])
def test_no_arguments_are_an_empty_object_and_defaults_are_the_tools(way: Way, text: str) -> None:
    assert run(way, call("take", text))[0] == [{}]


@ways
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"n": ', "Invalid JSON in tool call arguments"),
        ('{"n": 1}{"n": 2}', "Invalid JSON"),
        ('{"n": NaN}', "Invalid JSON"),
        ("[1]", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"n": "one"}', "Invalid arguments for tool 'take': n must be integer. Retry"),
        (json.dumps(json.dumps('{"n": 1}')), "not a JSON object"),
    ],
)
def test_broken_arguments_are_not_run_and_the_model_is_told(
    way: Way, text: str, words: str
) -> None:
    given, (result,), history = run(way, call("take", text))
    assert given == []
    assert words in result
    check_history(history)


@ways
def test_a_broken_call_does_not_keep_its_neighbours_from_running(way: Way) -> None:
    given, results, _ = run(way, call("take", "{", id="a"), call("take", '{"n": 2}', id="b"))
    assert given == [{"n": 2}]
    assert results[1] == "taken"


@ways
def test_a_freeform_tool_gets_text_however_it_is_called(way: Way) -> None:
    text = "*** Begin\n{not json"
    given, results, _ = run(way, call("patch", json.dumps({"input": text})))
    assert (given, results) == ([text], ["taken"])


@ways
def test_a_freeform_tool_called_without_its_text_is_not_run(way: Way) -> None:
    given, (result,), _ = run(way, call("patch", '{"text": "x"}'))
    assert given == []
    assert "'input'" in result


@ways
def test_a_tool_may_work_on_its_payload(way: Way) -> None:
    class Greedy(Recording):
        name = "greedy"

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            payload.clear()
            return "emptied"

    sent: list[Any] = []
    plugin = type("Greedy", (Greedy,), {"given": []})
    app = app_with(scripted([calling(call("take", '{"n": 1}')), saying("x")], sent), plugin)
    events = events_of(app, way=way)
    assert of_kind(events, "tool_started")[0]["payload"] == {"n": 1}
    assert sent[-1][1]["tool_calls"][0]["function"]["arguments"] == '{"n": 1}'
