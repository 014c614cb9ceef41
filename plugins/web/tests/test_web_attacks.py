"""What servers and models may not make the tool do, tried on real sockets."""

from __future__ import annotations

import gzip
import ipaddress
import resource
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from agent_hookspecs import ToolArgumentsError, ToolError
from agent_host_web.addresses import Target, choose_addresses, parse_url
from agent_host_web.fetching import Fetcher
from agent_host_web.line import Line
from loopback import Peer, Request, make_certificate, serve

MEGABYTE = 1 << 20


def text(body: bytes, headers: str = "") -> Callable[[Peer, Request], None]:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(body, headers=f"Content-Type: text/plain\r\n{headers}")

    return play


def redirect(where: str, status: str = "302 Found") -> Callable[[Peer, Request], None]:
    def play(peer: Peer, request: Request) -> None:
        peer.answer(b"", status=status, headers=f"Location: {where}\r\n")

    return play


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://127.0.0.1:70/_x",
        "data:text/html,x",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://user:secret@example.org/",
        "http://example.org@127.0.0.1/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org:x/",
        "http://exa mple.org/",
        "http://example.org/\r\nHost: other",
        "http://example.org\\@127.0.0.1/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://[127.0.0.1]/",
        "http://" + "a" * 300 + ".org/",
        "http://example.org/" + "a" * 5000,
        "http://\ud800.org/",
        "http://-x-/",
    ],
)
def test_urls_that_mean_something_else_are_refused(url: str) -> None:
    with pytest.raises(ToolArgumentsError):
        parse_url(url)


@given(st.text() | st.from_regex(r"https?://[^/]{0,20}(/.{0,30})?"))
@example("http://ẞ.org/ü?ö=ä#x")
@example("https://[2606:4700::1]:8443/a b")
def test_whatever_is_taken_can_be_sent_as_one_line(url: str) -> None:
    try:
        target = parse_url(url)
    except ToolArgumentsError:
        return
    line = f"GET {target.path} HTTP/1.1"
    assert line.isascii()
    assert line.isprintable()
    assert len(line.split(" ")) == 3
    assert target.path.startswith("/")
    assert target.host.isascii()
    assert parse_url(str(target)) == target


# Addresses

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:7f00:1::80ff:fffe",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
]


def addresses(*found: str, allowed: tuple[str, ...] = ()) -> list[str]:
    target = Target("http", "example.org", 80, "/")
    networks = [ipaddress.ip_network(each) for each in allowed]
    return [*map(str, choose_addresses(target, lambda host, port: found, networks))]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    with pytest.raises(ToolError, match="not on the public internet"):
        addresses(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]
)
def test_public_addresses_are_taken(address: str) -> None:
    assert addresses(address) == [str(ipaddress.ip_address(address))]


def test_of_several_addresses_only_those_are_used_that_may_be() -> None:
    assert addresses("127.0.0.1", "1.1.1.1", "::1") == ["1.1.1.1"]


def test_networks_that_are_allowed_are_those_and_no_others() -> None:
    assert addresses("10.1.2.3", allowed=("10.1.0.0/16",)) == ["10.1.2.3"]
    assert addresses("::ffff:10.1.2.3", allowed=("10.1.0.0/16",)) == ["::ffff:a01:203"]
    with pytest.raises(ToolError):
        addresses("10.2.0.1", allowed=("10.1.0.0/16",))


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address))
def test_an_address_in_another_is_judged_by_itself(inner: ipaddress.IPv4Address) -> None:
    def is_taken(address: str) -> bool:
        try:
            return bool(addresses(address))
        except ToolError:
            return False

    assert is_taken(f"::ffff:{inner}") == is_taken(str(inner))
    assert is_taken(str(ipaddress.IPv6Address(int(inner) | 0x64FF9B << 96))) == is_taken(str(inner))


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine that nobody may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "127.0.0.1.",
        "①②⑦.⓪.⓪.①",
    ],
)
def test_no_spelling_of_this_machine_is_connected_to(
    open_web: Callable[..., Any], port: int, host: str
) -> None:
    web = open_web(allowed_networks=[], obey_robots=False)
    with pytest.raises(ToolError):
        web.fetch(f"http://{host}:{port}/")


@pytest.mark.parametrize(
    "where",
    [
        "http://127.0.0.2:{port}/",
        "//127.0.0.2:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "http://user@127.0.0.2:{port}/",
        "file:///etc/passwd",
        "https:///",
        "http://2130706434:{port}/",
    ],
)
def test_a_redirect_is_looked_at_as_if_it_were_the_first(web: Any, where: str) -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        there = where.format(port=other.getsockname()[1])
        with serve(redirect(there)) as server, pytest.raises(ToolError):
            web.fetch(server.url)
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()


def test_a_name_that_changes_its_address_is_connected_to_at_the_one_that_was_looked_at() -> None:
    answers = [["127.0.0.1"], ["127.0.0.2"]]
    asked: list[str] = []

    def rebind(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    fetcher = Fetcher(
        max_bytes=1000,
        max_redirects=3,
        seconds=10,
        allowed=(ipaddress.ip_network("127.0.0.1/32"),),
        obeys_robots=False,
        resolve=rebind,
    )
    with serve(text(b"from the first")) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_server(("127.0.0.2", port)) as other:
            fetched = fetcher.fetch(Target("http", "rebinding.example", port, "/"), Line())
            assert fetched.answer.body == b"from the first"
            assert asked == ["rebinding.example"]
            assert server.requests[0].headers["host"] == f"rebinding.example:{port}"
            # The second time the name is what is not allowed, and nobody is connected to.
            with pytest.raises(ToolError, match=r"is 127\.0\.0\.2"):
                fetcher.fetch(Target("http", "rebinding.example", port, "/"), Line())
            other.settimeout(0)
            with pytest.raises(BlockingIOError):
                other.accept()


def test_the_certificate_has_to_be_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: Any
) -> None:
    certificate, context = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    from agent_host_web.exchange import trusted_context

    trusted_context.cache_clear()
    fetcher = Fetcher(
        max_bytes=1000,
        max_redirects=0,
        seconds=10,
        allowed=(ipaddress.ip_network("127.0.0.1/32"),),
        obeys_robots=False,
        resolve=lambda host, port: ["127.0.0.1"],
    )
    try:
        with serve(text(b"secret"), context) as server:
            port = int(server.url.rpartition(":")[2])
            # It is for the address.
            assert web.fetch(f"{server.url}/").endswith("\nsecret")
            with pytest.raises(ToolError, match="certificate"):
                fetcher.fetch(Target("https", "example.org", port, "/"), Line())
    finally:
        trusted_context.cache_clear()


def test_a_certificate_of_nobody_is_refused(tmp_path: Path, web: Any) -> None:
    _, context = make_certificate(tmp_path)
    with serve(text(b"secret"), context) as server, pytest.raises(ToolError, match="certificate"):
        web.fetch(server.url)


# Redirects


def test_redirects_are_followed_and_told(web: Any) -> None:
    def play(peer: Peer, request: Request) -> None:
        if request.line.startswith("GET /old"):
            peer.answer(b"", status="301 Moved", headers="Location: new%20page?q=ü\r\n")
        else:
            peer.answer(request.line.encode(), headers="Content-Type: text/plain\r\n")

    with serve(play) as server:
        said = web.fetch(f"{server.url}/old")
    assert said.startswith(f"[the page {server.url}/new%20page?q=%C3")
    assert f", where {server.url}/old leads]" in said


@pytest.mark.parametrize("status", ["301 X", "302 X", "303 X", "307 X", "308 X"])
def test_redirects_that_never_end_are_ended(open_web: Callable[..., Any], status: str) -> None:
    web = open_web(obey_robots=False, max_redirects=3)
    with serve(redirect("/again", status)) as server:
        with pytest.raises(ToolError, match="more than 3 redirects, the last one to"):
            web.fetch(server.url)
        assert len(server.requests) == 4


def test_nothing_is_kept_between_requests(web: Any) -> None:
    cookie = "Set-Cookie: id=1; Path=/\r\nWWW-Authenticate: Basic\r\n"
    with serve(text(b"x", cookie)) as server:
        web.fetch(server.url)
        web.fetch(server.url)
    assert all("cookie" not in each.headers for each in server.requests)
    assert all("authorization" not in each.headers for each in server.requests)
    assert all("referer" not in each.headers for each in server.requests)


# Size and time


def grown() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_read_up_to_the_limit(web: Any, coding: str) -> None:
    machine = zlib.compressobj(9, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    bomb = b"".join(machine.compress(b"a" * MEGABYTE) for _ in range(100)) + machine.flush()
    before = grown()
    with serve(text(bomb, f"Content-Encoding: {coding}\r\n")) as server:
        said = web.fetch(server.url)
    assert "only the first 3000000 bytes were read" in said
    assert grown() - before < 64_000


def test_many_small_bombs_in_a_row_are_one(web: Any) -> None:
    body = gzip.compress(b"a" * 100_000) * 200
    with serve(text(body, "Content-Encoding: gzip\r\n")) as server:
        assert "only the first 3000000 bytes" in web.fetch(server.url)


def test_a_body_without_end_is_read_up_to_the_limit(web: Any) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin("Content-Type: text/plain\r\n")
        while not peer.gone(0):
            peer.chunk(b"x" * 65536)

    with serve(play) as server:
        assert "only the first 3000000 bytes were read" in web.fetch(server.url)


@pytest.mark.parametrize(
    "piece", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"X: y\r\n"], ids=["stall", "continue", "head"]
)
def test_a_server_that_takes_its_time_runs_out_of_it(
    open_web: Callable[..., Any], piece: bytes
) -> None:
    def play(peer: Peer, request: Request) -> None:
        if piece.startswith(b"X"):
            peer.send(b"HTTP/1.1 200 OK\r\n")
        if piece:
            peer.drip(piece, 0.05)
        else:
            peer.stall()

    web = open_web(obey_robots=False, max_page_seconds=0.5)
    began = time.monotonic()
    with serve(play) as server:
        with pytest.raises(ToolError, match=r"took longer than 0\.5 s|header"):
            web.fetch(server.url)
        assert server.client_gone.wait(5)
    assert time.monotonic() - began < 10


def test_a_drip_runs_out_of_time(open_web: Callable[..., Any]) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin("Content-Type: text/plain\r\n")
        peer.drip(b"1\r\nx\r\n", 0.05)

    web = open_web(obey_robots=False, max_page_seconds=0.5)
    with serve(play) as server:
        with pytest.raises(ToolError, match=r"took longer than 0\.5 s"):
            web.fetch(server.url)
        assert server.client_gone.wait(5)


def test_a_handshake_that_never_ends_runs_out_of_time(open_web: Callable[..., Any]) -> None:
    web = open_web(obey_robots=False, max_page_seconds=0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(ToolError, match=r"took longer than 0\.5 s"):
            web.fetch(f"https://127.0.0.1:{server.getsockname()[1]}/")
        peer, _ = server.accept()
        with peer:
            peer.settimeout(5)
            while peer.recv(65536):
                continue


def test_what_is_cancelled_ends_at_once(web: Any) -> None:
    cancelled = threading.Event()

    def play(peer: Peer, request: Request) -> None:
        cancelled.set()
        peer.stall()

    with serve(play) as server:
        with pytest.raises(ToolError, match="cancelled"):
            web.fetch(server.url, cancelled=cancelled.is_set)
        assert server.client_gone.wait(5)


@pytest.mark.parametrize(
    "html",
    [
        "<html><body><p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x</p>",
        "<html><body>" + "<div>" * 200_000 + "x",
        "<" * 1_000_000,
    ],
    ids=["attributes", "depth", "brackets"],
)
def test_a_page_that_takes_hours_to_be_read_runs_out_of_time(
    open_web: Callable[..., Any], html: str
) -> None:
    web = open_web(obey_robots=False, max_page_seconds=4)
    began = time.monotonic()
    with serve(
        lambda peer, request: peer.answer(html.encode(), headers="Content-Type: text/html\r\n")
    ) as server:
        try:
            said = web.fetch(server.url)
        except ToolError as error:
            said = str(error)
    assert said
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\1\2\3\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_is_an_error_that_is_told(
    open_web: Callable[..., Any], answer: bytes
) -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.send(answer)
        peer.sock.close()

    web = open_web(obey_robots=False, max_page_seconds=5)
    with serve(play) as server, suppress(ToolError):
        # Whatever else it raises is a mistake.
        web.fetch(server.url)


# Robots


def site(rules: bytes, status: str = "200 OK") -> Callable[[Peer, Request], None]:
    def play(peer: Peer, request: Request) -> None:
        if request.line.startswith("GET /robots.txt "):
            peer.answer(rules, status=status, headers="Content-Type: text/plain\r\n")
        else:
            peer.answer(b"the page", headers="Content-Type: text/plain\r\n")

    return play


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        (b"User-agent: *\nDisallow: /", "/x", False),
        (b"User-agent: *\nDisallow: /private", "/x", True),
        (b"User-agent: *\nDisallow: /private", "/private/x", False),
        (b"User-agent: *\nDisallow: /\nAllow: /open", "/open/x", True),
        (b"User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        (b"User-agent: agent-host-web\nDisallow: /\nUser-agent: *\nAllow: /", "/x", False),
        (b"User-agent: other\nDisallow: /", "/x", True),
        (b"", "/x", True),
        (b"\xff\xfe<html>not rules", "/x", True),
    ],
)
def test_the_rules_of_a_site_are_obeyed(
    open_web: Callable[..., Any], rules: bytes, path: str, is_allowed: bool
) -> None:
    web = open_web()
    with serve(site(rules)) as server:
        if is_allowed:
            assert web.fetch(server.url + path).endswith("\nthe page")
            return
        with pytest.raises(ToolError, match=r"/robots\.txt does not allow") as error:
            web.fetch(server.url + path)
        assert "obey_robots" in (error.value.hint or "")
        assert all("robots" in each.line for each in server.requests)


def test_rules_are_asked_for_once_for_each_site(open_web: Callable[..., Any]) -> None:
    web = open_web()
    with serve(site(b"User-agent: *\nDisallow: /no")) as server:
        for _ in range(3):
            web.fetch(f"{server.url}/yes")
        asked = [each.line for each in server.requests if "robots" in each.line]
    assert len(asked) == 1


def test_a_site_without_rules_allows_everything(open_web: Callable[..., Any]) -> None:
    with serve(site(b"", "404 Not Found")) as server:
        assert open_web().fetch(server.url).endswith("\nthe page")


def test_a_site_that_cannot_say_its_rules_allows_nothing(open_web: Callable[..., Any]) -> None:
    refused = pytest.raises(ToolError, match=r"is not known: .*answers 503")
    with serve(site(b"", "503 Later")) as server, refused:
        open_web().fetch(server.url)


def test_rules_count_behind_a_redirect_too(open_web: Callable[..., Any]) -> None:
    def play(peer: Peer, request: Request) -> None:
        if "robots" in request.line:
            peer.answer(b"User-agent: *\nDisallow: /private")
        else:
            peer.answer(b"", status="302 Found", headers="Location: /private\r\n")

    with serve(play) as server:
        with pytest.raises(ToolError, match=r"does not allow robots to fetch .*/private"):
            open_web().fetch(server.url)
        assert [each.line.split()[1] for each in server.requests] == ["/robots.txt", "/"]


def test_rules_can_be_ignored_by_a_setting(open_web: Callable[..., Any]) -> None:
    with serve(site(b"User-agent: *\nDisallow: /")) as server:
        assert open_web(obey_robots=False).fetch(server.url).endswith("\nthe page")
        assert not any("robots" in each.line for each in server.requests)
