"""Runs one request through a core, blocking or with asyncio, and gives what came of it.

So that a test can say what must hold once and have it held for both ways of waiting.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_hookspecs.errors import AgentError
from agent_host.core import AgentCore
from agent_host.sessions.session import Session
from openai_like import EXTENSIONS, PROVIDERS

__all__ = [
    "BOTH_WAYS",
    "Host",
    "Outcome",
    "chunk_of",
    "delta",
    "finish",
    "hosted",
    "sse",
    "texts",
]

BOTH_WAYS = pytest.mark.parametrize("way", ["sync", "async"])

#: Long enough for a busy machine, short enough that a hang is a failure.
PATIENCE = 60.0


@dataclass
class Outcome:
    """What a caller saw of one request."""

    events: list[dict[str, Any]] = field(default_factory=list)
    error: Exception | None = None
    session: Session | None = None
    finals: list[Any] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(event["message"]["content"] for event in self.of("partial"))

    @property
    def answer(self) -> dict[str, Any]:
        """The last message of the session, as a plain dict."""
        assert self.session is not None
        last: dict[str, Any] = self.session.to_dict()["messages"][-1]
        return last

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Name and arguments of the calls in the answer."""
        found = self.answer["metadata"].get("tool_calls", [])
        return [(call["function"]["name"], call["function"]["arguments"]) for call in found]

    def comparable(self) -> list[Any]:
        """The events without what differs from run to run, and what is left behind."""
        shown = [
            {**event, "session": event["session"].to_dict()["messages"]}
            if event["type"] == "final"
            else event
            for event in self.events
        ]
        raised = self.error.to_dict() if isinstance(self.error, AgentError) else repr(self.error)
        assert self.session is not None
        return json.loads(json.dumps([shown, raised, self.session.to_dict()["messages"]]))  # type: ignore[no-any-return]

    def check(self) -> Outcome:
        """Hold it to what is true of every stream, and give it back."""
        ends = [kind for kind in self.kinds if kind in ("done", "error")]
        assert len(ends) == 1
        assert self.kinds[-1] == ends[0]
        if self.error is None:
            assert self.kinds.count("final") == 1
            assert self.kinds[-2:] == ["final", "done"]
            assert self.events[-2]["session"] is self.session
        else:
            assert isinstance(self.error, AgentError)
            assert self.events[-1]["error"] == self.error.to_dict()
        return self


class Host:
    """A core with the providers of `openai_like`, and a conversation with one message."""

    def __init__(self, way: str, providers: Iterable[type], extensions: Iterable[type]) -> None:
        self.way = way
        self.core = AgentCore()
        for provider in providers:
            self.core.register_provider(provider)
        for extension in extensions:
            self.core.register_extension(extension)
        self.session = self.core.add_message(self.core.create_session(), "user", "hi")
        self.loop = asyncio.new_event_loop() if way == "async" else None

    def config(self, url: str, config: dict[str, Any]) -> dict[str, Any]:
        return {"provider": "openai_like", "base_url": url, "retries": 0, **config}

    def run(self, work: Any) -> Any:
        assert self.loop is not None

        async def bounded() -> Any:
            return await asyncio.wait_for(work, PATIENCE)

        return self.loop.run_until_complete(bounded())

    def stream(self, url: str, **config: Any) -> Outcome:
        """Read a streamed answer to its end."""
        outcome = Outcome()
        settings = self.config(url, config)
        if self.way == "sync":
            stream = self.core.send_request_stream(self.session, settings)
            try:
                outcome.events += stream  # type: ignore[arg-type]
            except Exception as error:
                outcome.error = error
            outcome.session = stream.session
            return outcome

        async def read() -> None:
            stream = self.core.asend_request_stream(self.session, settings)
            try:
                async for event in stream:
                    outcome.events.append(event)  # type: ignore[arg-type]
            except Exception as error:
                outcome.error = error
            outcome.session = stream.session

        self.run(read())
        return outcome

    def send(self, url: str, **config: Any) -> Outcome:
        """Get an answer in one piece."""
        outcome = Outcome()
        settings = self.config(url, config)
        try:
            if self.way == "sync":
                answer = self.core.send_request(self.session, settings)
            else:
                answer = self.run(self.core.asend_request(self.session, settings))
            outcome.session, outcome.finals = answer
        except Exception as error:
            outcome.error = error
        return outcome

    def close(self) -> None:
        if self.loop is None:
            self.core.close()
        else:
            self.loop.run_until_complete(self.core.aclose())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()


@contextmanager
def hosted(
    way: str, providers: Iterable[type] = PROVIDERS, extensions: Iterable[type] = EXTENSIONS
) -> Iterator[Host]:
    host = Host(way, providers, extensions)
    try:
        yield host
    finally:
        host.close()


# What a server says.


def chunk_of(choice: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    choices = [] if choice is None else [{"index": 0, **choice}]
    return {"id": "c1", "object": "chat.completion.chunk", "choices": choices, **more}


def delta(**body: Any) -> dict[str, Any]:
    return chunk_of({"delta": body, "finish_reason": None})


def finish(reason: str = "stop", **more: Any) -> dict[str, Any]:
    return chunk_of({"delta": {}, "finish_reason": reason}, **more)


def texts(*fragments: str) -> list[dict[str, Any]]:
    """A whole answer of text."""
    return [delta(role="assistant", content=""), *(delta(content=f) for f in fragments), finish()]


def sse(*chunks: dict[str, Any], done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()
