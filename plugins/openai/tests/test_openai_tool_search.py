"""Tools that the Responses API searches: namespaces, and where calls have their functions."""

from __future__ import annotations

from typing import Any

import pytest

from agent_host_openai.provider import OpenAIProvider
from agent_host_openai.responses.found import (
    declared_deferred,
    found_names,
    placed_calls,
    without_open_searches,
)


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object"}, **more}


def namespace(name: str, *names: str) -> dict[str, Any]:
    tools = [function(each, defer_loading=True) for each in names]
    return {"type": "namespace", "name": name, "description": "", "tools": tools}


def loading(*tools: dict[str, Any]) -> list[dict[str, Any]]:
    common = {"execution": "server", "call_id": None, "status": "completed"}
    return [
        {"type": "tool_search_call", "id": "tsc_1", "arguments": {"paths": []}, **common},
        {"type": "tool_search_output", "id": "tso_1", "tools": [*tools], **common},
    ]


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "1", "name": name, "arguments": "{}", **more}


def test_deferred_functions_go_in_small_namespaces_behind_the_search_and_all_others() -> None:
    names = [f"mcp_jira__tool_{number}" for number in range(9)]
    tools = [function("look"), *map(function, names), function("alone"), {"type": "web_search"}]
    sent = declared_deferred(tools, {*names, "alone"})
    assert sent[:3] == [{"type": "tool_search"}, function("look"), {"type": "web_search"}]
    assert [(each["name"], len(each["tools"])) for each in sent[3:]] == [
        *(("mcp_jira_1", 8), ("mcp_jira_2", 1), ("other_tools", 1))
    ]
    assert sent[3]["description"].startswith("tool_0, tool_1")
    assert all(each["defer_loading"] for each in sent[3]["tools"])


def test_namespaces_have_names_of_their_own_and_descriptions_that_stay_short() -> None:
    names = [f"a__tool_{number}" for number in range(9)] + ["a_1__tool"]
    sent = declared_deferred([*map(function, names)], names)
    assert [each["name"] for each in sent[1:]] == ["a_1", "a_2", "a_1_1"]
    many = [f"server{number}__{'long_name_' * 5}" for number in range(300)]
    sent = declared_deferred([*map(function, many)], many)
    assert sum(len(each["description"]) for each in sent[1:]) <= 300 * 24


def test_what_is_not_deferred_stays_as_it_is() -> None:
    tools = [function("look"), {"type": "custom", "name": "patch"}]
    assert declared_deferred(tools, {"patch"}) == tools
    own = [{"type": "tool_search", "execution": "client"}, function("look")]
    assert declared_deferred(own, {"look"})[0] == own[0]


LOADED = loading(namespace("ledger", "close"))


@pytest.mark.parametrize(
    ("history", "tools", "given", "wanted"),
    [
        # As it was made.
        (LOADED, [namespace("ledger", "close")], "ledger", "ledger"),
        ([], [namespace("ledger", "close")], "ledger", "ledger"),
        (LOADED, [function("close")], "ledger", "ledger"),
        (LOADED, [function("close")], None, None),
        ([], [namespace("ledger", "close")], None, None),
        # Made elsewhere, or before the tool was found here.
        (LOADED, [namespace("ledger", "close")], None, "ledger"),
        (loading(function("close", defer_loading=True)), [], None, "close"),
        # Where it is no more.
        ([], [namespace("books", "close")], "ledger", None),
        ([], [function("close")], "ledger", None),
        ([], [], "ledger", None),
        (LOADED, [namespace("ledger", "open")], "books", "ledger"),
    ],
)
def test_a_call_says_where_this_request_has_its_function(
    history: list[dict[str, Any]], tools: list[dict[str, Any]], given: Any, wanted: Any
) -> None:
    made = call("close", **({"namespace": given} if given else {}))
    items = [*history, made]
    placed_calls(items, tools)
    assert items[-1].get("namespace") == wanted
    assert made.get("namespace") == given


def test_searches_that_gave_nothing_are_left_out() -> None:
    searched, output = loading(namespace("a", "b"))
    assert without_open_searches([searched, output, searched]) == [searched, output]
    assert without_open_searches([searched, searched, output, output]) == [
        *(searched, searched, output, output)
    ]


def test_all_that_was_loaded_is_named_once() -> None:
    items = [*loading(namespace("a", "b", "c"), function("d")), *loading(namespace("a", "c"))]
    assert found_names(items) == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("model", "api", "searches"),
    [("gpt-5.4", "responses", True), ("gpt-5.5-mini", "responses", True),
     ("gpt-5.4", "chat", False), ("gpt-5.4-nano", "responses", False),
     ("gpt-5.1", "responses", False), ("stranger", "responses", False)],
)  # fmt: skip
def test_only_models_that_search_have_the_tag(model: str, api: str, searches: bool) -> None:
    tags = OpenAIProvider().get_tags({"model": model, "api": api}, [])
    assert ("supports_tool_search" in tags) == searches
