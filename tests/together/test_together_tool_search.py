"""Tools that a provider's own search finds: three hundred of them, over turns and providers.

The servers run the search, refuse what the APIs would refuse, and let no model call a tool that was
not found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from stops import TOOL_BUNDLES, Stop, stop
from touring import WAYS, Way, asked

from agent_hookspecs import Effect, ToolPlugin
from agent_host import AgentApplication, ConfigError, Session
from agent_host_testing import Call, Reply, Search, Text, Thought, Tokens, say

ANTHROPIC = stop("anthropic")
OPENAI = Stop(
    "openai-searching",
    "openai",
    "openai.responses",
    "gpt-5.4",
    "gpt-4o",
    {"effort": "high", "reasoning_summary": "auto"},
    always={"api": "responses"},
)
GOOGLE = stop("google")
SEARCHING = (ANTHROPIC, OPENAI)
each_searching = pytest.mark.parametrize("searching", SEARCHING, ids=str)

SERVERS = ("github", "jira", "slack", "postgres", "browser", "calendar", "mail")
VERBS = ("create", "list", "get", "update", "delete", "search", "archive", "assign")
THINGS = ("issue", "comment", "project", "label", "user", "page")
NAMES = [f"mcp_{each}__{verb}_{thing}" for each in SERVERS for verb in VERBS for thing in THINGS]
TOOL, OTHER = "mcp_jira__assign_issue", "mcp_slack__list_user"


class Many(ToolPlugin):
    """As many tools as a few servers have, and one that stands alone."""

    name = "many"
    version = "1"
    effects: Mapping[str, Effect] = MappingProxyType(dict.fromkeys([*NAMES, "look"], "read"))

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [_schema(name) for name in [*NAMES, "look"]]

    def execute_tool(self, tool_name: str, payload: Any) -> str:
        return f"{tool_name} is done"


def _schema(name: str) -> dict[str, Any]:
    properties = {
        "id": {"type": "string", "description": "The identifier of what is meant."},
        "title": {"type": "string", "description": "How it is to be called from now on."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    }
    described = f"{name.replace('_', ' ')}: needs the permission of its owner, and gives JSON."
    return {
        "name": name,
        "description": described,
        "parameters": {"type": "object", "properties": properties, "required": ["id"]},
    }


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))


@contextmanager
def searching_app() -> Iterator[AgentApplication]:
    with AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "otel"]}) as app:
        app.core.register_tool(Many)
        yield app


def calling(name: str, number: int, *, searched: bool = False) -> Reply:
    """A thought, perhaps a search and another thought, and a call."""
    signed = [f"c2lnbmVk{f'{number}:{place}'.encode().hex()}AA==" for place in range(2)]
    search = (Search(name), Thought("So there is one.", signed[1])) if searched else ()
    thought = Thought("Which tool is it?", signed[0])
    return Reply((thought, *search, Call(name, {"id": "7"}, id=f"call_{number}")))


def results(session: Session) -> list[str]:
    return [each["content"] for each in session.messages if each["role"] == "tool"]


def history(request: Any) -> list[str]:
    given = request.body.get("messages") or request.body["input"]
    return [json.dumps(each) for each in given]


def check_prefix(requests: Sequence[Any]) -> None:
    """Each request begins as the one before it, with the same declarations."""
    for before, after in pairwise(requests):
        assert after.body["tools"] == before.body["tools"]
        assert after.body.get("system") == before.body.get("system")
        assert history(after)[: len(history(before))] == history(before)


def shown_size(body: Mapping[str, Any]) -> int:
    """The characters that a model reads of declarations and instructions before it searches."""
    shown: list[Any] = [body.get("system") or body["input"][0]]
    for tool in body["tools"]:
        if tool.get("type") == "namespace":
            shown.append([tool["name"], tool["description"]])
        elif not tool.get("defer_loading"):
            shown.append(tool)
    return len(json.dumps(shown))


@pytest.mark.parametrize(
    ("searching", "way"), [(SEARCHING[place // 2], way) for place, way in enumerate(WAYS)], ids=str
)
def test_what_the_provider_finds_is_called_and_stays_found(searching: Stop, way: Way) -> None:
    with searching.serve() as server, searching_app() as app:
        config = searching.config(server)
        server.queue(calling(TOOL, 1, searched=True))
        server.queue(say("It is assigned."))
        session = asked(app, "Assign issue 7.", way, settings=config)
        server.queue(calling(TOOL, 2))
        server.queue(calling(OTHER, 3, searched=True))
        server.queue(say("Both are done."))
        session = asked(app, "Again, and who is there?", way, settings=config, session=session)
        assert server.problems == []
        assert results(session) == [f"{name} is done" for name in (TOOL, TOOL, OTHER)]
        check_prefix(server.requests)
        first = server.requests[0]
    assert "find_tools" not in first.raw.decode()
    assert len(first.raw) > 80_000
    # Four characters are a token, or so.
    assert shown_size(first.body) / 4 <= 2000
    found = [each["metadata"].get("found_tools") for each in session.messages]
    assert [TOOL in names for names in found if names] == [True, False]


@each_searching
def test_what_was_found_stays_found_when_the_search_was_summarised(searching: Stop) -> None:
    with searching.serve() as server, searching_app() as app:
        config = searching.config(server, context_window=8000)
        server.queue(calling(TOOL, 1, searched=True))
        server.queue(Reply((Text("It is assigned. " * 200),)))
        session = app.run("Assign issue 7.", settings=config).session
        server.queue(say("You are welcome.", tokens=Tokens(input=5000)))
        session = app.run("Thank you.", settings=config, session=session).session
        server.queue(say("Issue 7 was assigned."))
        session, told = app.execute_session_action(
            session, "compact_native_history", settings=config
        )
        assert "summarised" in told["message"]
        compacted = len(server.requests)
        for number in (2, 3):
            server.queue(calling(TOOL, number))
            server.queue(say("Done."))
            session = app.run("Again.", settings=config, session=session).session
        assert server.problems == []
        assert results(session) == [f"{TOOL} is done"] * 3
        after = server.requests[compacted:]
        begin = "".join(history(after[0]))
        assert "tool_search_call" not in begin
        assert "tool_reference" not in begin
        check_prefix(after)


def test_a_session_takes_what_was_found_to_those_that_search_and_those_that_do_not() -> None:
    stops = (ANTHROPIC, GOOGLE, OPENAI, ANTHROPIC)
    with searching_app() as app:
        session: Any = None
        for number, each in enumerate(stops):
            with each.serve() as server:
                server.queue(calling(TOOL, number, searched=number == 0))
                server.queue(say("Done."))
                more = {} if session is None else {"session": session}
                session = app.run("Assign it.", settings=each.config(server), **more).session
                assert server.problems == [], str(each)
                offered = server.requests[0].raw.decode()
                assert ("find_tools" in offered) == (each is GOOGLE)
        assert results(session) == [f"{TOOL} is done"] * 4


@each_searching
def test_what_the_host_has_found_goes_whole_to_a_provider_that_searches(searching: Stop) -> None:
    with searching_app() as app:
        with GOOGLE.serve() as server:
            server.queue(Reply((Call("find_tools", {"query": TOOL, "limit": 1}, id="call_1"),)))
            server.queue(say("I have found it."))
            session = app.run("Look for it.", settings=GOOGLE.config(server)).session
            assert server.problems == []
        with searching.serve() as server:
            server.queue(calling(TOOL, 2))
            server.queue(say("Done."))
            config = searching.config(server)
            session = app.run("Assign it.", settings=config, session=session).session
            assert server.problems == []
        assert results(session)[-1] == f"{TOOL} is done"


@each_searching
def test_a_tool_that_is_gone_is_referred_to_no_more(searching: Stop) -> None:
    with searching.serve() as server, searching_app() as app:
        config = searching.config(server)
        server.queue(calling(TOOL, 1, searched=True))
        server.queue(say("It is assigned."))
        session = app.run("Assign issue 7.", settings=config).session
        for tools in (["mcp_slack*", "mcp_github*"], ["look"]):
            server.queue(say("I cannot do that any more."))
            more: dict[str, Any] = {"use_tools": [*tools, "find_tools"], "session": session}
            session = app.run("Again.", settings={**config, "tool_tokens": 3000}, **more).session
        assert server.problems == []


@each_searching
def test_the_host_searches_where_the_setting_says_so(searching: Stop) -> None:
    with searching.serve() as server, searching_app() as app:
        config = searching.config(server, tool_search="host")
        server.queue(Reply((Call("find_tools", {"query": TOOL, "limit": 1}, id="call_1"),)))
        server.queue(calling(TOOL, 2))
        server.queue(say("Done."))
        session = app.run("Assign issue 7.", settings=config).session
        assert server.problems == []
        assert results(session)[-1] == f"{TOOL} is done"
        assert not any("defer_loading" in each.raw.decode() for each in server.requests)


def test_a_provider_that_searches_nothing_cannot_be_told_to() -> None:
    with GOOGLE.serve() as server, searching_app() as app:
        with pytest.raises(ConfigError, match="does not search tools itself") as caught:
            app.run("Hi", settings=GOOGLE.config(server, tool_search="provider"))
        assert caught.value.key == "tool_search"
        with pytest.raises(ConfigError, match="tool_search"):
            app.run("Hi", settings=GOOGLE.config(server, tool_search="nobody"))
        assert server.requests == []
