"""Long conversations in a small window, against servers that count, and refuse what is too long.

The servers are strict besides: they refuse a call without its result, a result without its call,
and signatures that they did not make. Five hundred turns of each format take minutes; without
``AGENT_HOST_LONG_TRIALS=1`` there are fewer, and a smaller window.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop
from touring import WAYS, Way, asked

from agent_hookspecs import Effect, ToolPlugin
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication, Session
from agent_host_testing import Answer, Call, Failure, FakeServer, Reply, Text, Thought
from agent_host_testing.formats.gist import gist_of
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
    config = {"denied_plugins": [*TOOL_BUNDLES], "tools": {"max_turns": 100}}
    with (
        model.stop.serve(rest=model.answer, events_per_chunk=None) as server,
        AgentApplication(config, tools=[read_pages], store=":memory:") as app,
    ):
        yield app, server, model.stop.config(server, use_tools=["read_pages"], **settings)


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
            if told.event["type"] == "warning" and told.event["plugin"] == "compaction":
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


#: Each format in one of the four ways, and each way at least once.
each_in_a_way = pytest.mark.parametrize(
    ("stop", "way"), [(stop, WAYS[place % 4]) for place, stop in enumerate(FORMATS)], ids=str
)


@each_in_a_way
def test_a_window_that_nobody_tells_is_learnt_from_the_first_refusal(stop: Stop, way: Way) -> None:
    model = Model(stop, 6_000, counts=False)
    with conversation(model) as (app, server, config):
        if stop.name == "ollama":
            # Its listing says how much the model takes; this one says so too late.
            config["context_window"] = 1_000_000
        session: Any = None
        for number in range(12):
            options = {"session": session} if session else {}
            session = asked(app, f"Question {number}?", way, settings=config, **options)
            session = session.id
        assert server.problems == []
        loaded = app.sessions.load(session)
        check_results(loaded)
        assert 6_000 in loaded.metadata["compaction"]["windows"].values()
    # What the plugin estimates here is less than what the model counts, so it may learn twice.
    assert 1 <= model.refusals <= 3


@each_format
def test_a_session_that_was_shortened_goes_on_with_every_other_provider(stop: Stop) -> None:
    models = {each.name: Model(each, 8_000) for each in FORMATS}
    config = {"denied_plugins": [*TOOL_BUNDLES]}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(model.stop.serve(rest=model.answer))
            for name, model in models.items()
        }
        app = stack.enter_context(AgentApplication(config, tools=[read_pages]))
        session = app.create_session()
        first = stop.config(servers[stop.name], context_window=8_000)
        while not session.metadata.get("compaction"):
            session = asked(app, "On?", WAYS[0], session=session, settings=first)
        for each in FORMATS:
            settings = each.config(servers[each.name], context_window=8_000)
            session = asked(app, f"And {each.name}?", WAYS[1], session=session, settings=settings)
        check_results(session)
        assert [server.problems for server in servers.values()] == [[]] * len(servers)
        assert sum(model.refusals for model in models.values()) == 0


def failing_summaries(model: Model) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        if SUMMARISING in request.raw:
            return Failure("invalid_request", "no summaries today")
        return model.answer(request)

    return answer


@each_format
def test_a_summary_that_fails_is_told_and_the_conversation_goes_on(stop: Stop) -> None:
    model = Model(stop, 8_000)
    warnings: list[Any] = []
    with (
        stop.serve(rest=failing_summaries(model)) as server,
        AgentApplication({"denied_plugins": [*TOOL_BUNDLES]}, tools=[read_pages]) as app,
    ):
        config = stop.config(server, context_window=8_000)
        session = app.create_session()
        while model.turns < 36:
            session = asked(
                app, "And?", WAYS[0], warnings=warnings, session=session, settings=config
            )
        assert server.problems == []
    assert model.refusals == 0
    assert any("no summaries today" in each["message"] for each in warnings)
    check_results(session)


def test_another_model_summarises_if_one_is_named() -> None:
    stop, model = FORMATS[0], Model(FORMATS[0], 8_000)
    asked_for: list[tuple[str, Any]] = []

    def answer(request: Request) -> Answer:
        what = "summary" if SUMMARISING in request.raw else "turn"
        asked_for.append((what, request.body["model"]))
        return model.answer(request)

    with (
        stop.serve(rest=answer) as server,
        AgentApplication({"denied_plugins": [*TOOL_BUNDLES]}, tools=[read_pages]) as app,
    ):
        described = stop.config(server, context_window=8_000, summary_model=stop.bare)
        described.pop("provider")
        config = {"provider": stop.provider, **described}
        core = app.core
        session = core.create_session()
        for number in range(12):
            text = f"Question {number}. " + "Why is that so? " * 200
            session, _ = core.send_request(core.add_message(session, "user", text), config)
    assert ("summary", stop.bare) in asked_for
    assert {model for what, model in asked_for if what == "turn"} == {stop.model}


def test_what_a_summary_uses_is_counted_with_the_run() -> None:
    model = Model(FORMATS[0], 8_000)
    with conversation(model, context_window=8_000) as (app, server, config):
        session = app.create_session()
        used = before = 0
        while not model.summaries:
            before = sum(len(each.raw) * 10 // 37 for each in server.requests)
            answer = app.run("On?", session=session, settings=config)
            session, used = answer.session, answer.usage["input"]
        sizes = [len(each.raw) * 10 // 37 for each in server.requests]
        assert used == sum(sizes) - before


def test_a_person_compacts_a_session_by_wish() -> None:
    model = Model(FORMATS[2], 100_000)
    with conversation(model) as (app, server, config):
        session = app.run("Paint the door red.", settings=config).session.id
        app.run("And the window?", session=session, settings=config)
        options: dict[str, Any] = {"settings": config}
        wish = {"instructions": "keep the colours"}
        _, result = app.execute_session_action(session, "compact_native_history", wish, **options)
        assert result["message"].startswith("compacted: about ")
        assert b"The user asks of this summary: keep the colours" in server.requests[-1].raw
        app.run("Go on.", session=session, settings=config)
        sent = model.histories[-1]["messages"]
        assert "Summary 1: much was read." in sent[0]
        assert "Paint the door red." not in "".join(sent)
        assert app.sessions.load(session).messages[0]["content"] == "Paint the door red."
        assert server.problems == []


def many_tools() -> type[ToolPlugin]:
    """Three hundred tools, as servers of tools have them."""
    names = [
        f"mcp_{each}__{verb}_thing_{n}"
        for each in ("jira", "github", "maps")
        for verb in ("make", "find")
        for n in range(50)
    ]
    properties = {
        name: {"type": "string", "description": f"The {name} of what is meant, in plain words."}
        for name in ("title", "owner", "place", "colour")
    }

    class Many(ToolPlugin):
        name = "many"
        effects: Mapping[str, Effect] = MappingProxyType(dict.fromkeys(names, "read"))

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [
                {
                    "name": name,
                    "description": f"Does what {name} says. It needs all that it is asked for.",
                    "parameters": {
                        "type": "object",
                        "properties": properties,
                        "required": ["title"],
                    },
                }
                for name in names
            ]

        def execute_tool(self, tool_name: str, payload: dict[str, Any]) -> str:
            return f"{tool_name}: {payload['title']}"

    return Many


@each_in_a_way
def test_three_hundred_tools_are_names_until_they_are_found(stop: Stop, way: Way) -> None:
    wanted, other = "mcp_maps__find_thing_7", "mcp_jira__make_thing_3"
    answers = [
        Reply((Call("find_tools", {"query": wanted, "limit": 1}, id="c1"),)),
        Reply((Call(wanted, {"title": "x"}, id="c2"),)),
        # It has seen no parameters of this one, and guesses wrong, then right.
        Reply((Call(other, {"name": "y"}, id="c3"),)),
        Reply((Call(other, {"title": "y"}, id="c4"),)),
        Reply((Text("Done."),)),
    ]
    config = {"denied_plugins": [*TOOL_BUNDLES], "tools": {"effects": {"read": "allow"}}}
    with (
        stop.serve() as server,
        AgentApplication(config, tools=[many_tools()]) as app,
    ):
        server.queue(*answers)
        settings = stop.config(
            server, effort=None, use_tools=["find_tools", "mcp_*"], tool_search="host"
        )
        session = asked(app, "Go.", way, session=app.create_session(), settings=settings)
        assert server.problems == []
        requests = [
            each for each in server.requests if each.method == "POST" and b"Go." in each.raw
        ]
    results = [m["content"] for m in session.messages if m["role"] == "tool"]
    assert results[1::2] == [f"{wanted}: x", f"{other}: y"]
    assert results[2].startswith(f"Invalid arguments for tool '{other}'")
    declared = [gist_of(stop.wire, each.body).offers for each in requests]
    assert [[offer.name for offer in each] for each in declared] == [
        ["find_tools"],
        ["find_tools", wanted],
        ["find_tools", wanted],
        ["find_tools", wanted, other],
        ["find_tools", wanted, other],
    ]
    # By a rough count of its own: everything in the first request together.
    assert len(requests[0].raw) // 4 <= 2_000


def test_compact_at_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, model = FORMATS[1], Model(FORMATS[1], 100_000)
    with stop.serve(rest=model.answer) as server:
        described = {key: value for key, value in stop.config(server).items() if key != "provider"}
        file = tmp_path / "config.json"
        agents = {"default": {"provider": stop.provider, **described}}
        file.write_text(json.dumps({"agents": agents, "denied_plugins": [*TOOL_BUNDLES]}))
        lines = "Paint the door red.\nAnd the window?\n/compact keep the colours\nGo on.\n/exit\n"
        done = subprocess.run(
            [sys.executable, "-m", "agent_host", "chat", "--config", str(file)],
            input=lines,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "compacted: about " in done.stdout
        assert model.summaries == 1
        assert "Summary 1: much was read." in model.histories[-1]["messages"][0]
        assert server.problems == []
