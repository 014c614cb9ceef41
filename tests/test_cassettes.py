"""What goes over the wire is written into files, and comes from them without a wire."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.errors import ConfigError, RateLimitError, StreamCutError
from agent_host import AgentApplication
from agent_host.wire.cassettes import CassetteError, ReplayMissError
from agent_host.wire.cassettes.canonical import canonical_request
from agent_host.wire.request import WireRequest
from batching import repeating_server
from loopback import Peer, Request, serve
from making import run_host
from openai_like import OpenAiLike, OpenAiLikeTools

KEY = "s3cr3t-of-the-user"


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tape"


def open_app(url: str, **options: Any) -> AgentApplication:
    alias = {"provider": "openai_like", "base_url": url, "model": "small", "api_key": KEY}
    app = AgentApplication({"providers": {"main": alias}}, store=False, **options)
    app.core.register_provider(OpenAiLike, [OpenAiLikeTools])
    return app


@pytest.fixture
def recorded(tape: Path) -> str:
    """The address of a server that is gone, of which there is a recording."""
    with repeating_server() as server, open_app(server.url, record=tape) as app:
        app.run("hello")
        return server.url


def files(tape: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted(tape.iterdir())]


def test_a_recorded_run_is_replayed_without_a_server(tape: Path, recorded: str) -> None:
    with open_app(recorded, replay=tape) as app:
        answer = app.run("hello")
    assert answer.text == "You said hello."


def test_a_stream_is_replayed_to_async_callers_too(tape: Path, recorded: str) -> None:
    async def ask() -> str:
        async with open_app(recorded, replay=tape) as app:
            return (await app.arun("hello")).text

    assert asyncio.run(ask()) == "You said hello."


def test_async_runs_are_recorded(tape: Path) -> None:
    async def ask(url: str) -> None:
        async with open_app(url, record=tape) as app:
            await app.arun("hello")

    with repeating_server() as server:
        asyncio.run(ask(server.url))
    with open_app(server.url, replay=tape) as app:
        assert app.run("hello").text == "You said hello."


def test_a_batch_is_recorded_and_replayed(tape: Path) -> None:
    prompts = [f"p{n}" for n in range(20)]
    with repeating_server() as server, open_app(server.url, record=tape) as app:
        live = list(app.batch(prompts, ordered=True))
    with open_app(server.url, replay=tape) as app:
        assert list(app.batch(prompts, ordered=True)) == live


def test_a_miss_is_an_error_that_shows_the_nearest_difference(tape: Path, recorded: str) -> None:
    with open_app(recorded, replay=tape) as app, pytest.raises(ReplayMissError) as caught:
        app.run("hello", model="main/other")
    assert caught.value.difference == 'model was "small", and is "other" now'
    assert caught.value.difference in caught.value.message
    with open_app(recorded, replay=tape) as app, pytest.raises(ReplayMissError) as caught:
        app.run("bye")
    assert 'messages[0].content was "hello", and is "bye" now' in caught.value.difference


def test_an_empty_folder_has_nothing_to_replay_and_a_missing_one_is_told(tape: Path) -> None:
    with pytest.raises(CassetteError, match="there is no folder"):
        open_app("http://localhost:1", replay=tape)
    tape.mkdir()
    with (
        open_app("http://localhost:1", replay=tape) as app,
        pytest.raises(ReplayMissError, match="none at all"),
    ):
        app.run("hello")


def test_no_secret_is_written(tape: Path) -> None:
    def tell(peer: Peer, request: Request) -> None:
        # A server that repeats what it was sent.
        said = request.headers["authorization"]
        chunk = {"choices": [{"delta": {"content": said}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        headers = f"Content-Type: text/event-stream\r\nX-Account: {KEY}\r\nSet-Cookie: a={KEY}\r\n"
        peer.answer(body, headers=headers)

    with serve(tell) as server, open_app(server.url, record=tape) as app:
        app.run(f"My key is {KEY}.")
    (file,) = tape.iterdir()
    text = file.read_text("utf-8")
    assert KEY not in text
    (document,) = files(tape)
    assert document["request"]["headers"] == {}
    assert [*document["response"]["headers"]] == ["content-type"]
    assert document["fidelity"] == "wire+redacted"
    # And it is found again, though what was asked is not in there.
    with open_app(server.url, replay=tape) as app:
        assert app.run(f"My key is {KEY}.").text.startswith("Bearer")


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pass1234@host/v1?alt=sse&key=abcdefgh1234",
        "https://host/v1?access_token=abcdefgh1234&alt=sse",
    ],
)
def test_an_address_is_kept_without_its_secrets(url: str) -> None:
    found = canonical_request(WireRequest("post", url, {}, {"a": 1}))
    assert "abcdefgh1234" not in found.url
    assert "pass1234" not in found.url
    assert "alt=sse" in found.url


def test_requests_are_the_same_whatever_the_order_of_their_keys_and_their_headers() -> None:
    one = WireRequest("POST", "https://h/x?b=1&a=2", {"authorization": "a"}, {"a": 1, "b": [2]})
    two = WireRequest("post", "https://h/x?a=2&b=1", {"user-agent": "b"}, b'{"b":[2],"a":1}')
    other = WireRequest("POST", "https://h/x?a=2&b=1", {}, {"a": 1, "b": [3]})
    assert canonical_request(one).key == canonical_request(two).key
    assert canonical_request(one).key != canonical_request(other).key


def test_a_body_comes_back_byte_for_byte(tape: Path) -> None:
    body = b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"sk-abcdefgh \\ud800"}}]}\r\n\r\n'
    body += b": \xff\xfe no text\r\rdata: [DONE]\n\n"

    def play(peer: Peer, request: Request) -> None:
        peer.answer(body, headers="Content-Type: text/event-stream\r\n")

    def read(app: AgentApplication) -> bytes:
        request = WireRequest("POST", f"{server.url}/chat", {}, {"a": 1})
        return b"".join(app.core.wire.open(request).chunks())

    with serve(play) as server, open_app(server.url, record=tape) as app:
        assert read(app) == body
    with open_app(server.url, replay=tape) as app:
        assert read(app) == body


def test_refusals_and_cuts_are_replayed_as_what_they_were(tape: Path) -> None:
    def refuse(peer: Peer, request: Request) -> None:
        if b"cut" in request.body:
            peer.begin("Content-Type: text/event-stream\r\n")
            peer.chunk(b'data: {"choices":[{"delta":{"content":"half"}}]}\n\n')
            peer.reset()
        else:
            peer.answer(b'{"error": "slow"}', status="429 Too Many", headers="Retry-After: 99\r\n")

    def look(app: AgentApplication) -> None:
        with pytest.raises(RateLimitError) as caught:
            app.run("no")
        assert caught.value.retry_after == 99
        with pytest.raises(StreamCutError):
            app.run("cut")

    with serve(refuse) as server, open_app(server.url, record=tape) as app:
        look(app)
    with open_app(server.url, replay=tape) as app:
        look(app)


def test_answers_to_the_same_request_are_replayed_in_their_order(tape: Path) -> None:
    numbers = iter(range(10))

    def count(peer: Peer, request: Request) -> None:
        chunk = {"choices": [{"delta": {"content": str(next(numbers))}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        peer.answer(body, headers="Content-Type: text/event-stream\r\n")

    with serve(count) as server:
        with open_app(server.url, record=tape) as app:
            assert [app.run("x").text for _ in range(2)] == ["0", "1"]
        with open_app(server.url, replay=tape) as app:
            assert [app.run("x").text for _ in range(3)] == ["0", "1", "1"]
        # What is recorded anew takes the place of what was there.
        with open_app(server.url, record=tape) as app:
            app.run("x")
        with open_app(server.url, replay=tape) as app:
            assert [app.run("x").text for _ in range(2)] == ["2", "2"]


def test_a_file_that_is_no_recording_is_named(tape: Path, recorded: str) -> None:
    (file,) = tape.iterdir()
    file.write_text("[]")
    with (
        open_app(recorded, replay=tape) as app,
        pytest.raises(CassetteError, match=re.escape(file.name)),
    ):
        app.run("hello")


def test_recording_and_replaying_exclude_each_other(tape: Path) -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        open_app("http://localhost:1", record=tape, replay=tape)


@pytest.mark.parametrize(
    "words",
    [
        lambda folder: ["run", "--config", "c.json", "--no-store", "hello"],
        lambda folder: ["batch", "in.jsonl", "--config", "c.json"],
    ],
)
def test_the_commands_record_and_replay(
    tmp_path: Path, tape: Path, words: Callable[[Path], list[str]]
) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "hello"}\n')
    places: dict[str, Any] = {"cwd": tmp_path, "home": tmp_path / "home"}
    with repeating_server() as server:
        server.describe_in(tmp_path)
        live = run_host(*words(tmp_path), "--record", "tape", **places)
        assert live.code == 0, live.err
    played = run_host(*words(tmp_path), "--replay", "tape", **places)
    assert (played.code, played.out) == (0, live.out)
    assert "You said hello." in played.out
