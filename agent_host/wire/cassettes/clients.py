"""The clients of the wire that write what goes over it, and those that have no wire at all.

A replayed answer is read like any other: framing, deadlines and failures are those of the wire.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from agent_hookspecs.errors import TransportError
from agent_hookspecs.logs import get_logger
from agent_host.wire.cassettes.folder import RecordedAnswer, Recorder, Replayer
from agent_host.wire.client import AsyncWireClient, WireClient
from agent_host.wire.deadlines import Canceller
from agent_host.wire.exchange import Exchange
from agent_host.wire.responses import AsyncResponse, Response

if TYPE_CHECKING:
    from agent_host.wire.request import WireRequest

__all__ = [
    "AsyncRecordingClient",
    "AsyncReplayingClient",
    "RecordingClient",
    "ReplayingClient",
    "play_answer",
]

log = get_logger(__name__)

#: So much of a recorded body is handed on at a time.
_PART_BYTES: Final = 16 * 1024


class _Tape:
    """What has come of an answer so far, until it is written."""

    def __init__(self, recorder: Recorder, request: WireRequest, response: Any) -> None:
        self._recorder = recorder
        self._request = request
        self._status: int = response.status
        self._headers = {name.lower(): value for name, value in response.headers.items()}
        self.body = bytearray()

    def write(self, *, is_whole: bool = True) -> None:
        answer = RecordedAnswer(self._status, self._headers, bytes(self.body), is_whole)
        self._recorder.write(self._request, answer)

    def leave_out(self) -> None:
        """Tell that an answer was not read to its end, so that there is nothing to write."""
        log.warning("not_recorded", url=self._request.url, reason="nobody read it to its end")


class _RecordedResponse(Response):
    """An answer that is written once it is read."""

    def __init__(self, raw: Any, exchange: Exchange, recorder: Recorder, request: WireRequest):
        super().__init__(raw, exchange)
        self._tape = _Tape(recorder, request, self)

    def chunks(self) -> Iterator[bytes]:
        try:
            for data in super().chunks():
                self._tape.body += data
                yield data
        except TransportError:
            self._tape.write(is_whole=False)
            raise
        except GeneratorExit:
            self._tape.leave_out()
            raise
        self._tape.write()


class _AsyncRecordedResponse(AsyncResponse):
    """The twin of `_RecordedResponse`."""

    def __init__(self, raw: Any, exchange: Exchange, recorder: Recorder, request: WireRequest):
        super().__init__(raw, exchange)
        self._tape = _Tape(recorder, request, self)

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for data in super().chunks():
                self._tape.body += data
                yield data
        except TransportError:
            self._tape.write(is_whole=False)
            raise
        except GeneratorExit:
            self._tape.leave_out()
            raise
        self._tape.write()


class RecordingClient(WireClient):
    """A client that writes every exchange."""

    def __init__(self, recorder: Recorder, client: Any = None, library: str = "httpx") -> None:
        super().__init__(client, library)
        self._recorder = recorder

    def _receive(self, raw: Any, exchange: Exchange, request: WireRequest) -> Response:
        return _RecordedResponse(raw, exchange, self._recorder, request)


class AsyncRecordingClient(AsyncWireClient):
    """The twin of `RecordingClient`."""

    def __init__(self, recorder: Recorder, *options: Any) -> None:
        super().__init__(*options)
        self._recorder = recorder

    def _receive(self, raw: Any, exchange: Exchange, request: WireRequest) -> AsyncResponse:
        return _AsyncRecordedResponse(raw, exchange, self._recorder, request)


class _Played:
    """A recorded answer in the shape in which the library would give it."""

    http_version = "HTTP/1.1"

    def __init__(self, answer: RecordedAnswer) -> None:
        self._answer = answer
        self.status_code = answer.status
        self.headers = answer.headers
        self.extensions: dict[str, Any] = {}
        self.stream = self

    def __iter__(self) -> Iterator[bytes]:
        body = self._answer.body
        for at in range(0, len(body), _PART_BYTES):
            yield body[at : at + _PART_BYTES]
        if not self._answer.is_whole:
            raise ConnectionResetError("the connection broke when this was recorded")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part

    def close(self) -> None:
        """Close nothing."""

    async def aclose(self) -> None:
        """Close nothing."""


class ReplayingClient(WireClient):
    """A client that sends nothing: answers are those that were recorded."""

    def __init__(self, replayer: Replayer) -> None:
        super().__init__()
        self._replayer = replayer

    def warm_up(self, url: str) -> None:
        """Do nothing: there is no connection to be made."""

    def open(self, request: WireRequest, canceller: Canceller | None = None) -> Response:
        exchange = Exchange(request, canceller or Canceller())
        response = Response(_Played(self._replayer.answer(request)), exchange)
        exchange.begin_body()
        return response


class AsyncReplayingClient(AsyncWireClient):
    """The twin of `ReplayingClient`."""

    def __init__(self, replayer: Replayer) -> None:
        super().__init__()
        self._replayer = replayer

    async def warm_up(self, url: str) -> None:
        """Do nothing: there is no connection to be made."""

    async def open(self, request: WireRequest, canceller: Canceller | None = None) -> AsyncResponse:
        return play_answer(self._replayer.answer(request), request, canceller)


def play_answer(
    answer: RecordedAnswer, request: WireRequest, canceller: Canceller | None = None
) -> AsyncResponse:
    """An answer that is known already, as if it were that of a server to this request."""
    exchange = Exchange(request, canceller or Canceller())
    response = AsyncResponse(_Played(answer), exchange)
    exchange.begin_body()
    return response
