"""``agent-host mcp serve``: the tools of the application, for an MCP client that has started us.

The host's policy decides about every call. What it would ask a person is put to the client, which
has the person; a client that cannot ask gets a refusal. Owns the way from the protocol to the
application and back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent_host_mcp._version import __version__
from agent_host_mcp.approvals import spell_out

__all__ = ["offered_tools", "serve_on_stdio"]

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


def serve_on_stdio(application: Any, options: Mapping[str, Any]) -> None:
    """Serve until the client leaves; ``options`` say with which agent and provider."""
    asyncio.run(_serve(application, options))


def offered_tools(application: Any, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a client would be offered, as plain data."""
    tools = _tools_of(application, options)
    return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]


async def _serve(application: Any, options: Mapping[str, Any]) -> None:
    tools = _Tools(application, options)
    server: Server[Any] = Server(
        "agent-host",
        version=__version__,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
    )
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
