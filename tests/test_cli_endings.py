"""How `agent-host run` ends when it is told to, whatever it does: by signals, pipes and faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from both_ways import delta, sse
from loopback import Peer, Request, serve
from making import full, write_package
from terminals import open_terminal

TOOLS = '''
import time
from pathlib import Path

from agent_hookspecs.authoring import tool, tools


@tool(effect="write")
def wait(name: str = "begun") -> str:
    """Wait for ever."""
    Path(name).write_text("x")
    time.sleep(600)
    return "never"


@tool(effect="write")
def refuse(name: str = "begun") -> str:
    """Wait for ever, whatever happens."""
    while True:
        try:
            Path(name).write_text("x")
            time.sleep(600)
        except BaseException:
            pass


Plugin = tools(wait, refuse, name="bench")
'''
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
signals = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    described = full("bench_pkg", "tool", "bench", tools={"wait": "write", "refuse": "write"})
    write_package(tmp_path / "plugins", "bench_pkg", descriptor=described, source=TOOLS)
    provider = Path(__file__).with_name("openai_like.py").read_text("utf-8")
    write_package(
        tmp_path / "plugins",
        "talk_pkg",
        descriptor=full("talk_pkg", "provider", "openai_like"),
        source=f"{provider}\n\nPlugin = OpenAiLike\n",
    )
    return tmp_path


def write_config(place: Path, url: str = "", *, provider: str = "echo", **tools: Any) -> None:
    config = {
        "plugins": ["path:plugins"],
        "allowed_plugins": ["echo", "bench_pkg", "talk_pkg"],
        "providers": {"main": {"provider": provider, **({"base_url": url} if url else {})}},
        "tools": tools,
    }
    (place / "c.json").write_text(json.dumps(config), encoding="utf-8")


@contextmanager
def running(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env={
            **os.environ,
            "PYTHONUTF8": "1",
            "AGENT_HOST_HOME": str(place / "home"),
        },
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came so far"
        threading.Event().wait(0.02)


def end_by(process: subprocess.Popen[str], number: int) -> tuple[list[dict[str, Any]], str]:
    """The events that were printed, and standard error."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    # One that was too slow to notice dies of the signal, of which shells say the same.
    assert process.returncode in (SIGNALS[signal.Signals(number)], -number), err
    return [json.loads(line) for line in out.splitlines()], err


def ends_interrupted(events: list[dict[str, Any]]) -> None:
    kinds = [event["type"] for event in events]
    assert kinds[-1] == "error"
    assert not {"done", "error"} & set(kinds[:-1])
    assert events[-1]["error"]["type"] == "Interrupted"


def say_something(peer: Peer, request: Request) -> None:
    peer.begin()
    peer.chunk(sse(delta(content="A beginning"), done=False))
    peer.stall()


def say_nothing(peer: Peer, request: Request) -> None:
    peer.stall()


def put_off(peer: Peer, request: Request) -> None:
    peer.answer(b"{}", status="503 Busy", headers="Retry-After: 50\r\n")


@signals
@pytest.mark.parametrize("play", [say_something, say_nothing, put_off])
def test_a_request_that_is_interrupted_ends_with_an_error_event(
    place: Path, number: int, play: Callable[[Peer, Request], None]
) -> None:
    with serve(play) as server:
        write_config(place, server.url, provider="openai_like")
        with running(place, "run", "--config", "c.json", "--json", "x") as process:
            wait_until(lambda: bool(server.requests))
            events, _ = end_by(process, number)
    ends_interrupted(events)


CALLS = {
    "alone": '/call wait {"name": "begun"}',
    "at once": '/call wait {"name": "begun"}\n/call wait {"name": "begun too"}',
}


@signals
@pytest.mark.parametrize("call", CALLS)
def test_a_tool_that_is_interrupted_ends_with_an_error_event(
    place: Path, number: int, call: str
) -> None:
    write_config(place, parallel=call != "alone")
    with running(place, "run", "--config", "c.json", "--json", "--yes", CALLS[call]) as process:
        wait_until((place / "begun").exists)
        events, _ = end_by(process, number)
    ends_interrupted(events)
    assert "tool_started" in [event["type"] for event in events]


@pytest.mark.parametrize("call", ["refuse", "refuse at once"])
def test_a_tool_that_never_returns_does_not_keep_the_process(place: Path, call: str) -> None:
    write_config(place, parallel=call != "refuse")
    calls = '/call refuse {"name": "begun"}' + ("\n/call wait {}" if call != "refuse" else "")
    with running(place, "run", "--config", "c.json", "--json", "--yes", calls) as process:
        wait_until((place / "begun").exists)
        events, err = end_by(process, signal.SIGTERM)
    ends_interrupted(events)
    assert "left" in err


@signals
def test_a_question_that_is_interrupted_ends_the_run(place: Path, number: int) -> None:
    write_config(place)
    with open_terminal("run", "--config", "c.json", CALLS["alone"], cwd=place) as seen:
        seen.expect("[a]nywhere [n]: ")
        seen.process.send_signal(number)
        assert seen.end() == SIGNALS[signal.Signals(number)]
    assert seen.shown.endswith("\ninterrupted\n")
    assert not (place / "begun").exists()


def test_a_terminal_that_goes_away_ends_the_run(place: Path) -> None:
    write_config(place)
    with open_terminal("run", "--config", "c.json", "--yes", CALLS["alone"], cwd=place) as seen:
        wait_until((place / "begun").exists)
        seen.process.send_signal(signal.SIGHUP)
        assert seen.end() == 129


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--config", "missing.json", "x"], 1),
        (["--config", "broken.json", "x"], 1),
        (["--no-such-option", "x"], 2),
        (["--yes", "--deny", "x"], 2),
        ([], 2),
        (["--provider", "nobody", "x"], 1),
        (["--session", "nothing", "x"], 1),
    ],
)
def test_what_goes_wrong_before_the_start_is_an_error_event_too(
    place: Path, arguments: list[str], code: int
) -> None:
    (place / "broken.json").write_text("{")
    with running(place, "run", "--json", *arguments) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["type"] for event in events if event["type"] != "warning"] == ["error"]
    assert events[-1]["error"]["message"]


def test_an_interruption_while_the_prompt_is_read_is_an_error_event(place: Path) -> None:
    write_config(place)
    waiting, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_host", "run", "--config", "c.json", "--json"],
        stdin=waiting,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
    )
    with process:
        assert process.stderr is not None
        assert "waiting for standard input" in process.stderr.readline()
        events, _ = end_by(process, signal.SIGINT)
    os.close(waiting)
    os.close(writing)
    ends_interrupted(events)


def test_a_pipe_that_nobody_reads_ends_the_run_in_silence(place: Path) -> None:
    write_config(place)
    with running(place, "run", "--config", "c.json", "--json", "--yes", "a b c") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        process.wait(60)
    assert "Traceback" not in err
    assert process.returncode == 0


@signals
def test_whoever_watches_a_run_and_is_interrupted_gets_an_error_event(
    place: Path, number: int
) -> None:
    write_config(place)
    with running(place, "run", "--config", "c.json", "--yes", CALLS["alone"]) as working:
        wait_until((place / "begun").exists)
        with running(place, "runs", "list", "--json") as listing:
            (run,) = json.loads(listing.communicate(timeout=60)[0])["runs"]
        with running(place, "runs", "watch", run["id"], "--json") as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert json.loads(first)["type"]
            events, _ = end_by(process, number)
        assert working.poll() is None
    ends_interrupted(events)
