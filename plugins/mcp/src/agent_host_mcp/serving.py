"""``agent-host mcp serve``: the tools of the application, for MCP clients, by pipe or by HTTP.

The host's policy decides about every call. What it would ask a person is put to the client, which
has the person; a client that cannot ask gets a refusal. Owns the way from the protocol to the
application and back.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent_hookspecs import ConfigError
from agent_host_mcp._version import __version__
from agent_host_mcp.approvals import spell_out

__all__ = ["Place", "offered_tools", "read_place", "serve_on_http", "serve_on_stdio"]

_ALLOW = {
    "type": "object",
    "properties": {
        "allow": {"type": "boolean", "title": "Allow", "description": "Whether the call may run."}
    },
    "required": ["allow"],
}
#: The key of our one question.
_KEY = "allow"
_MAX_SHOWN = 2_000


#: The variable with the token that requests need; not an option, because all can see those.
TOKEN_VARIABLE = "AGENT_HOST_MCP_TOKEN"
_LEAST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where to serve over HTTP, and the token that requests need; "" for none."""

    host: str
    port: int
    token: str = field(default="", repr=False)

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_place(text: str) -> Place:
    """The place that ``HOST:PORT`` names; one that others could reach needs a token."""
    host, colon, digits = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not digits.isdigit() or int(digits) > 65_535:
        raise ConfigError(f"--http {text!r} is no HOST:PORT", hint="such as 127.0.0.1:8811")
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < _LEAST_TOKEN:
        raise ConfigError(
            f"{TOKEN_VARIABLE} is shorter than {_LEAST_TOKEN} letters", hint="set a longer one"
        )
    if not _is_loopback(host):
        if not token:
            raise ConfigError(
                f"at {host} others than you could call your tools",
                hint=f"serve at 127.0.0.1, or set {TOKEN_VARIABLE} to a token for your clients",
            )
        if host in ("0.0.0.0", "::", "*"):
            raise ConfigError(
                f"{host} is no address that clients could name",
                hint="give the address or the name of this machine that they use",
            )
    return Place(host, int(digits), token)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Nothing is lost: a name may lead anywhere, so it is not taken for this machine.
        return False


def serve_on_http(
    application: Any, options: Mapping[str, Any], place: Place, say: Callable[[str], None]
) -> None:
    """Serve until we are stopped; ``say`` is told where."""
    import uvicorn

    listening = _bind(place)
    place = replace(place, port=listening.getsockname()[1])
    known = [place.netloc]
    if _is_loopback(place.host):
        known = [f"{name}:{place.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    # A page of the web may have any name lead to this machine: only our own names count, and no
    # page of another origin.
    security = TransportSecuritySettings(
        allowed_hosts=known, allowed_origins=[f"http://{name}" for name in known]
    )
    app: Any = _make_server(application, options).streamable_http_app(
        transport_security=security, host=place.host
    )
    if place.token:
        app = _TokenGuard(app, place.token)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    say(f"Serving at http://{place.netloc}/mcp" + (", for who has the token" * bool(place.token)))
    with listening:
        uvicorn.Server(config).run([listening])


def _bind(place: Place) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        # Now, and not by the server: whoever reads where we serve may come at once.
        listening.listen()
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(
            f"{place.netloc} cannot be served at: {why}", hint="choose another port or address"
        ) from error
    return listening


class _TokenGuard:
    """Lets only requests through that have the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(given) != 1 or not hmac.compare_digest(given[0], self._wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


def serve_on_stdio(application: Any, options: Mapping[str, Any]) -> None:
    """Serve until the client leaves; ``options`` say with which agent and provider."""
    asyncio.run(_serve(application, options))


def offered_tools(application: Any, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a client would be offered, as plain data."""
    tools = _tools_of(application, options)
    return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]


def _make_server(application: Any, options: Mapping[str, Any]) -> Server[Any]:
    tools = _Tools(application, options)
    return Server(
        "agent-host",
        version=__version__,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
    )


async def _serve(application: Any, options: Mapping[str, Any]) -> None:
    server = _make_server(application, options)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _tools_of(application: Any, options: Mapping[str, Any]) -> list[types.Tool]:
    stack = application.stack(**options)
    return [_describe_tool(stack, each) for each in stack.descriptors]


class _Tools:
    """The tools of an application as a server offers them."""

    def __init__(self, application: Any, options: Mapping[str, Any]) -> None:
        self._application = application
        self._options = dict(options)

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        found = await asyncio.to_thread(_tools_of, self._application, self._options)
        return types.ListToolsResult(tools=found)

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        asking = _Asking(context, params)
        outcome = await self._application.acall_tool(
            params.name,
            params.arguments or {},
            approve=asking.approve,
            park=asking.waits,
            on_event=_progress_reporter(context),
            **self._options,
        )
        if isinstance(outcome, Mapping):
            return _result_of(outcome)
        return asking.ask_client(outcome)


class _Asking:
    """How the person of a client is asked: in the call, or, in the new era, between two calls."""

    def __init__(self, context: Any, params: types.CallToolRequestParams) -> None:
        self._context = context
        self._answers = params.input_responses or {}
        self._state = params.request_state
        can_ask = context.session.check_client_capability(
            types.ClientCapabilities(elicitation=types.ElicitationCapability())
        )
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.waits = can_ask and is_modern and _KEY not in self._answers
        self.approve: Callable[[Any], Any] | None = None
        if can_ask and not self.waits:
            self.approve = self._read_answer if is_modern else self._ask_now

    async def _ask_now(self, approval: Any) -> str:
        use = approval.use
        answer = await self._context.session.elicit_form(
            _question(use.name, use.effect, use.payload), _ALLOW, self._context.request_id
        )
        return _decision(answer)

    def _read_answer(self, approval: Any) -> str:
        """The answer that came with the call; it counts for what was shown and nothing else."""
        answer = self._answers.get(_KEY)
        if self._state != approval.digest or not isinstance(answer, types.ElicitResult):
            return "deny"
        return _decision(answer)

    def ask_client(self, question: Any) -> types.InputRequiredResult:
        shown = question.shown
        params = types.ElicitRequestFormParams(
            message=_question(shown["name"], shown["effect"], shown["payload"]),
            requested_schema=_ALLOW,
        )
        return types.InputRequiredResult(
            input_requests={_KEY: types.ElicitRequest(params=params)},
            request_state=question.digest,
        )


def _question(name: str, effect: str, payload: object) -> str:
    text = json.dumps(payload, ensure_ascii=False, indent=1, default=str)
    more = f"\n[and {len(text) - _MAX_SHOWN} letters more]" if len(text) > _MAX_SHOWN else ""
    return f"May {name} run? Its effect is {effect}.\n{spell_out(text[:_MAX_SHOWN])}{more}"


def _decision(answer: types.ElicitResult) -> str:
    allowed = answer.action == "accept" and (answer.content or {}).get("allow") is True
    return "once" if allowed else "deny"


def _progress_reporter(context: Any) -> Callable[[Mapping[str, Any]], None]:
    """Tells the client of progress, without waiting for it."""
    count = 0
    tasks: set[asyncio.Task[None]] = set()

    def report(event: Mapping[str, Any]) -> None:
        nonlocal count
        if event["type"] != "tool_update":
            return
        count += 1
        update = event["update"]
        text = update if isinstance(update, str) else json.dumps(update, default=str)
        task = asyncio.ensure_future(context.session.report_progress(count, None, text[:500]))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return report


def _describe_tool(stack: Any, descriptor: Any) -> types.Tool:
    """A tool in the protocol's words; one that takes text gets it as ``input``."""
    view = stack.registry.inspect_schema(descriptor.schema)
    parameters = (view.parameters if view is not None else None) or {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    described = (view.description if view is not None else None) or ""
    tool = stack.tool(descriptor.tool_name)
    effect = tool.plugin.entry.tools.get(descriptor.tool_name, "execute")
    return types.Tool(
        name=descriptor.tool_name,
        description=described,
        input_schema=parameters,
        annotations=types.ToolAnnotations(read_only_hint=effect == "read"),
    )


def _result_of(message: Mapping[str, Any]) -> types.CallToolResult:
    metadata = message["metadata"]
    envelope = message.get("toolResult") or {}
    parts = envelope.get("content") if envelope.get("type") == "tool_result" else None
    content = [_block_of(part) for part in parts if isinstance(part, Mapping)] if parts else []
    return types.CallToolResult(
        content=content or [types.TextContent(text=message["content"])],
        structured_content=metadata.get("structured"),
        is_error=bool(metadata.get("error")),
    )


def _block_of(part: Mapping[str, Any]) -> types.ContentBlock:
    inner = part.get("content") or {}
    url = str(inner.get("url") or "")
    head, comma, data = url.partition(";base64,")
    media_type = head.removeprefix("data:")
    if part["type"] == "image" and comma:
        return types.ImageContent(data=data, mime_type=media_type)
    if part["type"] == "audio" and comma:
        return types.AudioContent(data=data, mime_type=media_type)
    text = inner.get("text")
    return types.TextContent(text=text if isinstance(text, str) else f"[a part: {part['type']}]")
