"""All connections of one config: a loop in a thread of its own, in which they live.

The thread begins with the first connection and ends with `close`, so sync and async runs, one after
the other and at once, share what is open. Owns the way from a run's thread into the loop and back;
it must not know what is approved.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from agent_hookspecs import ToolError
from agent_host_mcp.servers import Limits, Server

if TYPE_CHECKING:
    from mcp_types import (
        CallToolResult,
        ElicitResult,
        GetPromptResult,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
    )

    from agent_host_mcp.approvals import Definition
    from agent_host_mcp.connection import Connection, Opened
    from agent_host_mcp.logins import Keys

__all__ = ["Connections", "Progress", "Question", "Side", "follow"]

T = TypeVar("T")

#: How often it is looked whether anybody still waits for a call.
_POLL_SECONDS = 0.05
#: How long closing may take before whoever closes goes on: ending a process has times of its own.
_CLOSE_SECONDS = 10.0

OnTools = Callable[[Server, Mapping[str, "Definition"]], None]


class Connections:
    """The connections of some servers. Safe to use from any thread."""

    def __init__(self, limits: Limits, on_tools: OnTools, keys: Keys | None = None) -> None:
        self._limits = limits
        self._keys = keys
        self._on_tools = on_tools
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: dict[str, Connection] = {}
        self._closed = False

    def open(self, server: Server) -> Future[Opened]:
        """Open the connection with a server, if it is not open."""
        return self._submit(lambda: self._connection(server).open())

    def call(
        self, server: Server, tool: Definition, arguments: dict[str, Any], side: Side
    ) -> Future[tuple[CallToolResult, str]]:
        """Call a tool of a server that defines it exactly so."""
        return self._submit(lambda: self._connection(server).call(tool, arguments, side))

    def get_prompt(
        self, server: Server, prompt: Definition, arguments: dict[str, str], side: Side
    ) -> Future[GetPromptResult]:
        """What a prompt of a server gives that defines it exactly so."""
        return self._submit(lambda: self._connection(server).get_prompt(prompt, arguments, side))

    def read_resource(self, server: Server, uri: str, side: Side) -> Future[ReadResourceResult]:
        """What stands at an address of a server's own."""
        return self._submit(lambda: self._connection(server).read_resource(uri, side))

    def list_resources(
        self, server: Server, side: Side
    ) -> Future[tuple[list[Resource], list[ResourceTemplate]]]:
        """The resources of a server, and how the addresses of others are made."""
        return self._submit(lambda: self._connection(server).list_resources(side))

    def close(self) -> None:
        """End every connection and the thread; whoever still waits is told."""
        with self._lock:
            self._closed = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        atexit.unregister(self.close)
        ended = asyncio.run_coroutine_threadsafe(self._end_all(), loop)
        ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
        thread.join(_CLOSE_SECONDS)

    async def _end_all(self) -> None:
        await asyncio.gather(*(each.close() for each in self._connections.values()))
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _connection(self, server: Server) -> Connection:
        found = self._connections.get(server.name)
        if found is None:
            # Here, because this is the first that needs the SDK.
            from agent_host_mcp.connection import Connection

            found = self._connections[server.name] = Connection(
                server,
                self._limits,
                lambda tools: self._on_tools(server, tools),
                self._keys,
            )
        return found

    def _submit(self, start: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        async def begin() -> T:
            return await start()

        with self._lock:
            if self._closed:
                raise ToolError("the connections with MCP servers are closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="agent-host-mcp", daemon=True
                )
                self._thread.start()
                # For a program that ends without closing its application.
                atexit.register(self.close)
            return asyncio.run_coroutine_threadsafe(begin(), self._loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


class Progress:
    """How far a call is."""

    __slots__ = ("message", "progress", "total")

    def __init__(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress = progress
        self.total = total
        self.message = message


class Question:
    """What a server wants to know of a person; `answer` it from any thread."""

    def __init__(self, params: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.params = params
        self._loop = loop
        self._answer: asyncio.Future[ElicitResult] = loop.create_future()

    def answer(self, result: ElicitResult) -> None:
        def put() -> None:
            if not self._answer.done():
                self._answer.set_result(result)

        self._loop.call_soon_threadsafe(put)

    async def wait(self) -> ElicitResult:
        return await self._answer


class Side:
    """The caller's side of a call: what comes from the loop, to be taken in the run's thread.

    Of progress only the latest is kept, however fast a server reports. ``trace_context`` is the
    trace that the call is in.
    """

    def __init__(self, trace_context: Mapping[str, str] | None = None) -> None:
        self.trace_context = trace_context or {}
        self._items: SimpleQueue[Question | None] = SimpleQueue()
        self._progress: Progress | None = None

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        known, self._progress = self._progress, Progress(progress, total, message)
        if known is None:
            self._items.put(None)

    async def ask_person(self, params: Any) -> ElicitResult:
        question = Question(params, asyncio.get_running_loop())
        self._items.put(question)
        return await question.wait()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._items.put(None)

    def wait(self, seconds: float) -> Question | Progress | None:
        """What has come, or None after a while."""
        try:
            item = self._items.get(timeout=seconds)
        except Empty:
            # Nothing is lost: whoever waits looks at the rest and comes again.
            return None
        if item is not None:
            return item
        progress, self._progress = self._progress, None
        return progress


def follow(
    future: Future[T], side: Side, is_cancelled: Callable[[], bool]
) -> Generator[Question | Progress, None, T]:
    """Everything that comes of a call, and its result in the end.

    Whoever stops reading, and a run that was cancelled, cancels the call.
    """
    future.add_done_callback(lambda _: side.wake())
    try:
        while True:
            item = side.wait(_POLL_SECONDS)
            if item is not None:
                yield item
            elif future.done():
                return future.result()
            elif is_cancelled():
                raise ToolError("the call was cancelled")
    except CancelledError:
        raise ToolError("the connections with MCP servers were closed during the call") from None
    finally:
        future.cancel()
