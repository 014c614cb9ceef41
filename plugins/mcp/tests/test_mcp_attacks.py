"""What servers try that mean harm. Further attacks are tested where what they attack is tested."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import (
    answering,
    application,
    approve,
    connections,
    home,
    modern,
    plain,
    server_of,
)
from test_mcp_prompts import agent_host, config_file

from agent_host import ToolError

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

ECHO = '/call mcp_one__echo {"text": "hello"}'


@pytest.mark.parametrize(
    ("how", "why"), [("deep", "is deeper than 50 levels"), ("long", "letters, and 100,000 are")]
)
def test_a_definition_that_nobody_could_read_costs_itself_alone(
    tmp_path: Path, how: str, why: str
) -> None:
    file = config_file(tmp_path, one=plain(how))
    said = agent_host(file, "mcp", "approve", "one", "--yes").stdout
    assert "echo is left out: " in said
    assert why in said
    assert len(said) < 2_000
    with application(one=plain(how)) as app:
        names = [name for name in app.stack().tool_names if name.startswith("mcp_")]
        assert names == ["mcp_one__second"]


def test_a_list_of_tools_without_an_end_is_given_up() -> None:
    with pytest.raises(ToolError, match="lists tools without an end"):
        approve(one=plain("pages"))


def test_a_server_that_asks_again_and_again_is_not_given_in_to() -> None:
    approve(one=plain("asks"))
    asked, ask = answering(*(["answer", "nothing"] * 1_000))
    with application(one=plain("asks")) as app:
        assert "asked 21 times" in app.run(ECHO, ask=ask).text
    # Each is two questions: whether to answer at all, and what.
    assert len(asked) == 40


def test_a_question_of_a_server_cannot_look_like_one_of_ours() -> None:
    approve(one=plain("asks"))
    asked, ask = answering(*(["decline"] * 20))
    with application(one=plain("asks")) as app:
        app.run(ECHO, ask=ask)
    text, choices = asked[0]
    assert text.startswith("The MCP server 'one' asks: ")
    assert "\x1b" not in text
    assert choices == ("answer", "decline")


def test_what_a_server_mutters_costs_neither_memory_nor_the_call() -> None:
    import resource

    approve(one=plain("mutters"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with application(one=plain("mutters")) as app:
        assert "hello" in app.run(ECHO).text
    # It says 200 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@contextmanager
def answering_http(answer: Any) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The address of a server that answers each POST so, and the headers of what it was sent."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                answer(self)
            except OSError:
                return

        do_GET = do_POST

        def log_message(self, *words: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp", seen
        finally:
            server.shutdown()


def test_a_redirect_takes_no_header_of_the_config_to_another_origin() -> None:
    def take(handler: BaseHTTPRequestHandler) -> None:
        handler.send_error(404)

    with answering_http(take) as (elsewhere, stolen):

        def send_away(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(307)
            handler.send_header("location", elsewhere)
            handler.send_header("content-length", "0")
            handler.end_headers()

        with answering_http(send_away) as (address, seen), connections() as made:
            described = {"url": address, "headers": {"Authorization": "Bearer a-secret"}}
            with pytest.raises(ToolError):
                made.open(server_of(described)).result()
    assert seen[0]["authorization"] == "Bearer a-secret"
    assert [each for each in stolen if "a-secret" in str(each)] == []


def test_an_event_without_an_end_is_read_up_to_the_limit() -> None:
    def pour(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(b"data: ")
        while True:
            handler.wfile.write(b"x" * 65_536)

    with (
        answering_http(pour) as (address, _),
        connections(message_bytes=1_000_000, connect_seconds=10) as made,
        pytest.raises(ToolError),
    ):
        made.open(server_of({"url": address})).result()


def test_what_is_piped_in_attaches_nothing(tmp_path: Path) -> None:
    file = config_file(tmp_path, one=modern())
    approve(one=modern())
    ran = agent_host(file, "run", "Sum up.", typed="See @one:notes://today for more.")
    assert "@one:notes://today" in ran.stdout
    assert "Write tests." not in ran.stdout


def test_a_name_of_a_server_that_a_terminal_would_obey_is_refused(tmp_path: Path) -> None:
    file = config_file(tmp_path, **{"one\x1b[2J": plain()})
    listed = agent_host(file, "mcp", "list")
    assert listed.returncode == 1
    assert "\x1b" not in listed.stdout + listed.stderr


def test_a_program_is_found_by_the_path_of_the_host_and_not_in_the_working_folder(
    tmp_path: Path,
) -> None:
    trap = tmp_path / "server-that-is-not-installed"
    trap.write_text(f"#!{sys.executable}\nopen('sprung', 'w')\n", encoding="utf-8")
    trap.chmod(0o755)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from mcp_bench import connections, server_of\n"
        "with connections() as made:\n"
        "    made.open(server_of({'command': 'server-that-is-not-installed'})).result()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert not (tmp_path / "sprung").exists()
