"""A request that was written elsewhere, sent as it is to the provider of a config.

For programs that stand between a client and an API which both speak the same: address, headers and
key are the provider's, as its plugin gives them for a request; the body is the client's, and the
answer comes back as bytes that nobody has read. A refusal is an error, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_hookspecs.errors import ProviderError
from agent_hookspecs.logs import redact_error
from agent_hookspecs.messages import Config
from agent_hookspecs.values import dataclass
from agent_host.drivers.asynchronous import acomplete
from agent_host.drivers.effects import Sleep, Steps
from agent_host.plugins.outgoing import trace_headers
from agent_host.plugins.stack import Stack
from agent_host.sessions.session import Session
from agent_host.turn.prepare import begin_state, prepare_turn
from agent_host.turn.read import Reading
from agent_host.turn.send import make_request
from agent_host.turn.turn import Turn
from agent_host.wire.failures import failure
from agent_host.wire.request import WireRequest
from agent_host.wire.retry import RetryPolicy

if TYPE_CHECKING:
    from agent_host.core import AgentCore
    from agent_host.wire.responses import AsyncResponse

__all__ = ["RelayedAnswer", "arelay_request"]

_MAX_REFUSAL = 256 << 10
_MAX_KNOWN = 64
_KNOWN_SECONDS = 30.0
#: Plugins make a request of a conversation; what it says is replaced.
_PLACEHOLDER = {"role": "user", "content": "relayed"}


class RelayedAnswer:
    """An answer whose bytes are for somebody else; use it with ``async with``."""

    def __init__(self, response: AsyncResponse) -> None:
        self._response = response
        self.content_type = response.headers.get("content-type", "application/json")

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, decompressed."""
        return self._response.chunks()

    async def __aenter__(self) -> RelayedAnswer:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._response.aclose()


async def arelay_request(
    core: AgentCore,
    config: Config,
    body: bytes,
    *,
    stream: bool,
    context: Mapping[str, Any] | None = None,
) -> RelayedAnswer:
    """Send a body of JSON to where a request of this config goes.

    A refusal before the answer has begun is tried again, as often as ``retries`` says. Of
    ``context`` the trace that the client is in is passed on.
    """
    trace = trace_headers(context or {})
    stack = await acomplete(core.stacks.lease(config), core.async_wire)
    try:
        policy, attempt = RetryPolicy(max_retries=stack.config.get("retries", 2)), 0
        while True:
            try:
                return await _send(core, stack, config, body, stream, trace)
            except ProviderError as error:
                redact_error(error)
                delay = policy.delay(attempt, error)
                if delay is None:
                    raise
                attempt += 1
                await acomplete(_sleep(delay), core.async_wire)
    finally:
        stack.lease.leave()


@dataclass(frozen=True, slots=True)
class _Known:
    """Where requests of a stack go, for a while; the stack is held so that its id is its own."""

    stack: Stack
    request: WireRequest
    until: float


#: By core: what plugins say of a request but for its body is the same from one to the next.
_KNOWN: WeakKeyDictionary[AgentCore, dict[tuple[int, bool], _Known]] = WeakKeyDictionary()


async def _find_request(
    core: AgentCore, stack: Stack, config: Config, stream: bool
) -> tuple[WireRequest, bool]:
    """Where to send it, and whether that was known already."""
    known = _KNOWN.setdefault(core, {})
    found = known.get((id(stack), stream))
    if found is not None and found.stack is stack and time.monotonic() < found.until:
        return found.request, True
    request = await acomplete(_request_steps(core, stack, config, stream), core.async_wire)
    request = replace(request, body=None)
    if len(known) >= _MAX_KNOWN:
        known.clear()
    known[id(stack), stream] = _Known(stack, request, time.monotonic() + _KNOWN_SECONDS)
    return request, False


async def _send(
    core: AgentCore, stack: Stack, config: Config, body: bytes, stream: bool, trace: dict[str, str]
) -> RelayedAnswer:
    request, was_known = await _find_request(core, stack, config, stream)
    headers = {**trace, **request.headers, "content-type": "application/json"}
    response = await core.async_wire.open(replace(request, body=body, headers=headers))
    if 200 <= response.status < 300:
        return RelayedAnswer(response)
    told = await response.read(_MAX_REFUSAL)
    if response.status == 401 and was_known:
        # The key may be another by now.
        del _KNOWN[core][id(stack), stream]
        return await _send(core, stack, config, body, stream, trace)
    raise failure(response.status, response.headers, told, stack.provider.name)


def _request_steps(
    core: AgentCore, stack: Stack, config: Config, stream: bool
) -> Steps[WireRequest]:
    """The request that the plugins would send, whose body is not wanted."""
    turn = Turn(stack, Session([_PLACEHOLDER]), config, core=core, stream=stream, asynchronous=True)
    yield from begin_state(turn)
    yield from prepare_turn(turn)
    turn.reading = Reading(turn.managers, turn.natives, turn.state, limits=turn.limits, debug=False)
    request, _ = make_request(turn)
    return request


def _sleep(seconds: float) -> Steps[None]:
    yield Sleep(seconds)
