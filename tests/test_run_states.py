"""A run is pending, running, and then exactly one of succeeded, failed and cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agent_hookspecs.errors import ProviderError
from agent_host.agent.loop import AgentRun
from agent_host.agent.policy import Policy
from agent_host.agent.setup import RunSetup
from agent_host.core import AgentCore
from agent_host.drivers.blocking import Stream
from agent_host_echo.provider import EchoProvider


@pytest.fixture
def core() -> Iterator[AgentCore]:
    with AgentCore() as made:
        made.register_provider(EchoProvider)
        yield made


def request(core: AgentCore, prompt: str) -> Stream:
    session = core.add_message(core.create_session(), "user", prompt)
    return core.send_request_stream(session, {"retries": 0})


def loop(core: AgentCore, prompt: str) -> Stream:
    session = core.add_message(core.create_session(), "user", prompt)
    return Stream(
        AgentRun(RunSetup(core.stacks, core, Policy()), session, {"retries": 0}), core.wire
    )


KINDS = pytest.mark.parametrize("made", [request, loop], ids=["request", "loop"])


@KINDS
def test_a_run_succeeds(core: AgentCore, made: Any) -> None:
    stream = made(core, "one two")
    states = [stream.state]
    for event in stream:
        states.append(stream.state)
        if event["type"] == "done":
            break
    stream.close()
    assert states[:2] == ["pending", "running"]
    assert stream.state == states[-1] == "succeeded"


@KINDS
def test_a_run_fails(core: AgentCore, made: Any) -> None:
    stream = made(core, "/fail server it broke")
    with pytest.raises(ProviderError):
        list(stream)
    stream.close()
    assert stream.state == "failed"


@KINDS
@pytest.mark.parametrize("events", [0, 1, 2])
def test_a_run_that_is_closed_is_cancelled(core: AgentCore, made: Any, events: int) -> None:
    stream = made(core, "one two three")
    for _ in range(events):
        next(stream)
    stream.close()
    assert stream.state == "cancelled"
    assert list(stream) == []


def test_async_runs_have_the_same_states(core: AgentCore) -> None:
    session = core.add_message(core.create_session(), "user", "one two")

    async def states() -> list[str]:
        whole = core.asend_request_stream(session, {})
        begun = whole.state
        async for _ in whole:
            pass
        closed = core.asend_request_stream(session, {})
        await closed.__anext__()
        await closed.aclose()
        return [begun, whole.state, closed.state]

    assert asyncio.run(states()) == ["pending", "succeeded", "cancelled"]
