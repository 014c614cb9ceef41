"""A conversation that goes from provider to provider, with a server for each.

Owns what is said and called at a stop, who waits, and what is looked at afterwards. It must not
know in which order a test visits the stops.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from stops import STOPS, TOOL_BUNDLES, Stop

from agent_hookspecs import ToolPlugin
from agent_host import AgentApplication, Session
from agent_host_testing import Call, FakeServer, Reply, Text, Thought
from agent_host_testing.script import Part
from agent_host_testing.suites.hosting import recording_tools
from scripted import check_history

__all__ = ["PIXEL", "WAYS", "Tour", "Visit", "Way", "asked", "touring"]

#: A picture of one white pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="
)
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Way:
    """In which of the host's four ways a request is made."""

    stream: bool
    asynchronous: bool

    def __str__(self) -> str:
        waits = "async" if self.asynchronous else "sync"
        return f"{waits}-{'streamed' if self.stream else 'whole'}"


WAYS = tuple(
    Way(stream, asynchronous) for stream in (True, False) for asynchronous in (False, True)
)


@dataclass(frozen=True, slots=True)
class Visit:
    """What happens at a stop: some calls in one turn, perhaps thoughts, perhaps a picture.

    ``ids`` says whether the calls have ids that nobody else gives, the same ones as everywhere, or
    those that the format makes, if it makes any.
    """

    stop: Stop
    calls: int = 1
    thinks: bool = True
    picture: bool = False
    ids: Literal["own", "same", "made"] = "own"

    def id(self, number: int, place: int) -> str | None:
        if self.ids == "made":
            return None
        return f"call_{place}" if self.ids == "same" else f"call_{self.stop.name}_{number}_{place}"


@dataclass
class Tour:
    """The session on its way, the servers, and all that must be found again in the end."""

    app: AgentApplication
    servers: dict[str, FakeServer]
    noted: list[tuple[str, Any]]
    session: Session
    #: Texts that were said, in order.
    said: list[str] = field(default_factory=list)
    #: From each signature to the stop that made it.
    signed: dict[str, str] = field(default_factory=dict)
    payloads: list[tuple[str, Any]] = field(default_factory=list)
    warnings: list[Any] = field(default_factory=list)

    def visit(self, visit: Visit, way: Way) -> None:
        """Ask there, have the tools run, and take the answer along."""
        number = len(self.said)
        server = self.servers[visit.stop.name]
        prompt, answer = f"question {number}?", f"Answer {number}."
        if visit.picture:
            self.session = self.session.with_added(_picture(f"picture {number}"))
            self.said.append(f"picture {number}")
        looking = [f"Let me look, {number}."] if visit.calls else []
        if visit.calls:
            server.queue(self._calling(visit, number, looking[0]))
        server.queue(Reply((*self._thoughts(visit, f"{number}-end"), Text(answer))))
        config = visit.stop.config(server)
        self.session = asked(
            self.app, prompt, way, warnings=self.warnings, session=self.session, settings=config
        )
        self.said += [prompt, *looking, answer]
        assert server.problems == []
        assert server.unused == 0

    def store(self) -> None:
        """Write the session down and go on with what is read."""
        self.session = Session.from_dict(json.loads(json.dumps(self.session.to_dict())))

    def check(self) -> None:
        """Hold the session and everything that was sent to what must be true of a conversation."""
        messages = [_in_chat_style(each) for each in self.session.to_dict()["messages"]]
        check_history(messages)
        ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        assert all(_LEGAL_ID.fullmatch(each) for each in ids), ids
        spoken = [message["content"] for message in messages if message["role"] != "tool"]
        assert spoken == self.said
        assert self.noted == self.payloads
        results = [message["content"] for message in messages if message["role"] == "tool"]
        assert results == [
            f"{name} was asked {json.dumps(payload)}" for name, payload in self.payloads
        ]
        self._check_origins()

    def _check_origins(self) -> None:
        for name, server in self.servers.items():
            assert server.problems == []
            foreign = [signature for signature, maker in self.signed.items() if maker != name]
            for request in server.requests:
                found = [each for each in foreign if each.encode() in request.raw]
                assert found == [], f"{name} was sent signatures of others"

    def _calling(self, visit: Visit, number: int, text: str) -> Reply:
        tools = [("weather", "clock")[each % 2] for each in range(visit.calls)]
        payloads = [{"place": f"place {number}.{each}"} for each in range(visit.calls)]
        self.payloads += zip(tools, payloads, strict=True)
        # A signature on the first call only, as APIs do that sign parts.
        calls = [
            Call(
                tool,
                payload,
                id=visit.id(number, place),
                signature=None if place else self._signature(visit, f"{number}-call"),
            )
            for place, (tool, payload) in enumerate(zip(tools, payloads, strict=True))
        ]
        return Reply((*self._thoughts(visit, str(number)), Text(text), *calls))

    def _thoughts(self, visit: Visit, mark: str) -> Sequence[Part]:
        if not (visit.thinks and visit.stop.shows):
            return ()
        return (Thought(f"Thought {mark}.", self._signature(visit, mark)),)

    def _signature(self, visit: Visit, mark: str) -> str:
        # Of the alphabet and about the length of real ones.
        signature = f"c2lnbmVk{f'{visit.stop.name}:{mark}'.encode().hex()}AA=="
        self.signed[signature] = visit.stop.name
        return signature


async def _awaited(
    app: AgentApplication, prompt: str, way: Way, warnings: list[Any], options: dict[str, Any]
) -> Session:
    try:
        if not way.stream:
            return (await app.arun(prompt, **options)).session
        async with app.astream(prompt, **options) as events:
            warnings += [event async for event in events if event["type"] == "warning"]
            return events.session
    finally:
        await app.core.async_wire.aclose()


def asked(
    app: AgentApplication,
    prompt: str,
    way: Way,
    *,
    warnings: list[Any] | None = None,
    **options: Any,
) -> Session:
    """The session after a run; warnings of streams are added to ``warnings``."""
    found: list[Any] = [] if warnings is None else warnings
    if way.asynchronous:
        return asyncio.run(_awaited(app, prompt, way, found, options))
    if not way.stream:
        return app.run(prompt, **options).session
    with app.stream(prompt, **options) as stream:
        found += [event for event in stream if event["type"] == "warning"]
        return stream.session


@contextmanager
def touring() -> Iterator[Tour]:
    """A tour about to begin: an application with everything that is installed, and all servers."""
    noted: list[tuple[str, Any]] = []
    tools: type[ToolPlugin] = recording_tools(noted)
    config = {"denied_plugins": [*TOOL_BUNDLES, "context"], "tools": {"effects": {"read": "allow"}}}
    with ExitStack() as stack:
        servers = {each.name: stack.enter_context(each.serve()) for each in STOPS}
        app = stack.enter_context(AgentApplication(config, tools=[tools]))
        yield Tour(app, servers, noted, app.create_session())


def _picture(text: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{PIXEL}"
    return {
        "role": "user",
        "content": text,
        "multipartContent": [
            {"type": "text", "content": {"text": text}},
            {"type": "image", "content": {"url": url}},
        ],
    }


def _in_chat_style(message: dict[str, Any]) -> dict[str, Any]:
    """The message with its calls in one shape, whichever API made them."""
    calls = message["metadata"].get("tool_calls") or ()
    return {**message, "tool_calls": [_call(each) for each in calls]} if calls else message


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call.get("call_id") or call["id"], "function": function}
