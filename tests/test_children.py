"""Agents that call agents: their limits, usage, events, cancelling, and what is stored of them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from agent_hookspecs.authoring import ToolContext, tool
from agent_hookspecs.errors import ConfigError
from agent_host import AgentApplication
from agent_host.agent.limits import Limits
from scripted import app_with, call, calling, of_kind, saying, scripted


def talk(**scripts: list[Any]) -> Any:
    """A provider that answers each agent by its own script, told apart by its system prompt."""
    turns = {name: iter(script) for name, script in scripts.items()}

    def say(history: list[dict[str, Any]]) -> Any:
        first = history[0]
        return next(turns["chef" if first["role"] == "system" else "boss"])

    return scripted(say)


def kitchen(provider: Any, *tools: Any, config: Any = None, **options: Any) -> AgentApplication:
    agents = {
        "default": {"provider": "scripted"},
        "chef": {"provider": "scripted", "system": "You cook."},
    }
    return app_with(provider, *tools, config={"agents": agents, **(config or {})}, **options)


ASK = call("chef", '{"prompt": "Cook soup."}')


def run(app: AgentApplication, asynchronous: bool, **options: Any) -> Any:
    options = {"tools": [app.agent("chef").as_tool(**options.pop("child", {}))], **options}
    if asynchronous:
        return asyncio.run(app.arun("Dinner!", **options))
    return app.run("Dinner!", **options)


both = pytest.mark.parametrize("asynchronous", [False, True])


@both
def test_an_agent_is_asked_by_another_and_its_usage_is_counted(asynchronous: bool) -> None:
    provider = talk(
        boss=[calling(ASK, input=10, output=1), saying("Served.", input=20, output=2)],
        chef=[saying("Soup.", input=100, output=30)],
    )
    with kitchen(provider) as app:
        answer = run(app, asynchronous)
    (result,) = [each for each in answer.messages if each["role"] == "tool"]
    assert (result["content"], answer.text) == ("Soup.", "Served.")
    assert (answer.usage["input"], answer.usage["output"]) == (130, 33)


def test_events_of_a_child_come_wrapped_and_in_their_place() -> None:
    provider = talk(
        boss=[calling(call("cook", '{"prompt": "Soup"}')), saying("Served.")],
        chef=[saying("Soup.")],
    )
    with kitchen(provider) as app:
        cook = app.agent("chef").as_tool(name="cook")
        with app.stream("Dinner!", tools=[cook]) as stream:
            events = list(stream)
    kinds = [event["type"] for event in events]
    told = of_kind(events, "child")
    assert {(e["agent"], e["name"], e["id"], e["run"]) for e in told} == {
        ("chef", "cook", "c1", None)
    }
    inner = [event["event"]["type"] for event in told]
    assert (inner[0], inner[-1]) == ("request_started", "done")
    assert kinds.index("tool_started") < kinds.index("child") < kinds.index("tool_result")
    partials = [e["message"]["content"] for e in of_kind(events, "partial")]
    assert "Soup." not in "".join(partials)


@both
def test_a_child_has_limits_of_its_own_and_says_where_it_stopped(asynchronous: bool) -> None:
    @tool(effect="read")
    def taste() -> str:
        """Taste."""
        return "salty"

    provider = talk(
        boss=[calling(ASK), saying("Alas.")], chef=[calling(call("taste", id="t1"), text="Hm.")]
    )
    with kitchen(provider, taste) as app:
        answer = run(app, asynchronous, child={"limits": {"max_turns": 1}})
    (result,) = [each for each in answer.messages if each["role"] == "tool"]
    assert "[The agent stopped before its end: limit max_turns.]" in result["content"]
    assert result["metadata"]["error"] is True
    assert answer.finish == "stop"


@both
def test_a_child_stops_where_its_parent_would(asynchronous: bool) -> None:
    asked = itertools.count()

    def go_on(history: Any) -> Any:
        return calling(call("taste", id=f"t{next(asked)}"), input=60)

    @tool(effect="read")
    def taste() -> str:
        """Taste."""
        return "salty"

    def say(history: Any) -> Any:
        return go_on(history) if history[0]["role"] == "system" else calling(ASK, input=1)

    with kitchen(scripted(say), taste) as app:
        answer = run(app, asynchronous, limits=Limits(tokens=100))
    (result,) = [each for each in answer.messages if each["role"] == "tool"]
    assert "[The agent stopped before its end: limit max_tokens.]" in result["content"]
    assert (answer.finish, answer.limit, next(asked)) == ("limit", "max_tokens", 2)


def test_a_child_that_fails_is_a_result_that_says_so() -> None:
    def fail(history: Any) -> Any:
        if history[0]["role"] == "system":
            raise OSError("the stove is off")
        return calling(ASK) if len(history) == 1 else saying("Alas.")

    with kitchen(scripted(fail)) as app:
        answer = run(app, False)
    (result,) = [each for each in answer.messages if each["role"] == "tool"]
    assert result["content"].startswith("The agent 'chef' failed:")
    assert "the stove is off" in result["content"]


def test_an_agent_that_calls_itself_without_end_is_stopped() -> None:
    def again(history: Any) -> Any:
        return saying("Enough.") if history[-1]["role"] == "tool" else calling(ASK)

    with kitchen(scripted(again)) as app:
        app.core.register_tool(app.agent("chef").as_tool())
        answer = app.run("Dinner!")
        assert answer.text == "Enough."


def test_children_that_run_at_once_are_all_counted() -> None:
    asks = [call("chef", '{"prompt": "Cook."}', id=f"c{number}") for number in range(4)]

    def say(history: Any) -> Any:
        if history[0]["role"] == "system":
            return saying("Soup.", input=1, output=1)
        return calling(*asks) if len(history) == 1 else saying("Served.", input=1, output=1)

    with kitchen(scripted(say), config={"tools": {"parallel": True}}) as app:
        answer = run(app, False)
    assert [m["content"] for m in answer.messages if m["role"] == "tool"] == ["Soup."] * 4
    assert answer.usage["input"] == 5


def test_a_child_gets_what_its_parent_has_for_tools_and_people() -> None:
    asked: list[str] = []

    @tool(effect="write")
    def serve(context: ToolContext[str]) -> str:
        """Serve."""
        return f"to {context.deps}"

    def approve(approval: Any) -> bool:
        asked.append(approval.use.name)
        return True

    provider = talk(
        boss=[calling(ASK), saying("Done.")],
        chef=[calling(call("serve", id="s1")), saying("Served.")],
    )
    with kitchen(provider, serve) as app:
        answer = run(app, False, deps="Ada", approve=approve)
    assert asked == ["serve"]
    assert answer.text == "Done."


@both
def test_closing_a_stream_ends_the_child_too(asynchronous: bool) -> None:
    @tool(effect="read")
    def simmer() -> str:
        """Simmer."""
        return "done"

    provider = talk(boss=[calling(ASK)], chef=[calling(call("simmer", id="s1"))])
    with kitchen(provider, simmer, store=":memory:") as app:
        chef = app.agent("chef").as_tool()
        if asynchronous:

            async def close_when_begun() -> None:
                async with app.astream("Dinner!", tools=[chef]) as stream:
                    async for event in stream:
                        if event["type"] == "child" and event["event"]["type"] == "tool_started":
                            break

            asyncio.run(close_when_begun())
        else:
            with app.stream("Dinner!", tools=[chef]) as stream:
                for event in stream:
                    if event["type"] == "child" and event["event"]["type"] == "tool_started":
                        break
        states = {run.agent: run.state for run in app.runs.list()}
        assert states == {None: "cancelled", "chef": "cancelled"}


def test_a_child_is_stored_as_a_part_of_its_parent() -> None:
    provider = talk(
        boss=[calling(ASK, input=1, output=1), saying("Served.", input=1, output=1)],
        chef=[saying("Soup.", input=5, output=5)],
    )
    with kitchen(provider, store=":memory:") as app:
        answer = run(app, False)
        runs = {run.agent: run for run in app.runs.list()}
        assert runs["chef"].parent == answer.run == runs[None].id
        assert (runs["chef"].state, runs["chef"].usage["input"]) == ("succeeded", 5)
        assert runs[None].usage["input"] == 2
        assert answer.usage["input"] == 7


def test_a_resumed_run_counts_what_its_children_used_before() -> None:
    @tool(effect="write")
    def serve() -> str:
        """Carry it to the guests."""
        return "served"

    provider = talk(
        boss=[
            calling(ASK, input=1, output=1),
            calling(call("serve", id="c2"), input=1, output=1),
            saying("Done.", input=1, output=1),
        ],
        chef=[saying("Soup.", input=50, output=5)],
    )
    with kitchen(provider, store=":memory:") as app:
        tools = [app.agent("chef").as_tool(effect="read"), serve]
        waiting = app.run("Dinner!", tools=tools, park=True)
        answer = app.resume(str(waiting.run), {"c2": "once"}, tools=tools)
        assert (answer.text, answer.usage["input"], answer.usage["output"]) == ("Done.", 53, 8)
        assert app.runs.find(str(waiting.run)).usage["input"] == 3


def test_an_agent_that_is_not_there_is_refused_at_once() -> None:
    with (
        kitchen(talk(boss=[], chef=[])) as app,
        pytest.raises(ConfigError, match="no agent 'cook'"),
    ):
        app.agent("cook")
