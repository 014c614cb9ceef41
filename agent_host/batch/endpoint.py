"""The batch endpoint of a provider: which there is for a line, and sending what it wants asked.

The endpoint is the plugin's and says what to send; what goes over the wire is sent here, with the
retries and the errors of any request. It must not know what a line says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar, cast

from agent_hookspecs.batch import BatchEndpoint
from agent_hookspecs.errors import (
    AgentError,
    HookError,
    HookResultError,
    ProtocolError,
    ProviderError,
)
from agent_hookspecs.messages import Config, RequestSpec
from agent_hookspecs.values import dataclass
from agent_host.batch.errors import BatchError
from agent_host.plugins.request_spec import read_request_spec
from agent_host.redaction import describe_error
from agent_host.threads import in_thread
from agent_host.wire.failures import failure
from agent_host.wire.framing import framing
from agent_host.wire.retry import RetryPolicy

if TYPE_CHECKING:
    from agent_host.agent.loop import AgentRun
    from agent_host.turn.turn import Turn
    from agent_host.wire.client import AsyncWireClient
    from agent_host.wire.request import WireRequest
    from agent_host.wire.responses import AsyncResponse

__all__ = ["EndpointCaller", "PreparedRequest", "find_endpoint", "is_refused", "read_documents"]

T = TypeVar("T")

_HOOK: Final = "get_batch_endpoint"
_PARTS: Final = ("group", "max_requests", "max_bytes", "price_share")
_STEPS: Final = (
    *("encode_request", "submit", "list_batches", "look_up", "cancel"),
    *("result_requests", "read_replies"),
)
_MAX_REFUSAL: Final = 256 << 10
#: More than any API says in one document, results of whole batches included.
_MAX_DOCUMENT: Final = 512 << 20
_MAX_VALUES: Final = 50_000_000
_READ_BYTES: Final = 1 << 20
_POLICY: Final = RetryPolicy()
#: Such refusals say nothing of whether the request was carried out.
_UNCLEAR: Final = frozenset({408, 409, 425})


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """The request of a line, which is not sent by itself, and the endpoint for it.

    ``account`` is whom the user calls the provider; ``config`` is what the request was made with.
    """

    spec: RequestSpec
    endpoint: BatchEndpoint
    provider: str
    account: str
    config: Config

    @property
    def group(self) -> tuple[str, ...]:
        """The same for requests that go into one batch: of one account, to one endpoint."""
        key = sha256(str(self.config.get("api_key") or "").encode()).hexdigest()
        return self.provider, self.account, self.endpoint.group, key


def find_endpoint(run: AgentRun, turn: Turn, request: WireRequest | None) -> PreparedRequest:
    """The endpoint for the first request of a run; a `BatchError` if its provider has none."""
    manager, config = turn.managers.provider, turn.state["config"]
    endpoint = spec = None
    if request is not None and manager.implements(_HOOK):
        spec = cast(
            RequestSpec,
            {
                "method": request.method,
                "url": request.url,
                "headers": {**request.headers},
                "body": request.body,
            },
        )
        endpoint = manager.hook.get_batch_endpoint(config=config, request=spec)
    if endpoint is None or spec is None:
        raise BatchError(
            f"the provider {turn.provider!r} takes no such request in a batch of its own",
            hint="use --engine local (engine='local'), which asks for each line",
        )
    missing = [name for name in _PARTS if not hasattr(endpoint, name)]
    missing += [name for name in _STEPS if not callable(getattr(endpoint, name, None))]
    if missing:
        raise HookResultError(
            f"what {_HOOK!r} of {turn.provider!r} gave ({type(endpoint).__name__}) has no "
            f"{', '.join(missing)}",
            plugin=turn.provider,
            hook=_HOOK,
            hint="agent_hookspecs.batch.BatchEndpoint says what it has",
        )
    costs = run.setup.costs
    account = turn.provider if costs is None else costs.account_of(turn.stack)
    return PreparedRequest(spec, endpoint, turn.provider, account, config)


def is_refused(error: ProviderError) -> bool:
    """Whether it is certain that the request was not carried out."""
    status = error.status
    return status is not None and 400 <= status < 500 and status not in _UNCLEAR


class EndpointCaller:
    """Carries out what the endpoint of a prepared request wants asked."""

    def __init__(self, wire: AsyncWireClient, prepared: PreparedRequest) -> None:
        self._wire = wire
        self.prepared = prepared
        self.endpoint = prepared.endpoint

    async def carry_out(self, steps: Generator[RequestSpec, Any, T]) -> T:
        """What steps of the endpoint come to. What only looks is tried again if that may help."""
        answer: Any = None
        while True:
            with self.blame():
                try:
                    spec = steps.send(answer)
                except StopIteration as end:
                    return cast(T, end.value)
            try:
                answer = await self._ask(spec)
            except BaseException:
                steps.close()
                raise

    async def download(self, spec: RequestSpec, file: BinaryIO) -> None:
        """Put the answer to a request into a file."""

        async def fetch() -> None:
            file.seek(0)
            file.truncate()
            response = await self._open(self._read_spec(spec))
            async for data in response.chunks():
                file.write(data)

        await _try_again(fetch)
        file.seek(0)

    @contextmanager
    def blame(self) -> Iterator[None]:
        """Give what the plugin's code raises a name."""
        try:
            yield
        except AgentError:
            raise
        except Exception as error:
            name = self.prepared.provider
            raise HookError(
                f"the batch endpoint of {name!r} raised {describe_error(error)}",
                plugin=name,
                hook=_HOOK,
            ) from error

    def _read_spec(self, spec: RequestSpec) -> WireRequest:
        return read_request_spec(spec, self.prepared.config, self.prepared.provider, _HOOK)

    async def _ask(self, spec: RequestSpec) -> Any:
        request = self._read_spec(spec)
        ask = partial(self._fetch_document, request)
        # Anything else may have been done although nobody says so: that is for the caller to see.
        return await (_try_again(ask) if request.method.upper() == "GET" else ask())

    async def _fetch_document(self, request: WireRequest) -> Any:
        response = await self._open(request)
        body = await response.read(_MAX_DOCUMENT + 1)
        name = self.prepared.provider
        if len(body) > _MAX_DOCUMENT:
            raise ProtocolError(
                f"{name} says more of its batches than {_MAX_DOCUMENT >> 20} MiB",
                provider=name,
            )
        try:
            decode = partial(json.loads, body or b"{}")
            return await in_thread(decode) if len(body) > _READ_BYTES else decode()
        except (ValueError, RecursionError) as error:
            raise ProtocolError(
                f"{name} answered {request.method} with what is no JSON",
                provider=name,
                hint="check the base URL: it may not be that of an API with batches",
            ) from error

    async def _open(self, request: WireRequest) -> AsyncResponse:
        response = await self._wire.open(request)
        if 200 <= response.status < 300:
            return response
        body = await response.read(_MAX_REFUSAL)
        raise failure(response.status, response.headers, body, self.prepared.provider)


async def _try_again(ask: Callable[[], Any]) -> Any:
    attempt = 0
    while True:
        try:
            return await ask()
        except ProviderError as error:
            delay = _POLICY.delay(attempt, error)
            if delay is None:
                raise
            attempt += 1
            await asyncio.sleep(delay)


def read_documents(file: BinaryIO, kind: str) -> Iterator[Any]:
    """The JSON documents of a file, one after the other; what is none is left out."""
    machine = framing(kind, max_event_bytes=_MAX_DOCUMENT, max_values=_MAX_VALUES)
    while data := file.read(_READ_BYTES):
        for document, _ in machine.decode(data):
            yield document
    for document, _ in machine.flush():
        yield document
