"""A request that was written elsewhere, sent as it is to the provider of a config.

For programs that stand between a client and an API which both speak the same: address, headers and
key are the provider's, as its plugin gives them for a request; the body is the client's, and the
answer comes back as bytes that nobody has read. A refusal is an error, as everywhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_hookspecs.errors import ProviderError
from agent_hookspecs.logs import redact_error
from agent_hookspecs.messages import Config
from agent_host.drivers.asynchronous import acomplete
from agent_host.drivers.effects import Sleep, Steps
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
    core: AgentCore, config: Config, body: bytes, *, stream: bool
) -> RelayedAnswer:
    """Send a body of JSON to where a request of this config goes.

    A refusal before the answer has begun is tried again, as often as ``retries`` says.
    """
    stack = await acomplete(core.stacks.lease(config), core.async_wire)
    try:
        policy, attempt = RetryPolicy(max_retries=stack.config.get("retries", 2)), 0
        while True:
            try:
                return await _send(core, stack, config, body, stream)
            except ProviderError as error:
                redact_error(error)
                delay = policy.delay(attempt, error)
                if delay is None:
                    raise
                attempt += 1
                await acomplete(_sleep(delay), core.async_wire)
    finally:
        stack.lease.leave()


async def _send(
    core: AgentCore, stack: Stack, config: Config, body: bytes, stream: bool
) -> RelayedAnswer:
    request = await acomplete(_request_steps(core, stack, config, stream), core.async_wire)
    headers = {**request.headers, "content-type": "application/json"}
    response = await core.async_wire.open(replace(request, body=body, headers=headers))
    if 200 <= response.status < 300:
        return RelayedAnswer(response)
    told = await response.read(_MAX_REFUSAL)
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
