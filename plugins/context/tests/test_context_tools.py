"""Many tools: what goes with a request, what is found, and what it costs until then."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import CoreMessage
from agent_hookspecs.errors import ConfigError
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, ToolDescriptor
from agent_host import Session
from agent_host_context.estimate import names_tokens, schema_tokens
from agent_host_context.find_tools import FindTools
from agent_host_context.many_tools import ManyTools
from agent_host_context.search import Described, search_tools
from agent_host_context.tool_list import list_beginnings, list_tools

SERVERS = ("github", "jira", "slack", "postgres", "browser", "calendar")
VERBS = [
    "create",
    "list",
    "get",
    "update",
    "delete",
    "search",
    "archive",
    "assign",
    "close",
    "move",
]
THINGS = ("issue", "comment", "project", "label", "user")


def schema(name: str, description: str) -> dict[str, Any]:
    properties = {
        "id": {"type": "string", "description": "The identifier of what is meant."},
        "fields": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "due": {"type": "string"}},
            "description": "What to set.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    }
    parameters = {"type": "object", "properties": properties, "required": ["id"]}
    return {"name": name, "description": description, "parameters": parameters}


def three_hundred() -> list[ToolDescriptor]:
    """As servers of tools have them: long names with a beginning in common, long descriptions."""
    return [
        ToolDescriptor(
            "mcp",
            f"mcp_{server}__{verb}_{thing}",
            schema(
                f"mcp_{server}__{verb}_{thing}",
                f"{verb.title()} a {thing} of the workspace in {server}. Needs the permission of "
                f"its owner. Returns the {thing} as JSON, with everything that belongs to it.",
            ),
        )
        for server in SERVERS
        for verb in VERBS
        for thing in THINGS
    ]


FINDER = ToolDescriptor("find_tools", "find_tools", FindTools().get_tool_schemas()[0])
CONFIG: dict[str, Any] = {}
EMPTY = Session()


def context_of(tools: list[ToolDescriptor]) -> dict[str, Any]:
    registry = {"registry": DEFAULT_TOOL_INTEROP_REGISTRY, "schema_target_formats": []}
    return {"tools": tools, "tool_interop": registry}


def found(query: str, tools: list[ToolDescriptor], **more: Any) -> list[str]:
    payload = {"query": query, **more}
    result = FindTools().execute_tool("find_tools", payload, context_of(tools))
    return [each["name"] for each in result["found"]]


def result_message(name: str, content: str) -> CoreMessage:
    return {"role": "tool", "content": content, "metadata": {"tool_name": name}}


def select_with_settings(
    tools: list[ToolDescriptor], session: Session, config: Any
) -> list[ToolDescriptor]:
    return ManyTools().select_tools(tools, session, config, context_of(tools))


def names(tools: list[ToolDescriptor]) -> list[str]:
    return [tool.tool_name for tool in tools]


def test_three_hundred_tools_cost_two_thousand_tokens_until_one_is_searched() -> None:
    tools = [*three_hundred(), FINDER]
    assert len(tools) == 301
    assert sum(schema_tokens(tool.schema) for tool in tools) > 25_000
    feature = ManyTools()
    sent = select_with_settings(tools, EMPTY, CONFIG)
    text = feature.get_instructions(CONFIG, context_of(tools)) or ""
    assert names(sent) == ["find_tools"]
    assert sum(schema_tokens(tool.schema) for tool in sent) + names_tokens(text) <= 2000
    assert "create_issue" in text


def test_few_tools_go_as_they_are_and_without_the_finder() -> None:
    tools = [FINDER, *three_hundred()[:5]]
    feature = ManyTools()
    assert select_with_settings(tools, EMPTY, CONFIG) == tools[1:]
    assert feature.get_instructions(CONFIG, context_of(tools)) is None


def test_without_the_finder_nothing_is_left_out() -> None:
    tools = three_hundred()
    assert select_with_settings(tools, EMPTY, CONFIG) == tools


def test_what_was_found_or_called_is_added_at_the_end_and_never_moves() -> None:
    tools = [FINDER, *three_hundred()]
    first = {"found": [{"name": "mcp_slack__get_user"}, {"name": "mcp_jira__get_user"}]}
    session = EMPTY.with_added(result_message("find_tools", json.dumps(first)))
    assert names(select_with_settings(tools, session, CONFIG)) == [
        *("find_tools", "mcp_slack__get_user", "mcp_jira__get_user")
    ]
    session = session.with_added(
        result_message("mcp_github__list_label", "[]"),
        result_message("find_tools", '{"found": [{"name": "mcp_jira__get_user"}, {"name": "no"}]}'),
        result_message("find_tools", "Tool call denied"),
        result_message("unknown", "?"),
    )
    assert names(select_with_settings(tools, session, CONFIG)) == [
        *("find_tools", "mcp_slack__get_user", "mcp_jira__get_user", "mcp_github__list_label")
    ]


def test_tools_that_are_to_be_kept_go_with_every_request() -> None:
    tools = [FINDER, *three_hundred()]
    config = {"keep_tools": ["*_slack__close_*"], "tool_choice": "mcp_jira__get_user"}
    feature = ManyTools()
    sent = names(select_with_settings(tools, EMPTY, config))
    assert sent[1] == "mcp_jira__get_user"
    assert len(sent) == 7
    text = feature.get_instructions(config, context_of(tools)) or ""
    assert "mcp_slack__… archive_comment" in text
    assert "close_issue" in text.partition("mcp_slack__")[0]


def test_the_list_is_the_same_whatever_was_found() -> None:
    tools = [FINDER, *three_hundred()]
    feature = ManyTools()
    before = feature.get_instructions(CONFIG, context_of(tools))
    session = EMPTY.with_added(result_message("mcp_jira__get_user", ""))
    feature.select_tools(tools, session, CONFIG, context_of(tools))
    assert feature.get_instructions(CONFIG, context_of(tools)) == before


def test_a_tool_is_found_by_its_name_its_words_and_its_parameters() -> None:
    tools = [
        *three_hundred(),
        ToolDescriptor("x", "readInvoices", schema("readInvoices", "Reads bills of suppliers.")),
    ]
    assert found("mcp_slack__get_user", tools)[0] == "mcp_slack__get_user"
    assert found("invoice", tools)[0] == "readInvoices"
    assert found("a supplier's bill", tools)[0] == "readInvoices"
    assert set(found("archive labels in jira", tools, limit=1)) == {"mcp_jira__archive_label"}
    assert len(found("issue", tools)) == 5
    assert len(found("issue", tools, limit=20)) == 20


def test_equal_tools_come_in_the_order_of_their_names() -> None:
    tools = [Described(name, "Does the same.", {}) for name in ("c", "a", "b")]
    assert [tool.name for tool in search_tools("same", tools, 9)] == ["a", "b", "c"]


def test_a_search_that_finds_nothing_says_so() -> None:
    payload = {"query": "zeppelin"}
    result = FindTools().execute_tool("find_tools", payload, context_of(three_hundred()))
    assert result == {"found": [], "note": "none of 300 tools fits; try other words, or a name"}


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40), st.randoms(use_true_random=False))
def test_a_search_does_not_depend_on_the_order_of_the_tools(query: str, random: Any) -> None:
    tools = three_hundred()[:40]
    shuffled = tools[:]
    random.shuffle(shuffled)
    assert found(query, tools) == found(query, shuffled)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400), st.integers(30, 2000))
def test_a_list_keeps_to_its_budget_and_says_what_is_missing(count: int, most: int) -> None:
    tools = [Described(f"tool_number_{n}", "Does something. And more.", {}) for n in range(count)]
    text = list_tools(tools, most)
    assert names_tokens(text) <= most
    shown = text.count("tool_number_")
    assert shown == count or f"and {count - shown} more" in text


def test_descriptions_are_shown_as_far_as_they_fit() -> None:
    tools = [Described("look", "Looks at a thing. And does more.\nAnd more.", {})]
    assert list_tools(tools, 100) == "look: Looks at a thing."


SEARCHING = {"tags": ["supports_tool_search"]}


def test_where_the_provider_searches_all_schemas_go_as_deferred_and_without_the_finder() -> None:
    tools = [FINDER, *three_hundred()]
    context = {**context_of(tools), **SEARCHING}
    feature = ManyTools()
    sent = feature.select_tools(tools, EMPTY, {"keep_tools": ["*_slack__close_*"]}, context)
    assert names(sent) == names(tools[1:])
    assert {each.tool_name for each in sent if not each.deferred} == {
        name for name in names(sent) if name.startswith("mcp_slack__close_")
    }
    text = feature.get_instructions({}, context) or ""
    assert names_tokens(text) < 150
    assert "mcp_jira__… (50)" in text
    assert "find_tools" not in text


def test_what_the_provider_has_found_moves_nothing_and_what_the_host_found_goes_whole() -> None:
    tools = three_hundred()
    context = {**context_of(tools), **SEARCHING}
    by_provider: CoreMessage = {
        "role": "assistant",
        "content": "",
        "metadata": {"found_tools": ["mcp_jira__get_user"]},
    }
    by_host = result_message("find_tools", '{"found": [{"name": "mcp_slack__get_user"}]}')
    called = result_message("mcp_jira__get_user", "")
    session = EMPTY.with_added(by_provider, called, by_host)
    sent = ManyTools().select_tools(tools, session, CONFIG, context)
    assert [each.tool_name for each in sent if not each.deferred] == ["mcp_slack__get_user"]
    # The same session with a provider that searches nothing.
    assert names(select_with_settings([FINDER, *tools], session, CONFIG)) == [
        *("find_tools", "mcp_jira__get_user", "mcp_slack__get_user")
    ]


@pytest.mark.parametrize(
    ("way", "can", "deferred"),
    [("host", True, 0), ("auto", False, 0), ("auto", True, 300), ("provider", True, 300)],
)
def test_the_setting_says_who_searches(way: str, can: bool, deferred: int) -> None:
    tools = [FINDER, *three_hundred()]
    context = {**context_of(tools), **(SEARCHING if can else {})}
    sent = ManyTools().select_tools(tools, EMPTY, {"tool_search": way}, context)
    assert sum(each.deferred for each in sent) == deferred
    assert (FINDER in sent) == (deferred == 0)


@pytest.mark.parametrize(
    ("way", "text"), [("model", "tool_search is 'model'"), ("provider", "does not search tools")]
)
def test_who_cannot_search_is_no_choice(way: str, text: str) -> None:
    tools = three_hundred()[:2]
    with pytest.raises(ConfigError, match=text) as caught:
        select_with_settings(tools, EMPTY, {"tool_search": way, "model": "m"})
    assert caught.value.key == "tool_search"
    assert caught.value.hint


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400), st.integers(30, 300))
def test_beginnings_keep_to_their_budget(count: int, most: int) -> None:
    listed = [f"server_{n % 40}__tool_{n}" for n in range(count)] + ["alone"]
    text = list_beginnings(listed, most)
    assert names_tokens(text) <= most
    assert text.endswith("and others") or text.count("server_") == min(count, 40)
