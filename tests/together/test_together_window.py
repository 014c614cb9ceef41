"""Long conversations in a small window, against servers that count, and refuse what is too long.

The servers are strict besides: they refuse a call without its result, a result without its call,
and signatures that they did not make. Five hundred turns of each format take minutes; without
``AGENT_HOST_LONG_TRIALS=1`` there are fewer, and a smaller window.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stops import STOPS, Stop
from touring import WAYS, asked

from agent_hookspecs.authoring import tool
from agent_host import AgentApplication, Session
from agent_host_testing import Answer, Call, Failure, FakeServer, Reply, Text, Thought
from agent_host_testing.script import Part, Tokens
from agent_host_testing.wire import Request

IS_LONG = os.environ.get("AGENT_HOST_LONG_TRIALS", "") not in ("", "0")
TURNS, WINDOW = (500, 32_000) if IS_LONG else (50, 8_000)
FORMATS = [
    stop
    for stop in STOPS
    if stop.name in ("openai-responses", "openai-chat", "anthropic", "google", "ollama")
]
each_format = pytest.mark.parametrize("stop", FORMATS, ids=lambda each: each.name)
SUMMARISING = b"You shorten the history"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))


@tool(effect="read")
def read_pages(pages: int, book: int) -> str:
    """Read some pages of a book."""
    return (
        f"{pages} pages of {book}: " + "It was a dark and stormy night, and nobody slept. " * pages
    )


class Model:
    """A model with a window: it thinks, calls, answers, and refuses what does not fit."""

    def __init__(self, stop: Stop, window: int, *, counts: bool = True) -> None:
        self.stop, self.window, self.counts = stop, window, counts
        self.random = random.Random(stop.name)
        self.turns = self.refusals = self.summaries = self.calls = 0
        self.is_calling = False
        self.histories: list[Any] = []
        self.largest = 0

    def answer(self, request: Request) -> Answer:
        # Another count than the plugin's, and a higher one.
        size = len(request.raw) * 10 // 37
        if size > self.window:
            self.refusals += 1
            text = f"{size} tokens are more than the maximum context length of {self.window} tokens"
            return Failure("context_length", text)
        tokens = Tokens(input=size, output=40) if self.counts else None
        if SUMMARISING in request.raw:
            self.summaries += 1
            return Reply((Text(f"Summary {self.summaries}: much was read."),), tokens=tokens)
        self.largest = max(self.largest, size)
        self.histories.append(history_of(request))
        self.turns += 1
        self.is_calling = not self.is_calling or self.random.random() < 0.6
        parts: list[Part] = []
        if self.stop.shows:
            parts.append(Thought(f"Thought {self.turns}.", self._signature("thought")))
        if not self.is_calling:
            return Reply((*parts, Text(f"Answer {self.turns}. " * 20)), tokens=tokens)
        count = self.random.choice((1, 1, 2, 3))
        calls = [self._call(place) for place in range(count)]
        return Reply((*parts, Text(f"Let me look, {self.turns}."), *calls), tokens=tokens)

    def _call(self, place: int) -> Call:
        self.calls += 1
        pages = self.random.choice((1, 5, 20, 20, 60))
        signature = None if place else self._signature("call")
        return Call(
            "read_pages",
            {"pages": pages, "book": self.calls},
            id=f"call_{self.calls}",
            signature=signature,
        )

    def _signature(self, what: str) -> str:
        return f"c2lnbmVk{f'{what}:{self.turns}'.encode().hex()}AA=="


def history_of(request: Request) -> dict[str, Any]:
    """What a request says beside its settings, each message as it was written."""
    body = request.body
    messages = body.get("messages") or body.get("contents") or body.get("input")
    others = {
        key: body.get(key) for key in ("system", "tools", "systemInstruction", "instructions")
    }
    return {"messages": [json.dumps(each) for each in messages], "others": json.dumps(others)}


@contextmanager
def conversation(
    model: Model, **settings: Any
) -> Iterator[tuple[AgentApplication, FakeServer, dict[str, Any]]]:
    config = {"denied_plugins": ["files"], "tools": {"max_turns": 100}}
    with (
        model.stop.serve(rest=model.answer, events_per_chunk=None) as server,
        AgentApplication(config, tools=[read_pages], store=":memory:") as app,
    ):
        yield app, server, model.stop.config(server, **settings)


def check_results(session: Session) -> None:
    calls = [
        call.get("call_id") or call["id"]
        for message in session.messages
        for call in message["metadata"].get("tool_calls") or ()
    ]
    results = [m["metadata"]["tool_call_id"] for m in session.messages if m["role"] == "tool"]
    assert calls == results


@each_format
def test_a_long_conversation_stays_inside_a_small_window(
    stop: Stop, record_property: Callable[[str, object], None]
) -> None:
    model = Model(stop, WINDOW)
    marks: list[int] = []
    warnings: list[Any] = []
    with conversation(model, context_window=WINDOW) as (app, server, config):

        def note(told: Any) -> None:
            if told.event["type"] == "warning":
                warnings.append(told.event)
                marks.append(len(model.histories))

        app.on_event(note)
        session: Any = None
        number = 0
        while model.turns < TURNS:
            number += 1
            options = {"session": session} if session else {}
            session = asked(
                app, f"Question {number}?", WAYS[number % 4], settings=config, **options
            )
        assert server.problems == []
        assert model.refusals == 0
        check_results(session)
        spoken = [m["content"] for m in session.messages if m["role"] == "user"]
        assert spoken == [f"Question {each + 1}?" for each in range(number)]
        assert app.sessions.load(session.id) == session
    assert {each["plugin"] for each in warnings} == {"compaction"}
    assert [each for each in warnings if not each["message"].startswith("compacted: ")] == []
    assert model.summaries >= 1
    assert len(marks) < TURNS / 4
    for place, (before, after) in enumerate(
        zip(model.histories, model.histories[1:], strict=False)
    ):
        if place + 1 not in marks:
            length = len(before["messages"])
            assert after["messages"][:length] == before["messages"], f"request {place + 1}"
            assert after["others"] == before["others"]
    # What a long trial has measured, for whoever reads its report.
    record_property(
        "soak",
        f"{stop.name}: {model.turns} turns, {number} questions, {len(marks)} compactions, "
        f"{model.summaries} summaries, largest request {model.largest} of {WINDOW}",
    )
