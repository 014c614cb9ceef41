"""The core as a whole: its names, its events, and how its sync and async sides agree."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from typing import Any

import pytest

import agent_host
from agent_hookspecs import ProviderPlugin
from agent_hookspecs.errors import AgentError, ConfigError, HookError, ServerError, SessionError
from agent_host import AgentCore, Session
from agent_host_echo.extension import EchoReasoning
from agent_host_echo.provider import EchoProvider
from openai_like import OpenAiLike
from talking import WAYS, Way, ask, core_with, events_of, said, talker

NAMES = (
    *("register_provider", "register_extension", "register_feature", "register_tool"),
    *("create_session", "add_message"),
    *("send_request", "send_request_stream", "asend_request", "asend_request_stream"),
    *("get_models", "get_tags", "get_ui_elements", "get_config_schema", "get_tool_schemas"),
    *("execute_tool_calls", "execute_session_action", "run_session_lifecycle"),
    *("warm_up", "close"),
)
TWINS = ("execute_tool_calls", "execute_session_action", "run_session_lifecycle", "warm_up")


@pytest.mark.parametrize("name", NAMES)
def test_the_core_has_the_names_of_the_design(name: str) -> None:
    assert callable(getattr(AgentCore, name))


@pytest.mark.parametrize("name", [*TWINS, "send_request", "send_request_stream"])
def test_twins_take_the_same_arguments(name: str) -> None:
    sync, twin = getattr(AgentCore, name), getattr(AgentCore, f"a{name}")
    assert inspect.signature(sync).parameters == inspect.signature(twin).parameters


def test_every_public_method_says_what_it_does() -> None:
    for name, member in vars(AgentCore).items():
        if not name.startswith("_"):
            assert member.__doc__, name


def test_the_package_offers_core_session_and_errors() -> None:
    assert agent_host.AgentCore is AgentCore
    assert agent_host.Session is Session
    assert issubclass(agent_host.HookError, agent_host.AgentError)
    with pytest.raises(AttributeError, match="no_such_name"):
        agent_host.no_such_name  # noqa: B018


def test_a_core_needs_no_arguments_and_discovers_nothing() -> None:
    with AgentCore() as core, pytest.raises(AgentError, match="no provider"):
        core.send_request(said("x"), {})


def test_a_message_of_the_wrong_kind_is_refused() -> None:
    core = AgentCore()
    with pytest.raises(SessionError, match="role 'robot'"):
        core.add_message(core.create_session(), "robot", "x")


@pytest.mark.parametrize("way", WAYS)
def test_the_finals_are_those_of_the_session(way: Way) -> None:
    session, finals = ask(core_with(talker()), said("x"), {}, way)
    assert list(session.messages[1:]) == list(finals)
    finals[0]["metadata"]["changed"] = True
    assert session.messages[1]["metadata"] == {"finish": "stop"}


class _Mark:
    """Something that can be referred to weakly."""


def test_nothing_of_a_request_waits_for_the_garbage_collector() -> None:
    core, mark = core_with(talker()), _Mark()
    gone = weakref.ref(mark)
    gc.disable()
    try:
        core.send_request(said("x"), {}, context={"mark": mark})
        del mark
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_run_has_one_beginning_and_one_end(way: Way) -> None:
    events = events_of(core_with(talker()), said("x"), {"model": "m"}, way)
    assert events[0] == {"type": "request_started", "provider": "talker", "model": "m"}
    assert events[-1] == {
        "type": "done",
        "finish": "stop",
        "finish_reason": None,
        "limit": None,
    }
    kinds = [event["type"] for event in events]
    assert kinds.count("done") + kinds.count("error") == 1
    assert kinds.index("final") == len(kinds) - 2


def plain(events: list[Any]) -> list[Any]:
    return [{k: v for k, v in event.items() if k != "session"} for event in events]


@pytest.mark.parametrize(
    "prompt", ["Hello there", "think: hm\nYes", "/tool look {}", "", "über 😀 \ud800"]
)
def test_sync_and_async_give_the_same_events(prompt: str) -> None:
    core = core_with(EchoProvider, EchoReasoning)
    session = said(prompt)
    sync, asynchronous = (events_of(core, session, {}, way) for way in ("stream", "astream"))
    assert plain(sync) == plain(asynchronous)
    assert ask(core, session)[0].messages == ask(core, session, {}, "acall")[0].messages


def failing(natives: Any) -> str:
    raise ServerError("down", retryable=False)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_failed_run_ends_with_an_error_event_and_the_same_error(way: Way) -> None:
    core = core_with(talker(answer=failing))
    events: list[Any] = []

    def sync() -> None:
        for event in core.send_request_stream(said("x"), {}):
            events.append(event)

    async def asynchronous() -> None:
        async for event in core.asend_request_stream(said("x"), {}):
            events.append(event)

    with pytest.raises(ServerError) as caught:
        sync() if way == "stream" else asyncio.run(asynchronous())
    assert [event["type"] for event in events] == ["request_started", "error"]
    assert events[-1]["error"] == caught.value.to_dict()
    assert caught.value.provider == "talker"


def test_a_config_that_cannot_be_resolved_is_an_event_too() -> None:
    stream = core_with(talker()).send_request_stream(said("x"), {"provider": "other"})
    assert next(stream)["type"] == "error"
    with pytest.raises(AgentError, match="no provider 'other'"):
        next(stream)


def test_an_interrupted_stream_keeps_the_text_so_far_marked_partial() -> None:
    stream = core_with(EchoProvider).send_request_stream(said("one two three"), {})
    with stream:
        for event in stream:
            if event["type"] == "partial":
                break
    assert stream.session.messages[-1]["metadata"] == {"partial": True}
    assert "one two three".startswith(stream.session.messages[-1]["content"])
    assert list(stream) == []


def test_a_stream_cut_before_its_end_is_an_error() -> None:
    class Cut(EchoProvider):
        def stream_api(self, native_messages: Any, state: Any) -> Any:
            chunks = list(super().stream_api(native_messages, state))
            return iter(chunks[:2])

    from agent_hookspecs.errors import StreamCutError

    stream = core_with(Cut).send_request_stream(said("one two three"), {"retries": 0})
    with pytest.raises(StreamCutError, match="ended before"):
        list(stream)
    assert stream.session.messages[-1]["metadata"] == {"partial": True}


def test_a_providers_own_end_of_file_is_no_end_of_stream() -> None:
    class Dropping(ProviderPlugin):
        name = "dropping"

        def stream_api(self, native_messages: Any, state: Any) -> Any:
            yield {"n": 1}
            raise EOFError("connection lost")

        def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
            return [], [], native_messages, state

    with pytest.raises(HookError, match="connection lost"):
        events_of(core_with(Dropping), said("x"))


def test_a_core_can_be_closed_twice_and_used_again() -> None:
    core = core_with(talker())
    ask(core, said("x"))
    core.close()
    core.close()
    assert ask(core, said("x"))[1]

    async def within() -> None:
        async with core:
            await core.asend_request(said("x"), {})
            await core.awarm_up({})

    asyncio.run(within())


def test_one_core_serves_nested_event_loops_and_threads() -> None:
    core = core_with(talker())

    async def both() -> list[Any]:
        tasks = [core.asend_request(said(str(n)), {}) for n in range(5)]
        return [session.messages[0]["content"] for session, _ in await asyncio.gather(*tasks)]

    assert asyncio.run(both()) == asyncio.run(both()) == list("01234")


def test_extensions_can_be_registered_with_their_provider() -> None:
    core = AgentCore()
    core.register_provider(EchoProvider, [EchoReasoning])
    assert "reasoning" in core.get_config_schema({})


def test_a_provider_is_not_registered_when_one_of_its_extensions_is_refused() -> None:
    core = AgentCore()
    with pytest.raises(AgentError):
        core.register_provider(EchoProvider, [EchoReasoning, EchoProvider])
    core.register_provider(EchoProvider, [EchoReasoning])
    assert ask(core, said("x"))[1]


def test_an_unexpected_answer_of_a_wire_gets_the_content_core_messages_need() -> None:
    class Null(talker()):  # type: ignore[misc]
        def call_api(self, native_messages: Any, state: Any) -> Any:
            finals = [
                {"content": None},
                {"role": "assistant", "content": [{"type": "text", "text": "part"}, 3]},
            ]
            return [], finals, [*native_messages, *finals], state

        def from_native_messages(self, native_messages: Any) -> Any:
            return [{"role": n.get("role"), "content": n["content"]} for n in native_messages]

    _, finals = ask(core_with(Null), said("x"))
    assert finals == [
        {"role": "assistant", "content": "", "metadata": {}},
        {"role": "assistant", "content": "part", "metadata": {"finish": "stop"}},
    ]


@pytest.mark.parametrize("way", ["argument", "environment"])
def test_the_http_library_is_named_by_the_caller_or_by_the_environment(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HTTP", "none-such" if way == "environment" else "httpx")
    with AgentCore(http="none-such" if way == "argument" else None) as core:
        core.register_provider(OpenAiLike)
        with pytest.raises(ConfigError, match="no HTTP library 'none-such'"):
            core.send_request(said("x"), {"base_url": "http://127.0.0.1:9"})
