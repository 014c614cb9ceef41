"""Models, input elements and settings: what plugins offer, and what is made of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin, ToolPlugin
from agent_hookspecs.errors import ConfigError
from agent_host.plugins.settings import HOST_SETTINGS, merge_schemas
from loopback import Peer, Request, serve
from talking import WAYS, Way, ask, core_with, said, talker


def feature(name: str, **methods: Any) -> type[FeaturePlugin]:
    return type(name, (FeaturePlugin,), {"name": name, **methods})


def extension(name: str, **methods: Any) -> type[ProviderExtensionPlugin]:
    return type(name, (ProviderExtensionPlugin,), {"name": name, **methods})


class OneTool(ToolPlugin):
    name = "one_tool"

    def get_tool_schemas(self, state: Any) -> Any:
        return [{"name": "look", "description": "", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        return "looked"


# --- models ---------------------------------------------------------------------------------------


def listing(asked: list[Any], models: Any = None) -> type:
    def get_models(self: Any, config: Any) -> Any:
        asked.append(config.get("model"))
        answer = [{"id": f"m{len(asked)}"}] if models is None else models
        if isinstance(answer, Exception):
            raise answer
        return answer

    return talker(get_models=get_models)


def test_models_are_asked_for_once_while_they_are_fresh() -> None:
    asked: list[Any] = []
    core = core_with(listing(asked), model_seconds=1000)
    for _ in range(3):
        assert core.get_models({}) == [{"id": "m1"}]
    ask(core, said("x"))
    assert len(asked) == 1
    core.get_models({"model": "other"})
    assert asked == [None, "other"]
    # What requests set of their own changes nothing of it.
    for tools in ([{"name": "a", "parameters": {}}], [{"name": "b", "parameters": {}}]):
        assert core.get_models({"tools": tools, "temperature": 0.5}) == [{"id": "m1"}]
    assert asked == [None, "other"]


def test_models_that_are_not_fresh_are_asked_for_again() -> None:
    asked: list[Any] = []
    core = core_with(listing(asked), model_seconds=0)
    assert [core.get_models({}) for _ in range(2)] == [[{"id": "m1"}], [{"id": "m2"}]]


def test_entries_without_an_id_are_no_models() -> None:
    listed = [{"id": "a", "x": 1}, {"id": ""}, {"id": 3}, {}, "b", None, {"id": "c"}]
    assert core_with(listing([], listed)).get_models({}) == [{"id": "a", "x": 1}, {"id": "c"}]


@pytest.mark.parametrize("listed", [None, "text", {"id": "a"}, 3, OSError("no line")], ids=repr)
def test_a_listing_that_fails_gives_no_models_and_the_request_goes_on(listed: Any) -> None:
    core = core_with(listing([], listed if listed is not None else ()))
    assert core.get_models({}) == []
    assert ask(core, said("x"))[1][-1]["content"] == "Hi"


def test_why_a_listing_failed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    core_with(listing([], OSError("no line"))).get_models({})
    assert "models_unavailable provider=talker error=OSError: no line" in caplog.text


def test_what_the_caller_does_to_models_and_schemas_is_seen_by_nobody_else() -> None:
    listed = [{"id": "m1", "capabilities": {"tools": True}}]
    described = {"size": {"type": "string", "enum": ["s", "l"]}}
    plugin = feature("f", get_config_schema=lambda self: described)
    core = core_with(listing([], listed), plugin, OneTool)
    for _ in range(2):
        (model,) = core.get_models({})
        assert model == {"id": "m1", "capabilities": {"tools": True}}
        model["id"] = "changed"
        model["capabilities"]["tools"] = False
        (descriptor,) = core.get_tool_schemas({})
        assert descriptor.schema["parameters"] == {"type": "object"}
        descriptor.schema["parameters"]["type"] = "changed"
        schema = core.get_config_schema({})["size"]
        assert schema["enum"] == ["s", "l"]
        schema["enum"].append("changed")


def test_what_an_extension_does_to_models_in_place_happens_once() -> None:
    def shouting(self: Any, config: Any, models: Any) -> Any:
        for model in models:
            model["label"] = model.get("label", "") + "!"
        return models

    core = core_with(listing([]), extension("e", get_models=shouting))
    for _ in range(2):
        assert core.get_models({}) == [{"id": "m1", "label": "!"}]
        # The stack goes, the list of models stays.
        core.close()


def test_models_go_through_extensions_and_then_features(caplog: pytest.LogCaptureFixture) -> None:
    def adding(name: str) -> Any:
        def get_models(self: Any, config: Any, models: Any) -> Any:
            return [*models, {"id": f"{name} after {len(models)}"}]

        return get_models

    def failing(self: Any, config: Any, models: Any) -> Any:
        models.clear()
        raise ValueError("out of order")

    core = core_with(
        listing([]),
        feature("f", get_models=adding("f")),
        extension("a", get_models=failing),
        extension("b", get_models=adding("b")),
        extension("c", get_models=lambda self, config, models: None),
        extension("d", get_models=lambda self, config, models: [*models, {"no": "id"}]),
    )
    assert [m["id"] for m in core.get_models({})] == ["m1", "b after 1", "f after 2"]
    assert "hook_failed plugin=a hook=get_models error=ValueError: out of order" in caplog.text


def test_tags_are_asked_for_with_the_models() -> None:
    def get_tags(self: Any, config: Any, models: Any) -> Any:
        selected: dict[str, Any] = next((m for m in models if m["id"] == config.get("model")), {})
        return ["provider:t", *(f"supports_{c}" for c in selected.get("can", ()))]

    models = [{"id": "plain"}, {"id": "able", "can": ["tools", "reasoning"]}]
    provider = type("P", (listing([], models),), {"get_tags": get_tags})
    core = core_with(provider)
    assert core.get_tags({"model": "plain"}) == ["provider:t"]
    assert core.get_tags({"model": "able"}) == [
        "provider:t",
        "supports_reasoning",
        "supports_thinking",
        "supports_tools",
    ]


def remote(spec: Any = None) -> type:
    """A provider that says what to ask for, and leaves the asking to others."""

    def models_request(self: Any, config: Any) -> Any:
        if spec is not None:
            return spec
        return {"url": f"{config['base_url']}/models", "headers": {"X-Key": config["api_key"]}}

    def parse_models(self: Any, body: Any) -> Any:
        return [{"id": name} for name in body["data"]]

    return talker(models_request=models_request, parse_models=parse_models)


@pytest.mark.parametrize("way", WAYS)
def test_models_are_fetched_over_the_wire(way: Way) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(json.dumps({"data": ["a", "b"]}).encode())

    with serve(play) as server, core_with(remote()) as core:
        config = {"base_url": server.url, "api_key": "k-1234"}
        ask(core, said("x"), config, way)
        assert core.get_models(config) == [{"id": "a"}, {"id": "b"}]
        assert [request.line for request in server.requests] == ["GET /models HTTP/1.1"]
        assert server.requests[0].headers["x-key"] == "k-1234"


@pytest.mark.parametrize(
    ("status", "body"),
    [("500 Oops", b"{}"), ("200 OK", b"<html>"), ("200 OK", b"[]"), ("200 OK", b'{"data": 3}')],
)
def test_a_listing_over_the_wire_that_fails_gives_no_models(status: str, body: bytes) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(body, status=status)

    with serve(play) as server, core_with(remote()) as core:
        assert core.get_models({"base_url": server.url, "api_key": "k"}) == []


def test_nothing_is_asked_of_a_model_that_is_known_but_all_models_can_be_listed() -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(json.dumps({"data": ["a", "b"]}).encode())

    shown: list[Any] = []

    class Knowing(remote()):  # type: ignore[misc]
        def models_request(self, config: Any) -> Any:
            return None if config.get("model") else super().models_request(config)

        def get_ui_elements(self, models: Any) -> list[dict[str, Any]]:
            shown.extend(models)
            return []

    with serve(play) as server, core_with(Knowing) as core:
        config = {"base_url": server.url, "api_key": "k", "model": "a"}
        ask(core, said("x"), config)
        assert server.requests == []
        core.get_ui_elements(config)
        assert core.get_models(config) == shown == [{"id": "a"}, {"id": "b"}]


def test_a_request_is_told_what_the_listing_says_of_its_model() -> None:
    told: list[Any] = []

    def initialize_request(self: Any, native_messages: Any, state: Any, context: Any) -> Any:
        told.append(context["model"])
        return native_messages, state

    models = [{"id": "plain"}, {"id": "able", "window": 7}]
    provider = type("P", (listing([], models),), {"initialize_request": initialize_request})
    with core_with(provider) as core:
        for model in ("able", "other"):
            ask(core, said("x"), {"model": model})
    assert told == [{"id": "able", "window": 7}, None]


@pytest.mark.parametrize("spec", ["text", {}, {"url": "ftp://x"}], ids=repr)
def test_a_models_request_of_the_wrong_shape_is_logged(
    spec: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with core_with(remote(spec)) as core:
        assert core.get_models({}) == []
    assert "hook 'models_request'" in caplog.text


# --- input elements -------------------------------------------------------------------------------


def test_elements_come_from_every_plugin_whatever_it_asks_for() -> None:
    seen: dict[str, Any] = {}

    def in_full(self: Any, config: Any, tags: Any, models: Any) -> Any:
        seen["provider"] = (config["model"], tags, models)
        return [{"type": "text", "key": "model", "label": "Model"}]

    def with_context(self: Any, config: Any, context: Any = None) -> Any:
        seen["extension"] = context["core"]
        return [{"type": "checkbox", "key": "think", "label": "Think"}]

    def bare(self: Any) -> Any:
        return [{"type": "text", "key": "bare", "label": "Bare"}, "no element"]

    def failing(self: Any) -> Any:
        raise ValueError("out of order")

    core = core_with(
        talker(
            get_ui_elements=in_full,
            get_models=lambda self, config: [{"id": "m"}],
            get_tags=lambda self, config, models: ["t"],
        ),
        extension("e", get_ui_elements=with_context),
        feature("a", get_ui_elements=failing),
        feature("b", get_ui_elements=lambda self: 3),
        feature("c", get_ui_elements=bare),
        feature("d", get_ui_elements=lambda self: None),
    )
    assert [e["key"] for e in core.get_ui_elements({"model": "m"})] == ["model", "think", "bare"]
    assert seen == {"provider": ("m", ["t"], [{"id": "m"}]), "extension": core}


# --- settings -------------------------------------------------------------------------------------

FLAT = {
    "model": {"type": "string", "required": True},
    "think": {"type": "boolean", "required": False, "default": False},
    "effort": {"type": "string", "enum": ["low", "high"]},
}
OBJECT = {
    "type": "object",
    "properties": {
        "model": {"type": "integer"},
        "depth": {"type": ["integer", "null"], "default": 3},
        "ratio": {"type": "number"},
        "names": {"type": "array"},
        "more": {"type": "object"},
    },
    "required": ["depth"],
}


def described(schema: Any) -> Any:
    return lambda self: schema


def core_of_both() -> Any:
    return core_with(
        talker(get_config_schema=described(FLAT)),
        extension("deep", get_config_schema=described(OBJECT)),
    )


def test_flat_maps_and_json_schema_become_one_table() -> None:
    merged = core_of_both().get_config_schema({"model": "m"})
    assert merged["model"] == {"type": "string", "required": True, "plugin": "talker"}
    assert merged["depth"] == {
        "type": ["integer", "null"],
        "default": 3,
        "required": True,
        "plugin": "deep",
    }
    assert list(merged) == ["model", "think", "effort", "depth", "ratio", "names", "more"]


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ({"properties": {"a": {}}, "required": ["a"]}, {"a": True}),
        ({"$schema": "x", "properties": {"a": {}}}, {"a": False}),
        ({"properties": {"type": "string"}}, {"properties": False}),
        ({"type": {"type": "string", "required": True}}, {"type": True}),
        ({"a": 3, "b": {}}, {"b": False}),
        (None, {}),
        ([], {}),
        ("text", {}),
    ],
)
def test_either_form_is_recognised(schema: Any, keys: dict[str, bool]) -> None:
    settings = merge_schemas([("p", schema)]).settings
    assert {key: setting.required for key, setting in settings.items()} == keys


@pytest.mark.parametrize(
    ("config", "key", "words"),
    [
        ({}, "model", "plugin 'talker' needs the setting 'model'"),
        ({"model": ""}, "model", "'talker' needs"),
        ({"model": None}, "model", "'talker' needs"),
        ({"model": 3}, "model", "wants text"),
        ({"model": "m", "think": "yes"}, "think", "plugin 'talker' wants true or false"),
        ({"model": "m", "think": 1}, "think", "true or false"),
        ({"model": "m", "effort": "huge"}, "effort", "one of low, high"),
        ({"model": "m", "depth": "deep"}, "depth", "plugin 'deep' wants a whole number or nothing"),
        ({"model": "m", "depth": True}, "depth", "a whole number"),
        ({"model": "m", "depth": 1.5}, "depth", "a whole number"),
        ({"model": "m", "ratio": "1"}, "ratio", "number"),
        ({"model": "m", "names": "a"}, "names", "a list"),
        ({"model": "m", "more": []}, "more", "object"),
    ],
)
def test_a_wrong_setting_is_refused_by_key_and_plugin(
    config: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ask(core_of_both(), said("x"), config)
    assert caught.value.key == key
    assert words in caught.value.explain()


def test_right_settings_and_unknown_ones_pass() -> None:
    config = {"model": "m", "think": True, "effort": "low", "depth": 1, "ratio": 1, "what": object}
    assert ask(core_of_both(), said("x"), {**config, "names": ["a"], "more": {}})[1]


def test_defaults_are_applied_to_what_is_not_set() -> None:
    seen: list[Any] = []

    def init(self: Any, config: Any, state: Any) -> None:
        seen.append({key: config.get(key) for key in ("think", "depth", "effort")})

    core = core_of_both()
    core.register_feature(feature("f", init=init))
    ask(core, said("x"), {"model": "m"})
    ask(core, said("x"), {"model": "m", "think": True, "depth": None})
    ask(core, said("x"), {"model": "m", "depth": 0})
    assert seen == [
        {"think": False, "depth": 3, "effort": None},
        {"think": True, "depth": 3, "effort": None},
        {"think": False, "depth": 0, "effort": None},
    ]


def test_request_defaults_stand_below_what_is_set() -> None:
    seen: list[Any] = []

    def init(self: Any, config: Any, state: Any) -> None:
        seen.append((config["model"], config["effort"], "request_defaults" in config))

    core = core_of_both()
    core.register_feature(feature("f", init=init))
    ask(core, said("x"), {"model": "m", "request_defaults": {"model": "d", "effort": "low"}})
    assert seen == [("m", "low", False)]


@pytest.mark.parametrize("way", WAYS)
def test_a_required_key_may_come_from_a_feature(way: Way) -> None:
    needing = talker(get_config_schema=described({"api_key": {"required": True, "secret": True}}))

    def bridge(self: Any, config: Any, state: Any) -> Any:
        return {**state, "config": {**state["config"], "api_key": "from elsewhere"}}

    with pytest.raises(ConfigError, match="api_key"):
        ask(core_with(needing), said("x"), {}, way)
    assert ask(core_with(needing, feature("f", init=bridge)), said("x"), {}, way)[1]


@pytest.mark.parametrize("key", ["api_key", "base_url"])
def test_a_provider_is_not_asked_without_the_access_it_says_it_needs(key: str) -> None:
    core = core_with(talker(**{f"requires_{key}": True}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"'talker' needs the setting '{key}'") as caught:
        ask(core, said("x"), {key: ""})
    assert caught.value.key == key
    assert ask(core, said("x"), {key: "https://a.test"})[1]


def test_a_schema_that_cannot_be_had_is_a_warning() -> None:
    def failing(self: Any) -> Any:
        raise ValueError("out of order")

    core = core_with(talker(), feature("f", get_config_schema=failing))
    with core.send_request_stream(said("x"), {}) as events:
        warnings = [event for event in events if event["type"] == "warning"]
    assert "plugin 'f' could not give its settings: ValueError" in warnings[0]["message"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("timeout", "soon"),
        ("timeout", 0),
        ("timeout", True),
        ("timeout", {"connect": "x"}),
        ("timeout", {"soon": 1}),
        ("retries", -1),
        ("retries", True),
    ],
)
def test_settings_of_the_host_are_checked_too(key: str, value: Any) -> None:
    def initialize_request(self: Any, native_messages: Any, state: Any) -> Any:
        return native_messages, {**state, "request": {"url": "http://127.0.0.1:9/"}}

    def process_chunk(self: Any, native_chunk: Any, native_messages: Any, state: Any) -> Any:
        return [], [], native_messages, state

    hooks = {"initialize_request": initialize_request, "process_chunk": process_chunk}
    wired = type("wired", (ProviderPlugin,), {"name": "wired", **hooks})
    with pytest.raises(ConfigError) as caught:
        ask(core_with(wired), said("x"), {key: value})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("provider", 5, "give a provider's name"),
        ("use_tools", 5, "a list of strings"),
        ("use_tools", "look", "a list of strings"),
        ("use_tools", ["look", 5], "a list of strings"),
        ("tools", 5, "a list of declarations"),
        ("tools", "look", "a list of declarations"),
        ("tool_interop", 5, "get_tool_interop_contribution"),
        ("tool_interop", {"call_accessors": [5]}, "get_tool_interop_contribution"),
        ("tool_interop", {"nothing": []}, "get_tool_interop_contribution"),
    ],
)
def test_a_setting_that_the_host_cannot_read_is_named(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ask(core_with(talker()), said("x"), {key: value})
    assert caught.value.key == key
    assert words in caught.value.hint


# --- who sees what is secret ----------------------------------------------------------------------

names = st.sampled_from(["region", "servers", "api_key", "access_token", "password", "note"])
hiding = st.recursive(
    st.just("plain"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
CREDENTIALS = {"api_key", "access_token", "password"}


def under_credentials(value: Any) -> Any:
    """The same value, in which each text says whether it stands under a credential's name."""
    if isinstance(value, dict):
        return {
            key: marked(item) if key in CREDENTIALS else under_credentials(item)
            for key, item in value.items()
        }
    return [under_credentials(item) for item in value] if isinstance(value, list) else value


def marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: marked(item) for key, item in value.items()}
    return [marked(item) for item in value] if isinstance(value, list) else "hidden"


@given(st.dictionaries(names, hiding, max_size=4))
def test_credentials_are_known_and_kept_from_tools_at_any_depth(config: dict[str, Any]) -> None:
    config = under_credentials(config)
    schema = merge_schemas([])
    hidden = str(config).count("'hidden'")
    assert list(schema.secrets(config)) == ["hidden"] * hidden
    seen = schema.for_tool("tool", config)
    assert "'hidden'" not in str(seen)
    assert str(seen).count("'plain'") == str(config).count("'plain'")


MARKED = {"type": "string", "secret": True}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": MARKED}, ["hidden"]),
        ({"items": {"properties": {"phrase": MARKED}}}, [{"phrase": "hidden", "name": "open"}]),
        ({"prefixItems": [MARKED]}, ["hidden"]),
        ({"additionalProperties": MARKED, "properties": {"a": {}}}, {"a": "open", "b": "hidden"}),
        ({"patternProperties": {"^b": MARKED}}, {"b": "hidden"}),
        ({"anyOf": [{"format": "password"}, {"type": "null"}]}, "hidden"),
        ({"additionalProperties": {"items": MARKED}}, {"a": [["hidden"], "hidden"]}),
        ({"properties": {"a": {"items": {"oneOf": [MARKED]}}}}, {"a": ("hidden",), "b": "open"}),
    ],
)
def test_a_mark_counts_wherever_it_stands_in_a_schema(schema: Any, value: Any) -> None:
    merged = merge_schemas([("p", {"setting": schema})])
    found = [*merged.secrets({"setting": value})]
    assert found == ["hidden"] * repr(value).count("'hidden'")
    assert merged.for_tool("tool", {"setting": value, "other": 1}) == {"other": 1}


def test_a_setting_is_secret_if_any_plugin_says_so() -> None:
    phrase = {"phrase": {"type": "string", "title": "Phrase"}}
    merged = merge_schemas([("first", phrase), ("second", {"phrase": MARKED})])
    assert [*merged.secrets({"phrase": "hidden"})] == ["hidden"]
    assert merged.for_tool("other", {"phrase": "hidden"}) == {}
    assert merged.to_dict()["phrase"] == {
        "type": "string",
        "title": "Phrase",
        "secret": True,
        "required": False,
        "plugin": "first",
    }


def test_a_tool_sees_a_secret_that_only_it_has_a_use_for() -> None:
    merged = merge_schemas([("provider", {"phrase": MARKED}), ("tool", {"mine": MARKED})])
    config = {"phrase": "a", "mine": "b"}
    assert merged.for_tool("tool", config) == {"mine": "b"}
    greedy = merge_schemas([("provider", {"phrase": MARKED}), ("tool", {"phrase": MARKED})])
    assert greedy.for_tool("tool", config) == {"mine": "b"}


def test_a_parameter_with_a_credentials_name_is_no_credential() -> None:
    parameters = {"type": "object", "properties": {"token": {"type": "string"}}}
    tools = [{"name": "login", "parameters": parameters, "authorization": "hidden"}]
    assert [*merge_schemas([]).secrets({"tools": tools})] == ["hidden"]
    seen = merge_schemas([]).for_tool("tool", {"tools": tools})
    assert seen == {"tools": [{"name": "login", "parameters": parameters}]}


def test_the_docs_have_the_settings_that_the_host_knows() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "requests.md").read_text("utf-8")
    table = page.partition("## Settings of a request")[2].partition("###")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert documented == HOST_SETTINGS
