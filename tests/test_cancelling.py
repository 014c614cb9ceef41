"""Closing a stream, or cancelling its task, at any moment: the socket goes, nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import ProviderPlugin
from both_ways import BOTH_WAYS, Host, delta, hosted, sse, texts
from loopback import Peer, Request, serve

#: What the server must notice a closed socket within, in seconds.
AT_ONCE = 0.1


class Watching:
    """Plays a server that says something, or nothing, and notes when its client goes."""

    def __init__(self, *, headers: bool = True, fragments: int = 1) -> None:
        self.headers = headers
        self.fragments = fragments
        self.waiting = threading.Event()
        self.gone = threading.Event()
        self.gone_at = 0.0

    def __call__(self, peer: Peer, request: Request) -> None:
        if self.headers:
            peer.begin()
            for number in range(self.fragments):
                peer.chunk(sse(delta(content=f"<{number}>"), done=False))
        self.waiting.set()
        peer.stall()
        self.gone_at = time.monotonic()
        self.gone.set()

    def check(self, closed_at: float) -> None:
        assert self.gone.wait(5)
        assert self.gone_at - closed_at < AT_ONCE


def partial_text(session: Any) -> tuple[str, dict[str, Any]]:
    last = session.to_dict()["messages"][-1]
    return last["content"], last["metadata"]


def begun(host: Host, url: str) -> Any:
    return host.core.send_request_stream(host.session, host.config(url, {}))


def abegun(host: Host, url: str) -> Any:
    return host.core.asend_request_stream(host.session, host.config(url, {}))


def test_leaving_the_loop_and_the_block_closes_the_socket() -> None:
    play = Watching()
    with serve(play) as server, hosted("sync") as host:
        with begun(host, server.url) as stream:
            for event in stream:
                if event["type"] == "partial":
                    break
            closed_at = time.monotonic()
        play.check(closed_at)
        assert partial_text(stream.session) == ("<0>", {"partial": True})
        assert list(stream) == []
        with pytest.raises(StopIteration):
            next(stream)
        stream.close()


def test_a_stream_that_is_let_go_closes_its_socket() -> None:
    play = Watching()
    with serve(play) as server, hosted("sync") as host:
        for event in begun(host, server.url):
            if event["type"] == "partial":
                break
        closed_at = time.monotonic()
        play.check(closed_at)


def test_leaving_the_loop_and_the_block_of_a_task_closes_the_socket() -> None:
    play = Watching()
    with serve(play) as server, hosted("async") as host:

        async def work() -> float:
            async with abegun(host, server.url) as stream:
                async for event in stream:
                    if event["type"] == "partial":
                        break
                closed_at = time.monotonic()
            assert partial_text(stream.session) == ("<0>", {"partial": True})
            assert [event async for event in stream] == []
            with pytest.raises(StopAsyncIteration):
                await stream.__anext__()
            await stream.aclose()
            return closed_at

        play.check(host.run(work()))


@pytest.mark.parametrize("headers", [True, False])
def test_closing_from_another_thread_ends_a_reader_that_waits(headers: bool) -> None:
    play = Watching(headers=headers)
    with serve(play) as server, hosted("sync") as host:
        stream = begun(host, server.url)
        seen: list[Any] = []
        reader = threading.Thread(target=lambda: seen.extend(stream))
        reader.start()
        assert play.waiting.wait(5)
        closed_at = time.monotonic()
        stream.close()
        play.check(closed_at)
        reader.join(5)
        assert not reader.is_alive()
    assert [event["type"] for event in seen if event["type"] != "partial"] == ["request_started"]
    messages = stream.session.to_dict()["messages"]
    assert len(messages) == (2 if headers and len(seen) > 1 else 1)


@pytest.mark.parametrize("headers", [True, False])
def test_closing_from_another_task_ends_a_reader_that_waits(headers: bool) -> None:
    play = Watching(headers=headers)
    with serve(play) as server, hosted("async") as host:

        async def work() -> tuple[float, list[Any]]:
            stream = abegun(host, server.url)

            async def read() -> list[Any]:
                return [event["type"] async for event in stream]

            reader = asyncio.create_task(read())
            await asyncio.to_thread(play.waiting.wait, 5)
            closed_at = time.monotonic()
            await stream.aclose()
            return closed_at, await asyncio.wait_for(reader, 5)

        closed_at, seen = host.run(work())
        play.check(closed_at)
    assert [kind for kind in seen if kind != "partial"] == ["request_started"]


def test_closing_a_stream_that_was_never_read_sends_nothing() -> None:
    with serve(Watching()) as server, hosted("sync") as host:
        stream = begun(host, server.url)
        stream.close()
        assert list(stream) == []
        assert stream.session == host.session
        assert server.connections == 0


def test_events_already_read_are_not_delivered_after_closing() -> None:
    with serve(Watching(fragments=50)) as server, hosted("sync") as host:
        stream = begun(host, server.url)
        seen = 0
        for event in stream:
            if event["type"] == "partial":
                seen += 1
                stream.close()
        assert seen == 1


@pytest.mark.parametrize("headers", [True, False])
def test_cancelling_the_task_closes_the_socket(headers: bool) -> None:
    play = Watching(headers=headers)
    with serve(play) as server, hosted("async") as host:

        async def work() -> float:
            stream = abegun(host, server.url)

            async def read() -> None:
                async for _ in stream:
                    pass

            reader = asyncio.create_task(read())
            await asyncio.to_thread(play.waiting.wait, 5)
            closed_at = time.monotonic()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            if stream.session != host.session:
                assert partial_text(stream.session) == ("<0>", {"partial": True})
            return closed_at

        play.check(host.run(work()))


def test_cancelling_a_whole_answer_closes_the_socket() -> None:
    play = Watching(headers=False)
    with serve(play) as server, hosted("async") as host:

        async def work() -> float:
            asked = host.core.asend_request(host.session, host.config(server.url, {}))
            task = asyncio.create_task(asked)
            await asyncio.to_thread(play.waiting.wait, 5)
            closed_at = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return closed_at

        play.check(host.run(work()))


def test_a_task_can_be_cancelled_at_every_point_where_it_waits() -> None:
    """Step the loop until the request is over, cancelling one step later each time."""

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        for fragment in ("a", "b"):
            peer.chunk(sse(delta(content=fragment), done=False))
        peer.chunk(sse(*texts("c")))
        peer.chunk(b"")

    with serve(play) as server, hosted("async") as host:

        async def cancelled_after(steps: int) -> bool:
            stream = abegun(host, server.url)

            async def read() -> None:
                async with stream:
                    async for _ in stream:
                        # A consumer that lets others run between two events.
                        await asyncio.sleep(0)

            task = asyncio.create_task(read())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                text = partial_text(stream.session)[0]
                assert text == "hi" or "abc".startswith(text)
                return True
            return False

        async def work() -> int:
            steps = 0
            while await cancelled_after(steps):
                steps += 1
                assert steps < 100_000
            return steps

        assert host.run(work()) > 5
        host.stream(server.url).check()


def _connections(server: Any) -> int:
    return int(server.connections)


@BOTH_WAYS
def test_the_pool_is_used_again_after_streams_that_ended(way: str) -> None:
    with (
        serve(lambda peer, _: peer.answer(sse(*texts("x")))) as server,
        hosted(way) as host,
    ):
        for _ in range(3):
            host.stream(server.url).check()
        assert _connections(server) == 1


@BOTH_WAYS
def test_the_pool_is_used_again_when_the_body_ends_after_its_end_marker(way: str) -> None:
    """The end of the HTTP body comes later than ``[DONE]``, in a packet of its own."""

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(sse(*texts("x")))
        peer.gone(0.02)
        peer.chunk(b"")

    with serve(play) as server, hosted(way) as host:
        for _ in range(3):
            host.stream(server.url).check()
        assert _connections(server) == 1


@BOTH_WAYS
def test_a_server_that_never_ends_its_body_does_not_hold_up_the_answer(way: str) -> None:
    play = Watching(headers=False)

    def endless(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(sse(*texts("x")))
        play(peer, request)

    with serve(endless) as server, hosted(way) as host:
        outcome = host.stream(server.url, timeout={"idle": 30.0}).check()
        assert outcome.text == "x"
        assert play.gone.wait(5)


@BOTH_WAYS
def test_the_done_event_does_not_wait_for_the_end_of_the_body(way: str) -> None:
    told = threading.Event()
    in_time: list[bool] = []

    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(sse(*texts("x")))
        in_time.append(told.wait(5))
        peer.chunk(b"")

    with serve(play) as server, hosted(way) as host:

        async def read() -> None:
            async for event in abegun(host, server.url):
                if event["type"] == "done":
                    told.set()

        if way == "async":
            host.run(read())
        else:
            for event in begun(host, server.url):
                if event["type"] == "done":
                    told.set()
    assert in_time == [True]


class OwnStream(ProviderPlugin):
    """Reads its own stream, and notes when that is closed."""

    name = "own_stream"
    closed = threading.Event()

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config}

    def stream_api(self, native_messages: Any, state: Any) -> Any:
        try:
            while True:
                yield {"text": "x"}
        finally:
            OwnStream.closed.set()

    def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
        partial = {"role": "assistant", "content": native_chunk["text"]}
        return [partial], [], native_messages, state


@BOTH_WAYS
def test_closing_ends_a_providers_own_stream(way: str) -> None:
    OwnStream.closed.clear()
    with hosted(way, providers=[OwnStream], extensions=[]) as host:
        config = {"provider": "own_stream"}

        async def read() -> Any:
            async with host.core.asend_request_stream(host.session, config) as stream:
                async for event in stream:
                    if event["type"] == "partial":
                        break
            return stream.session

        if way == "async":
            session = host.run(read())
        else:
            with host.core.send_request_stream(host.session, config) as stream:
                for event in stream:
                    if event["type"] == "partial":
                        break
            session = stream.session
        assert OwnStream.closed.wait(5)
    assert partial_text(session) == ("x", {"partial": True})


class Awaiting(ProviderPlugin):
    """Whose own I/O are coroutines that wait for ever; it notes how far they have come."""

    name = "awaiting"
    waiting: threading.Event
    cleaned: threading.Event
    stubborn = False

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config}

    def process_chunk(self, native_chunk: Any, native_messages: Any, state: Any) -> Any:
        return [{"role": "assistant", "content": "x"}], [], native_messages, state

    async def wait(self) -> None:
        self.waiting.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
            finally:
                self.cleaned.set()


class AwaitingAnswer(Awaiting):
    async def acall_api(self, native_messages: Any, state: Any) -> Any:
        await self.wait()


class AwaitingStream(Awaiting):
    async def astream_api(self, native_messages: Any, state: Any) -> Any:
        yield {"text": "x"}
        await self.wait()


class AwaitingBeside(Awaiting):
    """Whose stream goes on in a task of its own."""

    async def astream_api(self, native_messages: Any, state: Any) -> Any:
        task = asyncio.create_task(self.wait())
        yield {"text": "x"}
        await asyncio.shield(task)


@pytest.mark.parametrize("provider", [AwaitingAnswer, AwaitingStream, AwaitingBeside])
@pytest.mark.parametrize("stubborn", [False, True])
def test_closing_ends_a_reader_that_waits_for_a_coroutine(
    provider: type[Awaiting], stubborn: bool
) -> None:
    waiting, cleaned = threading.Event(), threading.Event()
    methods = {"waiting": waiting, "cleaned": cleaned, "stubborn": stubborn}
    before = set(threading.enumerate())
    with hosted("sync", [type("Own", (provider,), methods)], extensions=[]) as host:
        stream = host.core.send_request_stream(host.session, {})
        seen: list[Any] = []
        reader = threading.Thread(target=lambda: seen.extend(stream), daemon=True)
        reader.start()
        assert waiting.wait(5)
        stream.close()
        assert cleaned.is_set()
        reader.join(5)
        assert not reader.is_alive()
        assert stream.state == "cancelled"
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
            assert not thread.is_alive()
    assert [event["type"] for event in seen][:1] == ["request_started"]


def test_closing_does_not_wait_for_a_coroutine_that_blocks_its_thread() -> None:
    waiting, released = threading.Event(), threading.Event()

    class Blocking(Awaiting):
        async def acall_api(self, native_messages: Any, state: Any) -> Any:
            waiting.set()
            released.wait(60)

    with hosted("sync", [Blocking], extensions=[]) as host:
        stream = host.core.send_request_stream(host.session, {})
        reader = threading.Thread(target=lambda: list(stream), daemon=True)
        reader.start()
        assert waiting.wait(5)
        stream.close()
        assert not released.is_set()
        reader.join(5)
        assert not reader.is_alive()
    released.set()


def test_leaving_a_stream_lets_its_generator_clean_up() -> None:
    cleaned = threading.Event()

    class Endless(Awaiting):
        async def astream_api(self, native_messages: Any, state: Any) -> Any:
            try:
                while True:
                    yield {"text": "x"}
            finally:
                await asyncio.sleep(0)
                cleaned.set()

    with hosted("sync", [Endless], extensions=[]) as host:
        with host.core.send_request_stream(host.session, {}) as stream:
            for event in stream:
                if event["type"] == "partial":
                    break
        assert cleaned.is_set()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _tasks() -> set[Any]:
    return set(asyncio.all_tasks())


def _settled(count: Callable[[], int], target: int) -> int:
    """The count once it is down to ``target``, or what it is after a while."""
    patience = threading.Event()
    for _ in range(200):
        gc.collect()
        if count() <= target:
            break
        patience.wait(0.02)
    return count()


STREAMS = 1000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count descriptors")
def test_a_thousand_cancelled_streams_leave_nothing_behind() -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(sse(delta(content="x"), done=False))
        peer.stall()

    with serve(play) as server, hosted("sync") as host:
        threads, descriptors = threading.active_count(), _descriptors()
        for number in range(STREAMS):
            stream = begun(host, server.url)
            for event in stream:
                if event["type"] == "partial":
                    break
            stream.close()
            if number == 0:
                assert partial_text(stream.session) == ("x", {"partial": True})
        assert server.connections == STREAMS
        assert _settled(threading.active_count, threads) <= threads
        assert _settled(_descriptors, descriptors) <= descriptors


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to count descriptors")
def test_a_thousand_cancelled_tasks_leave_nothing_behind() -> None:
    def play(peer: Peer, request: Request) -> None:
        peer.begin()
        peer.chunk(sse(delta(content="x"), done=False))
        peer.stall()

    with serve(play) as server, hosted("async") as host:

        async def one() -> None:
            seen = asyncio.Event()

            async def read() -> None:
                async for event in abegun(host, server.url):
                    if event["type"] == "partial":
                        seen.set()

            task = asyncio.create_task(read())
            await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        async def work() -> None:
            await one()
            tasks, threads, descriptors = _tasks(), threading.active_count(), _descriptors()
            for _ in range(STREAMS // 20):
                await asyncio.gather(*(one() for _ in range(20)))
            assert _tasks() == tasks
            assert await asyncio.to_thread(_settled, threading.active_count, threads + 1) <= (
                threads + 1
            )
            assert await asyncio.to_thread(_settled, _descriptors, descriptors) <= descriptors

        host.run(work())
        assert server.connections == STREAMS + 1
