"""What the steps of a request ask their driver to do.

A step yields an effect and is sent its result, or thrown its error. So the same steps serve sync
and async callers; only who waits differs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from agent_hookspecs.errors import AgentError
from agent_hookspecs.events import Event
from agent_hookspecs.store.values import RunState
from agent_hookspecs.values import dataclass
from agent_host.redaction import describe_error
from agent_host.wire.request import WireRequest

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from agent_host.sessions.session import Session

    #: What a stream came to.
    R_co = TypeVarWithDefault("R_co", covariant=True, default=Any)
else:
    # The default is for type checkers alone, and costs an import.
    R_co = TypeVar("R_co", covariant=True)

__all__ = [
    "DRAIN_SECONDS",
    "END",
    "Call",
    "Drain",
    "Effect",
    "Emit",
    "Gather",
    "Interrupt",
    "Next",
    "Open",
    "R_co",
    "Read",
    "ReadAll",
    "RunState",
    "Running",
    "Sleep",
    "Steps",
    "StreamBase",
    "TimeUpError",
    "exit_error",
    "item_of",
    "longest_wait",
    "next_item",
    "result_of",
]

#: What `Next` and `Read` give when there is no more.
END: Any = object()


def exit_error(error: BaseException) -> RuntimeError:
    """What stands for an attempt of foreign code to end the process, which is not its to end."""
    return RuntimeError(f"it tried to end the process by {describe_error(error)}")


def next_item(iterator: Iterator[Any]) -> Any:
    """The next item of foreign code's iterator, or `END`."""
    try:
        return next(iterator, END)
    except SystemExit as error:
        raise exit_error(error) from error


async def item_of(iterator: AsyncIterator[Any]) -> Any:
    """The next item or `END`. A generator is first asked in the event loop it then belongs to."""
    return await result_of(anext(iterator, END))


async def result_of(awaitable: Awaitable[Any]) -> Any:
    """What foreign code's awaitable comes to."""
    try:
        return await awaitable
    except SystemExit as error:
        raise exit_error(error) from error


class TimeUpError(Exception):
    """Foreign code has taken longer than it may."""


#: How long a `Drain` may take.
DRAIN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Open:
    """Send a request; the result has ``status`` and ``headers``. The driver keeps the response."""

    request: WireRequest


@dataclass(frozen=True, slots=True)
class Read:
    """The next bytes of the open response, or `END`."""


@dataclass(frozen=True, slots=True)
class ReadAll:
    """The rest of the open response, at most ``limit`` bytes; closes it."""

    limit: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Nothing, after the open response, if there is one, has ended or a short time has passed.

    The answer is complete, so what follows its end marker is of no interest; but a connection that
    was read to its end can serve the next request.
    """


@dataclass(frozen=True, slots=True)
class Next:
    """The next item of an iterator that may block or be async, or `END`.

    After ``seconds``, or out of ``patience``, a `TimeUpError`, as with a `Call`.
    """

    iterator: Iterator[Any] | AsyncIterator[Any]
    seconds: float | None = None
    patience: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """The result of a function that may block; if it is awaitable, what it awaits to.

    One that ``starts_coroutine`` is known not to block before that. After ``seconds``, if there are
    any, a `TimeUpError`: a function goes on in its thread, and nobody sees what comes of it.
    ``patience`` is the same for what is not in the caller's own thread anyway.
    """

    function: Callable[[], Any]
    starts_coroutine: bool = False
    seconds: float | None = None
    patience: float | None = None


def longest_wait(effect: Call | Next) -> float | None:
    """How long to wait for what is not in the caller's own thread; None: for ever."""
    return effect.patience if effect.seconds is None else effect.seconds


@dataclass(frozen=True, slots=True)
class Gather:
    """The results of several sequences of steps, carried out at once; their events come mixed."""

    many: list[Generator[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Nothing, after a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A function, for any thread, that ends what the driver waits for on the wire, or for time.

    Whoever waits there gets an error.
    """


@dataclass(frozen=True, slots=True)
class Emit:
    """Nothing, after the caller has seen these events."""

    events: list[Event]


Effect: TypeAlias = Open | Read | ReadAll | Drain | Next | Call | Gather | Sleep | Interrupt | Emit

T = TypeVar("T")
Steps = Generator[Effect, Any, T]


class Running(Protocol):
    """Something with steps that can be looked at while they are carried out."""

    state: RunState

    @property
    def run_id(self) -> str | None:
        """The id under which it is stored, if it is."""

    def steps(self) -> Steps[None]:
        """The steps, once."""

    @property
    def session(self) -> Session:
        """The session so far."""

    @property
    def partial(self) -> Any:
        """What has arrived of an answer that is more than text; None where none is expected."""


class StreamBase(Generic[R_co]):
    """What both kinds of streams tell of their run."""

    def __init__(self, run: Running, conclude: Callable[[], R_co] | None) -> None:
        self._run = run
        self._conclude = conclude

    @property
    def session(self) -> Session:
        return self._run.session

    @property
    def answer(self) -> R_co:
        """What the run came to; only once all events were read."""
        state = self._run.state
        if self._conclude is None or state in ("pending", "running"):
            raise AgentError("the stream has no answer yet", hint="read all of its events first")
        if state in ("cancelled", "failed"):
            how = "failed" if state == "failed" else "was closed or cancelled"
            raise AgentError(
                f"the stream {how} before its answer was there",
                hint="the text so far is in stream.session",
            )
        return self._conclude()

    @property
    def partial(self) -> Any:
        """What has arrived of an answer of the type that was asked for, as plain JSON."""
        return self._run.partial

    @property
    def run_id(self) -> str | None:
        """The id under which the run is stored, if it is."""
        return self._run.run_id

    @property
    def state(self) -> RunState:
        """How far the run is: a stream nobody has begun to read is pending."""
        return self._run.state
