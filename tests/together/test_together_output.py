"""Answers of a type: every API is asked in the way that its tags allow, and asked again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop, stop

from agent_host import AgentApplication, Answer
from agent_host.output import choose_mode
from agent_host_testing import FakeServer, Reply, call, say


@dataclass
class City:
    """A city and how many people live in it."""

    name: str
    people: int
    river: str | None = None


ULM: dict[str, Any] = {"name": "Ulm", "people": 129_942, "river": "Danube"}
SCHEMA, TOOLS = "supports_structured_output", "supports_tools"
#: The tags that are taken away for a way of asking to be chosen.
MODES: dict[str, list[str]] = {"schema": [], "tool": [SCHEMA], "prompt": [SCHEMA, TOOLS]}


def reply(mode: str, payload: dict[str, Any], number: int = 1) -> Reply:
    if mode == "tool":
        return call("give_answer", payload, id=f"call_{number}")
    return say(json.dumps(payload))


def ask(stop: Stop, server: FakeServer, mode: str, **options: Any) -> Answer[City]:
    with AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "context"]}) as app:
        config = stop.config(server, model=stop.bare, remove_tags=MODES[mode])
        if mode == "schema":
            config["add_tags"] = [SCHEMA]
        for name in stop.settings:
            del config[name]
        return app.run("Tell me of Ulm.", settings=config, output_type=City, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_an_answer_of_a_type_is_asked_for_in_every_way(stop: Stop, mode: str) -> None:
    with stop.serve() as server:
        server.queue(reply(mode, ULM))
        answer = ask(stop, server, mode)
        assert server.problems == []
        sent = server.requests[-1].raw
    assert answer.data == City(**ULM)
    assert answer.finish == "stop"
    assert answer.usage["output"] > 0
    assert b"give_answer" in sent if mode == "tool" else b"give_answer" not in sent
    assert b'"people"' in sent or b'\\"people\\"' in sent


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason(
    stop: Stop, mode: str
) -> None:
    with stop.serve() as server:
        server.queue(reply(mode, {"name": "Ulm", "people": "many"}))
        server.queue(reply(mode, ULM, 2))
        answer = ask(stop, server, mode)
        assert server.problems == []
        assert b"people: Input should be a valid integer" in server.requests[-1].raw
    assert answer.data == City(**ULM)
    told = [each["message"] for each in answer.warnings if "asked for again" in each["message"]]
    assert len(told) == 1
    assert "(1 of 2)" in told[0]


def chat_rows() -> list[str]:
    """Every server of OpenAI's chat format that is a row of data."""
    file = find_spec("agent_host_openai_compatible").origin  # type: ignore[union-attr]
    described = json.loads(Path(str(file)).with_name("agent_plugin.json").read_text("utf-8"))
    return [entry["name"] for entry in described["entries"] if entry["role"] == "provider"]


@pytest.mark.parametrize("name", chat_rows())
def test_every_server_of_the_chat_format_gives_answers_of_a_type(name: str) -> None:
    custom = stop("custom")
    # Without a key of its own, for who expects it where differs.
    serving = FakeServer(custom.format, models=(custom.bare,))
    with serving as server, AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "context"]}) as app:
        settings = {
            "provider": name,
            "model": custom.bare,
            "base_url": server.base_url,
            "api_key": custom.key,
            "retries": 0,
        }
        tags = app.core.get_tags(settings)
        mode = choose_mode(tags, has_tools=False)
        server.queue(reply(mode, ULM))
        answer = app.run("Tell me of Ulm.", settings=settings, output_type=City)
        assert server.problems == []
    assert answer.data == City(**ULM)
