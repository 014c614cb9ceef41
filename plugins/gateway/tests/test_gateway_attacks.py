"""Malformed and hostile requests: none gets through, none harms the gateway, each is told why."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_process import DOORS, ask, minimal_body, running_gateway

#: Bodies that no door takes, as bytes.
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "a brace": b"{",
    "no JSON": b"model=echo",
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "text": b'"hello"',
    "two documents": b"{}{}",
    "a byte that is no text": b'{"model": "\xff"}',
    "UTF-16": '{"model": "echo/echo-1"}'.encode("utf-16"),
    "NaN": b'{"model": "echo/echo-1", "temperature": NaN}',
    "infinity": b'{"model": "echo/echo-1", "temperature": -Infinity}',
    "depth": b'{"model": "echo/echo-1", "messages": ' + b"[" * 100_000,
    "depth that is whole": b'{"model":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a number without end": b'{"model": "echo/echo-1", "seed": ' + b"9" * 10_000 + b"}",
    "a null byte": b"\x00",
    "a trailing comma": b'{"model": "echo/echo-1",}',
    "single quotes": b"{'model': 'echo/echo-1'}",
    "a comment": b'{"model": "echo/echo-1"} // yes',
    "an empty object": b"{}",
}


def changed(door: str, **changes: Any) -> dict[str, Any]:
    return {**minimal_body(door), **changes}


def conversation(door: str, *items: Any) -> dict[str, Any]:
    name = "input" if door == "responses" else "messages"
    return changed(door, **{name: list(items)})


def user(door: str, *parts: Any) -> dict[str, Any]:
    return conversation(door, {"role": "user", "content": list(parts)})


#: Requests that are JSON and that no door takes, each with what the refusal has to name.
REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "a model that is a number": ({"model": 7}, "model"),
    "an unknown model": ({"model": "nobody/none"}, "model"),
    "a model without a provider": ({"model": "echo-1"}, "model"),
    "an unknown agent": ({"model": "agent/nobody"}, "model"),
    "a path for a model": ({"model": "../../etc/passwd"}, "model"),
    "a path behind a provider": ({"model": "echo/../files"}, "model"),
    "a query behind a provider": ({"model": "echo/m?key=1"}, "model"),
    "a line behind a provider": ({"model": "echo/m\r\nx: y"}, "model"),
    "an unknown field": ({"hocus": "pocus"}, "hocus"),
    "a key of a provider": ({"api_key": "sk-evil"}, "api_key"),
    "an address of a provider": ({"base_url": "http://evil.example"}, "base_url"),
    "a body of a provider": ({"extra_body": {"model": "x"}}, "extra_body"),
    "a folder to read from": ({"attachments_root": "/"}, "attachments_root"),
    "stream as text": ({"stream": "yes"}, "stream"),
    "temperature as text": ({"temperature": "hot"}, "temperature"),
    "temperature as truth": ({"temperature": True}, "temperature"),
    "top_p": ({"top_p": 0.5}, "top_p"),
    "tools as an object": ({"tools": {}}, "tools"),
    "a tool without a name": ({"tools": [{"type": "function"}]}, "tools[0]"),
    "a tool of the vendor": ({"tools": [{"type": "web_search"}]}, "tools[0]"),
    "a choice of no tool": ({"tool_choice": {"type": "wish"}}, "tool_choice"),
}


def hostile_conversations(door: str) -> dict[str, tuple[dict[str, Any], str]]:
    """Conversations in the form of a door that nobody should answer."""
    if door == "chat":
        image: Any = lambda url: {"type": "image_url", "image_url": {"url": url}}  # noqa: E731
        result: Any = {"role": "tool", "tool_call_id": "c1", "content": "7"}
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        calling: Any = {"role": "assistant", "content": None, "tool_calls": [call]}
        text = {"type": "text", "text": "x"}
    elif door == "messages":
        image = lambda url: {"type": "image", "source": {"type": "url", "url": url}}  # noqa: E731
        block = {"type": "tool_result", "tool_use_id": "c1", "content": "7"}
        result = {"role": "user", "content": [block]}
        use = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
        calling = {"role": "assistant", "content": [use]}
        text = {"type": "text", "text": "x"}
    else:
        image = lambda url: {"type": "input_image", "image_url": url}  # noqa: E731
        result = {"type": "function_call_output", "call_id": "c1", "output": "7"}
        calling = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        text = {"type": "input_text", "text": "x"}
    where = "input" if door == "responses" else "messages"
    said = {"role": "user", "content": "go on"}
    return {
        "nobody says anything": (conversation(door), where),
        "a role of nobody": (conversation(door, {"role": "root", "content": "x"}), where),
        "a message that is text": (conversation(door, "x"), where),
        "content that is a number": (conversation(door, {"role": "user", "content": 7}), where),
        "a part that is text": (user(door, "x"), where),
        "a part of no kind": (user(door, {"type": "wish"}), where),
        "a part without a kind": (user(door, {"text": "x"}), where),
        "a file of the server": (user(door, text, image("file:///etc/passwd")), where),
        "a path of the server": (user(door, text, image("/etc/passwd")), where),
        "data that is none": (user(door, text, image("data:image/png,abc")), where),
        "another protocol": (user(door, text, image("gopher://evil")), where),
        "a picture for who sees none": (
            user(door, text, image("data:image/gif;base64,R0lGODlh")),
            "image",
        ),
        "a result of no call": (conversation(door, said, result), where),
        "a call without a result": (conversation(door, said, calling), where),
        "a call that is passed over": (conversation(door, said, calling, said), where),
        "half a surrogate": (minimal_body(door, "\ud800"), "Unicode"),
    }


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    limits = {"max_body_bytes": 1 << 20, "body_seconds": 1, "write_seconds": 2}
    with running_gateway({"request_defaults": {"gateway": limits}}) as found:
        yield found


def check_refusal(door: str, answered: Any, named: str = "") -> None:
    """It is the client's fault, in the form of the door, and names what is wrong."""
    assert 400 <= answered.status < 500, answered
    error = answered.body["error"]
    assert error["type"]
    assert error["message"]
    if door == "messages":
        assert answered.body["type"] == "error"
        assert named.split("[")[0] in error["message"]
    elif named and named != "Unicode":
        told = f"{error['param']} {error['message']}"
        assert named.split("[")[0] in told
    assert "Traceback" not in answered.text


@pytest.mark.parametrize("door", DOORS)
def test_malformed_bodies_are_refused(address: str, door: str) -> None:
    for name, body in BODIES.items():
        answered = ask(address, DOORS[door], body)
        assert answered.status == 400, name
        check_refusal(door, answered)


@pytest.mark.parametrize("door", DOORS)
def test_hostile_requests_are_refused_with_what_is_wrong(address: str, door: str) -> None:
    table = {name: (changed(door, **each), named) for name, (each, named) in REQUESTS.items()}
    table |= hostile_conversations(door)
    for name, (body, named) in table.items():
        answered = ask(address, DOORS[door], body)
        assert 400 <= answered.status < 500, (name, answered)
        check_refusal(door, answered, named)
    assert len(table) + len(BODIES) >= 40
    assert ask(address, DOORS[door], minimal_body(door)).status == 200


@pytest.mark.parametrize("door", DOORS)
def test_bodies_are_read_up_to_a_limit(address: str, door: str) -> None:
    large = minimal_body(door, "x" * (2 << 20))
    assert ask(address, DOORS[door], large).status == 413
    chunked = iter([json.dumps(large).encode()])
    answered = ask_chunked(address, DOORS[door], chunked)
    assert b" 413 " in answered


def ask_chunked(address: str, path: str, pieces: Iterator[bytes]) -> bytes:
    """The beginning of what is answered to a body whose length nobody tells."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        try:
            for piece in pieces:
                connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
        except OSError:
            # It was refused before all of it was sent.
            pass
        return connection.recv(65536)


def test_a_body_that_does_not_come_is_not_waited_for(address: str) -> None:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\n"
        connection.sendall(head.encode() + b'{"model"')
        assert b" 504 " in connection.recv(65536)


def test_a_head_without_end_is_cut_off(address: str) -> None:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\n")
        try:
            for number in range(200):
                connection.sendall(f"x-{number}: {'y' * 4000}\r\n".encode())
            assert connection.recv(1) == b""
        except OSError:
            # Cut off while we were still sending.
            pass
    assert ask(address, "/healthz").status == 200


def test_other_kinds_of_bodies_methods_and_paths_are_refused(address: str) -> None:
    body = json.dumps(minimal_body("chat")).encode()
    plain = ask(address, DOORS["chat"], body, headers={"content-type": "text/plain"})
    assert plain.status == 400
    assert ask(address, DOORS["chat"], method="GET").status == 405
    assert ask(address, DOORS["chat"], method="OPTIONS").status == 405
    assert ask(address, "/v1/embeddings", {"model": "x", "input": "y"}).status == 404
    assert ask(address, "/../../etc/passwd").status == 404
    counting = ask(address, "/v1/messages/count_tokens", minimal_body("messages"))
    assert "no provider plugin offers it" in counting.told


def test_script_in_an_answer_stays_text(address: str) -> None:
    said = "<script>alert(1)</script>"
    for door, path in DOORS.items():
        answered = ask(address, path, minimal_body(door, said))
        assert answered.headers["content-type"] == "application/json"
        assert said in json.dumps(answered.body)


def test_a_client_that_takes_nothing_is_let_go(address: str) -> None:
    host, _, port = address.partition(":")
    body = json.dumps({**minimal_body("chat", "x" * 1_000_000), "stream": True}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect((host, int(port)))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        deadline = time.monotonic() + 20
        while "active_requests 1" not in ask(address, "/metrics").text:
            assert time.monotonic() < deadline, "the gateway has not begun to answer"
            time.sleep(0.01)
        while "active_requests 0" not in ask(address, "/metrics").text:
            assert time.monotonic() < deadline, "the gateway still waits for who takes nothing"
            time.sleep(0.05)
