"""A vendor's API on a real socket, answering from a script.

It owns the listening socket, a thread for each connection, and what was asked and found wrong. What
requests and answers look like is the format's; how the bytes leave is for `faults` to say.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from agent_host_testing.batches import LineAnswer
from agent_host_testing.faults import Delivery, Ending, Fault
from agent_host_testing.formats import wire_format
from agent_host_testing.formats.checks import Refused
from agent_host_testing.http11 import BadRequest, RequestReader
from agent_host_testing.script import Answer, Failure, Raw
from agent_host_testing.violations import Exchange
from agent_host_testing.wire import Ledger, Problem, Refusal, Request, WireFormat

__all__ = ["FakeServer"]

_RESET = struct.pack("ii", 1, 0)
_BACKLOG = 1024


class FakeServer:
    """A fake API; use it as a context manager, or `start` and `close` it.

    Answers are given in order, each to one request that the format finds nothing wrong with; when
    there are none left, ``rest`` is asked for one. With ``strict`` a request with a problem is
    refused as the vendor would; without, it is recorded all the same and gets its answer. With a
    ``key``, requests need it. ``events_per_chunk`` is how many events of a stream are in one HTTP
    chunk; None sends streams in one body with a Content-Length.
    """

    def __init__(
        self,
        format: WireFormat | str,
        *answers: Answer,
        models: Sequence[str] = ("fake-model",),
        key: str | None = None,
        strict: bool = True,
        rest: Callable[[Request], Answer] | None = None,
        events_per_chunk: int | None = 1,
        log: Callable[[str], None] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.format = wire_format(format) if isinstance(format, str) else format
        self.models = tuple(models)
        self.key = key
        self.strict = strict
        self.rest = rest
        self.ledger = Ledger()
        #: What takes batches, if the API has them.
        self.batches = self.format.open_desk()
        self._events_per_chunk = events_per_chunk
        self._log = log
        self._address = (host, port)
        self._script: deque[tuple[Answer, Sequence[Fault]]] = deque()
        self._requests: list[Request] = []
        self._deliveries: list[tuple[Request, Delivery]] = []
        self._problems: list[tuple[Request, Problem]] = []
        self._abandoned = 0
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._connections: dict[socket.socket, threading.Thread] = {}
        self.queue(*answers)

    # What tests ask

    @property
    def url(self) -> str:
        """The root of the server; there is one once it is started."""
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def base_url(self) -> str:
        """What a client of this format is given as its base URL."""
        return self.url + self.format.base_path

    @property
    def requests(self) -> list[Request]:
        """Every request so far, refused ones too, in the order of arrival."""
        with self._changed:
            return list(self._requests)

    @property
    def problems(self) -> list[tuple[Request, Problem]]:
        """What was wrong with requests, unexpected ones included."""
        with self._changed:
            return list(self._problems)

    @property
    def exchanges(self) -> list[Exchange]:
        """Every request that was answered, with what was sent, in the order of the answers."""
        with self._changed:
            return [_exchange(*told) for told in self._deliveries]

    @property
    def unused(self) -> int:
        """How many answers of the script nobody has asked for yet."""
        with self._changed:
            return len(self._script)

    @property
    def abandoned(self) -> int:
        """How many answers clients have left before the end."""
        with self._changed:
            return self._abandoned

    @property
    def connections(self) -> int:
        """How many connections are open."""
        with self._changed:
            return len(self._connections)

    def queue(self, *answers: Answer, fault: Fault | Sequence[Fault] | None = None) -> None:
        """Add answers to the script; ``fault`` is how each of them leaves."""
        faults: Sequence[Fault] = (
            () if fault is None else fault if isinstance(fault, Sequence) else (fault,)
        )
        with self._changed:
            self._script.extend((answer, faults) for answer in answers)

    def wait(self, condition: Callable[[FakeServer], bool], timeout: float = 10.0) -> bool:
        """Whether the condition comes true in time; it is looked at whenever something happens."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), timeout)

    # Life

    def start(self) -> FakeServer:
        """Bind and listen. Raises OSError as the socket does, for a port in use say."""
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        listener = socket.create_server(self._address, family=family, backlog=_BACKLOG)
        self._listener = listener
        self._address = listener.getsockname()[:2]
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._acceptor.start()
        return self

    def close(self) -> None:
        """End every connection, whatever it is doing, and wait for the threads."""
        if self._listener is None or self._closing.is_set():
            return
        self._closing.set()
        # A blocked accept is woken by a connection on every system; closing is not enough on all.
        with suppress(OSError):
            # Nothing is lost: the listener is closed already.
            socket.create_connection(self._address, timeout=1).close()
        if self._acceptor is not None:
            self._acceptor.join()
        self._listener.close()
        with self._changed:
            open_now = dict(self._connections)
        for connection in open_now:
            with suppress(OSError):
                # Nothing is lost: the client has closed the connection first.
                connection.shutdown(socket.SHUT_RDWR)
        for thread in open_now.values():
            if thread is not threading.current_thread():
                thread.join()

    def __enter__(self) -> FakeServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Connections

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                # Nothing is lost: out of descriptors, say: there may be some again in a moment.
                if self._closing.wait(0.01):
                    return
                continue
            if self._closing.is_set():
                connection.close()
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._changed:
                self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        reader = RequestReader(connection)
        try:
            while (request := reader.next()) is not None:
                if not self._exchange(connection, request):
                    break
        except BadRequest as error:
            with suppress(OSError):
                # Nothing is lost: the client left before it could be told.
                connection.sendall(_bad_request(error))
        except OSError:
            # Nothing is lost: the client left between two requests, or the server is closing.
            pass
        finally:
            with self._changed:
                del self._connections[connection]
                self._changed.notify_all()
            connection.close()

    def _exchange(self, connection: socket.socket, request: Request) -> bool:
        """Answer the request; whether the connection can take another."""
        delivery = self._delivery(request)
        try:
            self._send(connection, delivery)
        except OSError:
            # Nothing is lost: answers that clients have left are counted.
            self._count_abandoned()
            return False
        wants_more = request.header("connection").lower() != "close"
        return delivery.ending == "stay" and wants_more and not self._closing.is_set()

    def _send(self, connection: socket.socket, delivery: Delivery) -> None:
        for number, data in enumerate(delivery.sends()):
            # The first write is the head, which nothing has to wait for.
            if delivery.pause and number > 1 and self._closing.wait(delivery.pause):
                return
            connection.sendall(data)
        if delivery.ending == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        elif delivery.ending == "stall":
            while connection.recv(4096):
                continue
            self._count_abandoned()

    def _count_abandoned(self) -> None:
        if not self._closing.is_set():
            with self._changed:
                self._abandoned += 1
                self._changed.notify_all()

    # Answers

    def _delivery(self, request: Request) -> Delivery:
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
        try:
            delivery = self._answer(request)
        except Refused as refused:
            delivery = self._refuse(request, refused.problem)
        except Exception as error:
            # A script or format that fails is its author's mistake and must not look like silence.
            rule = "the script and the format can be rendered for this request"
            problem = Problem(
                f"the fake server failed: {type(error).__name__}: {error}", rule, "", 500
            )
            delivery = self._refuse(request, problem)
        if self._log is not None:
            self._log(f"{request.method} {request.path} {delivery.status}")
        with self._changed:
            request_id = f"req_{len(self._deliveries) + 1}"
            delivery = _with_headers(delivery, {self.format.request_id_header: request_id})
            self._deliveries.append((request, delivery))
            self._changed.notify_all()
        return delivery

    def _answer(self, request: Request) -> Delivery:
        operation, desk = self.format.operation(request), self.batches
        if operation is None and desk is not None and desk.has_address(request):
            self._check_key(request)
            kind, body = desk.answer(request, self._answer_line)
            return _whole(200, {"content-type": kind}, body)
        if operation is None:
            raise Refused(_no_such_address(request))
        self._check_key(request)
        if operation != "generate":
            body = self.format.models(self.models, request)
            return _whole(200, {"content-type": self.format.whole_type}, body)
        return self._generate(request)

    def _answer_line(self, request: Request) -> LineAnswer:
        """Answer a line of a batch as the request that it is."""
        try:
            delivery = self._generate(request)
        except Refused as refused:
            delivery = self._refuse(request, refused.problem)
        return LineAnswer(delivery.status, json.loads(delivery.body))

    def _generate(self, request: Request) -> Delivery:
        problem = self._problem(request)
        if problem is not None:
            if self.strict:
                raise Refused(problem)
            self._record(request, problem)
        answer, faults = self._next_answer(request)
        delivery = self._render(answer, request)
        for fault in faults:
            delivery = fault.apply(delivery)
        return delivery

    def _check_key(self, request: Request) -> None:
        if self.key is not None and self.format.credential(request) != self.key:
            rule = "requests carry the API key, where this API looks for it"
            raise Refused(Problem("the API key is missing or wrong", rule, "", 401))

    def _problem(self, request: Request) -> Problem | None:
        if request.body is None:
            return Problem("the body is no JSON", "the body of the request is a JSON document")
        kind = request.header("content-type")
        if kind and "json" not in kind.lower():
            rule = "the content-type of a JSON document is application/json"
            return Problem(f"the body is JSON, and its content-type {kind!r}", rule, "", 415)
        with self._changed:
            return self.format.problem(request, self.ledger)

    def _next_answer(self, request: Request) -> tuple[Answer, Sequence[Fault]]:
        with self._changed:
            if self._script:
                return self._script.popleft()
            number = len(self._requests)
        if self.rest is not None:
            return self.rest(request), ()
        message = f"unexpected request: the script has no answer left for request {number}"
        rule = "queue an answer for every request, or give the server a `rest`"
        raise Refused(Problem(message, rule, "", 500))

    def _render(self, answer: Answer, request: Request) -> Delivery:
        if isinstance(answer, Raw):
            return _raw(answer, self.format.content_type(request))
        if isinstance(answer, Failure):
            return _refusal(self.format.refusal(answer), self.format.whole_type)
        streamed = self.format.wants_stream(request)
        if answer.failure is not None and not streamed:
            return _refusal(self.format.refusal(answer.failure), self.format.whole_type)
        headers = {"content-type": self.format.content_type(request)}
        with self._changed:
            if not streamed:
                return _whole(200, headers, self.format.whole(answer, request, self.ledger))
            events = self.format.events(answer, request, self.ledger)
        if self._events_per_chunk is None:
            return _whole(200, headers, b"".join(events))
        return Delivery(200, headers, _group_events(events, self._events_per_chunk), chunked=True)

    def _refuse(self, request: Request, problem: Problem) -> Delivery:
        self._record(request, problem)
        # Clients that know the header do not try again what cannot get better.
        never = {"x-should-retry": "false"} if problem.status >= 500 else {}
        delivery = _refusal(self.format.rejection(problem), self.format.whole_type)
        return _with_headers(delivery, never)

    def _record(self, request: Request, problem: Problem) -> None:
        with self._changed:
            self._problems.append((request, problem))
            self._changed.notify_all()
        if self._log is not None:
            self._log(f"problem: {problem}")


def _whole(status: int, headers: Mapping[str, str], body: bytes) -> Delivery:
    return Delivery(status, headers, (body,))


def _raw(answer: Raw, content_type: str) -> Delivery:
    """In HTTP chunks, unless the answer has a Content-Length of its own, be it wrong."""
    given = {name.lower(): value for name, value in answer.headers.items()}
    given.pop("transfer-encoding", None)
    declared = given.pop("content-length", None)
    headers = {"content-type": content_type, **given}
    delivery = Delivery(answer.status, headers, answer.chunks, chunked=True, separate=True)
    if declared is None:
        return delivery
    ending: Ending = "stay" if int(declared) == len(delivery.body) else "close"
    return replace(delivery, chunked=False, length=int(declared), ending=ending)


def _refusal(refusal: Refusal, content_type: str) -> Delivery:
    return _whole(refusal.status, {"content-type": content_type, **refusal.headers}, refusal.body)


def _with_headers(delivery: Delivery, headers: Mapping[str, str]) -> Delivery:
    """The delivery with headers beside its own, which an answer in exact bytes may have."""
    return replace(delivery, headers={**headers, **delivery.headers})


def _group_events(events: Sequence[bytes], size: int) -> tuple[bytes, ...]:
    if size == 1:
        return tuple(events)
    return tuple(b"".join(events[n : n + size]) for n in range(0, len(events), size))


def _exchange(request: Request, delivery: Delivery) -> Exchange:
    line = f"{request.method} {request.path}"
    return Exchange(line, request.raw, delivery.status, delivery.body[: delivery.cut])


def _no_such_address(request: Request) -> Problem:
    message = f"this API has no {request.method} {request.path}"
    return Problem(message, "requests go to an address of the API", "", 404)


def _bad_request(error: BadRequest) -> bytes:
    text = f"{error}\n".encode()
    headers = {"content-type": "text/plain; charset=utf-8", "connection": "close"}
    delivery = Delivery(400, headers, (text,))
    return b"".join(delivery.sends())
