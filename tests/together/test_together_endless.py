"""Answers without end, in every framing and format: each ends typed, within its share of memory.

The shapes are those of the benchmark, which measures a whole process; here all limits are a small
part of the usual ones, and so is what an answer may take.
"""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import AgentError, ProviderPlugin, State
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_hookspecs.errors import ProtocolError
from agent_host import AgentCore
from agent_host.plugins.load import load_catalog
from agent_host.turn.size import SizeLimits
from loopback import Peer, Request, serve
from talking import said

# At the end, so that the packages under test are those that are installed.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.shapes import ANSWERS, PROVIDERS, Answer

SCALE = 32
LIMITS = {
    name: getattr(SizeLimits(), name) // SCALE
    for name in ("max_event_bytes", "max_answer_bytes", "max_answer_values")
}
#: A hundred megabytes in the large, and what events below 64 KiB become, which no limit changes.
MAX_MEMORY = 100_000_000 // SCALE + 2_500_000


class Accumulator(AccumulatorStreamingMixin, ProviderPlugin):
    """Reads the framing that its config names."""

    name = "accumulator"

    def init(self, config: dict[str, Any]) -> State:
        return {"config": config, "request": {}, "partial": None}

    def initialize_request(
        self, native_messages: list[dict[str, Any]], state: State
    ) -> tuple[list[dict[str, Any]], State]:
        config = state["config"]
        state["request"] = {"url": config["base_url"], "framing": config["kind"], "payload": {}}
        return native_messages, state


@pytest.fixture(scope="module")
def core() -> Iterator[AgentCore]:
    with AgentCore(catalog=load_catalog()) as core:
        core.register_provider(Accumulator)
        yield core


def body_of(answer: Answer) -> bytes:
    """More of the answer than anybody reads."""
    body = bytearray()
    for piece in answer.pieces(LIMITS["max_event_bytes"]):
        body += piece
        if len(body) > limit_of(answer):
            break
    return bytes(body)


def limit_of(answer: Answer) -> int:
    return LIMITS["max_answer_bytes"] // (8 if answer.is_enough else 1)


def read(core: AgentCore, url: str, wire: str, **limits: int) -> AgentError | None:
    provider, model = PROVIDERS.get(wire, ("accumulator", "m"))
    config = {
        "provider": provider,
        "model": model,
        "base_url": url,
        "api_key": "k",
        "kind": wire,
        "use_tools": [],
        "retries": 0,
        "slow_hook_seconds": 3600,
        **LIMITS,
        **limits,
    }

    async def read_all() -> None:
        async for _ in core.asend_request_stream(said("x"), config):
            continue

    try:
        asyncio.run(read_all())
    except AgentError as error:
        return error
    return None


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: f"{each.wire}: {each.what}")
def test_an_answer_without_end_ends_within_its_memory(core: AgentCore, answer: Answer) -> None:
    body = body_of(answer)
    # Made before memory is counted, as one chunk of the transfer.
    sent = b"%x\r\n%s\r\n" % (len(body), body)

    def play(peer: Peer, request: Request) -> None:
        if request.line.startswith("GET") or "/api/show" in request.line:
            # What is asked of a model before anything is asked of it.
            peer.answer(b"{}")
            return
        peer.begin()
        peer.send(sent)

    with serve(play) as server:
        # Once before, so that what is only made the first time is not counted.
        read(core, server.url, answer.wire, max_answer_bytes=50_000)
        tracemalloc.start()
        try:
            error = read(core, server.url, answer.wire, max_answer_bytes=limit_of(answer))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(error, ProtocolError), error
    assert error.message
    assert error.hint
    assert peak < MAX_MEMORY
