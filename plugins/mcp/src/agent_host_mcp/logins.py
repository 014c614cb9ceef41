"""Logins with servers at addresses: the SDK's own OAuth client, and what is kept of a login.

Tokens and the registration of this client are in the user's key store and nowhere else, under the
name and the address of the server, so that no other address gets them. Owns also the page to which
a browser comes back. It must not know how a person is shown an address.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import ipaddress
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from agent_hookspecs import ToolError
from agent_hookspecs.logs import get_logger
from agent_host_mcp.servers import Server

__all__ = [
    "Keys",
    "OnProblem",
    "ShowAddress",
    "check_other_origin",
    "forget_login",
    "has_login",
    "log_in",
    "login_error",
    "make_auth",
]

log = get_logger(__name__)

#: How long a person may take to log in.
_LOGIN_SECONDS = 300.0
_MAX_REQUEST = 16_384
#: Where a browser would come back to, in the words of the protocol, where none is sent anywhere.
_NOWHERE = AnyUrl("http://127.0.0.1/callback")
#: A time that is over: whoever holds a token with it renews it before it is used.
_LONG_AGO = 1.0
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>agent-host</title>"
    "<p style='font-family:sans-serif;margin:3em'>{}</p>"
)

OnProblem = Callable[[ToolError], None]
#: Shows a person the address at which they log in.
ShowAddress = Callable[[str], Awaitable[None]]


class Keys(Protocol):
    """What a tool keeps in the user's key store."""

    def read(self, name: str) -> str | None: ...
    def write(self, name: str, secret: str) -> None: ...
    def mask(self, *secrets: str | None) -> None: ...
    def remove(self, name: str) -> bool: ...


def has_login(server: Server, keys: Keys | None) -> bool:
    """Whether somebody has logged in with a server."""
    return keys is not None and bool(server.url) and keys.read(_key_of(server)) is not None


def forget_login(server: Server, keys: Keys) -> bool:
    """Forget a login; False if there was none."""
    return keys.remove(_key_of(server))


def make_auth(
    server: Server, keys: Keys | None, on_problem: OnProblem
) -> OAuthClientProvider | None:
    """What adds the token of a login to requests, and renews it; None if there is no login.

    ``on_problem`` is told what a person can do something about: the SDK tells only itself.
    """
    has_own = any(header.casefold() == "authorization" for header in server.headers)
    if keys is None or has_own or not has_login(server, keys):
        return None
    kept = _Kept(server, keys)

    async def refuse(_: str) -> None:
        # The token may only be old although nobody said when it would be.
        kept.expire()
        problem = login_error(server, "has refused the login that was kept")
        on_problem(problem)
        raise problem

    async def never() -> AuthorizationCodeResult:
        raise login_error(server, "wants a login")

    return kept.make_provider(OAuthClientMetadata(redirect_uris=[_NOWHERE]), refuse, never)


@asynccontextmanager
async def log_in(
    server: Server, keys: Keys, show_address: ShowAddress, on_problem: OnProblem
) -> AsyncIterator[OAuthClientProvider]:
    """What logs a person in as soon as the server wants it; what was kept before is replaced."""
    kept = _Kept(server, keys, is_new=True)
    async with _Callback() as callback:
        metadata = OAuthClientMetadata(
            client_name="Agent Host", redirect_uris=[AnyUrl(callback.address)]
        )

        async def redirect(address: str) -> None:
            with _telling(on_problem):
                check_other_origin(address, server.url)
            callback.expect(address)
            await show_address(address)

        async def wait() -> AuthorizationCodeResult:
            with _telling(on_problem):
                return await callback.wait()

        yield kept.make_provider(metadata, redirect, wait)


@contextmanager
def _telling(on_problem: OnProblem) -> Iterator[None]:
    try:
        yield
    except ToolError as problem:
        on_problem(problem)
        raise


def check_other_origin(address: str, server_address: str) -> None:
    """Refuse an address to which a server sends us if it is no better guarded than that server.

    What a server says of its authorization server may lead anywhere: to plain HTTP, where others
    read along, or to a machine of the user's own network that nobody outside can reach.
    """
    other, own = urlsplit(address), urlsplit(server_address)
    if (other.scheme, other.netloc) == (own.scheme, own.netloc):
        return
    is_near = _is_private(own.hostname or "")
    if _is_private(other.hostname or "") and not is_near:
        raise ToolError(f"the server sends us to {other.netloc}, which is on this network")
    if other.scheme != "https" and not (is_near and _is_private(other.hostname or "")):
        raise ToolError(f"the server sends us to {other.netloc} without encryption")


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        # Nothing is lost: a name is looked up by whoever connects.
        return False


def login_error(server: Server, what: str) -> ToolError:
    """What is wrong with the login at a server, and how a person logs in."""
    return ToolError(
        f"the MCP server {server.name!r} {what}", hint=f"run: agent-host mcp login {server.name}"
    )


def _key_of(server: Server) -> str:
    digest = hashlib.sha256(server.url.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{server.name}@{digest[:16]}"


class _Kept:
    """What is kept of a login; the SDK's ``TokenStorage``."""

    def __init__(self, server: Server, keys: Keys, *, is_new: bool = False) -> None:
        self._server = server
        self._keys = keys
        self._record: dict[str, Any] = {} if is_new else self._read()
        self._provider: OAuthClientProvider | None = None

    def _read(self) -> dict[str, Any]:
        text = self._keys.read(_key_of(self._server))
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            raise login_error(self._server, "has a login that cannot be read") from None
        return found if isinstance(found, dict) else {}

    def make_provider(
        self,
        metadata: OAuthClientMetadata,
        redirect: ShowAddress,
        callback: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> OAuthClientProvider:
        provider = OAuthClientProvider(self._server.url, metadata, self, redirect, callback)
        record, context = self._record, provider.context
        try:
            # The SDK keeps neither of these, and without them cannot renew a token.
            if record.get("metadata"):
                context.oauth_metadata = OAuthMetadata.model_validate(record["metadata"])
            if record.get("resource"):
                found = ProtectedResourceMetadata.model_validate(record["resource"])
                context.protected_resource_metadata = found
        except ValidationError as error:
            raise login_error(self._server, "has a login that cannot be read") from error
        can_renew = bool((record.get("tokens") or {}).get("refresh_token"))
        context.token_expiry_time = record.get("expires") or (_LONG_AGO if can_renew else None)
        self._provider = provider
        return provider

    def expire(self) -> None:
        """Have the token renewed before it is used again, unless another process has done so."""
        if self._read().get("tokens") == self._record.get("tokens"):
            self._record["expires"] = _LONG_AGO
            self._write()

    async def get_tokens(self) -> OAuthToken | None:
        tokens = self._record.get("tokens")
        found = OAuthToken.model_validate(tokens) if tokens else None
        if found is not None:
            self._keys.mask(found.access_token, found.refresh_token)
        return found

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._keys.mask(tokens.access_token, tokens.refresh_token)
        self._record["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        seconds = tokens.expires_in
        self._record["expires"] = time.time() + seconds if seconds else None
        if self._provider is not None:
            context = self._provider.context
            for key, found in (
                ("metadata", context.oauth_metadata),
                ("resource", context.protected_resource_metadata),
            ):
                if found is not None:
                    self._record[key] = found.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(self._write)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        client = self._record.get("client")
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        # It is written with the first token: without one it is of no use.
        self._keys.mask(client_info.client_secret)
        self._record["client"] = client_info.model_dump(mode="json", exclude_none=True)

    def _write(self) -> None:
        self._keys.write(_key_of(self._server), json.dumps(self._record))


class _Callback:
    """The page on this machine to which a browser comes back with a code.

    Only what has the ``state`` of our own request counts; whoever else comes is sent away, and the
    person goes on being waited for.
    """

    def __init__(self) -> None:
        self._state = ""
        self._result: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> _Callback:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_MAX_REQUEST)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/callback"
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        self._result.cancel()

    def expect(self, address: str) -> None:
        """Take only what answers a request at this address."""
        (self._state,) = parse_qs(urlsplit(address).query)["state"]

    async def wait(self) -> AuthorizationCodeResult:
        try:
            return await asyncio.wait_for(asyncio.shield(self._result), _LOGIN_SECONDS)
        except asyncio.TimeoutError:
            raise ToolError(f"nobody has logged in within {_LOGIN_SECONDS:g} s") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await asyncio.wait_for(reader.readuntil(b"\r\n"), 10)).decode("latin-1")
            status, text = self._take(line.split(" "))
        except (ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError, OSError):
            # Nothing is lost: whoever speaks no HTTP is no browser that comes back.
            status, text = "400 Bad Request", "This is no request that is understood here."
        body = _PAGE.format(html.escape(text)).encode()
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\ncache-control: no-store\r\n"
            "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
            "referrer-policy: no-referrer\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            await writer.drain()
        except OSError as error:
            log.debug("mcp_login_page_unread", why=str(error))
        finally:
            writer.close()

    def _take(self, words: list[str]) -> tuple[str, str]:
        method, target, *_ = words
        asked = urlsplit(target)
        if method != "GET" or asked.path != "/callback":
            return "404 Not Found", "There is nothing here."
        given = {key: values[0] for key, values in parse_qs(asked.query).items()}
        if not self._state or given.get("state") != self._state:
            return "400 Bad Request", "This does not answer a login that was begun here."
        if self._result.done():
            return "400 Bad Request", "This login is over."
        if "error" in given:
            why = given.get("error_description") or given["error"]
            self._result.set_exception(ToolError(f"the login was refused: {why[:300]}"))
            return "200 OK", "The login was refused. You can close this window."
        self._result.set_result(
            AuthorizationCodeResult(
                code=given.get("code", ""), state=given["state"], iss=given.get("iss")
            )
        )
        return "200 OK", "You are logged in. You can close this window."
