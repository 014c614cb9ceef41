"""Servers that are programs: started in a group of their own, spoken to by lines, ended for good.

Owns the process, its pipes, and everything that it may have started. What the lines mean is the
SDK's concern. Everything here runs in the loop of the connections.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agent_hookspecs import ToolError
from agent_hookspecs.logs import get_logger
from agent_host_mcp.servers import MARKER, Server

if TYPE_CHECKING:
    from mcp.client import Transport

__all__ = ["open_process"]

log = get_logger(__name__)

#: How long a server may take to end by itself once nobody speaks to it, and after it was asked to.
_END_SECONDS = 1.0
_TERM_SECONDS = 1.0
_POLL_SECONDS = 0.01
#: How long a server that has ended is listened to; what it has started may hold its pipes for ever.
_LAST_WORDS_SECONDS = 0.5
_CHUNK = 65_536
#: What is kept of what a server says on its error stream, for the message that tells of its end.
_SAID_BYTES = 2_000
#: Lines that are no message; a server that has more to say than this is not spoken with.
_MAX_GARBAGE = 1_000

OnEnd = Callable[[str], None]


def open_process(server: Server, max_bytes: int, on_end: OnEnd) -> Transport:
    """The way to speak with a server that is started for it; ``on_end`` is told why it ended."""
    if sys.platform == "win32":
        # There the SDK puts the program into a job object, which ends everything that it starts.
        parameters = StdioServerParameters(
            command=server.command, args=[*server.args], env=server.environment(""), cwd=server.cwd
        )
        return stdio_client(parameters)
    return _open_in_group(server, max_bytes, on_end)


@asynccontextmanager
async def _open_in_group(
    server: Server, max_bytes: int, on_end: OnEnd
) -> AsyncIterator[tuple[Any, Any]]:
    marker = uuid.uuid4().hex
    process = _start(server, marker)
    ended = _Ended(on_end)
    try:
        async with _Pipes(process) as pipes:
            to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write, from_session = anyio.create_memory_object_stream[SessionMessage](0)
            async with read, write, anyio.create_task_group() as tasks:
                tasks.start_soon(_read_lines, server, pipes, to_session, max_bytes, ended)
                tasks.start_soon(_write_lines, pipes, from_session, ended)
                tasks.start_soon(pipes.read_errors)
                try:
                    yield read, write
                finally:
                    ended.is_wanted = True
                    with anyio.CancelScope(shield=True):
                        pipes.end_input()
                        await _end_group(process, marker)
                    tasks.cancel_scope.cancel()
    finally:
        # As long as nobody has waited for it, its number is nobody else's.
        if process.poll() is None:
            _kill_group(process.pid)
            process.wait()


def _start(server: Server, marker: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [server.command, *server.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=server.cwd,
            env=server.environment(marker),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ToolError(
            f"the MCP server {server.name!r} cannot be started: {server.command}: {why}",
            hint="look at its command and cwd in the config",
        ) from error


class _Ended:
    """Tells once why a server ended that nobody wanted to end."""

    def __init__(self, tell: OnEnd) -> None:
        self._tell = tell
        self._is_told = asyncio.Event()
        self.is_wanted = False

    def because(self, why: str) -> None:
        if not self.is_wanted:
            self.is_wanted = True
            self._tell(why)
        self._is_told.set()

    async def wait_until_told(self, seconds: float) -> None:
        """Let whoever knows more tell it first."""
        with suppress(asyncio.TimeoutError):
            # Nothing is lost: then nobody knows more.
            await asyncio.wait_for(self._is_told.wait(), seconds)


class _Flow(asyncio.BaseProtocol):
    """Says when a pipe can be written to again, or never."""

    def __init__(self) -> None:
        self._is_writable = asyncio.Event()
        self._is_writable.set()
        self._is_lost = False

    def pause_writing(self) -> None:
        self._is_writable.clear()

    def resume_writing(self) -> None:
        self._is_writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._is_writable.set()

    async def wait_until_writable(self) -> None:
        await self._is_writable.wait()
        if self._is_lost:
            raise BrokenPipeError


class _Pipes:
    """The three pipes of a process as streams of the running loop."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._transports: list[asyncio.BaseTransport] = []
        self._said: deque[bytes] = deque()
        self._is_silent = asyncio.Event()

    async def __aenter__(self) -> _Pipes:
        loop = asyncio.get_running_loop()
        assert self._process.stdin is not None, "all three are pipes"
        try:
            self.output = await self._reader(loop, self._process.stdout)
            self.errors = await self._reader(loop, self._process.stderr)
            self._input, self._flow = await loop.connect_write_pipe(_Flow, self._process.stdin)
            self._transports.append(self._input)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _reader(self, loop: asyncio.AbstractEventLoop, pipe: Any) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=_CHUNK, loop=loop)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop), pipe
        )
        self._transports.append(transport)
        return reader

    async def write(self, data: bytes) -> None:
        """Write to the server; waits while it does not read."""
        if self._input.is_closing():
            raise BrokenPipeError
        self._input.write(data)
        await self._flow.wait_until_writable()

    def end_input(self) -> None:
        """Tell the server that nothing more comes; what it has not read by now is of no use."""
        if not self._input.is_closing():
            self._input.abort()

    async def read_errors(self) -> None:
        """Keep the last of what the server says beside its messages."""
        while chunk := await self.errors.read(_CHUNK):
            self._said.append(chunk[-_SAID_BYTES:])
            while sum(map(len, self._said)) - len(self._said[0]) >= _SAID_BYTES:
                self._said.popleft()
        self._is_silent.set()

    async def last_words(self) -> str:
        """What it has said at the end, which may come after the end of its messages."""
        with suppress(asyncio.TimeoutError):
            # Nothing is lost: what was said until now is there.
            await asyncio.wait_for(self._is_silent.wait(), _LAST_WORDS_SECONDS)
        return b"".join(self._said)[-_SAID_BYTES:].decode("utf-8", "replace").strip()

    async def __aexit__(self, *error: object) -> None:
        for transport in self._transports:
            if transport.is_closing():
                continue
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            else:
                transport.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                # Nothing is lost: what could not be written has nobody to read it.
                if pipe is not None:
                    pipe.close()
        # One pass of the loop, in which transports let their pipes go.
        await asyncio.sleep(0)


async def _read_lines(
    server: Server, pipes: _Pipes, to_session: Any, max_bytes: int, ended: _Ended
) -> None:
    """Hand on every line that is a message, until there are no more."""
    garbage = 0
    async with to_session:
        async for line in _lines(pipes.output, max_bytes):
            if line is None:
                ended.because(f"it sent a message of more than {max_bytes} bytes")
                return
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                garbage += 1
                if garbage == 1:
                    shown = line[:200].decode("utf-8", "replace")
                    log.warning("mcp_not_a_message", server=server.name, line=shown)
                if garbage > _MAX_GARBAGE:
                    ended.because(f"it sent more than {_MAX_GARBAGE} lines that are no messages")
                    return
                continue
            try:
                await to_session.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                # Nothing is lost: the session is over, and nobody waits for an answer.
                return
        said = await pipes.last_words()
        ended.because("it ended" + (f"; its last words: {said}" if said else ""))


async def _lines(reader: asyncio.StreamReader, max_bytes: int) -> AsyncIterator[bytes | None]:
    """The lines of a stream; None, and no more, for one that is too long."""
    parts: list[bytes] = []
    size = 0
    while chunk := await reader.read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            yield b"".join([*parts, end])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > max_bytes:
            yield None
            return


async def _write_lines(pipes: _Pipes, from_session: Any, ended: _Ended) -> None:
    async with from_session:
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipes.write(text.encode() + b"\n")
        except (OSError, anyio.ClosedResourceError):
            # Nothing is lost: whoever waits for an answer is told why there is none.
            await ended.wait_until_told(2 * _LAST_WORDS_SECONDS)
            ended.because("it does not listen any more")


async def _end_group(process: subprocess.Popen[bytes], marker: str) -> None:
    """End the server and all that it has started; every wait is bounded."""
    await _wait_for(lambda: process.poll() is not None, _END_SECONDS)
    with suppress(OSError):
        # Nothing is lost: a group that is gone need not be ended.
        os.killpg(process.pid, signal.SIGTERM)
        await _wait_for(
            lambda: process.poll() is not None and not _has_members(process.pid), _TERM_SECONDS
        )
    _kill_group(process.pid)
    _kill_strays(marker)
    await _wait_for(lambda: process.poll() is not None, _TERM_SECONDS)


async def _wait_for(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = anyio.current_time() + seconds
    while not is_so() and anyio.current_time() < deadline:
        await anyio.sleep(_POLL_SECONDS)


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        # Nothing is lost: that there is none is the answer.
        return False
    except PermissionError:
        # Nothing is lost: somebody is there, whom we may not signal.
        return True
    return True


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        # Nothing is lost: the group is gone, or somebody else's by now.
        os.killpg(group, signal.SIGKILL)


def _kill_strays(marker: str) -> None:
    """Kill what has left the group of its server, where the system says who has inherited what."""
    for _ in range(3):
        strays = [*_strays(marker)]
        for pid in strays:
            with suppress(OSError):
                # Nothing is lost: it has ended by itself.
                os.kill(pid, signal.SIGKILL)
        if not strays:
            return


def _strays(marker: str) -> Iterator[int]:
    """The processes that have the server's own variable in their environment."""
    wanted = f"{MARKER}={marker}".encode()
    try:
        names = os.listdir("/proc")
    except OSError:
        # Nothing is lost: without that folder the group is all that can be found.
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    yield int(name)
        except OSError:
            # Nothing is lost: it has ended, or is somebody else's.
            continue
