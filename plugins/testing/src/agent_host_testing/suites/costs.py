"""Checks of what a stream costs: bytes however they are split, the event loop, and growth.

Nothing here looks at a clock. Cost is counted in instructions and in bytes allocated, so that a
busy machine counts the same.
"""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import pytest

from agent_host.turn.read import decode_item
from agent_host.turn.turn import Turn
from agent_host.wire.framing import framing
from agent_host_testing.faults import Drip, Split
from agent_host_testing.script import Call, Failure, Part, Reply, Text, Thought, say
from agent_host_testing.suites.answers import KINDS
from agent_host_testing.suites.blocking import blocking_calls
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import PATIENCE, Outcome
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.suites.turns import prepare_by_hand, stack_of
from agent_host_testing.violations import require
from agent_host_testing.wire import Ledger

__all__ = ["CostChecks"]

_FEW, _MANY = 100, 400
#: Seconds between the fragments of a stream, one after the other.
_PAUSES = (0.001, 0.01, 0.1)
_TOLERANCE = 0.15
#: At most so many splits are tried besides those inside a character.
_SPLITS = 300

Chunks = list[tuple[Any, str | None]]


class CostChecks(ProviderSuite):
    """Splits, the event loop, and linear cost."""

    @check("byte splits", "docs/testing.md#bytes", slow=True)
    def test_every_split_of_bytes(self) -> None:
        """An answer is the same wherever its bytes are split on the way."""
        self.require_wire()
        parts: list[Part] = [Text("né 世👋")]
        if self.claims("supports_tools"):
            parts.append(Call("weather", {"place": "Ål👋"}, id="call_split_1"))
        reply = Reply(tuple(parts), fragments=2)
        with self.talk() as talk:
            expected = talk.ask(reply).expect().comparable()
            body = talk.server.deliveries[-1][1].body
            faults = [Split(at=(place,)) for place in _places(body)] + [Split(every=1)]
            for fault in faults:
                talk.again()
                # The same ids as in the first answer, wherever the format puts ids.
                talk.server.ledger = Ledger()
                outcome = talk.ask(reply, fault=fault).expect().comparable()
                require(outcome == expected, f"with {fault} the session is {outcome}")

    @check("event loop", "docs/testing.md#the-event-loop", claim="supports_streaming")
    def test_event_loop_is_not_blocked(self) -> None:
        """While an async stream waits for its server, the event loop does other things."""
        reply = say(" ".join(f"word-{number}" for number in range(12)), fragments=12)
        # On a busy machine all fragments may have come before anybody looks; so slower and slower.
        for pause in _PAUSES:
            with self.talk() as talk:
                if self.wire is not None:
                    talk.server.queue(reply, fault=Drip(pause))
                talk.say(self.prompt_to(reply))
                talk.host.core.warm_up(talk.config)
                with blocking_calls(self.package) as blocking:
                    beats = asyncio.run(asyncio.wait_for(_heartbeat(talk), PATIENCE))
                require(not blocking, f"in the thread of the loop it calls {', '.join(blocking)}")
                if beats[0] < beats[-1]:
                    return
                slowest = pause == _PAUSES[-1]
                require(not slowest, "nothing else ran between first and last fragment")

    @check("event loop", "docs/testing.md#the-event-loop")
    def test_a_request_blocks_nothing(self) -> None:
        """An async request waits for nothing and opens no file, from its first hook to its last."""
        reply = say("Some words.")
        with self.talk() as talk:
            # What a package does once in a process is not the business of any request.
            talk.ask(reply).expect()
            with self.host() as fresh:
                if self.wire is not None:
                    talk.server.queue(reply)
                session = fresh.core.add_message(
                    fresh.core.create_session(), "user", self.prompt_to(reply)
                )
                with blocking_calls(self.package) as blocking:
                    fresh.ask(session, talk.config, asynchronous=True).expect()
                    if self.wire is not None:
                        # A refusal is told by an error, which may be the provider's own.
                        talk.server.queue(Failure("invalid_request", "no such thing"))
                        fresh.ask(session, talk.config, asynchronous=True)
                require(not blocking, f"in the thread of the loop it calls {', '.join(blocking)}")

    @pytest.mark.parametrize("kind", KINDS)
    @check("linear cost", "docs/testing.md#linear-cost", claim="supports_streaming", slow=True)
    def test_linear_cost(self, kind: str) -> None:
        """A stream of four times as many chunks costs four times as much."""
        if KINDS[kind]:
            self.require_claim(KINDS[kind])
        more = self.reasoning_settings if kind == "reasoning" else {}
        with self.talk(**more) as talk:
            few, many = (self._chunks(talk, _long(kind, size)) for size in (_FEW, _MANY))
            growth = len(many) / len(few)
            if growth < _MANY / _FEW / 2:
                not_claimed("the wire does not send this in fragments")
            for what, count in (("instructions", _instructions), ("bytes", _allocated_bytes)):
                # Once for what only happens the first time.
                self._feed(talk, few, _exhaust)
                costs = [self._feed(talk, chunks, count) for chunks in (few, many)]
                ratio = costs[1] / costs[0] / growth
                require(
                    1 - _TOLERANCE < ratio < 1 + _TOLERANCE,
                    f"{len(few)} chunks take {costs[0]} {what}, {len(many)} take {costs[1]}: "
                    f"{ratio:.2f} times as many for each",
                )

    @check("concurrency", "docs/testing.md#requests-beside-each-other", claim="supports_streaming")
    def test_chunks_reach_their_request(self) -> None:
        """Chunks that come in turns are each taken for the request whose stream they are of."""
        names = ("north", "south")
        replies = [say(" ".join(f"{name}-{n}" for n in range(12)), fragments=12) for name in names]
        with self.talk() as talk:
            streams = [self._chunks(talk, reply) for reply in replies]
            alone = [self._taken(talk, [stream])[0] for stream in streams]
            for name, one, two in zip(names, alone, self._taken(talk, streams), strict=True):
                require(one == two, f"{name} gives {one} alone and {two} beside another")

    def _taken(self, talk: Talk, streams: Sequence[Chunks]) -> list[Any]:
        """What becomes of streams whose chunks come one of each in turn."""
        turns = [self._turn(talk) for _ in streams]
        for number in range(max(map(len, streams))):
            for turn, chunks in zip(turns, streams, strict=True):
                if number < len(chunks):
                    assert turn.reading is not None
                    turn.reading.feed((chunks[number],), [])
        return [
            turn.managers.provider.hook.finalize(
                native_messages=[], state=turn.state, context=turn.context
            )[0]
            for turn in turns
        ]

    def _chunks(self, talk: Talk, reply: Reply) -> Chunks:
        """The decoded chunks of a reply, as the provider gets them."""
        talk.again()
        talk.say(self.prompt_to(reply))
        if self.wire is not None:
            talk.server.queue(reply)
        if self.wire is None or self._reads_itself(talk):
            return self._own_chunks(talk)
        talk.host.ask(talk.session, talk.config).expect()
        delivery = talk.server.deliveries[-1][1]
        machine = framing(_framing(talk))
        return [*machine.decode(delivery.body), *machine.flush()]

    def _reads_itself(self, talk: Talk) -> bool:
        """Whether the provider reads its wire by itself, in whatever framing."""
        return stack_of(talk.host.core, talk.config).managers.provider.implements("stream_api")

    def _own_chunks(self, talk: Talk) -> Chunks:
        turn = prepare_by_hand(talk.host.core, talk.session, talk.config)
        if not turn.managers.provider.implements("stream_api"):
            not_claimed("the provider has no stream_api")
        source = turn.managers.provider.hook.stream_api(
            native_messages=turn.natives, state=turn.state, context=turn.context
        )
        return [(chunk, None) for item in source if (chunk := decode_item(item)) is not None]

    def _turn(self, talk: Talk) -> Turn:
        turn = prepare_by_hand(talk.host.core, talk.session, talk.config)
        provider = turn.managers.provider
        if provider.implements("build_request"):
            provider.hook.build_request(
                native_messages=turn.natives, state=turn.state, stream=True, context=turn.context
            )
        return turn

    def _feed(self, talk: Talk, chunks: Chunks, count: Callable[[Iterator[None]], int]) -> int:
        reading = self._turn(talk).reading
        assert reading is not None

        def feeding() -> Iterator[None]:
            for each in chunks:
                reading.feed((each,), [])
                yield

        return count(feeding())


def _places(body: bytes) -> list[int]:
    """Where to split: inside every character of several bytes, and evenly over the rest."""
    inside = [place for place in range(1, len(body)) if body[place] & 0xC0 == 0x80]
    step = max(1, len(body) // _SPLITS)
    return sorted({*inside, *range(1, len(body), step)})


async def _heartbeat(talk: Talk) -> list[int]:
    """How often the loop went round, noted at each fragment of the answer."""
    beats, noted = 0, []

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beating = asyncio.ensure_future(beat())
    outcome = Outcome(talk.session)
    try:
        async for event in talk.host.core.asend_request_stream(talk.session, talk.config):
            outcome.events.append(event)  # type: ignore[arg-type]
            if event["type"] == "partial":
                noted.append(beats)
    finally:
        beating.cancel()
        await talk.host.core.async_wire.aclose()
    require(len(noted) > 1, f"{len(noted)} fragments were shown")
    return noted


def _long(kind: str, size: int) -> Reply:
    """An answer of about so many chunks, all of them of one kind and of one length."""
    words = "".join(f"{number:06d} " for number in range(size)).strip()
    part: Part = Text(words)
    if kind == "reasoning":
        part = Thought(words, signature="c2lnbmVkLWxvbmc=")
    if kind == "tools":
        part = Call("weather", {"place": words}, id="call_long_1")
    return Reply((part,), fragments=size)


def _framing(talk: Talk) -> Any:
    return getattr(stack_of(talk.host.core, talk.config).provider.instance, "framing", "sse")


def _exhaust(work: Iterator[None]) -> int:
    return sum(1 for _ in work)


def _instructions(work: Iterator[None]) -> int:
    """How many instructions of Python the work takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    # Python 3.12 looks at this frame, and only now, whether instructions are to be seen at all.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        for _ in work:
            continue
    finally:
        sys.settrace(before)
    return count


def _allocated_bytes(work: Iterator[None]) -> int:
    """How many bytes the work allocates, chunk by chunk, given back or not."""
    total = 0
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in work:
            now, peak = tracemalloc.get_traced_memory()
            total += max(0, peak - before)
            before = now
            tracemalloc.reset_peak()
    finally:
        if not tracing:
            tracemalloc.stop()
    return total
