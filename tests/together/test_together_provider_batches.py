"""Batches of the providers' own: the same results as line by line, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from stops import TOOL_BUNDLES, Stop, stop

from agent_host import AgentApplication
from agent_host.batch import BatchError
from agent_host_testing import Call, Failure, FakeServer, Reply, Text, Tokens
from agent_host_testing.batches import BatchDesk, LineAnswer
from agent_host_testing.script import Answer
from agent_host_testing.wire import Request
from batching import read_results, write_lines

NAMES = ("openai-responses", "openai-chat", "anthropic", "google")
#: Waits for nothing.
FAST = {"poll_seconds": 0.01}
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def answer(request: Request) -> Answer:
    """What the model says, by what it is asked."""
    said = request.raw.decode()
    if "refuse" in said:
        return Failure("invalid_request", "not this one")
    if "weather" in said and "12 degrees" not in said:
        return Reply((Call("weather", {}),), tokens=Tokens(1000, 1000))
    text = '{"n": 5}' if "number" in said else f"about {said.count('word')} words"
    return Reply((Text(text),), tokens=Tokens(1000, 1000))


@pytest.fixture(params=NAMES)
def who(request: pytest.FixtureRequest) -> Stop:
    return stop(request.param)


@pytest.fixture
def server(who: Stop) -> Iterator[FakeServer]:
    with who.serve(rest=answer) as made:
        yield made
        assert made.problems == []


def config_for(who: Stop, server: FakeServer, **more: Any) -> dict[str, Any]:
    asked = who.config(server, model=who.bare)
    settings = {key: asked[key] for key in asked if key not in who.settings}
    return {
        "agents": {"default": {"provider": "main", "tools": []}},
        "providers": {"main": settings},
        "prices": {"main/*": {"input": 1, "output": 3}},
        "denied_plugins": [*TOOL_BUNDLES, "context"],
        **more,
    }


def open_app(who: Stop, server: FakeServer, **more: Any) -> AgentApplication:
    return AgentApplication(config_for(who, server, **more), store=False)


def desk_of(server: FakeServer) -> BatchDesk:
    assert server.batches is not None
    return server.batches


def asked_in_batches(server: FakeServer) -> Counter[str]:
    """How often each line was submitted, by its number and digest."""
    return Counter(id.partition("_")[2] for batch in desk_of(server).kept for id in batch.lines)


LINES: list[Any] = [
    "a word",
    {"id": "b", "prompt": "two word word", "system": "Be brief.", "metadata": {"mine": 1}},
    {"prompt": "refuse"},
    {"prompt": "a number", "output_schema": SCHEMA},
    {"nonsense": 1},
]


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("batch", "cost", "usage", "error")
    error = {key: result.get("error", {}).get(key) for key in ("type", "message", "status")}
    return {**{k: v for k, v in result.items() if k not in left_out}, "error": error}


def test_results_are_those_of_the_local_engine_at_another_price(
    who: Stop, server: FakeServer, tmp_path: Path
) -> None:
    with open_app(who, server) as app:
        direct = app.batch(LINES, ordered=True)
        local = [*direct]
        batch = app.batch(
            LINES, out=tmp_path / "o", ordered=True, engine="provider", engine_options=FAST
        )
        results = [*batch]
    assert [*map(plain, results)] == [*map(plain, local)]
    assert [result.get("text") for result in results] == [
        "about 1 words",
        "about 2 words",
        None,
        '{"n": 5}',
        None,
    ]
    assert results[3]["data"] == {"n": 5}
    assert batch.progress.cost * 2 == direct.progress.cost == Decimal("0.012")
    (made,) = desk_of(server).kept
    assert {each.get("batch") for each in results} == {made.id, None}


def test_what_follows_on_a_first_answer_is_asked_directly(
    who: Stop, server: FakeServer, tmp_path: Path
) -> None:
    def weather() -> str:
        """The weather."""
        return "12 degrees"

    config = config_for(who, server, agents={"default": {"provider": "main"}})
    with AgentApplication(
        config, store=False, tools=[weather], approve=lambda asked: "once"
    ) as app:
        options: dict[str, Any] = {"engine": "provider", "engine_options": FAST}
        (result,) = app.batch(["the weather"], out=tmp_path / "o", **options)
    assert result["status"] == "succeeded", result
    assert result["text"].startswith("about")
    assert "sent 1 more request for this line at the usual price" in result["warnings"]
    # A thousand tokens in and out: at half the price, and at the whole.
    assert Decimal(result["cost"] or 0) == Decimal("0.006")


def test_lines_that_are_left_say_why_and_are_asked_again_alone(
    who: Stop, server: FakeServer, tmp_path: Path
) -> None:
    out, desk = tmp_path / "o", desk_of(server)
    lines = [f"word {n}" for n in range(3)]
    options: dict[str, Any] = {"out": out, "engine": "provider"}
    with open_app(who, server) as app:
        submitted = app.batch(lines, engine_options={"wait": False}, **options)
        assert (submitted.run().done, submitted.progress.submitted) == (0, 3)
        desk.end(desk.kept[0], "expired", answered=1)
        progress = app.batch(lines, engine_options=FAST, **options).run()
        assert (progress.done, progress.failed) == (3, 2)
        errors = [each["error"] for each in read_results(out) if each["status"] == "failed"]
        assert all("expired" in each["message"] for each in errors)
        assert all("--retry-failed" in each["hint"] for each in errors)
        # Nothing is asked again that nobody wants.
        assert app.batch(lines, engine_options=FAST, **options).run().resumed == 3
        progress = app.batch(lines, engine_options=FAST, retry_failed=True, **options).run()
        assert (progress.done, progress.failed) == (3, 0)
    assert [len(each.lines) for each in desk.kept] == [3, 2]
    assert sorted(each["line"] for each in read_results(out)) == [1, 2, 3]


def test_a_batch_is_cancelled_and_keeps_what_was_answered(
    who: Stop, server: FakeServer, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider"}
    desk_of(server).looks = 9
    with open_app(who, server) as app:
        app.batch(["word"], engine_options={"wait": False}, **options).run()
        cancelling = {**FAST, "cancel": True}
        (result,) = app.batch(["word", "another"], engine_options=cancelling, **options)
    assert "cancel" in result["error"]["message"]
    assert len(desk_of(server).kept) == 1


def test_a_batch_that_was_left_early_is_gone_on_with(
    who: Stop, server: FakeServer, tmp_path: Path
) -> None:
    out, lines = tmp_path / "o", [f"word {n}" for n in range(20)]
    options: dict[str, Any] = {"out": out, "engine": "provider", "engine_options": FAST}
    with open_app(who, server) as app:
        first = app.batch(lines, concurrency=1, **options)
        next(iter(first))
        first.close()
        before = len(read_results(out))
        assert app.batch(lines, **options).run().resumed == before < 20
    assert sorted(each["line"] for each in read_results(out)) == list(range(1, 21))
    assert len(desk_of(server).kept) == 1


def test_a_reply_that_is_lost_does_not_make_a_second_batch(who: Stop, tmp_path: Path) -> None:
    lost: list[str] = []

    def lose(line: str) -> None:
        if line.startswith("POST") and "atch" in line and not lost:
            lost.append(line)
            # The connection ends before the answer is sent.
            raise ConnectionResetError

    with who.serve(rest=answer, log=lose) as server, open_app(who, server) as app:
        options: dict[str, Any] = {"engine": "provider", "engine_options": FAST}
        assert app.batch(["word", "two"], out=tmp_path / "o", **options).run().failed == 0
        assert len(lost) == len(desk_of(server).kept) == 1


def test_a_batch_of_somebody_else_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    who, lost = stop("anthropic"), [False]
    api: FakeServer

    def lose(line: str) -> None:
        if lost[0]:
            lost[0] = False
            # As if it had never arrived.
            desk_of(api).kept.pop()
            raise ConnectionResetError

    with who.serve(rest=answer, log=lose) as api, open_app(who, api) as app:
        options: dict[str, Any] = {"engine": "provider", "engine_options": FAST}
        waiting = {**options, "engine_options": {"wait": False}}
        app.batch(["another word"], out=tmp_path / "other", **waiting).run()
        lost[0] = True
        (result,) = app.batch(["word word"], out=tmp_path / "o", **options)
        assert result["text"] == "about 2 words"
        assert [len(each.lines) for each in desk_of(api).kept] == [1, 1]
        (other,) = app.batch(["another word"], out=tmp_path / "other", **options)
        assert other["text"] == "about 1 words"


def begin(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "AGENT_HOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "agent_host", "batch", "in.jsonl", "--out", "o"]
    return subprocess.Popen(
        [*command, "--config", "c.json", "--engine", "provider", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("openai-responses", ["POST /v1/batches", "GET /v1/files/"]),
        ("anthropic", ["POST /v1/messages/batches", "/results"]),
    ],
)
def test_a_process_that_is_killed_at_any_moment_pays_for_nothing_twice(
    name: str, moments: list[str], tmp_path: Path
) -> None:
    who, kill_at = stop(name), iter([*moments, ""])
    moment, reached, may_answer = [next(kill_at)], threading.Event(), threading.Event()

    def hold(line: str) -> None:
        # The request was carried out, and its answer has not left.
        if moment[0] and moment[0] in line:
            reached.set()
            may_answer.wait(30)

    with who.serve(rest=answer, log=hold) as server:
        lines = [{"id": f"i{n}", "prompt": f"word {n}"} for n in range(5)]
        write_lines(tmp_path / "in.jsonl", *lines)
        (tmp_path / "c.json").write_text(json.dumps(config_for(who, server)))
        words = ("--engine-set", "batch_lines=2", "--engine-set", "poll_seconds=0.05")
        for _ in moments:
            with begin(tmp_path, *words) as process:
                assert reached.wait(60), process.communicate()
                process.send_signal(signal.SIGKILL)
            moment[0] = next(kill_at)
            may_answer.set()
            reached.clear()
            may_answer.clear()
        with begin(tmp_path, *words) as process:
            _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told.decode()
        assert [*asked_in_batches(server).values()] == [1] * 5
        assert server.problems == []
    assert who.key not in (tmp_path / "o.batches").read_text()
    results = read_results(tmp_path / "o")
    assert sorted(each["id"] for each in results) == [f"i{n}" for n in range(5)]
    assert {each["text"] for each in results} == {"about 1 words"}


# The rest is the same for all of them -------------------------------------------------------------


@pytest.fixture
def one() -> Stop:
    return stop("anthropic")


def test_lines_are_in_batches_of_their_model_and_of_no_more_than_was_said(tmp_path: Path) -> None:
    who = stop("openai-chat")
    lines = [{"prompt": f"word {n}", "model": who.model if n == 4 else who.bare} for n in range(6)]
    with who.serve(rest=answer) as server, open_app(who, server) as app:
        settings = {**FAST, "batch_lines": 2}
        batch = app.batch(lines, out=tmp_path / "o", engine="provider", engine_options=settings)
        assert batch.run().failed == 0
        assert sorted(len(each.lines) for each in desk_of(server).kept) == [1, 1, 2, 2]


def test_a_batch_that_fails_as_a_whole_is_an_error_of_each_line(tmp_path: Path) -> None:
    who = stop("openai-chat")
    with who.serve(rest=answer) as server, open_app(who, server) as app:
        options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider"}
        app.batch(["a", "b"], engine_options={"wait": False}, **options).run()
        desk_of(server).end(desk_of(server).kept[0], "failed", "Enqueued token limit reached")
        results = [*app.batch(["a", "b"], engine_options=FAST, **options)]
    assert all("Enqueued token limit" in each["error"]["message"] for each in results)


def test_a_result_that_cannot_be_read_is_an_error_of_its_line_alone(
    one: Stop, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider", "ordered": True}
    with one.serve(rest=answer) as server, open_app(one, server) as app:
        app.batch(["a word", "b"], engine_options={"wait": False}, **options).run()
        (made,) = desk_of(server).kept
        made.answers[[*made.lines][1]] = LineAnswer(500, "no object")
        batch = app.batch(["a word", "b"], engine_options=FAST, **options)
        first, second = batch
    assert first["text"] == "about 1 words"
    assert "nothing was said of this line" in second["error"]["message"]
    assert any("cannot be read" in warning for warning in batch.warnings)


def test_results_behind_a_line_that_waits_are_given_too(one: Stop, tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider", "ordered": True}
    no_wait = {"wait": False, "batch_lines": 1}
    with one.serve(rest=answer) as server, open_app(one, server) as app:
        desk_of(server).looks = 9
        app.batch(["a", "b", "c"], engine_options=no_wait, **options).run()
        desk_of(server).end(desk_of(server).kept[1], "expired", answered=1)
        batch = app.batch(["a", "b", "c"], engine_options=no_wait, **options)
        assert [result["line"] for result in batch] == [2]
        assert (batch.progress.done, batch.progress.submitted) == (1, 2)


def test_other_settings_do_not_take_what_was_submitted(one: Stop, tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider"}
    with one.serve(rest=answer) as server, open_app(one, server) as app:
        app.batch(["a"], engine_options={"wait": False}, **options).run()
        (made,) = desk_of(server).kept
        with pytest.raises(BatchError, match=f"other settings .*{made.id}"):
            app.batch(["a"], engine_options=FAST, system="Be brief.", **options).run()
        anew = app.batch(["a"], engine_options=FAST, system="Be brief.", fresh=True, **options)
        assert anew.run().done == 1
        assert any(made.id in warning for warning in anew.warnings)
        assert len(desk_of(server).kept) == 2


def test_a_server_that_is_away_for_a_while_is_waited_for(one: Stop, tmp_path: Path) -> None:
    left = [3]

    def fail(line: str) -> None:
        if "GET" in line and left[0]:
            left[0] -= 1
            raise ConnectionResetError

    with one.serve(rest=answer, log=fail) as server, open_app(one, server) as app:
        batch = app.batch(["a"], out=tmp_path / "o", engine="provider", engine_options=FAST)
        assert batch.run().failed == 0
        assert any("could not be looked at" in warning for warning in batch.warnings)


def test_a_refusal_of_the_key_ends_it_and_is_no_batch(one: Stop, tmp_path: Path) -> None:
    with one.serve(rest=answer) as server:
        wrong = config_for(one, server)
        wrong["providers"]["main"]["api_key"] = "another"
        options: dict[str, Any] = {"out": tmp_path / "o", "engine": "provider"}
        with (
            AgentApplication(wrong, store=False) as app,
            pytest.raises(Exception, match="HTTP 401"),
        ):
            app.batch(["a"], engine_options=FAST, **options).run()
        with open_app(one, server) as app:
            assert app.batch(["a"], engine_options=FAST, **options).run().done == 1
        assert len(desk_of(server).kept) == 1


def test_a_server_without_batches_is_told_with_the_way_out(one: Stop, tmp_path: Path) -> None:
    with one.serve(rest=answer) as server, open_app(one, server) as app:
        server.batches = None
        with pytest.raises(BatchError, match="takes no batches at this address") as caught:
            app.batch(["a"], out=tmp_path / "o", engine="provider").run()
        assert "--engine local" in caught.value.hint


def test_the_command_says_what_waits_and_how_to_come_back(one: Stop, tmp_path: Path) -> None:
    with one.serve(rest=answer) as server:
        write_lines(tmp_path / "in.jsonl", {"prompt": "word"})
        (tmp_path / "c.json").write_text(json.dumps(config_for(one, server)))
        desk_of(server).looks = 1000
        with begin(tmp_path) as process:
            assert process.stderr is not None
            first = process.stderr.readline().decode()
            process.send_signal(signal.SIGINT)
            _, told = process.communicate()
        (made,) = desk_of(server).kept
        said = " ".join(told.decode().split())
        assert process.returncode == 130
        assert first == f"1 line waits at anthropic in {made.id}\n"
        assert "the same command fetches them" in said
        assert "cancel=true" in said
        with begin(tmp_path, "--json", "--engine-set", "wait=false") as process:
            out, _ = process.communicate()
        events = [json.loads(line) for line in out.splitlines()]
        assert process.returncode == 3
        assert {"batch_started", "batch_waiting", "done"} == {each["type"] for each in events}
        waiting = {"provider": "anthropic", "id": made.id, "lines": 1, "answered": 0}
        assert events[-1]["progress"]["waiting"] == [waiting]
