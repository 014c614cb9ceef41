"""Every normalised knob with every provider: in the request, or a warning, as a table says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from stops import STOPS, Stop

from agent_hookspecs.authoring.knobs import KNOBS
from agent_host.core import AgentCore
from agent_host.plugins.catalog import Catalog, build_catalog
from agent_host.plugins.discover import discover
from agent_host_testing import say
from agent_host_testing.suites.hosting import Host, recording_tools

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
VALUES: dict[str, Any] = {
    "effort": "high",
    "max_output_tokens": 1777,
    "temperature": 0.25,
    "stop": ["END"],
    "seed": 7,
    "response_schema": SCHEMA,
    "tool_choice": "required",
    "parallel_tool_calls": True,
}

#: The API has nothing of the kind for this model, and a warning says so.
WARNED = "warned"
#: The API does so of itself: nothing to send, nothing to say.
ANYWAY = "anyway"
#: Where in the body a knob is found, with its value if that is another than the knob's own.
Place = str | tuple[str, Any]

CHAT: dict[str, Place] = {
    "effort": "reasoning_effort",
    "max_output_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "stop": "stop",
    "seed": "seed",
    "response_schema": "response_format.json_schema.schema",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
}
RESPONSES: dict[str, Place] = {
    "effort": "reasoning.effort",
    "max_output_tokens": "max_output_tokens",
    "temperature": "temperature",
    "stop": WARNED,
    "seed": WARNED,
    "response_schema": "text.format.schema",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
}
ANTHROPIC: dict[str, Place] = {
    "effort": ("thinking.type", "enabled"),
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "stop": "stop_sequences",
    "seed": WARNED,
    "response_schema": "output_config.format.schema",
    "tool_choice": ("tool_choice.type", "any"),
    "parallel_tool_calls": ANYWAY,
}
GOOGLE: dict[str, Place] = {
    "effort": "generationConfig.thinkingConfig.thinkingLevel",
    "max_output_tokens": "generationConfig.maxOutputTokens",
    "temperature": "generationConfig.temperature",
    "stop": "generationConfig.stopSequences",
    "seed": "generationConfig.seed",
    "response_schema": "generationConfig.responseJsonSchema",
    "tool_choice": ("toolConfig.functionCallingConfig.mode", "ANY"),
    "parallel_tool_calls": ANYWAY,
}
OLLAMA: dict[str, Place] = {
    "effort": ("think", True),
    "max_output_tokens": "options.num_predict",
    "temperature": "options.temperature",
    "stop": "options.stop",
    "seed": "options.seed",
    "response_schema": "format",
    "tool_choice": WARNED,
    "parallel_tool_calls": ANYWAY,
}
COHERE: dict[str, Place] = {
    "effort": ("thinking.type", "enabled"),
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "stop": "stop_sequences",
    "seed": "seed",
    # The API takes no schema beside tools.
    "response_schema": WARNED,
    "tool_choice": ("tool_choice", "REQUIRED"),
    "parallel_tool_calls": ANYWAY,
}
NO_EFFORT: dict[str, Place] = {"effort": WARNED}
REASONS: dict[str, Place] = {"temperature": WARNED, "stop": WARNED}
#: For each stop: its knobs with the model that reasons, and with the one that does not.
TABLE: dict[str, tuple[dict[str, Place], dict[str, Place]]] = {
    "openai-responses": (RESPONSES | REASONS, RESPONSES | NO_EFFORT),
    "openai-chat": (CHAT | REASONS, CHAT | NO_EFFORT),
    "anthropic": (ANTHROPIC, ANTHROPIC | NO_EFFORT | {"response_schema": WARNED}),
    # Older models take no schema beside tools.
    "google": (GOOGLE, GOOGLE | NO_EFFORT | {"response_schema": WARNED}),
    "ollama": (OLLAMA, OLLAMA | NO_EFFORT),
    "openrouter": (
        CHAT
        | {"effort": "reasoning.effort", "max_output_tokens": "max_tokens"}
        | {"response_schema": WARNED},
        CHAT | NO_EFFORT | {"max_output_tokens": "max_tokens"} | {"response_schema": WARNED},
    ),
    "custom": (CHAT, CHAT | NO_EFFORT),
    "cohere": (COHERE, COHERE | NO_EFFORT),
}


def cases() -> Iterator[Any]:
    for stop in STOPS:
        for kind, model, places in zip(
            ("reasoning", "plain"), (stop.model, stop.bare), TABLE[stop.name], strict=True
        ):
            for knob, place in places.items():
                yield pytest.param(stop, model, knob, place, id=f"{stop.name}-{kind}-{knob}")


@cache
def installed() -> Catalog:
    return build_catalog(discover())


def asked(stop: Stop, model: str, /, **knobs: Any) -> tuple[dict[str, Any], list[str]]:
    """The body of a request with these knobs, and the warnings it brought."""
    host = Host(installed(), [recording_tools([])])
    with stop.serve() as server:
        server.queue(say("Yes."))
        config = stop.config(server, model=model, use_tools=["weather"], **knobs)
        for name in stop.settings:
            if name not in knobs:
                del config[name]
        session = host.core.create_session().with_added({"role": "user", "content": "Well?"})
        try:
            outcome = host.ask(session, config).expect()
        finally:
            host.close()
        assert server.problems == []
        return server.requests[-1].body, [event["message"] for event in outcome.of("warning")]


def at(body: Any, path: str) -> Any:
    for step in path.split("."):
        body = body.get(step) if isinstance(body, dict) else None
    return body


@pytest.mark.parametrize(("stop", "model", "knob", "place"), [*cases()])
def test_a_knob_is_in_the_request_or_a_warning_says_that_it_is_not(
    stop: Stop, model: str, knob: str, place: Place
) -> None:
    without, _ = asked(stop, model)
    body, warnings = asked(stop, model, **{knob: VALUES[knob]})
    if place == WARNED:
        assert body == without
        assert len(warnings) == 1
        assert f"{knob!r} is set" in warnings[0]
        assert stop.provider in warnings[0]
        assert "it was not sent" in warnings[0]
        return
    assert warnings == []
    if place == ANYWAY:
        assert body == without
        return
    path, value = place if isinstance(place, tuple) else (place, VALUES[knob])
    assert at(without, path) != value
    assert at(body, path) == value


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_the_table_has_every_knob(stop: Stop) -> None:
    assert VALUES.keys() == KNOBS.keys()
    for places in TABLE[stop.name]:
        assert places.keys() == KNOBS.keys()


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_every_knob_is_in_the_schema_and_among_the_elements(stop: Stop) -> None:
    core = AgentCore(catalog=installed())
    try:
        with stop.serve() as server:
            config = stop.config(server, add_tags=["supports_structured_output"])
            schema = core.get_config_schema(config)
            shown = {element.get("key") for element in core.get_ui_elements(config)}
    finally:
        core.close()
    known = {*schema.get("properties", schema)}
    places = [pair for places in TABLE[stop.name] for pair in places.items()]
    assert {knob for knob, place in places if place != WARNED} <= known
    # What an API does anyway is no choice to show.
    assert {knob for knob, place in places if place not in (WARNED, ANYWAY)} <= shown


#: How each API is told to call one tool only; where it cannot be told, nothing is sent.
ONE_AT_A_TIME: dict[str, Place | None] = {
    "openai-responses": ("parallel_tool_calls", False),
    "openai-chat": ("parallel_tool_calls", False),
    "anthropic": ("tool_choice.disable_parallel_tool_use", True),
    "google": None,
    "ollama": None,
    "openrouter": ("parallel_tool_calls", False),
    "custom": ("parallel_tool_calls", False),
    "cohere": None,
}


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_one_call_at_a_time_is_asked_for_where_an_api_can_be_asked(stop: Stop) -> None:
    body, _ = asked(stop, stop.model, parallel_tool_calls=False)
    wanted = ONE_AT_A_TIME[stop.name]
    if wanted is None:
        assert body == asked(stop, stop.model)[0]
    else:
        assert at(body, wanted[0]) is wanted[1]
