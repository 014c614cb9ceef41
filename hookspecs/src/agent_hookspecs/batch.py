"""Where the lines of a batch are answered: engines, and the batch endpoints of providers.

Lines and results are plain JSON, so that an engine may send them to other processes and machines.
Whoever writes an engine, or lets a provider take many requests at once, needs this room alone. It
must not know what a line says, nor how a result is stored.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Protocol

from agent_hookspecs.errors import AgentError
from agent_hookspecs.messages import RequestSpec
from agent_hookspecs.values import dataclass

__all__ = [
    "BatchEndpoint",
    "BatchEngine",
    "BatchFiles",
    "BatchLimits",
    "BatchReply",
    "BatchWorker",
    "BatchWorkers",
    "SubmittedBatch",
]


class BatchLimits(Protocol):
    """What is known of the rate limits of servers, for all workers of a batch together.

    An engine with workers in several processes gives each of them one that asks a common one.
    Arguments and results are plain values for that.
    """

    async def reserve(self, server: str, tokens: int) -> float:
        """How many seconds to wait and then to ask again; 0: send now, the request is counted.

        ``tokens`` is about how many the request has.
        """

    async def report(self, server: str, status: int, headers: Mapping[str, str]) -> None:
        """Learn from the answer to a request, a refusal included; names of headers are in lower
        case."""


class BatchWorker(Protocol):
    """Answers lines in the process and the event loop in which it was opened, many at once."""

    async def answer(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a line; what went wrong with it stands in there.

        What it raises is no matter of this line alone, and has to end the batch.
        """

    async def aclose(self) -> None:
        """Close its connections."""


class BatchWorkers(Protocol):
    """Opens the workers of a batch, and says what an engine has to know of them.

    It can be pickled, unless what the batch needs is in this process alone.
    """

    def __call__(self, limits: BatchLimits) -> BatchWorker:
        """A worker in the process that calls this, with the limits that all workers share."""

    def open_limits(self) -> BatchLimits:
        """The limits of the batch. An engine opens them once, whatever workers it has."""

    @property
    def find_environment(self) -> Callable[[], Mapping[str, str]]:
        """Gives what is installed in the process that calls it: names with their versions.

        It can be pickled by itself, for processes of other machines. Where it does not give the
        same as here no worker may be opened.
        """

    def fail_line(self, line: Mapping[str, Any], error: AgentError) -> Mapping[str, Any]:
        """The result of a line that no worker can answer, because each is lost that tries."""


class BatchEngine(Protocol):
    """Has the lines of a batch answered. It may be a `BatchFiles` besides."""

    @property
    def warnings(self) -> Sequence[str]:
        """What whoever began the batch should know, such as that a worker was lost.

        It grows as results come.
        """

    def results(
        self, lines: Iterable[Mapping[str, Any]], open_worker: BatchWorkers, concurrency: int
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """The result of each line, as they come: one for each, whatever happens to a worker.

        ``lines`` are taken one after the other as there is room for them, and never all at once;
        a thread may do that, if one at a time does.
        ``concurrency`` is how many are answered at a time, by all workers together.
        ``open_worker`` is called in each process that has a worker.
        Whoever closes the iterator early wants what is being answered cancelled. What a worker
        raises is raised here.
        """

    def close(self) -> None:
        """End whatever the engine has begun and is still there, at the end of the batch.

        It may block, and is called whether the batch began or not.
        """


class BatchFiles(Protocol):
    """What an engine offers that reads lines and writes results elsewhere than in local files of
    JSON lines.

    A file or folder is named by its path or its URL. All of this may block.
    """

    def read_lines(self, source: str) -> Iterator[Mapping[str, Any] | bytes]:
        """The lines one after the other, as mappings or as JSON, and never all at once.

        They come in the same order each time. What is empty is no line, but is counted as one.
        """

    def check_target(self, target: str) -> None:
        """Raise what is wrong with a target, as far as that is known before there are results."""

    def write_results(self, results: Iterable[Mapping[str, Any]], target: str) -> None:
        """Replace what is at the target by these results, which can be iterated repeatedly."""


@dataclass(frozen=True, slots=True)
class SubmittedBatch:
    """What a provider says of a batch that it was given.

    - ``id`` is what it is known by there, ``mark`` what it was submitted with; None if the API
      keeps no such thing.
    - ``is_over`` says that nothing more comes of it, however it ended; ``results`` are then what
      `BatchEndpoint.result_requests` needs to know of it.
    - ``total``, ``done`` and ``failed`` count requests, ``created`` is a Unix time; None where the
      API does not tell.
    - ``problem`` is why all of it has failed, if it has.
    """

    id: str
    is_over: bool
    mark: str | None = None
    total: int | None = None
    done: int | None = None
    failed: int | None = None
    created: float | None = None
    results: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BatchReply:
    """What became of one request of a batch; ``id`` is what it was encoded with.

    ``status`` and ``body`` are those of the answer that the request would have had by itself. It
    has no ``status`` if it was never asked, and then ``problem`` says why.
    """

    id: str
    status: int | None
    body: Any = None
    problem: str = ""


class BatchEndpoint(Protocol):
    """Where a provider takes many requests at once, and answers them when it has the time.

    It does no I/O. What has to be asked is a generator: it yields requests, each of which the host
    sends, is sent the decoded body of the answer, and returns what it has come to. A refusal is
    raised by the host and is not for it to handle.

    - ``group`` is the same for requests that may be in one batch: those of a model, as a rule.
    - ``max_requests`` and ``max_bytes`` bound a batch; its bytes are those of its encoded requests.
    - ``price_share`` is what tokens cost there of what they cost else; None if nobody knows.
    """

    group: str
    max_requests: int
    max_bytes: int
    price_share: float | None

    def encode_request(self, id: str, request: RequestSpec) -> bytes:
        """A request as a part of a batch. ``id`` has at most 64 letters, digits, ``-`` or ``_``."""

    def submit(
        self, mark: str, requests: Sequence[bytes]
    ) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """Submit a batch of encoded requests, under a mark that no other batch has."""

    def list_batches(self, since: float) -> Generator[RequestSpec, Any, list[SubmittedBatch]]:
        """The batches of the account, at least those that were made since a Unix time.

        By these one is found again that was submitted when nobody was left to note its id.
        """

    def look_up(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """How far a batch is."""

    def cancel(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """Have no more of a batch answered; what was answered is still to be had."""

    def result_requests(self, batch: SubmittedBatch) -> list[RequestSpec]:
        """The requests for the results of a batch that is over; ``framing`` is ndjson or json."""

    def read_replies(self, document: Any) -> Iterable[BatchReply]:
        """The replies in one JSON document of the results: in a line of them, or in the whole."""
