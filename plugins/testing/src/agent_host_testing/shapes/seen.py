"""What one request through a real host came to, asked for by blocking or by awaiting.

Owns who waits. What is asked, and what it should have come to, is for others to say: they write
generators that yield what they want done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.tool_interop import CallView
from agent_host import AgentCore, Session
from agent_host.drivers.blocking import complete

__all__ = [
    "Ask",
    "Asking",
    "RunCalls",
    "Seen",
    "ask_core",
    "calls_in",
    "conduct_steps",
    "conduct_steps_async",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the session; gives a `Seen`."""

    session: Session
    config: dict[str, Any]
    stream: bool


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Run the calls of a message; gives the tool messages."""

    message: CoreMessage
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a caller sees of one request: events of a stream, the session, and an error if any."""

    before: Session
    session: Session
    events: Sequence[dict[str, Any]] = ()
    error: Exception | None = None

    @property
    def new(self) -> list[CoreMessage]:
        """The messages that the answer added."""
        return list(self.session.messages[len(self.before.messages) :])

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the answer; of several messages, the last that has a key counts."""
        return {key: value for message in self.new for key, value in message["metadata"].items()}

    @property
    def text(self) -> str:
        return "".join(message["content"] for message in self.new)

    @property
    def reasoning(self) -> str:
        return "".join(message["metadata"].get("reasoning") or "" for message in self.new)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def streamed_text(self) -> str:
        return "".join(event["message"].get("content") or "" for event in self.of("partial"))

    @property
    def streamed_reasoning(self) -> str:
        return "".join(event["text"] for event in self.of("reasoning"))


Asking = Generator[Ask | RunCalls, Any, T]


def conduct_steps(steps: Asking[T], core: AgentCore) -> T:
    """Carry the steps out by blocking."""
    result: Any = None
    try:
        while True:
            step = steps.send(result)
            if isinstance(step, Ask):
                result = ask_core(core, step)
            else:
                calls, errors = _calls(step)
                result = core.execute_tool_calls(calls, step.config, errors=errors)
    except StopIteration as stop:
        found: T = stop.value
        return found


def conduct_steps_async(steps: Asking[T], core: AgentCore) -> T:
    """Carry the steps out on an event loop; closes the core, whose connections belong to it."""

    async def conduct() -> T:
        result: Any = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, Ask):
                    result = await _ask_core_async(core, step)
                else:
                    calls, errors = _calls(step)
                    result = await core.aexecute_tool_calls(calls, step.config, errors=errors)
        except StopIteration as stop:
            found: T = stop.value
            return found
        finally:
            await core.aclose()

    return asyncio.run(conduct())


def ask_core(core: AgentCore, ask: Ask) -> Seen:
    """Send one request by blocking."""
    if not ask.stream:
        try:
            session, _ = core.send_request(ask.session, ask.config)
        except Exception as error:
            return Seen(ask.session, ask.session, error=error)
        return Seen(ask.session, session)
    events: list[dict[str, Any]] = []
    failure: Exception | None = None
    with core.send_request_stream(ask.session, ask.config) as stream:
        try:
            events.extend(dict(event) for event in stream)
        except Exception as error:
            failure = error
    return Seen(ask.session, stream.session, events, failure)


async def _ask_core_async(core: AgentCore, ask: Ask) -> Seen:
    if not ask.stream:
        try:
            session, _ = await core.asend_request(ask.session, ask.config)
        except Exception as error:
            return Seen(ask.session, ask.session, error=error)
        return Seen(ask.session, session)
    events: list[dict[str, Any]] = []
    failure: Exception | None = None
    async with core.asend_request_stream(ask.session, ask.config) as stream:
        try:
            async for event in stream:
                events.append(dict(event))
        except Exception as error:
            failure = error
    return Seen(ask.session, stream.session, events, failure)


def _calls(step: RunCalls) -> tuple[list[dict[str, Any]], dict[str, str]]:
    metadata = step.message["metadata"]
    return metadata["tool_calls"], metadata.get("tool_call_errors") or {}


def calls_in(core: AgentCore, config: dict[str, Any], seen: Seen) -> list[CallView]:
    """The calls of the answer, as the registry of the provider's stack explains them."""
    found = [call for message in seen.new for call in message["metadata"].get("tool_calls") or ()]
    if not found:
        return []
    stack = complete(core.stacks.stack(config), core.wire)
    views = [stack.registry.inspect_call(call) for call in found]
    return [
        view if view is not None else CallView(source=call)
        for view, call in zip(views, found, strict=True)
    ]
