"""What blocks in an async run has a thread of its own and holds up nobody else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from agent_hookspecs import ProviderPlugin, ToolPlugin
from agent_host.threads import in_thread
from talking import core_with, said, talker

#: More than an event loop's own executor has threads on any machine.
MANY = 40
#: Long enough for a busy machine, short enough that a hang is a failure.
PATIENCE = 60.0

CALL = {"id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{}"}}


class Gate:
    """Holds everybody who comes until it is opened."""

    def __init__(self) -> None:
        self._there = threading.Semaphore(0)
        self._open = threading.Event()

    def __call__(self) -> None:
        self._there.release()
        assert self._open.wait(PATIENCE)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._there.acquire(timeout=PATIENCE)

    def open(self) -> None:
        self._open.set()


def waiting(gate: Gate) -> type[ToolPlugin]:
    class Waiting(ToolPlugin):
        name = "waiting"

        def get_tool_schemas(self, state: Any) -> Any:
            return [{"name": "wait", "description": "", "parameters": {"type": "object"}}]

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            gate()
            return "waited"

    return Waiting


def streaming(self: Any, native_messages: Any) -> Iterator[dict[str, Any]]:
    yield {"text": "x"}
    yield {"text": "y"}


def showing(self: Any, native_chunk: Any, native_messages: Any, state: Any) -> Any:
    partial = {"role": "assistant", "content": native_chunk["text"]}
    return [partial], [], native_messages, state


def test_slow_tools_hold_up_no_other_run() -> None:
    gate = Gate()
    provider = talker(stream_api=streaming, process_chunk=showing)

    async def work() -> tuple[list[Any], list[Any]]:
        core = core_with(provider, waiting(gate))
        await core.awarm_up({})
        slow = [asyncio.create_task(core.aexecute_tool_calls([CALL], {})) for _ in range(MANY)]
        await in_thread(gate.wait_for, MANY)
        # All of them are at work. Somebody else calls a provider that blocks, and a tool.
        await core.asend_request(said("x"), {})
        seen = [event["type"] async for event in core.asend_request_stream(said("x"), {})]
        # What else uses the executor of the loop, such as looking up names, is free as well.
        await asyncio.to_thread(gate.open)
        return [message for (message,) in await asyncio.gather(*slow)], seen

    messages, seen = asyncio.run(asyncio.wait_for(work(), PATIENCE))
    assert [message["content"] for message in messages] == ["waited"] * MANY
    assert seen.count("partial") == 2


def test_slow_listings_of_models_hold_up_no_other_run() -> None:
    gate = Gate()

    def get_models(self: Any, config: Any) -> list[dict[str, Any]]:
        if "slow" in config:
            gate()
        return [{"id": "m"}]

    async def work() -> None:
        core = core_with(talker(get_models=get_models))
        await core.awarm_up({})
        slow = [asyncio.create_task(core.awarm_up({"slow": n})) for n in range(MANY)]
        await in_thread(gate.wait_for, MANY)
        await core.asend_request(said("x"), {})
        gate.open()
        await asyncio.gather(*slow)

    asyncio.run(asyncio.wait_for(work(), PATIENCE))


def test_a_call_in_a_thread_sees_the_context_of_its_caller_and_cannot_change_it() -> None:
    variable: ContextVar[str] = ContextVar("variable")

    def call() -> str:
        seen = variable.get()
        variable.set("of the thread")
        return seen

    async def work() -> tuple[str, str]:
        variable.set("of the caller")
        return await in_thread(call), variable.get()

    assert asyncio.run(work()) == ("of the caller", "of the caller")


@pytest.mark.parametrize(
    ("raised", "caught"),
    [(ValueError("no"), ValueError), (StopIteration(1), RuntimeError)],
    ids=["ordinary", "one that futures refuse"],
)
def test_what_a_call_in_a_thread_raises_reaches_its_caller(
    raised: Exception, caught: type[Exception]
) -> None:
    def call() -> None:
        raise raised

    with pytest.raises(caught):
        asyncio.run(asyncio.wait_for(in_thread(call), PATIENCE))


def test_threads_that_are_idle_are_used_again() -> None:
    async def work() -> set[int]:
        return {await in_thread(threading.get_ident) for _ in range(100)}

    # Others of the process may be idle as well, and a thread is idle a moment after its answer.
    assert len(asyncio.run(work())) < 50


def test_a_thread_that_is_idle_for_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_host.threads._IDLE_SECONDS", 0.001)
    thread = asyncio.run(in_thread(threading.current_thread))
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert asyncio.run(in_thread(threading.current_thread)) is not thread


def test_a_cancelled_call_ends_by_itself_and_its_thread_serves_others() -> None:
    gate, ended = Gate(), threading.Event()

    def call() -> None:
        gate()
        ended.set()

    async def work() -> None:
        task = asyncio.create_task(in_thread(call))
        await in_thread(gate.wait_for, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    # Its loop is closed by now.
    gate.open()
    assert ended.wait(PATIENCE)
    assert asyncio.run(in_thread(int)) == 0


class Blocking(ProviderPlugin):
    """Whose stream blocks after its first chunk."""

    name = "blocking"
    gate: Gate

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config}

    def stream_api(self, native_messages: Any) -> Iterator[dict[str, Any]]:
        yield {"text": "x"}
        self.gate()
        yield {"text": "y"}

    process_chunk = showing


def test_closing_a_stream_does_not_wait_for_a_provider_that_blocks() -> None:
    gate = Gate()

    async def work() -> list[str]:
        core = core_with(type("Blocking", (Blocking,), {"gate": gate}))
        stream = core.asend_request_stream(said("x"), {})

        async def read() -> list[str]:
            return [event["type"] async for event in stream]

        reader = asyncio.create_task(read())
        await in_thread(gate.wait_for, 1)
        await stream.aclose()
        return await reader

    try:
        seen = asyncio.run(asyncio.wait_for(work(), PATIENCE))
    finally:
        gate.open()
    assert seen == ["request_started", "partial"]


def run_script(script: str) -> str:
    made = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_process_ends_when_the_calls_under_way_have_ended() -> None:
    """Even one that nobody waits for any more may be in the middle of a file."""
    script = """
import asyncio, threading
from agent_host.threads import in_thread

begun = threading.Event()

def call():
    begun.set()
    threading.main_thread().join()
    print("ended")

async def main():
    task = asyncio.create_task(in_thread(call))
    await in_thread(begun.wait)
    task.cancel()

asyncio.run(main())
print("over")
"""
    assert run_script(script).split() == ["over", "ended"]


def test_a_process_does_not_wait_for_ever_for_a_call_that_never_returns() -> None:
    script = """
import asyncio, sys, threading
from agent_host import threads

threads.EXIT_SECONDS = 0.2
begun = threading.Event()

def call():
    begun.set()
    threading.Event().wait()

async def main():
    task = asyncio.create_task(threads.in_thread(call))
    await threads.in_thread(begun.wait)
    task.cancel()

asyncio.run(main())
sys.stderr = sys.stdout
"""
    assert run_script(script).split() == ["calls_left_at_exit", "count=1", "seconds=0.2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    script = """
import asyncio, os, sys, warnings
from agent_host.threads import in_thread

warnings.simplefilter("ignore")
asyncio.run(in_thread(int))
child = os.fork()
if child == 0:
    asyncio.run(asyncio.wait_for(in_thread(int), 30))
    print("child", flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent")
"""
    assert run_script(script).split() == ["child", "parent"]
