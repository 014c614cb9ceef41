"""The host as a server over HTTP: whom it listens to, and that the policy decides as ever."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import approve, config_of, home, plain

from agent_host import ConfigError
from agent_host_mcp.serving import read_place

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

TOKEN = "a-token-of-many-letters"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@contextmanager
def serving(folder: Path, config: dict[str, Any], token: str = "") -> Iterator[int]:
    """The port at which the command serves."""
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    more = {"AGENT_HOST_MCP_TOKEN": token} if token else {}
    where = ["--http", "127.0.0.1:0", "--config", str(file)]
    with subprocess.Popen(
        [sys.executable, "-m", "agent_host", "mcp", "serve", *where],
        env={**os.environ, **more},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = next(each for each in process.stderr if "Serving at" in each)
            yield int(line.partition("127.0.0.1:")[2].partition("/")[0])
        finally:
            process.terminate()
            process.communicate()


def ask(port: int, method: str = "POST", **headers: str) -> int:
    """The status of a request with these headers; underscores stand for dashes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        accepted = {"content-type": "application/json"}
        accepted["accept"] = "application/json, text/event-stream"
        connection.request(method, "/mcp", json.dumps(HELLO), {**accepted, **named})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("more", [[], ["--http", "127.0.0.1:0"]], ids=["stdio", "http"])
def test_a_config_that_is_wrong_is_told_before_anybody_is_served(
    tmp_path: Path, more: list[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"request_defaults": {"effrot": "low"}}', encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "agent_host", "mcp", "serve", "--config", str(file), *more],
        input=json.dumps(HELLO) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert "there is no key 'request_defaults.effrot'" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Serving at" not in ran.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_calls_tools_over_http_as_the_policy_decides(tmp_path: Path, mode: str) -> None:
    from mcp import Client
    from mcp_types import ElicitResult

    approve(one=plain())
    config = config_of("ask", one=plain())
    config["tools"]["rules"] = [{"tool": "mcp_one__wait", "decision": "deny"}]
    answers = [True, False]

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"allow": answers.pop(0)})

    async def talk(port: int) -> list[Any]:
        address = f"http://127.0.0.1:{port}/mcp"
        async with Client(address, mode=mode, elicitation_callback=answer) as client:
            return [
                await client.call_tool("mcp_one__echo", {"text": "allowed"}),
                await client.call_tool("mcp_one__echo", {"text": "refused"}),
                await client.call_tool("mcp_one__wait", {}),
            ]

    with serving(tmp_path, config) as port:
        allowed, refused, denied = asyncio.run(talk(port))
        assert allowed.content[0].text == "allowed"
        assert "the answer was deny" in refused.content[0].text
        assert "rule for mcp_one__wait" in denied.content[0].text


def test_a_page_of_the_web_cannot_call_tools_whatever_name_it_has_lead_here(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, config_of()) as port:
        assert ask(port) == 200
        assert ask(port, host=f"localhost:{port}") == 200
        assert ask(port, origin=f"http://127.0.0.1:{port}") == 200
        # The name that a page has had changed to this address, and the page itself.
        assert ask(port, host=f"evil.example:{port}") == 421
        assert ask(port, host=f"127.0.0.1.evil.example:{port}") == 421
        assert ask(port, host="127.0.0.1:1") == 421
        assert ask(port, origin="https://evil.example") == 403
        assert ask(port, origin="http://127.0.0.1:1") == 403
        assert ask(port, origin="null") == 403


def test_with_a_token_only_who_has_it_is_listened_to(tmp_path: Path) -> None:
    with serving(tmp_path, config_of(), TOKEN) as port:
        assert ask(port) == 401
        assert ask(port, authorization="Bearer a-token-of-many-letterz") == 401
        assert ask(port, authorization=f"Basic {TOKEN}") == 401
        assert ask(port, method="GET") == 401
        assert ask(port, authorization=f"Bearer {TOKEN}") == 200
        assert ask(port, authorization=f"Bearer {TOKEN}", origin="https://evil.example") == 403


@pytest.mark.parametrize(
    ("text", "token", "wrong"),
    [
        ("0.0.0.0:8811", "", "others than you could call"),
        ("192.168.1.5:8811", "", "others than you could call"),
        ("host.example:8811", "", "others than you could call"),
        ("0.0.0.0:8811", TOKEN, "no address that clients could name"),
        ("127.0.0.1:8811", "short", "is shorter than"),
        ("127.0.0.1", "", "is no HOST:PORT"),
        ("127.0.0.1:99999", "", "is no HOST:PORT"),
        (":8811", "", "is no HOST:PORT"),
    ],
)
def test_nothing_is_served_where_others_could_call_without_a_token(
    text: str, token: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_MCP_TOKEN", token)
    with pytest.raises(ConfigError, match=wrong):
        read_place(text)


def test_places_are_read_as_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_place("[::1]:8811").netloc == "[::1]:8811"
    assert read_place("localhost:8811").netloc == "localhost:8811"
    monkeypatch.setenv("AGENT_HOST_MCP_TOKEN", TOKEN)
    assert read_place("host.example:8811").netloc == "host.example:8811"
    assert TOKEN not in repr(read_place("host.example:8811"))
