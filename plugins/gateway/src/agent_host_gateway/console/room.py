"""The routes of the console: its files, its login, and what its page asks for, as JSON.

Who is logged in has a gateway key with the right to the console in a cookie that no script can
read. It must not know what a run is, nor how a store works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from agent_host_gateway.access import Caller
from agent_host_gateway.console.bodies import Answering, read_object
from agent_host_gateway.console.conversing import Conversing
from agent_host_gateway.console.forms import Forms
from agent_host_gateway.console.inspecting import Inspecting
from agent_host_gateway.console.records import Records
from agent_host_gateway.refusals import Refused, refusal_of
from agent_host_gateway.server import Gateway

__all__ = ["Console"]

COOKIE = "agent_host_console"
_PAGES = Path(__file__).parent / "pages"
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_COOKIE_SECONDS = 12 * 3600


class Console:
    """The console of one gateway."""

    def __init__(self, gateway: Gateway, application: Any) -> None:
        self._gateway = gateway
        self._application = application
        self._forms = Forms(gateway, application)
        self._conversing = Conversing(gateway, application, self._forms)
        self._records = Records(gateway, application)
        self._inspecting = Inspecting(gateway, application)

    def routes(self) -> list[BaseRoute]:
        files = {path.name: path.read_bytes() for path in _PAGES.iterdir() if path.is_file()}
        api: list[tuple[str, str, Answering]] = [
            ("GET", "me", self._tell_who),
            *self._conversing.routes(),
            *self._records.routes(),
            *self._forms.routes(),
            *self._inspecting.routes(),
        ]
        return [
            Route("/", _lead_there, methods=["GET"]),
            Route("/console", _lead_there, methods=["GET"]),
            Route("/console/", _File("index.html", files["index.html"]), methods=["GET"]),
            *(
                Route(f"/console/{name}", _File(name, content), methods=["GET"])
                for name, content in files.items()
            ),
            Route("/console/api/login", self._log_in, methods=["POST"]),
            Route("/console/api/login", self._log_out, methods=["DELETE"]),
            *(
                Route(f"/console/api/{path}", self._endpoint(answer), methods=[method])
                for method, path, answer in api
            ),
        ]

    async def close(self) -> None:
        """End the runs that were begun here."""
        await self._conversing.close()

    def _endpoint(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                caller = await self._identify(request)
                given = await answer(request, caller)
            except Exception as error:
                return _refusal(refusal_of(error))
            if isinstance(given, Response):
                given.headers.update({**_HEADERS, "cache-control": "no-store"})
                return given
            return _json(given)

        return respond

    async def _identify(self, request: Request) -> Caller:
        headers: Mapping[str, str] = request.headers
        cookie = request.cookies.get(COOKIE)
        if cookie and "authorization" not in headers:
            headers = {**headers, "authorization": f"Bearer {cookie}"}
        caller = await self._gateway.identify(headers, request.scope)
        if caller.key is not None and not caller.key.console:
            raise Refused(
                f"the key {caller.name!r} does not open the console; make one that does: "
                "agent-host serve keys add NAME --console",
                kind="permission",
            )
        return caller

    async def _log_in(self, request: Request) -> Response:
        try:
            given = await read_object(request, 10_000)
            key = given.get("key")
            if not isinstance(key, str) or not key.isascii() or not key.isprintable():
                raise Refused("a key is needed", kind="authentication", param="key")
            headers = {**request.headers, "authorization": f"Bearer {key}"}
            caller = await self._gateway.identify(headers, request.scope)
            if caller.key is not None and not caller.key.console:
                raise Refused(
                    f"the key {caller.name!r} does not open the console", kind="permission"
                )
        except Exception as error:
            return _refusal(refusal_of(error))
        response = _json({"name": caller.name})
        response.set_cookie(
            COOKIE,
            key,
            max_age=_COOKIE_SECONDS,
            path="/console/api",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _log_out(self, request: Request) -> Response:
        response = _json({})
        response.delete_cookie(COOKIE, path="/console/api", httponly=True, samesite="strict")
        return response

    async def _tell_who(self, request: Request, caller: Caller) -> Any:
        upstream = self._gateway.upstream
        names = [f"agent/{each}" for each in upstream.agents()]
        return {
            "name": caller.name,
            "has_key": caller.key is not None,
            "stores": self._gateway.conversations.sessions is not None,
            "agents": [each for each in names if caller.may_use(each)],
            "models": [
                each
                for each in await upstream.list_models()
                if caller.may_use(each) and each not in names
            ],
        }


class _File:
    """One file of the page; it changes only with the package."""

    def __init__(self, name: str, content: bytes) -> None:
        kind = _KINDS[Path(name).suffix]
        charset = "" if kind.startswith("image/") else "; charset=utf-8"
        self._content = content
        self._headers = {**_HEADERS, "content-type": kind + charset, "cache-control": "no-cache"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await Response(self._content, headers=self._headers)(scope, receive, send)


async def _lead_there(request: Request) -> Response:
    return RedirectResponse("/console/", 307, headers=_HEADERS)


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, headers={**_HEADERS, "cache-control": "no-store"})


def _refusal(refused: Refused) -> Response:
    response = _json({"error": {"kind": refused.kind, "message": str(refused)}}, refused.status)
    response.headers.update(refused.headers)
    return response
