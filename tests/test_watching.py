"""A program that watches its runs: listeners, feeds, and the story in the log."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

from agent_hookspecs.authoring import tool
from agent_host import AgentApplication, ConfigError, RunEvent
from agent_host.application import watching
from scripted import app_with, call, calling, saying, scripted


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def make_app(**options: Any) -> AgentApplication:
    turns = [calling(call("add", '{"a": 1, "b": 2}'), prompt_tokens=3), saying("Three.")]
    config = {"agents": {"default": {"provider": "scripted"}, "sums": {"provider": "scripted"}}}
    return app_with(scripted(turns), add, config=config, **options)


def test_a_listener_is_shown_every_event_of_every_run_until_it_is_taken_away() -> None:
    seen: list[RunEvent] = []
    with app_with(scripted([saying("One."), saying("Two."), saying("Three.")])) as app:
        stop = app.on_event(seen.append)
        streamed = list(app.stream("go"))
        assert [each.event for each in seen] == streamed
        app.run("go")
        stop()
        app.run("go")
    runs = list(dict.fromkeys(each.run for each in seen))
    assert len(runs) == 2
    assert sum(each.event["type"] == "done" for each in seen) == 2


def test_a_listener_knows_the_agent_and_the_stored_run(tmp_path: Any) -> None:
    seen: list[RunEvent] = []
    with make_app(store=f"sqlite://{tmp_path}/s.db") as app:
        app.on_event(seen.append)
        answer = app.run("go", agent="sums")
    assert {(each.run, each.agent) for each in seen} == {(answer.run, "sums")}


def test_what_cannot_listen_is_refused_at_once() -> None:
    wrong: Any = "show"
    with make_app() as app, pytest.raises(ConfigError, match="not a function"):
        app.on_event(wrong)


def test_a_listener_that_fails_is_logged_and_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(event: RunEvent) -> None:
        raise OSError("no room")

    with make_app() as app:
        app.on_event(fail)
        assert app.run("go").text == "Three."
    assert "listener_failed" in caplog.text


def test_a_feed_is_read_in_another_thread_and_ends_with_the_application() -> None:
    kinds: list[str] = []
    with make_app() as app:
        feed = app.events()
        reader = threading.Thread(target=lambda: kinds.extend(e.event["type"] for e in feed))
        reader.start()
        app.run("go")
    reader.join(10)
    assert kinds[0] == "request_started"
    assert kinds[-1] == "done"
    assert "tool_result" in kinds


def test_a_feed_is_read_in_an_event_loop() -> None:
    async def watch() -> list[str]:
        async with make_app() as app:
            with app.events() as feed:
                running = asyncio.ensure_future(app.arun("go"))
                kinds: list[str] = []
                async for each in feed:
                    kinds.append(each.event["type"])
                    if kinds[-1] == "done":
                        break
                await running
        return kinds

    assert asyncio.run(watch())[0] == "request_started"


def test_a_feed_that_nobody_reads_loses_the_oldest_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "MAX_WAITING", 3)
    with make_app() as app, app.events() as feed:
        app.run("go")
        assert feed.lost > 0
        feed.close()
        assert [each.event["type"] for each in feed][-1] == "done"
    assert caplog.text.count("events_lost") == 1


def test_the_log_tells_the_story_of_a_run_in_one_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "agent_host.application.story"), make_app() as app:
        app.run("go", agent="sums", model="m")
    story = [
        re.sub(r"(run|seconds)=\S+ ?", "", each.getMessage()).strip()
        for each in caplog.records
        if each.name == "agent_host.application.story"
    ]
    assert story == [
        "run_began agent=sums provider=scripted model=m",
        "tool_called tool=add effect=read decision=allowed: effect read failed=False",
        "turn_ended turn=1 finish=tool_calls",
        "turn_ended turn=2 finish=stop",
        "run_ended finish=stop",
    ]


def test_the_log_takes_no_decision_about_an_earlier_call_of_the_same_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = [
        *(calling(call("add", '{"a": 1, "b": 2}')), saying("Three.")),
        *(calling(call("add", '{"a": "one"}')), saying("Well.")),
    ]
    with (
        caplog.at_level("INFO", "agent_host.application.story"),
        app_with(scripted(turns), add) as app,
    ):
        app.run("go")
        app.run("go")
    calls = [each.getMessage() for each in caplog.records if "tool_called" in each.getMessage()]
    assert "decision=allowed: effect read" in calls[0]
    assert "effect=None decision=not run" in calls[1]


def test_the_log_tells_of_a_run_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"), AgentApplication({}) as app, pytest.raises(Exception):  # noqa: B017, PT011
        app.run("/fail auth", provider="echo")
    assert "run_ended" in caplog.text
    assert "error=AuthenticationError" in caplog.text
