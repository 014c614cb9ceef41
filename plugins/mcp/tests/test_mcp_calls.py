"""What calls give: text, pictures, structured results, progress, failures, people's answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import (
    answering,
    application,
    approve,
    connections,
    folder,
    free_port,
    home,
    modern,
    plain,
    server_of,
    serving,
)

from agent_host_mcp.approvals import Approvals, Definition

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

ERAS = {"new": "auto", "old": "legacy"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(free_port()) as found:
        yield found


@pytest.fixture(scope="module")
def definitions(address: str) -> list[Definition]:
    """What the tools of that server say of themselves, by whichever way it is reached."""
    with connections() as made:
        return [*made.open(server_of({"url": address})).result().tools.values()]


@pytest.fixture(params=["stdio-new", "stdio-old", "http-new", "http-old"])
def server_settings(request: pytest.FixtureRequest, address: str) -> dict[str, Any]:
    """The same server by each transport, in each era."""
    transport, _, era = request.param.partition("-")
    if transport == "stdio":
        return modern(ERAS[era])
    return {"url": address, "mode": ERAS[era]}


def results(app: Any, prompt: str, **options: Any) -> tuple[list[Any], list[Any]]:
    """The tool messages of a run, and what was reported meanwhile."""
    with app.stream(prompt, **options) as stream:
        events = [*stream]
    messages = [each["message"] for each in events if each["type"] == "tool_result"]
    return messages, [each["update"] for each in events if each["type"] == "tool_update"]


def test_every_transport_and_era_gives_the_same(
    server_settings: dict[str, Any], definitions: list[Definition]
) -> None:
    Approvals(str(folder())).approve(server_of(server_settings), definitions)
    asked, ask = answering("answer", "red")
    with application(one=server_settings) as app:
        (added,), _ = results(app, '/call mcp_one__add {"a": 1, "b": 2}')
        assert json.loads(added["content"]) == {"total": 3}
        assert added["metadata"]["structured"] == {"total": 3}

        (shown,), _ = results(app, "/call mcp_one__picture {}")
        (part,) = shown["toolResult"]["content"]
        assert part["type"] == "image"
        assert part["content"]["url"].startswith("data:image/png;base64,")

        (failed,), _ = results(app, "/call mcp_one__fail {}")
        assert failed["metadata"]["error"]
        assert "Error executing tool fail" in failed["content"]

        (slow,), updates = results(app, '/call mcp_one__slow {"steps": 3}')
        assert slow["content"] == "done"
        assert updates[-1] == {"progress": 3.0, "total": 3.0, "message": "step 3"}

        (painted,), _ = results(app, "/call mcp_one__paint {}", ask=ask)
        assert "accept: colour='red'" in painted["content"]

        (painted,), _ = results(app, "/call mcp_one__paint {}")
        assert "cancel" in painted["content"]
        _, decline = answering("decline")
        (painted,), _ = results(app, "/call mcp_one__paint {}", ask=decline)
        assert "decline" in painted["content"]
    assert asked[0][1] == ("answer", "decline")
    assert "Which colour?" in asked[0][0]
    assert "colour" in asked[1][0]


def test_a_server_is_told_of_the_trace_that_a_call_is_in(
    server_settings: dict[str, Any], definitions: list[Definition]
) -> None:
    Approvals(str(folder())).approve(server_of(server_settings), definitions)
    trace = "00-0af7651916cd43dd8448eb211c80319c"
    caller = {"trace_context": {"traceparent": f"{trace}-b7ad6b7169203331-01"}}
    with application(one=server_settings) as app:
        (told,), _ = results(app, "/call mcp_one__tell_trace {}", context=caller)
        (untold,), _ = results(app, "/call mcp_one__tell_trace {}")
    # Where the process traces, a span of the SDK's own stands between.
    assert told["content"].startswith(f"{trace}-")
    assert trace not in untold["content"]


def test_progress_faster_than_anybody_reads_costs_no_memory() -> None:
    described = plain("flood")
    approve(one=described)
    with application(one=described) as app:
        (message,), updates = results(app, '/call mcp_one__echo {"text": "done"}')
    assert message["content"] == "done"
    assert updates[-1]["progress"] == 9999
    assert len(updates) < 10_000


def test_lines_that_are_no_messages_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    described = plain("garbage")
    approve(one=described)
    with application(one=described) as app:
        (message,), _ = results(app, '/call mcp_one__echo {"text": "hello"}')
    assert message["content"] == "hello"
    assert "mcp_not_a_message" in caplog.text


def test_a_result_without_an_end_ends_the_server_and_not_the_host() -> None:
    described = plain("huge")
    approve(one=described)
    with application(one=described) as app:
        (message,), _ = results(app, '/call mcp_one__echo {"text": "x"}')
    assert "sent a message of more than 16777216 bytes" in message["content"]


def test_a_call_that_is_never_answered_is_given_up() -> None:
    approve(one=plain())
    config = {"mcp": {"servers": {"one": plain()}, "call_seconds": 0.3}}
    with application(one=plain()) as app:
        (message,), _ = results(app, "/call mcp_one__wait {}", settings=config)
        assert "did not answer within 0.3 s" in message["content"]
        (message,), _ = results(app, '/call mcp_one__echo {"text": "still"}', settings=config)
        assert message["content"] == "still"


def test_a_server_finds_no_key_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    described = plain("environment")
    approve(one=described)
    monkeypatch.setenv("VENDOR_API_KEY", "a-very-secret-key")
    with application(one=described) as app:
        (message,), _ = results(app, '/call mcp_one__echo {"text": "x"}')
    assert "PATH" in message["content"]
    assert "a-very-secret-key" not in message["content"]
    assert "VENDOR_API_KEY" not in message["content"]


def test_an_answer_over_http_may_not_be_larger_than_allowed(tmp_path: Path) -> None:
    """A body without an end, as JSON: the SDK by itself would read all of it."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Endless(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * 65_536)
            except OSError:
                return

        def log_message(self, *words: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        described = {"url": f"http://127.0.0.1:{server.server_address[1]}/mcp"}
        with pytest.raises(Exception, match=r"larger than max_message_bytes|said nothing"):
            approve(one=described)
        server.shutdown()


@pytest.mark.parametrize("mode", ERAS.values())
def test_a_server_at_an_address_that_was_restarted_is_reached_again(mode: str) -> None:
    port, add = free_port(), '/call mcp_one__add {"a": 1, "b": 2}'
    described = {"url": f"http://127.0.0.1:{port}/mcp", "mode": mode}
    with application(one=described) as app:
        with serving(port):
            approve(one=described)
            assert '"total": 3' in app.run(add).text
        assert "'one'" in app.run(add).text
        with serving(port):
            # Who has forgotten us says so, or does not need to know us.
            said = [app.run(add).text for _ in range(2)]
    assert '"total": 3' in said[-1]
