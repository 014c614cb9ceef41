"""Which tools go with a request: what features choose, and what they cannot take away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ToolPlugin
from agent_hookspecs.tool_interop import ToolDescriptor
from agent_host import AgentCore
from talking import WAYS, Way, ask, core_with, said, talker


def schema(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "parameters": {"type": "object"}}


class Tools(ToolPlugin):
    name = "tools"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [schema("a"), schema("b"), schema("c")]

    def execute_tool(self, tool_name: str, payload: Any, context: dict[str, Any]) -> str:
        offered = ", ".join(tool.tool_name for tool in context["tools"])
        return f"{tool_name} of {offered}"


def choosing(choose: Any) -> type[FeaturePlugin]:
    class Choosing(FeaturePlugin):
        name = "choosing"

        def select_tools(
            self, tools: list[ToolDescriptor], config: dict[str, Any], context: dict[str, Any]
        ) -> Any:
            assert "tools" not in config
            assert [each.tool_name for each in context["tools"]] == ["a", "b", "c"]
            return choose(tools)

    return Choosing


def sent_names(core: AgentCore, sent: list[Any], way: Way = "call", **config: Any) -> list[Any]:
    ask(core, said("x"), config, way)
    return [each.get("name") or each.get("type") for each in sent[-1]]


def watching(sent: list[Any]) -> type:
    class Watching(talker()):  # type: ignore[misc]
        def initialize_request(self, native_messages: Any, state: dict[str, Any]) -> Any:
            sent.append(state["config"].get("tools") or [])
            return native_messages, state

    return Watching


@pytest.mark.parametrize("way", WAYS)
def test_a_feature_chooses_the_tools_and_their_order(way: Way) -> None:
    sent: list[Any] = []
    core = core_with(watching(sent), Tools, choosing(lambda tools: [tools[2], tools[0]]))
    assert sent_names(core, sent, way) == ["c", "a"]


def test_what_is_no_tool_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []
    core = core_with(watching(sent), Tools, choosing(lambda tools: [*tools[:1], {"name": "d"}]))
    assert sent_names(core, sent) == ["a"]
    assert "1 of the tools that features have selected are none" in caplog.text


def deferring(tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
    return [tools[0], replace(tools[1], deferred=True)]


def test_deferred_tools_are_named_to_a_provider_that_searches_them() -> None:
    sent: list[Any] = []
    told: list[Any] = []

    class Searching(watching(sent)):  # type: ignore[misc]
        def get_tags(self) -> list[str]:
            return ["supports_tool_search"]

        def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Any:
            told.append(context.get("deferred_tools"))
            return super().initialize_request(native_messages, state)

    core = core_with(Searching, Tools, choosing(deferring))
    assert sent_names(core, sent) == ["a", "b"]
    assert told == [["b"]]


def test_to_any_other_provider_deferred_tools_go_whole_and_that_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[Any] = []
    core = core_with(watching(sent), Tools, choosing(deferring))
    assert sent_names(core, sent) == ["a", "b"]
    assert "features have deferred 1 of the tools, and all are sent whole" in caplog.text


def test_none_leaves_them_as_they_are() -> None:
    sent: list[Any] = []
    core = core_with(watching(sent), Tools, choosing(lambda tools: None))
    assert sent_names(core, sent) == ["a", "b", "c"]


def test_tools_that_no_plugin_has_stay_and_stand_first() -> None:
    sent: list[Any] = []
    core = core_with(watching(sent), Tools, choosing(lambda tools: tools[1:2]))
    own = [schema("mine"), {"type": "web_search"}]
    assert sent_names(core, sent, tools=own) == ["mine", "web_search", "b"]


def test_a_choice_counts_for_one_request_alone() -> None:
    sent: list[Any] = []
    chosen = iter([0, 3])
    core = core_with(watching(sent), Tools, choosing(lambda tools: tools[: next(chosen)]))
    assert sent_names(core, sent) == []
    assert sent_names(core, sent) == ["a", "b", "c"]


def test_a_tool_that_is_not_sent_can_be_called_and_knows_of_the_others() -> None:
    core = core_with(talker(), Tools, choosing(lambda tools: []))
    call = {"id": "1", "type": "function", "function": {"name": "b", "arguments": "{}"}}
    (message,) = core.execute_tool_calls([call], {})
    assert message["content"] == "b of a, b, c"


def test_what_a_tool_does_to_the_schemas_it_sees_is_seen_by_nobody() -> None:
    class Spoiling(Tools):
        def execute_tool(self, tool_name: str, payload: Any, context: dict[str, Any]) -> str:
            for tool in context["tools"]:
                tool.schema.clear()
            return "done"

    core = core_with(talker(), Spoiling)
    call = {"id": "1", "type": "function", "function": {"name": "b", "arguments": "{}"}}
    core.execute_tool_calls([call], {})
    assert [each.schema["name"] for each in core.get_tool_schemas({})] == ["a", "b", "c"]


def test_a_name_that_no_tool_has_is_answered_with_the_nearest_of_many() -> None:
    class Many(ToolPlugin):
        name = "many"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [schema(f"read_page_{number}") for number in range(200)]

        def execute_tool(self, tool_name: str) -> str:
            return "read"

    call = {"id": "1", "type": "function", "function": {"name": "read_pages_7", "arguments": "{}"}}
    (message,) = core_with(talker(), Many).execute_tool_calls([call], {})
    result = message["content"]
    assert result.startswith("Tool not found: read_pages_7.")
    assert "read_page_7" in result
    assert len(result) < 1000
