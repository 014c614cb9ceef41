"""Hooks that take long: a warning that names them, and an end of the host's patience."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent_hookspecs import ConfigError, FeaturePlugin, HookError, ProviderPlugin, ToolPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_host import AgentApplication, AgentCore
from agent_host.plugins.hook_time import NOTICED_SECONDS, HookTime, note_time, take_slow
from talking import WAYS, Way, ask, core_with, events_of, said, talker


class Slow(FeaturePlugin):
    """Holds everybody up for a moment that is just long enough to be noticed."""

    name = "slow"

    def initialize_request(self, native_messages: Any, state: Any) -> Any:
        threading.Event().wait(NOTICED_SECONDS * 1.5)
        return native_messages, state


def warnings_of(core: AgentCore, way: Way, **config: Any) -> list[tuple[str, str | None]]:
    events = events_of(core, said("x"), config, way)
    return [(e["message"], e["plugin"]) for e in events if e["type"] == "warning"]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_slow_hook_is_named_by_a_warning(way: Way) -> None:
    with core_with(talker(), Slow) as core:
        ((message, plugin),) = warnings_of(core, way, slow_hook_seconds=NOTICED_SECONDS)
        assert plugin == "slow"
        assert "hook 'initialize_request' took longer than 0.05 s" in message
        assert warnings_of(core, way) == []


def test_it_is_said_once_in_a_run() -> None:
    class Calling(Slow):
        def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
            threading.Event().wait(NOTICED_SECONDS * 1.5)
            return final_messages, native_messages, state

    def answer(natives: Any) -> str:
        return "" if len(natives) < 2 else "Hi"

    config = {
        "allowed_plugins": [],
        "request_defaults": {"slow_hook_seconds": NOTICED_SECONDS},
        "agents": {"default": {"provider": "talker"}},
    }
    with AgentApplication(config) as app:
        app.core.register_provider(talker(answer=answer))
        app.core.register_feature(Calling)
        said_of = [w["message"] for w in app.run("go").warnings if "took longer" in w["message"]]
    assert len(said_of) == len(set(said_of)) == 2


def test_what_may_wait_is_no_slow_hook() -> None:
    def call_api(self: Any, native_messages: Any, state: Any) -> Any:
        threading.Event().wait(NOTICED_SECONDS * 1.5)
        final = {"role": "assistant", "content": "Hi"}
        return [], [final], [*native_messages, final], state

    with core_with(talker(call_api=call_api)) as core:
        assert warnings_of(core, "stream", slow_hook_seconds=NOTICED_SECONDS) == []


def test_what_a_thread_has_noted_is_its_own() -> None:
    thread = threading.Thread(target=note_time, args=("other", "init", -100.0))
    thread.start()
    thread.join()
    assert take_slow(0) == []
    note_time("mine", "init", -100.0)
    assert take_slow(1e12) == []
    assert take_slow(0) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_hook_that_is_awaited_for_ever_is_given_up(way: Way) -> None:
    class Waiting(ProviderPlugin):
        name = "waiting"

        def init(self, config: Any) -> Any:
            return {"config": config}

        async def acall_api(self, native_messages: Any, state: Any) -> Any:
            await asyncio.Event().wait()

    with core_with(Waiting) as core, pytest.raises(HookError) as caught:
        ask(core, said("x"), {"max_hook_seconds": 0.1}, way)
    assert (caught.value.plugin, caught.value.hook) == ("waiting", "acall_api")
    assert "took longer than the host waits" in caught.value.message
    assert "max_hook_seconds" in caught.value.hint


def test_a_hook_in_a_thread_is_given_up() -> None:
    ended = threading.Event()

    def call_api(self: Any, native_messages: Any, state: Any) -> Any:
        ended.wait(30)

    try:
        with core_with(talker(call_api=call_api)) as core, pytest.raises(HookError) as caught:
            ask(core, said("x"), {"max_hook_seconds": 0.1}, "acall")
    finally:
        ended.set()
    assert (caught.value.plugin, caught.value.hook) == ("talker", "call_api")


@pytest.mark.parametrize("way", WAYS)
def test_an_item_of_a_stream_that_never_comes_is_given_up(way: Way) -> None:
    async def astream_api(self: Any, native_messages: Any, state: Any) -> Any:
        yield {"choices": [{"delta": {"content": "H"}}]}
        await asyncio.Event().wait()

    Streaming = type(
        "Streaming",
        (AccumulatorStreamingMixin, ProviderPlugin),
        {"name": "s", "astream_api": astream_api},
    )
    with core_with(Streaming) as core, pytest.raises(HookError) as caught:
        ask(core, said("x"), {"max_hook_seconds": 0.1}, way)
    assert (caught.value.plugin, caught.value.hook) == ("s", "astream_api")
    assert "max_hook_seconds" in caught.value.hint


def test_an_item_of_a_stream_in_a_thread_is_given_up() -> None:
    ended = threading.Event()

    def stream_api(self: Any, native_messages: Any, state: Any) -> Any:
        yield {"choices": [{"delta": {"content": "H"}}]}
        ended.wait(30)

    Streaming = type(
        "Streaming",
        (AccumulatorStreamingMixin, ProviderPlugin),
        {"name": "s", "stream_api": stream_api},
    )
    try:
        with core_with(Streaming) as core, pytest.raises(HookError) as caught:
            ask(core, said("x"), {"max_hook_seconds": 0.1}, "astream")
    finally:
        ended.set()
    assert (caught.value.plugin, caught.value.hook) == ("s", "stream_api")


async def hang(self: Any, tool_name: str, payload: Any) -> Any:
    await asyncio.Event().wait()


async def hang_after_progress(self: Any, tool_name: str, payload: Any) -> Any:
    yield "begun"
    await asyncio.Event().wait()


@pytest.mark.parametrize("execute_tool", [hang, hang_after_progress])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_is_awaited_for_ever_is_given_up(execute_tool: Any, is_async: bool) -> None:
    schema = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    methods = {"get_tool_schemas": lambda self: [schema], "execute_tool": execute_tool}
    Tool = type("Tool", (ToolPlugin,), {"name": "looking", **methods})
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    config = {"max_hook_seconds": 0.1}
    with core_with(talker(), Tool) as core:
        if is_async:
            (message,) = asyncio.run(core.aexecute_tool_calls([call], config))
        else:
            (message,) = core.execute_tool_calls([call], config)
    assert message["content"] == "Tool 'look' was given up: it took longer than 0.1 s."


@pytest.mark.parametrize("key", HookTime.__match_args__)
@pytest.mark.parametrize("value", [0, -1, True, "1", None, float("nan"), float("inf")])
def test_the_settings_are_seconds(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{key} is"):
        HookTime.of({key: value})
