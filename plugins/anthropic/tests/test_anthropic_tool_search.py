"""Tools that the API searches: how they are declared, and what of searches goes back to it."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic_built import TOOL, Built, assistant, said, user

from agent_host_anthropic.answers import core_message
from agent_host_anthropic.facts import tags_of

SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
CLOCK = {**TOOL, "name": "kit:clock"}
CALL = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "tool_search_tool_bm25",
    "input": {"query": "time"},
}


def found(*names: str, kind: str = "tool_search_tool_result") -> dict[str, Any]:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return {"type": kind, "tool_use_id": "srvtoolu_1", "content": content}


def turns(*blocks: Any, **more: Any) -> list[Any]:
    """A question, an answer of these blocks, and another question."""
    natives = [
        {"role": "user", "content": [said("hi")]},
        {"role": "assistant", "content": [*blocks]},
        {"role": "user", "content": [said("and?")]},
    ]
    built = Built(natives=natives, tools=[TOOL, CLOCK], **more)
    return [*built.body["messages"], built.warnings]


def test_deferred_tools_come_with_the_search_before_them() -> None:
    first, weather, clock = Built(
        user("hi"), tools=[TOOL, CLOCK], deferred=("kit:clock",), cache=True
    ).body["tools"]
    assert first == SEARCH
    assert "defer_loading" not in weather
    assert weather["cache_control"] == {"type": "ephemeral"}
    assert (clock["name"], clock["defer_loading"]) == ("kit__clock", True)
    assert "cache_control" not in clock


def test_a_search_that_the_config_declares_is_the_only_one() -> None:
    own = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    tools = Built(
        user("hi"), tools=[CLOCK], builtin_tools=[own["type"]], deferred=("kit:clock",)
    ).body["tools"]
    assert [tool for tool in tools if "input_schema" not in tool] == [own]


def test_without_deferred_tools_nothing_is_searched() -> None:
    assert [tool["name"] for tool in Built(user("hi"), tools=[TOOL]).body["tools"]] == ["weather"]


def test_a_search_goes_back_as_it_came() -> None:
    _, answer, _, warnings = turns(CALL, found("weather"), said("so"), deferred=("weather",))
    assert answer["content"] == [CALL, found("weather"), said("so")]
    assert warnings == []


@pytest.mark.parametrize("kind", ["tool_search_tool_bm25_tool_result", "tool_search_tool_result"])
def test_a_result_goes_back_under_the_type_that_the_api_takes(kind: str) -> None:
    _, answer, _, _ = turns(CALL, found("weather", kind=kind), said("so"))
    assert answer["content"][1] == found("weather")


def test_references_to_tools_that_are_not_declared_are_left_out() -> None:
    _, answer, _, _ = turns(CALL, found("gone", "kit__clock"), deferred=("kit:clock",))
    assert answer["content"] == [CALL, found("kit__clock")]


def test_a_search_without_its_result_is_left_out_unless_the_api_goes_on_with_it() -> None:
    _, answer, _, warnings = turns(said("hm"), CALL)
    assert answer["content"] == [said("hm")]
    assert warnings == ["a search for tools is not sent: it was cut off before its result"]
    first, last, warnings = turns(CALL)
    assert first["content"] + last["content"] == [said("hi"), said("and?")]
    paused = [{"role": "user", "content": [said("hi")]}, {"role": "assistant", "content": [CALL]}]
    assert Built(natives=paused).body["messages"][1]["content"] == [CALL]


def test_a_tool_that_was_found_elsewhere_is_shown_whole() -> None:
    told = assistant("so")
    told["metadata"]["found_tools"] = ["kit:clock"]
    names = ("weather", "kit:clock")
    built = Built(user("hi"), told, user("?"), tools=[TOOL, CLOCK], deferred=names)
    assert [tool.get("defer_loading") for tool in built.body["tools"]] == [None, True, None]


def test_the_message_says_what_was_found_by_the_tools_own_names() -> None:
    native = {
        "role": "assistant",
        "content": [CALL, found("kit__clock", "weather")],
        "_metadata": {"tool_names": {"kit__clock": "kit:clock"}},
    }
    assert core_message(native)["metadata"]["found_tools"] == ["kit:clock", "weather"]


@pytest.mark.parametrize(
    ("model", "searches"),
    [("claude-sonnet-4-5", True), ("claude-opus-5-5", True), ("claude-opus-4-1", False),
     ("claude-3-5-haiku-latest", False), ("stranger", False)],
)  # fmt: skip
def test_only_models_that_search_have_the_tag(model: str, searches: bool) -> None:
    assert ("supports_tool_search" in tags_of({"model": model}, [])) == searches
