"""What the model is told of a page: its main text, where it is from, and what was left out."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from agent_hookspecs import ConfigError, ToolArgumentsError, ToolError, UnknownToolError
from agent_host_web.plugin import WebTools
from loopback import Peer, Request, serve

ARTICLE = """<!doctype html><html><head><title>A title &amp; more</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article><h1>The heading</h1>
<p>The first paragraph says that there is <b>something</b> to read on this page, at some length.</p>
<p>The second one has a <a href="../other">link</a> to follow, and a few words beside it.</p>
<ul><li>one</li><li>two</li></ul></article>
<footer>Imprint</footer><script>alert("no")</script></body></html>"""


def raw_deflate(data: bytes) -> bytes:
    """Without the head that the standard wants, as some servers send it."""
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


def page(
    body: bytes, content_type: str = "text/html", headers: str = "", status: str = "200 OK"
) -> Callable[[Peer, Request], None]:
    def play(peer: Peer, request: Request) -> None:
        kind = f"Content-Type: {content_type}\r\n" if content_type else ""
        peer.answer(body, status=status, headers=kind + headers)

    return play


def test_a_page_is_its_main_text_as_markdown(web: Any) -> None:
    with serve(page(ARTICLE.encode())) as server:
        said = web.fetch(f"{server.url}/deep/page?x=1#part")
    first, title, *_ = said.splitlines()
    assert first == f"[the page {server.url}/deep/page?x=1]"
    assert title == "Title: A title & more"
    assert "# The heading" in said
    assert "**something**" in said
    assert f"[link]({server.url}/other)" in said
    assert "- one" in said
    assert "alert" not in said
    assert "Imprint" not in said


def test_we_say_who_we_are_and_ask_for_what_we_can_read(web: Any) -> None:
    with serve(page(b"text", "text/plain")) as server:
        web.fetch(server.url)
        (request,) = server.requests
    assert request.line == "GET / HTTP/1.1"
    assert request.headers["host"] == server.host
    assert request.headers["user-agent"].startswith("agent-host-web/")
    assert request.headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", "words"),
        ("application/json; charset=utf-8", '{"a": 1}'),
        ("application/ld+json", "{}"),
        ("text/csv", "a,b"),
        ("image/svg+xml", "<svg/>"),
        ("", "no type at all"),
    ],
)
def test_text_is_left_as_it_is(web: Any, content_type: str, body: str) -> None:
    with serve(page(body.encode(), content_type)) as server:
        assert web.fetch(server.url) == f"[the page {server.url}/]\n\n{body}"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/pdf", b"%PDF-1.7"),
        ("image/png", b"\x89PNG"),
        ("application/octet-stream", b"x"),
        ("text/plain", b"a\0b"),
        ("", b"\x7fELF\0\0"),
    ],
)
def test_what_is_no_text_is_refused_and_named(web: Any, content_type: str, body: bytes) -> None:
    with serve(page(body, content_type)) as server, pytest.raises(ToolError) as error:
        web.fetch(server.url)
    assert "is no text but" in str(error.value)
    assert (content_type or "binary") in str(error.value)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain; charset=iso-8859-1", "café €".encode("cp1252")),
        ("text/plain; charset=utf-16", "café €".encode("utf-16")),
        ("text/plain", b"\xef\xbb\xbf" + "café €".encode()),
        ("text/plain; charset='gb18030'", "café €".encode("gb18030")),
        ("text/plain;charset=shift_jis;x=y", "日本".encode("shift_jis")),
    ],
)
def test_letters_are_read_as_they_were_written(web: Any, content_type: str, body: bytes) -> None:
    with serve(page(body, content_type)) as server:
        assert web.fetch(server.url).endswith(("\ncafé €", "\n日本"))


@pytest.mark.parametrize("charset", ["punycode", "idna", "zlib", "rot13", "unicode_escape", "x-y"])
def test_letters_that_are_none_are_told(web: Any, charset: str) -> None:
    with serve(page(b"plain \\u0041", f"text/plain; charset={charset}")) as server:
        said = web.fetch(server.url)
    assert "plain \\u0041" in said
    assert f"[note: its letters are said to be '{charset}', which is not known]" in said


def test_a_page_says_its_letters_itself(web: Any) -> None:
    html = "<html><head><meta charset='windows-1251'></head><body><p>Привет, мир</p></body></html>"
    with serve(page(html.encode("cp1251"))) as server:
        assert "Привет, мир" in web.fetch(server.url)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"hello world")),
        ("gzip", gzip.compress(b"hello ") + gzip.compress(b"world")),
        ("x-gzip", gzip.compress(b"hello world") + b"\0\0\0"),
        ("deflate", zlib.compress(b"hello world")),
        ("deflate", raw_deflate(b"hello world")),
        ("identity", b"hello world"),
    ],
)
def test_compression_is_undone(web: Any, coding: str, body: bytes) -> None:
    with serve(page(body, "text/plain", f"Content-Encoding: {coding}\r\n")) as server:
        assert web.fetch(server.url).endswith("\nhello world")


@pytest.mark.parametrize(
    ("coding", "body"),
    [("br", b"x"), ("gzip", b"no gzip"), ("gzip", gzip.compress(b"x" * 999)[:-9])],
)
def test_compression_that_cannot_be_undone_is_told(web: Any, coding: str, body: bytes) -> None:
    answer = page(body, "text/plain", f"Content-Encoding: {coding}\r\n")
    with serve(answer) as server, pytest.raises(ToolError):
        web.fetch(server.url)


def test_a_long_page_is_read_in_parts_and_fetched_once(open_web: Callable[..., Any]) -> None:
    web = open_web(obey_robots=False, max_page_characters=100)
    text = "".join(f"line {number:03}\n" for number in range(50)).strip()
    with serve(page(text.encode(), "text/plain")) as server:
        parts, offset = [], 0
        while True:
            result = web.result(server.url, offset=offset)
            parts.append(text[offset : result["display"]["characters"][1]])
            if not result["text"].endswith(f"go on with offset {offset + len(parts[-1])}]"):
                break
            assert (
                f"characters {offset} to {offset + len(parts[-1])} of {len(text)}"
                in (result["text"])
            )
            offset += len(parts[-1])
        with pytest.raises(ToolArgumentsError, match="there is none at 1000"):
            web.fetch(server.url, offset=1000)
        assert server.connections == 1
        web.fetch(server.url)
        assert server.connections == 2
    assert "".join(parts) == text
    assert len(parts) == 5


def test_what_is_longer_than_the_limit_is_told(open_web: Callable[..., Any]) -> None:
    web = open_web(obey_robots=False, max_page_bytes=10)
    with serve(page(b"0123456789abcdef", "text/plain")) as server:
        assert web.fetch(server.url).endswith(
            "\n0123456789\n[note: only the first 10 bytes were read]"
        )


def test_a_page_that_ends_before_its_end_is_told(web: Any) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nbegin")
        peer.sock.close()

    with serve(play) as server:
        assert web.fetch(server.url).endswith("\nbegin\n[note: the server ended before its end]")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("404 Not Found", "answers 404 Not Found"),
        ("500 X", "answers 500"),
        ("799 X", "answers 799"),
    ],
)
def test_a_refusal_is_told(web: Any, status: str, said: str) -> None:
    with serve(page(b"no", status=status)) as server, pytest.raises(ToolError, match=said):
        web.fetch(f"{server.url}/x")


def test_a_page_without_main_text_is_all_of_its_text(web: Any) -> None:
    with serve(page(b"<html><body><p>Hi</p></body></html>")) as server:
        assert "Hi" in web.fetch(server.url)


def test_controls_are_not_passed_on(web: Any) -> None:
    with serve(page("a\x1b[31mb\x07c\x9bd".encode(), "text/plain")) as server:
        assert web.fetch(server.url).endswith("\na\ufffd[31mb\ufffdc\ufffdd")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"url": None},
        {"url": ["http://x"]},
        {"url": "http://example.org/", "offset": -1},
        {"url": "http://example.org/", "offset": True},
        {"url": "http://example.org/", "method": "POST"},
        "http://example.org/",
        None,
    ],
)
def test_what_is_no_call_is_refused(web: Any, payload: Any) -> None:
    with pytest.raises(ToolArgumentsError):
        web.plugin.execute_tool("fetch_page", payload, web.state, {})


def test_there_is_no_other_tool(web: Any) -> None:
    with pytest.raises(UnknownToolError):
        web.plugin.execute_tool("fetch", {"url": "http://example.org/"}, web.state, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_page_bytes", 0),
        ("max_page_bytes", 1.5),
        ("max_page_seconds", float("nan")),
        ("max_page_seconds", 0),
        ("max_redirects", -1),
        ("max_redirects", True),
        ("allowed_networks", "127.0.0.1"),
        ("allowed_networks", ["127.0.0.1/8"]),
        ("allowed_networks", [{}]),
        ("obey_robots", "no"),
    ],
)
def test_settings_are_checked_and_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        WebTools().init({key: value})
    assert error.value.key == key
    assert error.value.hint


def test_schemas_and_settings_are_handed_out_as_copies() -> None:
    WebTools().get_tool_schemas()[0]["parameters"].clear()
    WebTools().get_config_schema().clear()
    assert WebTools().get_tool_schemas()[0]["parameters"]
    assert WebTools().get_config_schema()
