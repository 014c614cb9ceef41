"""What plugin code is given: tools no key of anybody else's, and nobody anything to change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, HookResultError, ProviderPlugin, ToolPlugin, hookimpl
from agent_host import AgentApplication
from agent_host.plugins.settings import merge_schemas
from loopback import Peer, Request, serve
from talking import ask, core_with, said, talker

KEY = "sk-of-the-provider-0123456789"
PHRASE = "open sesame"


class Nosy(ToolPlugin):
    """Is called as the provider is, wants its settings, and notes all that it is given."""

    name = "t"
    seen: list[Any]

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "api_key": {"type": "string", "secret": True},
            "phrase": {"type": "string"},
            "own_key": {"type": "string", "secret": True},
        }

    def is_enabled(self, config: Any, context: Any) -> bool:
        self.seen.append((config, context))
        return True

    def get_tags(self, config: Any) -> list[str]:
        self.seen.append(config)
        return []

    def init(self, config: Any) -> dict[str, Any]:
        self.seen.append(config)
        return {}

    def prepare(self, config: Any, state: Any) -> dict[str, Any]:
        self.seen.append(config)
        return {}

    def get_tool_interop_contribution(self, config: Any) -> None:
        self.seen.append(config)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "look", "parameters": {"type": "object", "properties": {}}}]

    def execute_tool(self, tool_name: str, payload: Any, context: Any) -> str:
        self.seen.append(context)
        return "seen"

    @hookimpl
    def host_started(self, host: Any) -> None:
        self.seen.append(host)

    @hookimpl
    def host_closing(self, host: Any) -> None:
        self.seen.append(host)

    @hookimpl
    def observe_event(self, event: Any, context: Any) -> None:
        self.seen.append(context)


CONFIG = {"api_key": KEY, "phrase": PHRASE, "own_key": "mine", "nested": {"token": KEY}}


def nosy_provider(**attributes: Any) -> type:
    return talker(
        name="t",
        get_config_schema=lambda self: {
            "phrase": {"type": "string", "secret": True},
            "nested": {"type": "object"},
        },
        get_tags=lambda self: ["supports_tools"],
        **attributes,
    )


def shown(seen: list[Any]) -> str:
    return json.dumps(seen, default=repr)


def test_a_tool_is_never_given_the_providers_key_whatever_it_is_called() -> None:
    Nosy.seen = []
    with core_with(nosy_provider(), Nosy) as core:
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        core.execute_tool_calls([call], {"provider": "t", **CONFIG})
    assert len(Nosy.seen) >= 6
    assert KEY not in shown(Nosy.seen)
    assert PHRASE not in shown(Nosy.seen)
    assert "mine" in shown(Nosy.seen)


def test_a_tool_is_not_given_the_application() -> None:
    Nosy.seen = []
    config = {
        "allowed_plugins": [],
        "providers": {"main": {"provider": "t", **CONFIG}},
        "agents": {"default": {"provider": "main"}},
    }
    app = AgentApplication(config)
    app.core.register_provider(nosy_provider())
    app.core.register_tool(Nosy)
    with app:
        app.run("hello")
    assert None in Nosy.seen
    assert not any(value is app for value in Nosy.seen)
    assert KEY not in shown(Nosy.seen)


class Meddling:
    """Changes whatever it is given."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def meddle(self, where: str, value: Any) -> Any:
        """Gives nothing, as a hook that has nothing to say."""
        self.tried.append(where)
        try:
            value["nested"]["token"] = "changed"
            value["api_key"] = "changed"
        except TypeError:
            # It cannot be changed.
            pass
        return None


def test_no_plugin_can_change_the_config_of_others() -> None:
    hand = Meddling()
    sent: list[Any] = []

    def call_api(self: Any, native_messages: Any, state: Any) -> Any:
        sent.append(state["config"])
        final = {"role": "assistant", "content": "Hi"}
        return [], [final], [*native_messages, final], state

    provider = nosy_provider(
        get_models=lambda self, config: hand.meddle("get_models", config) or [],
        accepted_tool_schema_formats=lambda self, config: hand.meddle("formats", config) or [],
        get_tool_interop_contribution=lambda self, config: hand.meddle("interop", config),
        call_api=call_api,
    )

    class Feature(FeaturePlugin):
        name = "f"

        def is_enabled(self, config: Any) -> bool:
            hand.meddle("is_enabled", config)
            return True

        def get_tags(self, config: Any) -> list[str]:
            hand.meddle("get_tags", config)
            return []

        def get_models(self, config: Any, models: Any) -> Any:
            hand.meddle("feature.get_models", config)
            return models

    own = {"provider": "t", **json.loads(json.dumps(CONFIG))}
    with core_with(provider, Feature) as core:
        ask(core, said("x"), own)
    assert {"get_models", "formats", "interop", "is_enabled", "feature.get_models"} <= {*hand.tried}
    assert own == {"provider": "t", **CONFIG}
    assert (sent[0]["api_key"], sent[0]["nested"]) == (KEY, {"token": KEY})


def test_the_config_of_an_application_cannot_be_changed_by_plugins() -> None:
    hand = Meddling()

    class Feature(FeaturePlugin):
        name = "f"

        def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Any:
            for values in (context["base_config"], context["app"].config.values):
                hand.meddle("base", values["request_defaults"])
            return native_messages, state

    defaults = {key: value for key, value in CONFIG.items() if key != "own_key"}
    config = {
        "allowed_plugins": [],
        "request_defaults": defaults,
        "agents": {"default": {"provider": "t"}},
    }
    with AgentApplication(config) as app:
        app.core.register_provider(nosy_provider())
        app.core.register_feature(Feature)
        app.run("hello")
        assert hand.tried == ["base", "base"]
        assert app.config.values["request_defaults"] == defaults


def test_settings_of_one_name_belong_to_a_role_as_well() -> None:
    schema = merge_schemas([("provider:x", {"phrase": {"secret": True}}), ("tool:x", {"mine": {}})])
    assert schema.for_tool("tool:x", {"phrase": "hidden", "mine": 1}) == {"mine": 1}


@pytest.mark.parametrize("timeout", [0.2, {"total": 0.2}, {"first_byte": 0.2}])
def test_the_listing_of_models_obeys_the_timeout(timeout: Any) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.stall()

    provider = talker(
        models_request=lambda self, config: {"url": config["base_url"]},
        parse_models=lambda self, body: body,
    )
    with serve(play) as server, core_with(provider) as core:
        assert core.get_models({"base_url": server.url, "timeout": timeout}) == []


def test_usage_that_no_session_can_hold_is_the_providers_fault() -> None:
    nested: Any = {}
    for _ in range(5000):
        nested = {"more": nested}
    final = {"role": "assistant", "content": "Hi", "_metadata": {"usage": nested}}
    assert refused_for(final, {"role": "assistant", "content": "Hi"}, "nested too deeply")


@pytest.mark.parametrize("odd", [object(), {1, 2}, b"raw"], ids=lambda odd: type(odd).__name__)
def test_natives_that_are_no_json_fail_at_once_and_name_the_provider(odd: Any) -> None:
    final = {"role": "assistant", "content": "Hi"}
    assert refused_for(final, {**final, "extra": {"odd": odd}}, type(odd).__name__)


def refused_for(final: Any, native: Any, words: str) -> bool:
    """Whether an answer is refused in these words, and its provider is named."""

    class Careless(ProviderPlugin):
        name = "careless"

        def init(self, config: Any) -> Any:
            return {"config": config}

        def call_api(self, native_messages: Any, state: Any) -> Any:
            return [], [final], [*native_messages, native], state

    with AgentApplication({"allowed_plugins": []}) as app:
        app.core.register_provider(Careless)
        with pytest.raises(HookResultError, match=words) as caught:
            app.run("Hello", provider="careless", model="m")
    return bool(caught.value.plugin == "careless")
