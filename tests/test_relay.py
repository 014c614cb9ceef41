"""Requests that were written elsewhere are sent as they are, and so are their answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent_hookspecs import (
    InvalidRequestError,
    NativeMessage,
    ProviderPlugin,
    RequestSpec,
    ServerError,
    State,
)
from agent_host import AgentCore


class Telegraph(ProviderPlugin):
    """Says where requests go, and with which key."""

    name = "telegraph"

    def build_request(self, native_messages: list[NativeMessage], state: State) -> RequestSpec:
        config = state["config"]
        return {
            "url": f"{config['base_url']}/send",
            "headers": {"authorization": f"Bearer {config['api_key']}"},
            "body": {"messages": native_messages},
        }

    def parse_response(self, body: Any, native_messages: list[NativeMessage], state: State) -> Any:
        raise AssertionError("what is relayed is not read")


@contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[tuple[str, list[tuple[str, Any, bytes]]]]:
    """A server that gives these answers in order, and what it was sent."""
    seen: list[tuple[str, Any, bytes]] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            seen.append((self.path, self.headers, body))
            status, data = left.pop(0)
            self.send_response(status)
            self.send_header("content-type", "application/x-telegram")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def relay(url: str, body: bytes, **config: Any) -> tuple[str, bytes]:
    async def send() -> tuple[str, bytes]:
        async with AgentCore() as core:
            core.register_provider(Telegraph)
            settings = {"provider": "telegraph", "base_url": url, "api_key": "secret-1", **config}
            async with await core.arelay_request(settings, body, stream=False) as answer:
                return answer.content_type, b"".join([each async for each in answer.chunks()])

    return asyncio.run(send())


def test_body_and_answer_are_the_bytes_that_they_were() -> None:
    body = b'{ "anything" :  ["that", "is JSON"] }'
    with answering((200, b"STOP\x00\xff")) as (url, seen):
        assert relay(url, body) == ("application/x-telegram", b"STOP\x00\xff")
    ((path, headers, sent),) = seen
    assert (path, sent) == ("/send", body)
    assert headers["authorization"] == "Bearer secret-1"
    assert headers["content-type"] == "application/json"


def test_a_refusal_is_raised_and_tells_no_key() -> None:
    refusal = json.dumps({"error": {"message": "wrong key secret-1"}}).encode()
    with answering((400, refusal)) as (url, _), pytest.raises(InvalidRequestError) as caught:
        relay(url, b"{}")
    assert "secret-1" not in json.dumps(caught.value.to_dict())


def test_what_may_be_tried_again_is_as_often_as_the_config_says() -> None:
    with answering((500, b"{}"), (200, b"yes")) as (url, seen):
        assert relay(url, b"{}", retries=1)[1] == b"yes"
        assert len(seen) == 2
    with answering((500, b"{}")) as (url, _), pytest.raises(ServerError):
        relay(url, b"{}", retries=0)
