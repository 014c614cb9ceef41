"""What plugins have to say reaches whoever runs the request, once."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, get_warn_from_context
from agent_hookspecs.authoring import requested_knobs, take_knob
from agent_host import AgentCore
from both_ways import finish, sse, texts
from loopback import Peer, Request, serve
from openai_like import OpenAiLike
from talking import core_with, events_of, said, talker

Pair = tuple[Any, Any]


def warnings_of(core: AgentCore, config: dict[str, Any]) -> list[tuple[str, str | None]]:
    with closing(core):
        found = [e for e in events_of(core, said("Hello"), config) if e["type"] == "warning"]
    return [(event["message"], event["plugin"]) for event in found]


class Complaining(FeaturePlugin):
    name = "complaining"

    def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Pair:
        warn = get_warn_from_context(context, self.name)
        warn("too many tools")
        warn("too many tools")
        return native_messages, state

    def finalize(self, final_messages: Any, native_messages: Any, state: Any, context: Any) -> Any:
        get_warn_from_context(context, self.name)("and too long an answer")
        return final_messages, native_messages, state


def test_a_warning_is_an_event_with_the_name_of_the_plugin() -> None:
    assert warnings_of(core_with(talker(), Complaining), {}) == [
        ("too many tools", "complaining"),
        ("and too long an answer", "complaining"),
    ]


def test_a_warning_shows_no_secret() -> None:
    class Leaking(FeaturePlugin):
        name = "leaking"

        def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Pair:
            get_warn_from_context(context, self.name)(f"key {context['config']['api_key']}")
            return native_messages, state

    (warning,) = warnings_of(core_with(talker(), Leaking), {"api_key": "canary-4711"})
    assert warning == ("key [redacted]", "leaking")


def test_outside_a_request_a_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    get_warn_from_context(None, "lonely")("nobody listens")
    assert "lonely" in caplog.text
    assert "nobody listens" in caplog.text


class Turning(OpenAiLike):
    """Keeps account of knobs and has a use for one of them."""

    name = "turning"

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {**super().init(config), "knobs": requested_knobs(config)}

    def initialize_request(self, native_messages: Any, state: Any) -> Any:
        native_messages, state = super().initialize_request(native_messages, state)
        state["request"]["payload"]["seed"] = take_knob(state, "seed")
        return native_messages, state


class Cooling(ProviderExtensionPlugin):
    name = "cooling"

    def initialize_request(self, native_messages: Any, state: Any) -> Pair:
        state["request"]["payload"]["temp"] = take_knob(state, "temperature")
        return native_messages, state


def answer(peer: Peer, request: Request) -> None:
    peer.answer(sse(*texts("Hi"), finish()))


KNOBS = {"seed": 1, "temperature": 0.5, "effort": "high"}


def test_a_knob_that_nobody_takes_is_a_warning() -> None:
    with serve(answer) as server:
        config = {"base_url": server.url, "model": "m", **KNOBS}
        assert warnings_of(core_with(Turning, Cooling), config) == [
            ("'effort' is set, but turning has no use for it with the model 'm'; it was not sent",
             "turning")
        ]  # fmt: skip


def test_a_warning_names_the_setting_that_was_not_sent() -> None:
    with serve(answer) as server, closing(core_with(Turning, Cooling)) as core:
        config = {"base_url": server.url, "model": "m", **KNOBS}
        found = [e for e in events_of(core, said("Hello"), config) if e["type"] == "warning"]
    assert [event["unsent"] for event in found] == ["effort"]


def test_a_provider_that_keeps_no_account_of_knobs_takes_those_among_its_settings() -> None:
    class Declaring(OpenAiLike):
        def get_config_schema(self) -> dict[str, Any]:
            return {knob: {"required": False} for knob in ("seed", "temperature")}

    with serve(answer) as server:
        told = warnings_of(core_with(Declaring), {"base_url": server.url, **KNOBS})
    assert told == [
        ("'effort' is set, but openai_like has no use for it; it was not sent", "openai_like")
    ]


def test_a_retry_does_not_repeat_a_warning() -> None:
    def refuse_once(peer: Peer, request: Request) -> None:
        if len(server.requests) == 1:
            peer.answer(b"{}", status="503 Busy", headers="Retry-After: 0\r\n")
        else:
            answer(peer, request)

    with serve(refuse_once) as server:
        config = {"base_url": server.url, "effort": "low"}
        told = [message for message, _ in warnings_of(core_with(Turning), config)]
    assert [message[:15] for message in told] == ["'effort' is set", "trying again in"]


def test_what_is_switched_off_by_default_is_worth_no_warning_but_by_the_user_it_is() -> None:
    with serve(answer) as server:
        config = {"base_url": server.url, "request_defaults": {"parallel_tool_calls": False}}
        assert warnings_of(core_with(Turning), config) == []
        (told,) = warnings_of(core_with(Turning), {**config, "parallel_tool_calls": False})
        assert "'parallel_tool_calls' is set" in told[0]
