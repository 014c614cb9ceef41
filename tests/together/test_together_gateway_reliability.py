"""What a gateway does when upstreams fail, clients leave, and both sides speak the same."""

from __future__ import annotations

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_host_gateway", reason="needs agent-host-gateway")

from gateway_bench import MODELS, Upstreams
from gateway_process import DOORS, ask, minimal_body, running_gateway

from agent_host_testing import Drip, Failure, Reply, Stall, Text, Truncate, say

SAME = {"chat": "openai.chat", "responses": "openai.responses", "messages": "anthropic.messages"}


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("door", SAME)
def test_where_both_speak_the_same_bytes_are_passed_on(door: str, stream: bool) -> None:
    name = SAME[door]
    with Upstreams(name) as upstreams, running_gateway(upstreams.config) as address:
        server = upstreams.servers[name]
        server.queue(say("Passed on."))
        body = {**minimal_body(door, model=upstreams.model(name)), "top_p": 0.5, "stream": stream}
        if door == "messages":
            block = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
            body["messages"] = [{"role": "user", "content": [block]}]
        answered = ask(address, DOORS[door], body)
        assert answered.status == 200, answered.text
        sent = server.requests[-1].body
        expected = {**body, "model": MODELS[name][1]}
        assert sent == (expected | {"store": False} if door == "responses" else expected)
        assert answered.text.encode() == server.exchanges[-1].answer
        told = ask(address, "/metrics").text
        assert f'tokens_total{{model="{upstreams.model(name)}",direction="output"}}' in told


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["anthropic.messages", "openai.chat"])
def test_another_model_answers_before_the_first_has_said_anything(door: str, name: str) -> None:
    first, second = name, "google.generate"
    fallbacks = {first.replace(".", "-"): [second.replace(".", "-")]}
    with (
        Upstreams(first, second, fallbacks=fallbacks) as upstreams,
        running_gateway(upstreams.config) as address,
    ):
        upstreams.servers[first].queue(Failure("overloaded", "busy"))
        upstreams.servers[second].queue(say("I am here."))
        answered = ask(address, DOORS[door], minimal_body(door, model=upstreams.model(first)))
        assert answered.status == 200, answered.text
        assert "I am here." in answered.text
        assert upstreams.model(first) in answered.headers["x-agent-host-warning"]


@pytest.mark.parametrize(
    ("kind", "status"), [("rate_limit", 429), ("overloaded", 503), ("server", 502)]
)
@pytest.mark.parametrize("door", DOORS)
def test_failures_of_a_provider_are_told_in_the_form_of_the_door(
    door: str, kind: Any, status: int
) -> None:
    with Upstreams("anthropic.messages") as upstreams:
        config = upstreams.config
        config["request_defaults"] = {"retries": 0}
        upstreams.servers["anthropic.messages"].queue(Failure(kind, "no"))
        with running_gateway(config) as address:
            model = upstreams.model("anthropic.messages")
            answered = ask(address, DOORS[door], minimal_body(door, model=model))
    assert answered.status == status
    assert answered.body["error"]["type"]
    assert "upstream-secret" not in answered.text


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["anthropic.messages", "openai.chat", "google.generate"])
def test_a_stream_that_breaks_off_ends_with_an_error(door: str, name: str) -> None:
    with Upstreams(name) as upstreams, running_gateway(upstreams.config) as address:
        long = Reply((Text("word " * 50),), fragments=50)
        upstreams.servers[name].queue(long, fault=Truncate(after=3000))
        body = {**minimal_body(door, model=upstreams.model(name)), "stream": True}
        answered = ask(address, DOORS[door], body)
        assert answered.status == 200
        last = [line for line in answered.text.splitlines() if line.startswith("data:")][-1]
        assert "error" in json.loads(last.removeprefix("data:")) or "error" in last
        assert ask(address, "/healthz").status == 200


@pytest.mark.parametrize("name", ["openai.chat", "google.generate"])
def test_the_upstream_is_left_when_the_client_leaves(name: str) -> None:
    with Upstreams(name) as upstreams, running_gateway(upstreams.config) as address:
        server = upstreams.servers[name]
        long = Reply((Text("word " * 2000),), fragments=2000)
        server.queue(long, fault=Drip(0.01))
        body = {**minimal_body("chat", model=upstreams.model(name)), "stream": True}
        connection = HTTPConnection(address, timeout=30)
        connection.request(
            "POST", DOORS["chat"], json.dumps(body), {"content-type": "application/json"}
        )
        response = connection.getresponse()
        response.read(200)
        response.close()
        connection.close()
        wait_for(lambda: server.abandoned == 1)
        wait_for(lambda: "active_requests 0" in ask(address, "/metrics").text)


def test_a_client_that_leaves_before_the_answer_is_not_waited_for() -> None:
    with Upstreams("google.generate") as upstreams, running_gateway(upstreams.config) as address:
        server = upstreams.servers["google.generate"]
        server.queue(say("late"), fault=Stall())
        body = minimal_body("messages", model=upstreams.model("google.generate"))
        connection = HTTPConnection(address, timeout=30)
        connection.request(
            "POST", DOORS["messages"], json.dumps(body), {"content-type": "application/json"}
        )
        wait_for(lambda: "active_requests 1" in ask(address, "/metrics").text)
        connection.close()
        wait_for(lambda: "active_requests 0" in ask(address, "/metrics").text)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_many_streams_at_once_end_whole_and_leave_nothing_open() -> None:
    count, words = 60, 20
    with Upstreams("openai.chat") as upstreams, running_gateway(upstreams.config) as address:
        server = upstreams.servers["openai.chat"]
        body = {**minimal_body("chat", model=upstreams.model("openai.chat")), "stream": True}
        ask(address, DOORS["chat"], body)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(count):
            server.queue(Reply((Text("word " * words),), fragments=words), fault=Drip(0.05))
        host, _, port = address.partition(":")
        head = f"POST {DOORS['chat']} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n"
        sent = json.dumps(body)
        head += f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"

        async def stream() -> bytes:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"{head}{sent}".encode())
            told = await reader.read(-1)
            writer.close()
            await writer.wait_closed()
            return told

        async def stream_all() -> list[bytes]:
            return await asyncio.gather(*(stream() for _ in range(count)))

        for told in asyncio.run(stream_all()):
            assert told.count(b"word ") == words
            assert b"data: [DONE]\n\n" in told
        # Both ends of the connections upstream that rest until somebody asks again, or leaves.
        wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before + 2 * count)
        wait_for(lambda: "active_requests 0" in ask(address, "/metrics").text)
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_requests_end_in_time_and_no_more_are_carried_out_at_once_than_is_said() -> None:
    with Upstreams("google.generate", max_requests=1, request_seconds=2) as upstreams:
        upstreams.servers["google.generate"].queue(say("late"), fault=Stall())
        body = minimal_body("chat", model=upstreams.model("google.generate"))
        with running_gateway(upstreams.config) as address, ThreadPoolExecutor() as pool:
            first = pool.submit(ask, address, DOORS["chat"], body)
            wait_for(lambda: "active_requests 1" in ask(address, "/metrics").text)
            second = ask(address, DOORS["chat"], body)
            assert (second.status, "retry-after" in second.headers) == (503, True)
            assert first.result().status == 504
            assert ask(address, DOORS["chat"], body).status == 200


def test_an_upstream_that_fails_again_and_again_is_left_alone() -> None:
    with Upstreams("google.generate", breaker_failures=2, breaker_seconds=60) as upstreams:
        config = upstreams.config
        config["request_defaults"]["retries"] = 0
        server = upstreams.servers["google.generate"]
        server.queue(*[Failure("server", "broken")] * 2)
        body = minimal_body("chat", model=upstreams.model("google.generate"))
        with running_gateway(config) as address:
            statuses = [ask(address, DOORS["chat"], body).status for _ in range(3)]
            refused = ask(address, DOORS["chat"], body)
    assert statuses == [502, 502, 503]
    assert "left alone" in refused.told
    assert int(refused.headers["retry-after"]) <= 60
    assert len([each for each in server.requests if each.body]) == 2


def test_history_is_found_by_another_worker_through_the_store(tmp_path: Path) -> None:
    tool = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    with Upstreams("google.generate", store=tmp_path / "sessions.db") as upstreams:
        body: dict[str, Any] = {
            **minimal_body("messages", "weather?", upstreams.model("google.generate")),
            "tools": [tool],
            "max_tokens": 9000,
            "thinking": {"type": "adaptive"},
        }
        with (
            running_gateway(upstreams.config) as one,
            running_gateway(upstreams.config) as other,
        ):
            first = ask(one, DOORS["messages"], body)
            (use,) = [each for each in first.body["content"] if each["type"] == "tool_use"]
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": "7"}
            body["messages"] += [
                {"role": "assistant", "content": first.body["content"]},
                {"role": "user", "content": [result]},
            ]
            second = ask(other, DOORS["messages"], body)
            assert second.status == 200, second.text
            assert "x-agent-host-warning" not in second.headers
            sent = json.dumps(upstreams.servers["google.generate"].requests[-1].body)
            assert "fake-signature-1" in sent


def test_what_is_not_known_of_a_conversation_is_told() -> None:
    with Upstreams("google.generate") as upstreams, running_gateway(upstreams.config) as address:
        body = minimal_body("messages", model=upstreams.model("google.generate"))
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "of somebody else"}
        text = {"type": "text", "text": "Hello."}
        body["messages"] += [
            {"role": "assistant", "content": [thought, text]},
            {"role": "user", "content": "And now?"},
        ]
        answered = ask(address, DOORS["messages"], body)
        assert answered.status == 200, answered.text
        assert "without the reasoning" in answered.headers["x-agent-host-warning"]


@pytest.mark.parametrize("door", DOORS)
def test_a_setting_that_the_model_has_no_use_for_is_refused(door: str) -> None:
    settings: dict[str, tuple[dict[str, Any], str]] = {
        "chat": ({"seed": 7}, "seed"),
        "responses": ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
        "messages": ({"output_config": {"effort": "high"}}, "output_config.effort"),
    }
    more, param = settings[door]
    # Claude takes no seed, and the other models of this test do not think.
    name = "anthropic.messages" if door == "chat" else "openai.chat"
    with Upstreams(name) as upstreams, running_gateway(upstreams.config) as address:
        body = {**minimal_body(door, model=upstreams.model(name)), **more}
        answered = ask(address, DOORS[door], body)
        assert answered.status == 400
        assert param in answered.told
        assert not [each for each in upstreams.servers[name].requests if each.body]


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.02)
