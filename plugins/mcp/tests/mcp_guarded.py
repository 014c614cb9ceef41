"""A server that wants a login, and the authorization server that it trusts, in a thread.

Both are the SDK's own; what they hand out is counted, and how they behave can be changed.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl


class People:
    """An authorization server at which one person is always logged in already."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.refuses = False
        #: How long tokens last; None does not say.
        self.seconds: int | None = 3600
        self.renewals = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        answer = {"state": params.state or ""}
        if self.refuses:
            answer["error"] = "access_denied"
        else:
            code = answer["code"] = secrets.token_urlsafe(16)
            self.codes[code] = AuthorizationCode(
                code=code,
                scopes=[],
                expires_at=time.time() + 60,
                client_id=client.client_id,
                code_challenge=params.code_challenge,
                redirect_uri=params.redirect_uri,
                redirect_uri_provided_explicitly=True,
                resource=params.resource,
            )
        return f"{params.redirect_uri}?{urlencode(answer)}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.pop(authorization_code, None)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return self._hand_out(client.client_id)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewals += 1
        del self.refresh[refresh_token.token]
        return self._hand_out(client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise NotImplementedError

    def _hand_out(self, client: str) -> OAuthToken:
        token, renewing = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.access[token] = AccessToken(token=token, client_id=client, scopes=[])
        self.refresh[renewing] = RefreshToken(token=renewing, client_id=client, scopes=[])
        return OAuthToken(access_token=token, expires_in=self.seconds, refresh_token=renewing)


@contextmanager
def serve_app(make_app: Any) -> Iterator[str]:
    """The origin of an application that is made for it."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = uvicorn.Config(make_app(origin), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield origin
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def serve_guarded(people: People) -> Iterator[str]:
    """The address of a server whose one tool needs a login with ``people``."""

    def make_app(origin: str) -> Any:
        server = MCPServer(
            "guarded",
            log_level="ERROR",
            auth_server_provider=people,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(origin),
                resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
                validate_token_resource=False,
                client_registration_options=ClientRegistrationOptions(enabled=True),
            ),
        )

        @server.tool()
        def secret() -> str:
            """Tell what only people who are logged in may know."""
            return "the cake is real"

        return server.streamable_http_app()

    with serve_app(make_app) as origin:
        yield f"{origin}/mcp"
