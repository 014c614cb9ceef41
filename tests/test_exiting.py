"""A plugin that tries to end the process fails like any other, and nothing hangs or ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agent_hookspecs import ProviderPlugin, ToolPlugin
from agent_hookspecs.errors import HookError
from agent_host.application import AgentApplication, Answer
from both_ways import BOTH_WAYS

CALL = {"id": "c1", "type": "function", "function": {"name": "leave", "arguments": "{}"}}


class Talking(ProviderPlugin):
    """Calls the tool, and then has its say."""

    name = "talking"

    def call_api(self, native_messages: list[Any], state: Any) -> Any:
        asked = len(native_messages) == 1
        said = {"tool_calls": [CALL]} if asked else {}
        final = {"role": "assistant", "content": "" if asked else "done", "_metadata": said}
        return [], [final], [*native_messages, final], state


class Leaving(ToolPlugin):
    name = "leaving"
    effect = "read"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "leave", "description": "Leave.", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str) -> Any:
        sys.exit(0)


class LeavingLater(Leaving):
    async def execute_tool(self, tool_name: str) -> Any:
        await asyncio.sleep(0)
        sys.exit(0)


class LeavingInProgress(Leaving):
    def execute_tool(self, tool_name: str) -> Iterator[str]:
        yield "half"
        sys.exit(0)


class Interrupting(Leaving):
    async def execute_tool(self, tool_name: str) -> Any:
        raise KeyboardInterrupt


class AtInit(Talking):
    def init(self, config: Any) -> Any:
        sys.exit(3)


class AtCall(Talking):
    def call_api(self, native_messages: list[Any], state: Any) -> Any:
        sys.exit(3)


class AtAwait(ProviderPlugin):
    name = "talking"

    async def acall_api(self, native_messages: list[Any], state: Any) -> Any:
        sys.exit(3)


class WhileStreaming(ProviderPlugin):
    name = "talking"

    def process_chunk(self, native_chunk: Any, native_messages: list[Any], state: Any) -> Any:
        return [], [], native_messages, state

    def stream_api(self, native_messages: list[Any], state: Any) -> Iterator[Any]:
        yield {"some": "chunk"}
        sys.exit(3)


class WhileStreamingLater(WhileStreaming):
    async def astream_api(self, native_messages: list[Any], state: Any) -> AsyncIterator[Any]:
        yield {"some": "chunk"}
        sys.exit(3)


class AtChunk(WhileStreaming):
    def process_chunk(self, native_chunk: Any, native_messages: list[Any], state: Any) -> Any:
        sys.exit(3)


def run(way: str, provider: type[ProviderPlugin], tool: type[ToolPlugin] = Leaving) -> Answer:
    with AgentApplication({}, tools=[tool], approve=lambda approval: True) as app:
        app.core.register_provider(provider)
        if way == "sync":
            return app.run("go", provider="talking")
        return asyncio.run(app.arun("go", provider="talking"))


@BOTH_WAYS
@pytest.mark.parametrize(
    "provider", [AtInit, AtCall, AtAwait, WhileStreaming, WhileStreamingLater, AtChunk]
)
def test_a_provider_that_exits_is_named(provider: type[ProviderPlugin], way: str) -> None:
    with pytest.raises(HookError, match="SystemExit: 3") as caught:
        run(way, provider)
    assert caught.value.plugin == "talking"


@BOTH_WAYS
@pytest.mark.parametrize("tool", [Leaving, LeavingLater, LeavingInProgress])
def test_a_tool_that_exits_gives_the_model_a_failed_result(
    tool: type[ToolPlugin], way: str
) -> None:
    answer = run(way, Talking, tool)
    assert answer.text == "done"
    (result,) = [message for message in answer.messages if message["role"] == "tool"]
    assert "SystemExit: 0" in result["content"]


def test_an_interruption_in_a_coroutine_of_a_sync_run_does_not_hang() -> None:
    answer = run("sync", Talking, Interrupting)
    assert answer.text == "done"


def test_an_observer_that_exits_disturbs_nobody() -> None:
    class Observing(Leaving):
        def execute_tool(self, tool_name: str) -> Any:
            return "fine"

        def observe_event(self, event: Any) -> None:
            sys.exit(4)

        def host_started(self, host: Any) -> None:
            sys.exit(4)

    assert run("sync", Talking, Observing).text == "done"
