"""Connections and what they leave behind: nothing, whatever becomes of them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import (
    application,
    approve,
    connections,
    descriptors,
    home,
    modern,
    owned_processes,
    plain,
    server_of,
    threads,
)

from agent_hookspecs import ToolError
from agent_host_mcp.connections import Side, follow

__all__ = ["home"]

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="process groups are of POSIX systems"),
    pytest.mark.usefixtures("home"),
]

#: In CI as many as are quick; all of them take a quarter of an hour.
CYCLES = 1000 if os.environ.get("AGENT_HOST_LONG_TRIALS") else 30


def marked(described: dict[str, Any]) -> dict[str, Any]:
    """A server whose processes the test can tell from those of others."""
    return {**described, "env": {"TEST_HOME": os.environ["AGENT_HOST_HOME"]}}


def finish(source: Any) -> Any:
    while True:
        try:
            next(source)
        except StopIteration as stop:
            return stop.value


def test_connecting_cancelling_and_killing_leave_nothing(tmp_path: Path) -> None:
    server = server_of(marked(plain()))
    dead = server_of(marked(plain("dies")), "dead")
    before = None
    for number in range(CYCLES):
        with connections(connect_seconds=20) as made:
            match number % 5:
                case 0:
                    side = Side()
                    call = made.call(server, "echo", {"text": "hello"}, side)
                    result, _ = finish(follow(call, side, lambda: False))
                    assert result.content[0].text == "hello"
                case 1:
                    # Cancelled while it is being opened, or just after.
                    made.open(server).cancel()
                case 2:
                    made.open(server).result()
                    side = Side()
                    with pytest.raises(ToolError, match="cancelled"):
                        finish(follow(made.call(server, "wait", {}, side), side, lambda: True))
                case 3:
                    made.open(server).result()
                    for pid in owned_processes():
                        os.kill(pid, signal.SIGKILL)
                    side = Side()
                    with pytest.raises(ToolError, match="ended"):
                        finish(follow(made.call(server, "die", {}, side), side, lambda: False))
                case 4:
                    with pytest.raises(ToolError, match="I do not start"):
                        made.open(dead).result()
        assert owned_processes() == set()
        assert threads() == set()
        gc.collect()
        if before is None:
            before = descriptors()
        assert descriptors() <= before


def test_everything_that_a_server_has_started_ends_with_it() -> None:
    server = server_of(marked(plain("forks")))
    with connections() as made:
        made.open(server).result()
        # The server, its child, and the one that has left for a session of its own.
        assert len(owned_processes()) == 3
    assert owned_processes() == set()


def test_a_server_that_stays_is_ended() -> None:
    with connections() as made:
        made.open(server_of(marked(plain("stays")))).result()
    assert owned_processes() == set()


def test_a_server_that_says_nothing_is_given_up() -> None:
    said = pytest.raises(ToolError, match=r"said nothing within 0\.3 s")
    with connections(connect_seconds=0.3) as made, said:
        made.open(server_of(marked(plain("silent")))).result()
    assert owned_processes() == set()


def test_a_program_that_is_not_there_is_named() -> None:
    said = pytest.raises(ToolError, match=r"'one' cannot be started: /no/such")
    with connections() as made, said:
        made.open(server_of({"command": "/no/such"})).result()


def test_servers_start_when_needed_and_at_once(tmp_path: Path) -> None:
    place = tmp_path / "started"
    with connections() as made:
        assert not threads()
        many = [server_of(plain("counts", place), f"s{number}") for number in range(3)]
        futures = [made.open(server) for server in many for _ in range(3)]
        assert len({id(future.result()) for future in futures}) == 3
    assert place.read_text().count("started") == 3


def test_a_server_that_ends_is_started_again_and_the_model_is_told() -> None:
    approve(one=plain())
    with application(one=plain()) as app:
        ended = app.run("/call mcp_one__die {}").text
        assert "'one' ended during the call" in ended
        assert "I have had enough" in ended
        again = app.run('/call mcp_one__echo {"text": "hello"}').text
        assert "was started again" in again
        assert "hello" in again
        assert "started again" not in app.run('/call mcp_one__echo {"text": "more"}').text


def test_a_server_that_ends_again_and_again_is_left_alone() -> None:
    dead = server_of(plain("dies"))
    with connections(back_off=(0.0, 0.01, 0.01)) as made:
        for _ in range(3):
            with pytest.raises(ToolError, match="I do not start"):
                made.open(dead).result()
        with pytest.raises(ToolError, match="ended 3 times in a row") as caught:
            made.open(dead).result()
    assert "mcp test one" in caught.value.hint


def test_runs_of_both_kinds_share_one_process(tmp_path: Path) -> None:
    place = tmp_path / "started"
    described = plain("counts", place)
    approve(one=described)
    place.unlink()
    ask = '/call mcp_one__echo {"text": "hello"}'

    async def run_async() -> list[str]:
        answers = await asyncio.gather(*(app.arun(ask) for _ in range(3)))
        return [answer.text for answer in answers]

    with application(one=described) as app:
        assert not place.exists()
        texts = [app.run(ask).text, *asyncio.run(run_async()), app.run(ask, system="Other.").text]
        assert len(threads()) == 1
    assert all("hello" in text for text in texts)
    assert place.read_text().count("started") == 1
    assert not threads()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_cancelled_run_cancels_its_call(tmp_path: Path, asynchronous: bool) -> None:
    place = tmp_path / "cancelled"
    described = plain("well", place)
    approve(one=described)

    async def cancel_async(app: Any) -> None:
        async with app.astream("/call mcp_one__wait {}") as stream:
            async for event in stream:
                if event["type"] == "tool_started":
                    task = asyncio.ensure_future(anext(aiter(stream)))
                    await asyncio.sleep(0.3)
                    task.cancel()
                    break

    with application(one=described) as app:
        app.run('/call mcp_one__echo {"text": "warm"}')
        if asynchronous:
            asyncio.run(cancel_async(app))
        else:
            stream = app.stream("/call mcp_one__wait {}")
            timer = threading.Timer(0.3, stream.close)
            timer.start()
            for _ in stream:
                continue
            timer.join()
        for _ in range(200):
            if place.exists() and place.read_text():
                break
            threading.Event().wait(0.02)
        # The connection still serves.
        assert "after" in app.run('/call mcp_one__echo {"text": "after"}').text
    assert "requestId" in place.read_text()


def test_a_program_that_never_closes_its_application_leaves_no_server(tmp_path: Path) -> None:
    described = marked(plain("stays"))
    approve(one=described)
    code = f"""
from agent_host import AgentApplication
app = AgentApplication({{
    "providers": {{"main": {{"provider": "echo"}}}},
    "request_defaults": {{"mcp": {{"servers": {{"one": {described!r}}}}}}},
    "tools": {{"rules": [{{"tool": "mcp_*", "decision": "allow"}}]}},
}})
print(app.run('/call mcp_one__echo {{"text": "hello"}}').text)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "hello" in done.stdout
    assert owned_processes() == set()


def test_nothing_of_the_sdk_is_imported_until_a_server_is_needed() -> None:
    described = plain()
    approve(one=described)
    code = f"""
import sys
from agent_host import AgentApplication
config = {{"providers": {{"main": {{"provider": "echo"}}}}}}
with AgentApplication(config) as app:
    app.run("Hello")
config["request_defaults"] = {{"mcp": {{"servers": {{"one": {described!r}}}}}}}
with AgentApplication(config) as app:
    app.run("Hello")
    assert "mcp_one__echo" in app.stack().tool_names
print([name for name in ("mcp", "mcp_types", "httpx2", "anyio") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_server_of_the_sdk_leaves_nothing_either() -> None:
    with connections() as made:
        futures = [made.open(server_of(marked(modern(mode)), mode)) for mode in ("auto", "legacy")]
        assert [future.result().version for future in futures] == ["2026-07-28", "2025-11-25"]
    assert owned_processes() == set()
