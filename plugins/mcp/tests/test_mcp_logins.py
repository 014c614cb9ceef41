"""Logins by OAuth, with a real authorization server: kept, renewed, refused, and led astray."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_bench import application, config_of, folder, home, server_of
from mcp_guarded import People, serve_app, serve_guarded
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_host import ToolError
from agent_host.key_store import ToolKeys
from agent_host_mcp.approvals import Approvals
from agent_host_mcp.connection import log_in_person
from agent_host_mcp.connections import Connections
from agent_host_mcp.logins import check_other_origin, forget_login, has_login
from agent_host_mcp.servers import Limits, Server

__all__ = ["home"]

pytestmark = pytest.mark.usefixtures("home")

SECRET = "/call mcp_one__secret {}"


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def address(people: People) -> Iterator[str]:
    with serve_guarded(people) as found:
        yield found


def keys() -> ToolKeys:
    return ToolKeys("mcp")


def visit(address: str) -> int:
    """What a browser does that follows where it is sent; the status in the end."""
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


async def browse(address: str) -> None:
    await asyncio.to_thread(visit, address)


def log_in(server: Server, show: Any = browse) -> bool:
    return asyncio.run(log_in_person(server, keys(), Limits(), show))


def approve(server: Server) -> None:
    made = Connections(Limits(), lambda server, tools: None, keys())
    try:
        Approvals(str(folder())).approve(server, made.open(server).result().tools.values())
    finally:
        made.close()


def kept(server: Server) -> dict[str, Any]:
    (name,) = [each for each in json.loads(key_file().read_text())["keys"] if "one@" in each]
    found: dict[str, Any] = json.loads(json.loads(key_file().read_text())["keys"][name]["key"])
    return found


def key_file() -> Path:
    return Path(os.environ["AGENT_HOST_HOME"], "keys.json")


def test_without_a_login_a_person_is_told_how_to_log_in(address: str) -> None:
    with pytest.raises(ToolError, match="'one' wants a login") as wrong:
        approve(server_of({"url": address}))
    assert wrong.value.hint == "run: agent-host mcp login one"


def test_a_login_is_kept_for_its_owner_alone_and_used(
    address: str, people: People, caplog: pytest.LogCaptureFixture
) -> None:
    server = server_of({"url": address})
    assert log_in(server) is True
    assert key_file().stat().st_mode & 0o777 == 0o600
    approve(server)
    with application(one={"url": address}) as app:
        answer = app.run(SECRET)
        assert "the cake is real" in answer.text
        (tool,) = [each for each in app.stack().tools if each.plugin.name == "mcp"]
        shown = repr((tool.config, answer.session.messages))
    assert people.renewals == 0
    (token,) = people.access
    for text in (shown, caplog.text, (folder() / "approved.json").read_text()):
        assert token not in text
    # Another address of that name, as another project may have it, gets nothing.
    other = server_of({"url": f"{address}/other"})
    assert (has_login(server, keys()), has_login(other, keys())) == (True, False)
    assert forget_login(server, keys())
    assert not has_login(server, keys())


@pytest.mark.parametrize("seconds", [1, None])
def test_a_token_that_is_old_or_may_be_is_renewed_without_a_person(
    address: str, people: People, seconds: int | None
) -> None:
    people.seconds = seconds
    server = server_of({"url": address})
    log_in(server)
    before = kept(server)
    record = {**before, "expires": before["expires"] and 1.0}
    (name,) = json.loads(key_file().read_text())["keys"]
    ToolKeys("mcp").write(name.removeprefix("tool:mcp:"), json.dumps(record))
    people.access.clear()
    people.seconds = 3600
    approve(server)
    assert people.renewals == 1
    # What was renewed is kept: the old one is worth nothing any more.
    assert kept(server)["tokens"]["refresh_token"] in people.refresh
    assert len(people.clients) == 1
    approve(server)
    assert people.renewals == 1


def test_a_login_that_the_server_has_taken_back_is_told_and_renewed_the_next_time(
    address: str, people: People
) -> None:
    server = server_of({"url": address})
    log_in(server)
    people.access.clear()
    with pytest.raises(ToolError, match="has refused the login") as wrong:
        approve(server)
    assert "agent-host mcp login one" in wrong.value.hint
    approve(server)
    assert people.renewals == 1
    people.access.clear()
    people.refresh.clear()
    for _ in range(2):
        with pytest.raises(ToolError, match="has refused the login"):
            approve(server)


def test_a_run_that_lacks_a_login_has_one_as_soon_as_somebody_has_logged_in(
    address: str, people: People
) -> None:
    server = server_of({"url": address})
    log_in(server)
    approve(server)
    forget_login(server, keys())
    with application(one={"url": address}) as app:
        # More often than a server that ends by itself would be started again.
        for _ in range(7):
            assert "'one' wants a login" in app.run(SECRET).text
        log_in(server)
        assert "the cake is real" in app.run(SECRET).text
        # A login that is taken back while the connection is open.
        people.access.clear()
        assert "has refused the login" in app.run(SECRET).text
        assert "the cake is real" in app.run(SECRET).text


def test_a_person_who_refuses_is_not_logged_in(address: str, people: People) -> None:
    people.refuses = True
    server = server_of({"url": address})
    with pytest.raises(ToolError, match="the login was refused: access_denied"):
        log_in(server)
    assert not has_login(server, keys())


def test_whoever_comes_back_with_another_state_does_not_end_the_login(address: str) -> None:
    statuses: list[int] = []

    async def show(login: str) -> None:
        from urllib.parse import parse_qs, urlsplit

        (back,) = parse_qs(urlsplit(login).query)["redirect_uri"]
        for wrong in (f"{back}?code=stolen&state=guessed", f"{back}?code=stolen", f"{back}/x"):
            statuses.append(await asyncio.to_thread(visit, wrong))
        statuses.append(await asyncio.to_thread(visit, login))

    server = server_of({"url": address})
    assert log_in(server, show) is True
    assert statuses == [400, 400, 404, 200]


def test_a_server_without_a_login_says_so_and_nothing_is_kept() -> None:
    from mcp.server.mcpserver import MCPServer

    with serve_app(lambda origin: MCPServer("open").streamable_http_app()) as origin:
        server = server_of({"url": f"{origin}/mcp"})
        assert log_in(server) is False
    assert not has_login(server, keys())


Metadata = dict[str, Any]


def lying_server(resource: Metadata, metadata: Metadata, seen: list[str]) -> Any:
    """A server that wants a login and says of itself what it likes."""

    def make_app(origin: str) -> Starlette:
        def fill(given: Metadata) -> Metadata:
            return json.loads(json.dumps(given).replace("ORIGIN", origin))  # type: ignore[no-any-return]

        async def refuse(request: Request) -> Response:
            where = f'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource"'
            return Response(status_code=401, headers={"www-authenticate": where})

        async def say_resource(request: Request) -> Response:
            return JSONResponse(fill(resource))

        async def say_metadata(request: Request) -> Response:
            return JSONResponse(fill(metadata))

        async def take(request: Request) -> Response:
            seen.append(request.url.path)
            return JSONResponse({"client_id": "x", "redirect_uris": ["http://127.0.0.1/callback"]})

        return Starlette(
            routes=[
                Route("/mcp", refuse, methods=["GET", "POST", "DELETE"]),
                Route("/.well-known/oauth-protected-resource", say_resource),
                Route("/.well-known/oauth-authorization-server", say_metadata),
                Route("/register", take, methods=["POST"]),
                Route("/token", take, methods=["POST"]),
            ]
        )

    return make_app


RESOURCE: Metadata = {"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}
METADATA: Metadata = {
    "issuer": "ORIGIN",
    "authorization_endpoint": "ORIGIN/authorize",
    "token_endpoint": "ORIGIN/token",
    "registration_endpoint": "ORIGIN/register",
    "response_types_supported": ["code"],
    "code_challenge_methods_supported": ["S256"],
}


@pytest.mark.parametrize(
    ("resource", "metadata", "wrong"),
    [
        ({"resource": "https://bank.example/mcp"}, {}, "does not match expected"),
        ({}, {"issuer": "https://bank.example"}, "issuer"),
        ({"authorization_servers": ["http://evil.example"]}, {}, "without encryption"),
        ({}, {"registration_endpoint": "http://evil.example/r"}, "without encryption"),
        ({}, {"authorization_endpoint": "http://evil.example/a"}, "without encryption"),
    ],
    ids=["resource", "issuer", "authorization server", "registration", "authorization"],
)
def test_a_server_that_leads_the_login_astray_is_not_followed(
    resource: Metadata, metadata: Metadata, wrong: str
) -> None:
    seen: list[str] = []
    shown: list[str] = []

    async def show(login: str) -> None:
        shown.append(login)

    made = lying_server({**RESOURCE, **resource}, {**METADATA, **metadata}, seen)
    with serve_app(made) as origin:
        server = server_of({"url": f"{origin}/mcp"})
        with pytest.raises(ToolError, match=wrong):
            log_in(server, show)
    assert shown == []
    assert "/token" not in seen
    assert not has_login(server, keys())


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("http://169.254.169.254/latest", "https://docs.example/mcp"),
        ("https://127.0.0.1:8443/token", "https://docs.example/mcp"),
        ("https://localhost/token", "https://docs.example/mcp"),
        ("http://login.docs.example/token", "https://docs.example/mcp"),
        ("http://login.docs.example/token", "http://127.0.0.1:1/mcp"),
    ],
)
def test_a_server_cannot_send_us_into_this_network_nor_to_plain_http(
    address: str, server: str
) -> None:
    with pytest.raises(ToolError, match="sends us to"):
        check_other_origin(address, server)


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("https://login.example/token", "https://docs.example/mcp"),
        ("https://docs.example/token", "https://docs.example/mcp"),
        ("http://127.0.0.1:2/token", "http://127.0.0.1:1/mcp"),
        ("https://login.example/token", "http://127.0.0.1:1/mcp"),
    ],
)
def test_an_authorization_server_of_somebody_else_is_followed(address: str, server: str) -> None:
    check_other_origin(address, server)


def test_login_and_logout_on_the_command_line(address: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config_of(one={"url": address}, two={"command": "true"})))
    host = [sys.executable, "-m", "agent_host", "mcp"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*host, *words, "--config", str(file)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, stdin=-3
        )

    refused = run("login", "two")
    assert refused.returncode == 1
    assert "is a program, which has no login" in refused.stderr
    with subprocess.Popen(
        [*host, "login", "one", "--yes", "--no-browser", "--config", str(file)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "/authorize" in line:
                assert visit(line.strip("| \n")) == 200
    assert process.returncode == 0
    said = "".join(lines)
    assert f"sends you to {address.split('/')[2]} to log in" in said
    assert "You are logged in with one." in said
    (first, _) = json.loads(run("list", "--json").stdout)
    assert first["login"] is True
    assert "one is approved, with 1 tool." in run("approve", "one", "--yes").stdout
    assert "is forgotten" in run("logout", "one").stdout
    assert run("logout", "one").returncode == 1
