"""One connection: opened when first needed, owned by one task, opened again when it has ended.

The task that opens a connection is the one that closes it. Everything here runs in the loop of the
connections; whoever calls from elsewhere goes through `Connections`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError
from mcp.client.subscriptions import ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent_hookspecs import ToolError
from agent_hookspecs.logs import get_logger
from agent_host_mcp._version import __version__
from agent_host_mcp.addresses import open_address
from agent_host_mcp.approvals import Definition, find_excess
from agent_host_mcp.logins import ShowAddress, log_in, make_auth
from agent_host_mcp.processes import open_process
from agent_host_mcp.servers import Limits, Server
from agent_host_mcp.tracing import enter_trace

if TYPE_CHECKING:
    from mcp.client import Transport

    from agent_host_mcp.logins import Keys

__all__ = ["CallSide", "Connection", "Opened", "log_in_person"]

log = get_logger(__name__)

T = TypeVar("T")

_MAX_PAGES = 100
#: How often a person is asked for one call: who asks again and again wants to be given in to.
_MAX_QUESTIONS = 20
#: What the SDK says where a server at an address has forgotten us, as one does that was restarted.
_SESSION_OVER = "Session terminated"
#: Errors that say why, where those that come of them only say that.
_TELLING = (ToolError, OAuthFlowError)
#: How long a connection may take to be closed in order, before what it runs is ended.
_CLOSE_SECONDS = 1.0


class CallSide(Protocol):
    """The side of whoever has made a call; called in the loop."""

    #: The trace that the call is in, as headers of the W3C; empty for none.
    trace_context: Mapping[str, str]

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Progress of the call."""

    async def ask_person(self, params: Any) -> types.ElicitResult:
        """What a person answers to what the server wants to know."""


@dataclass(slots=True)
class Opened:
    """A connection that is open, and what its server has said of itself."""

    client: Client
    tools: dict[str, Definition]
    prompts: dict[str, Definition]
    version: str
    title: str
    #: What of it is not used, and why, by name.
    left_out: dict[str, str] = field(default_factory=dict)


#: The call in whose task something happens, where that can be told.
_current_call: ContextVar[CallSide | None] = ContextVar("agent_host_mcp_call", default=None)


class Connection:
    """The connection with one server. ``on_tools`` is told when the tools there are known.

    ``keys`` have the login with a server, if there is one.
    """

    def __init__(
        self,
        server: Server,
        limits: Limits,
        on_tools: Callable[[Mapping[str, Definition]], None] = lambda tools: None,
        keys: Keys | None = None,
    ) -> None:
        self.server = server
        self._keys = keys
        self._limits = limits
        self._on_tools = on_tools
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Opened] | None = None
        self._over = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._why = ""
        #: What a person can do something about, if there is such a thing.
        self._problem: ToolError | None = None
        self._left_out: dict[str, str] = {}
        #: How often a person was asked for each call that is pending.
        self._asked: dict[CallSide, int] = {}
        self._ends = 0
        self._last_end = ""
        self._closed = False
        self._is_looking = False
        self._is_outdated = False
        #: The calls that are pending, each with the scope that ends it when its time is up.
        self._calls: dict[CallSide, anyio.CancelScope] = {}

    async def open(self) -> Opened:
        """The open connection; it is opened if it is not, and opened again if it has ended."""
        if self._closed:
            raise ToolError(f"the MCP server {self.server.name!r} is closed")
        if self._task is None or self._task.done() or self._over.is_set():
            self._begin()
        assert self._opened is not None
        return await asyncio.shield(self._opened)

    def _begin(self) -> None:
        """Have another task open the connection, unless that was tried often enough."""
        if self._ends >= len(self._limits.back_off):
            raise ToolError(
                f"the MCP server {self.server.name!r} has ended {self._ends} times in a row and "
                f"is not started again: {self._why}",
                hint=f"run: agent-host mcp test {self.server.name}",
            )
        before, self._over, self._scope = self._task, asyncio.Event(), None
        opened = self._opened = asyncio.get_running_loop().create_future()
        # Whoever waits is told; if nobody does, nobody is missed.
        opened.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._task = asyncio.create_task(self._own(opened, self._over, before))

    async def _own(
        self,
        opened: asyncio.Future[Opened],
        over: asyncio.Event,
        before: asyncio.Task[None] | None,
    ) -> None:
        """Open the connection, hold it until it is over, and close it, all in this task."""
        if before is not None:
            # Two of a kind at once could be in each other's way.
            await asyncio.wait([before])
        error: BaseException | None = None
        loop = asyncio.get_running_loop()
        with anyio.CancelScope() as scope:
            self._scope = scope
            if self._closed:
                scope.cancel()
            try:
                await anyio.sleep(self._limits.back_off[self._ends])
                give_up = loop.call_later(self._limits.connect_seconds, scope.cancel)
                async with AsyncExitStack() as stack:
                    try:
                        made = await self._connect(stack, over)
                    finally:
                        give_up.cancel()
                    opened.set_result(made)
                    self._on_tools(made.tools)
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._watch_tools, made, over)
                        await over.wait()
                        tasks.cancel_scope.cancel()
                    # What does not close in order is ended without.
                    give_up = loop.call_later(_CLOSE_SECONDS, scope.cancel)
                give_up.cancel()
            except Exception as failure:
                error = failure
        if not opened.done():
            # What waits for a person does not count: it is tried again whenever it is wanted.
            if not self._closed and not over.is_set() and self._problem is None:
                self._ends += 1
            opened.set_exception(self._failure(error))
        elif error is not None:
            # Nothing, if that it has ended is known: then this is only how it was noticed.
            self._end(over, _first_of(error))

    def _failure(self, error: BaseException | None) -> ToolError:
        name = self.server.name
        cause = _first_of(error) if error is not None else None
        if isinstance(cause, ToolError):
            return cause
        if self._problem is not None:
            return self._problem
        if self._closed:
            return ToolError(f"the MCP server {name!r} was closed while it was opened")
        if self._why:
            what = self._why
        elif cause is None:
            what = f"it said nothing within {self._limits.connect_seconds:g} s"
        else:
            what = str(cause) or type(cause).__name__
        self._why = what
        return ToolError(
            f"the MCP server {name!r} cannot be used: {what}",
            hint=f"run: agent-host mcp test {name}",
        )

    async def _connect(self, stack: AsyncExitStack, over: asyncio.Event) -> Opened:
        self._why, self._problem = "", None
        limit = self._limits.message_bytes
        transport: Transport
        if self.server.url:
            auth = await asyncio.to_thread(make_auth, self.server, self._keys, self._note_problem)
            transport = open_address(self.server, limit, auth, self._note_problem)
        else:
            transport = open_process(self.server, limit, lambda why: self._end(over, why))
        client = Client(
            transport,
            mode=self.server.mode,
            client_info=types.Implementation(name="agent-host", version=__version__),
            elicitation_callback=self._answer_question,
            message_handler=self._take_message,
            cache=None,
        )
        await stack.enter_async_context(client)
        self._left_out = {}
        tools = await self._list_tools(client)
        prompts = await self._list_prompts(client)
        info = client.server_info
        return Opened(
            client=client,
            tools=tools,
            prompts=prompts,
            version=client.protocol_version,
            left_out=self._left_out,
            title=f"{info.name} {info.version}".strip() if info is not None else "",
        )

    def _note_problem(self, problem: ToolError) -> None:
        self._problem = problem

    def _end(self, over: asyncio.Event, why: object) -> None:
        """Note that the connection has ended by itself; the next call opens another."""
        if over.is_set() or self._closed:
            return
        self._why = self._last_end = str(why) or type(why).__name__
        self._ends += 1
        log.warning("mcp_server_ended", server=self.server.name, why=self._why)
        over.set()

    async def _list_tools(self, client: Client) -> dict[str, Definition]:
        if client.server_capabilities.tools is None:
            return {}
        found = await self._list_all(client.list_tools, lambda page: page.tools, "tools")
        return self._by_name(
            Definition(each.name, each.description or "", each.input_schema) for each in found
        )

    async def _list_prompts(self, client: Client) -> dict[str, Definition]:
        if client.server_capabilities.prompts is None:
            return {}
        found = await self._list_all(client.list_prompts, lambda page: page.prompts, "prompts")
        return self._by_name(
            Definition(each.name, each.description or "", _schema_of(each)) for each in found
        )

    def _by_name(self, definitions: Iterable[Definition]) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        for each in definitions:
            # Which of two a call would reach cannot be told; the first was there before.
            wrong = "it is there twice" if each.name in found else find_excess(each)
            if wrong:
                self._left_out[each.name] = wrong
                log.warning("mcp_left_out", server=self.server.name, name=each.name, why=wrong)
            else:
                found[each.name] = each
        return found

    async def _list_all(
        self,
        list_page: Callable[..., Awaitable[Any]],
        items_of: Callable[[Any], Sequence[T]],
        what: str,
    ) -> list[T]:
        """Everything of a listing, page by page; a `ToolError` for more than there may be."""
        items: list[T] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await list_page(cursor=cursor)
            items += items_of(page)
            if len(items) > self._limits.max_tools:
                raise ToolError(
                    f"the MCP server {self.server.name!r} lists {len(items)} {what} or more, and "
                    f"{self._limits.max_tools} are allowed",
                    hint="set mcp.max_tools higher if you want so many",
                )
            if page.next_cursor is None or page.next_cursor == cursor:
                return items
            cursor = page.next_cursor
        raise ToolError(f"the MCP server {self.server.name!r} lists {what} without an end")

    async def _watch_tools(self, opened: Opened, over: asyncio.Event) -> None:
        """Look at the tools again whenever a server of the new era says that they have changed."""
        capability = opened.client.server_capabilities.tools
        if opened.version not in MODERN_PROTOCOL_VERSIONS or not (
            capability is not None and capability.list_changed
        ):
            return
        try:
            async with opened.client.listen(tools_list_changed=True) as events:
                async for event in events:
                    if isinstance(event, ToolsListChanged):
                        await self._look_again(opened)
        except Exception as error:
            # Who comes back after that may be another: the next call looks at its tools again.
            self._end(over, _first_of(error))

    async def _take_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            opened = self._opened
            if opened is not None and opened.done() and not opened.exception():
                await self._look_again(opened.result())

    async def _look_again(self, opened: Opened) -> None:
        """List the tools again; however often a server says so, one listing at a time."""
        self._is_outdated = True
        if self._is_looking:
            return
        self._is_looking = True
        try:
            while self._is_outdated:
                self._is_outdated = False
                opened.tools = await self._list_tools(opened.client)
        except (MCPError, ToolError, ValueError) as error:
            log.failure("mcp_tools_unknown", error, server=self.server.name)
        else:
            self._on_tools(opened.tools)
        finally:
            self._is_looking = False

    async def call(
        self, tool: Definition, arguments: dict[str, Any], side: CallSide
    ) -> tuple[types.CallToolResult, str]:
        """The result of a call, and a note for the model if the server is not the one it was.

        A server that does not define the tool exactly so is not called.
        """
        opened = await self.open()
        current = opened.tools.get(tool.name)
        if current is None or current.digest != tool.digest:
            raise ToolError(
                f"the MCP server {self.server.name!r} has changed its tool {tool.name!r} just now; "
                "nothing was called"
            )
        note = ""
        if self._last_end:
            note = f"[The MCP server {self.server.name!r} was started again: {self._last_end}. "
            note += "What it knew before may be lost.]"
            self._last_end = ""
        client = opened.client

        async def request(report: Any) -> types.CallToolResult:
            with enter_trace(side.trace_context):
                return await client.call_tool(tool.name, arguments, progress_callback=report)

        return await self._ask_server(tool.name, request, side), note

    async def get_prompt(
        self, prompt: Definition, arguments: dict[str, str], side: CallSide
    ) -> types.GetPromptResult:
        """What a prompt gives; nothing if the server does not define it exactly so by now."""
        client = (await self.open()).client

        async def request(_: Any) -> types.GetPromptResult:
            current = (await self._list_prompts(client)).get(prompt.name)
            if current is None or current.digest != prompt.digest:
                raise ToolError(
                    f"the prompt {prompt.name!r} of the MCP server {self.server.name!r} is not as "
                    "it was approved",
                    hint=f"run: agent-host mcp approve {self.server.name}",
                )
            return await client.get_prompt(prompt.name, arguments)

        return await self._ask_server(prompt.name, request, side)

    async def read_resource(self, uri: str, side: CallSide) -> types.ReadResourceResult:
        """What stands at an address of the server's own."""
        client = (await self.open()).client

        async def request(_: Any) -> types.ReadResourceResult:
            return await client.read_resource(uri)

        return await self._ask_server(uri, request, side)

    async def list_resources(
        self, side: CallSide
    ) -> tuple[list[types.Resource], list[types.ResourceTemplate]]:
        """The resources of the server, and how the addresses of others are made."""
        client = (await self.open()).client
        if client.server_capabilities.resources is None:
            return [], []

        async def request(
            _: Any,
        ) -> tuple[list[types.Resource], list[types.ResourceTemplate]]:
            resources = await self._list_all(
                client.list_resources, lambda page: page.resources, "resources"
            )
            templates = await self._list_all(
                client.list_resource_templates, lambda page: page.resource_templates, "templates"
            )
            return resources, templates

        return await self._ask_server("resources", request, side)

    async def _ask_server(
        self, what: str, request: Callable[[Any], Awaitable[T]], side: CallSide
    ) -> T:
        """What comes of a request, within its time; what goes wrong is told in our words."""
        over = self._over
        token = _current_call.set(side)
        try:
            result = await self._ask_within_time(request, side)
        except ToolError:
            raise
        except Exception as error:
            await self._raise_failure(what, _first_of(error), over)
            raise
        finally:
            _current_call.reset(token)
        self._ends = 0
        return result

    async def _ask_within_time(self, request: Callable[[Any], Awaitable[T]], side: CallSide) -> T:
        seconds = self._limits.call_seconds
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                scope.deadline = anyio.current_time() + seconds
                side.report_progress(progress, total, message)

            self._calls[side] = scope
            try:
                return await request(report)
            finally:
                del self._calls[side]
                self._asked.pop(side, None)
        raise ToolError(
            f"the MCP server {self.server.name!r} did not answer within {seconds:g} s; the call "
            "was cancelled, but may have had its effect",
            hint="set mcp.call_seconds higher if that is to be expected",
        )

    async def _raise_failure(self, tool: str, error: BaseException, over: asyncio.Event) -> None:
        name = self.server.name
        if self._problem is not None:
            # Another connection begins without it: a person may have done something about it.
            problem, self._problem = self._problem, None
            self._end(over, problem)
            self._ends = 0
            raise problem
        is_over = isinstance(error, MCPError) and (
            error.code == types.CONNECTION_CLOSED or error.message == _SESSION_OVER
        )
        if isinstance(error, MCPError) and not is_over:
            raise ToolError(f"the MCP server {name!r} refused the call: {error.message}") from error
        if is_over or isinstance(error, OSError) or type(error).__module__.startswith("httpx"):
            # What is said by the one who reads is told before the pipe's own words.
            with suppress(asyncio.TimeoutError):
                # Nothing is lost: where nobody says more, the error itself is told.
                await asyncio.wait_for(over.wait(), 0.1)
            self._end(over, error)
            words = self._why.removeprefix("it ended").removeprefix("; ")
            raise ToolError(
                f"the MCP server {name!r} ended during the call{f': {words}' * bool(words)}. "
                "It is started again "
                "with the next call; whether this one had its effect is not known"
            ) from error
        raise ToolError(
            f"the MCP server {name!r} gave an answer to {tool!r} that cannot be used: {error}"
        ) from error

    async def _answer_question(
        self, context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Put a question of the server to the person of the call that it belongs to."""
        side = _current_call.get()
        if side is None and len(self._calls) == 1:
            (side,) = self._calls
        if side is None:
            # Of several calls, each may be somebody else's.
            log.warning("mcp_question_of_no_call", server=self.server.name)
            return types.ElicitResult(action="cancel")
        self._asked[side] = self._asked.get(side, 0) + 1
        if self._asked[side] > _MAX_QUESTIONS:
            log.warning("mcp_too_many_questions", server=self.server.name, most=_MAX_QUESTIONS)
            return types.ElicitResult(action="cancel")
        scope = self._calls[side]
        scope.deadline = float("inf")
        try:
            return await side.ask_person(params)
        finally:
            scope.deadline = anyio.current_time() + self._limits.call_seconds

    async def close(self) -> None:
        """End the connection, and all that was started for it."""
        self._closed = True
        task = self._task
        if task is None or task.done():
            return
        if self._opened is not None and self._opened.done():
            self._over.set()
        elif self._scope is not None:
            self._scope.cancel()
        await asyncio.wait([task])


async def log_in_person(
    server: Server, keys: Keys, limits: Limits, show_address: ShowAddress
) -> bool:
    """Have a person log in with a server, and speak with it; False if it wants no login."""
    problems: list[ToolError] = []
    has_asked = False

    async def show(address: str) -> None:
        nonlocal has_asked
        has_asked = True
        await show_address(address)

    try:
        async with log_in(server, keys, show, problems.append) as auth:
            transport = open_address(server, limits.message_bytes, auth, problems.append)
            async with Client(transport, mode=server.mode, cache=None) as client:
                assert client.protocol_version
    except ToolError:
        raise
    except Exception as error:
        cause = problems[0] if problems else _first_of(error)
        if isinstance(cause, ToolError):
            raise cause from error
        raise ToolError(f"the login with {server.name!r} failed: {cause}") from error
    return has_asked


def _schema_of(prompt: types.Prompt) -> dict[str, Any]:
    """What a prompt takes, in the form in which tools say it."""
    arguments = prompt.arguments or []
    return {
        "type": "object",
        "properties": {each.name: {"description": each.description or ""} for each in arguments},
        "required": [each.name for each in arguments if each.required],
    }


def _first_of(error: BaseException) -> BaseException:
    """The first error of a group that is no group itself; what we have raised before others."""
    leaves = [*_leaves(error)]
    return next((each for each in leaves if isinstance(each, _TELLING)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    inner = getattr(error, "exceptions", None)
    if not inner:
        yield error
    for each in inner or ():
        yield from _leaves(each)
