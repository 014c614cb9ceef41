"""The server room: requests in, answers out, for whichever door; nothing here knows an API's form.

A request is identified, read within its limits, and handed to its door; its answer is sent as it
comes. Whoever leaves ends what was begun for them, upstream included.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from agent_hookspecs.logs import get_logger
from agent_hookspecs.store import StoreError, new_id
from agent_host_gateway.access import OPEN, Access, Caller
from agent_host_gateway.conversations import Conversations, Found
from agent_host_gateway.doors import chat, messages, responses
from agent_host_gateway.metrics import Metrics
from agent_host_gateway.neutral import Answer, ModelRequest, check_conversation
from agent_host_gateway.refusals import Refused, refusal_of
from agent_host_gateway.settings import Settings
from agent_host_gateway.spending import Spending
from agent_host_gateway.upstream import Application, Opened, Relayed, Upstream, is_call, is_step
from agent_host_gateway.wishes import WholeEvents, Wish, usage_of_bytes

__all__ = ["Gateway"]

log = get_logger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: How often it is looked whether a client takes its answer.
_LOOK_SECONDS = 5.0
_MAX_WARNING = 2000
#: In how many of the last pieces of an answer it is looked for what it has used.
_LAST_CHUNKS = 8
#: Which key of a stored session is the gateway's.
_OURS = "gateway"
_STEPS_HEADER = "x-agent-host-steps"
#: How the W3C writes the span that a client is in; version ff, and ids of zeros alone, are none.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_MAX_TRACESTATE = 512
_JSON = [(b"content-type", b"application/json")]
_EVENTS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies are not to hold events back.
    (b"x-accel-buffering", b"no"),
]


class _LeftError(Exception):
    """The client has gone, or does not take what it asked for."""


@dataclass(frozen=True, slots=True)
class _Door:
    name: str
    form: ModuleType


class Gateway:
    """What the routes of one process share."""

    def __init__(
        self, application: Application, settings: Settings, access: Access, spending: Spending
    ) -> None:
        self.settings = settings
        self.access = access
        self.spending = spending
        self.metrics = Metrics()
        sessions = application.sessions if _has_store(application) else None
        self.conversations = Conversations(sessions)
        self.upstream = Upstream(application, settings, self.conversations)

    def routes(self) -> list[BaseRoute]:
        """Every route; a further room on the same server adds its own to these."""
        doors = {
            "/v1/chat/completions": _Door("chat", chat),
            "/v1/responses": _Door("responses", responses),
            "/v1/messages": _Door("messages", messages),
        }
        found: list[BaseRoute] = [
            Route(path, _Endpoint(self, door), methods=["POST"]) for path, door in doors.items()
        ]
        for method, endpoint in (("GET", self.get_response), ("DELETE", self.delete_response)):
            found.append(Route("/v1/responses/{id}", endpoint, methods=[method]))
        return [
            *found,
            Route("/v1/messages/count_tokens", self.refuse_counting, methods=["POST"]),
            Route("/v1/models", self.list_models, methods=["GET"]),
            Route("/v1/models/{id:path}", self.get_model, methods=["GET"]),
            Route("/healthz", self.tell_health, methods=["GET"]),
            Route("/readyz", self.tell_readiness, methods=["GET"]),
            Route("/metrics", self.tell_metrics, methods=["GET"]),
        ]

    # --- small routes ----------------------------------------------------------------------------

    async def tell_health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def tell_readiness(self, request: Request) -> Response:
        """Whether requests can be answered: the store, if there is one, can be reached."""
        if self.conversations.sessions is not None:
            try:
                await asyncio.to_thread(_reach, self.conversations.sessions)
            except StoreError as error:
                log.warning("not_ready", error=error.message)
                return PlainTextResponse("the store cannot be reached\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def tell_metrics(self, request: Request) -> Response:
        """Counters; they name models, so whoever needs a key for those needs one here."""
        try:
            await self.identify(request.headers, request.scope)
        except Exception as error:
            return _refusal_response(_logged_refusal(error), chat)
        return PlainTextResponse(
            self.metrics.write(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def list_models(self, request: Request) -> Response:
        try:
            caller = await self.identify(request.headers, request.scope)
        except Exception as error:
            return _refusal_response(_logged_refusal(error), chat)
        listed = [_describe_model(each) for each in await self.upstream.list_models()]
        data = [each for each in listed if caller.may_use(each["id"])]
        ids = [each["id"] for each in data]
        return JSONResponse(
            {
                "object": "list",
                "data": data,
                "has_more": False,
                "first_id": ids[0] if ids else None,
                "last_id": ids[-1] if ids else None,
            }
        )

    async def get_model(self, request: Request) -> Response:
        try:
            caller = await self.identify(request.headers, request.scope)
            name = request.path_params["id"]
            self.upstream.find_targets(name)
            if not caller.may_use(name):
                raise _not_allowed(caller, name)
        except Exception as error:
            return _refusal_response(_logged_refusal(error), chat)
        return JSONResponse(_describe_model(name))

    async def refuse_counting(self, request: Request) -> Response:
        refused = Refused("tokens are not counted here: no provider plugin offers it")
        return _refusal_response(refused, messages)

    async def get_response(self, request: Request) -> Response:
        try:
            caller = await self.identify(request.headers, request.scope)
            _, session = await asyncio.to_thread(
                self._load_response, caller, request.path_params["id"]
            )
        except Exception as error:
            return _refusal_response(_logged_refusal(error), responses)
        return Response(
            json.dumps(session.metadata[_OURS]["response"]), media_type="application/json"
        )

    async def delete_response(self, request: Request) -> Response:
        name = request.path_params["id"]
        try:
            caller = await self.identify(request.headers, request.scope)
            stored, _ = await asyncio.to_thread(self._load_response, caller, name)
            assert self.conversations.sessions is not None, "a response was loaded from it"
            await asyncio.to_thread(self.conversations.sessions.delete, stored)
        except Exception as error:
            return _refusal_response(_logged_refusal(error), responses)
        return JSONResponse({"id": name, "object": "response", "deleted": True})

    # --- who asks --------------------------------------------------------------------------------

    async def identify(self, headers: Mapping[str, str], scope: Mapping[str, Any]) -> Caller:
        """Who asks; web pages of others are refused, whoever looks at them."""
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            raise Refused("requests of web pages elsewhere are refused", kind="permission")
        client = scope.get("client")
        caller = await self.access.identify(headers, client[0] if client else "")
        if caller is OPEN and not is_loopback(_host_name(headers.get("host", ""))):
            # A page elsewhere may have been given a name that leads here.
            raise Refused("without keys, only this machine is answered", kind="permission")
        return caller

    async def admit(self, caller: Caller, model: str) -> None:
        """Refuse what the caller's key does not allow."""
        for target in self.upstream.find_targets(model):
            if not caller.may_use(target.name):
                raise _not_allowed(caller, target.name)
        if caller.key is not None and caller.key.is_limited:
            await self.spending.admit(caller.key)

    # --- stored responses ------------------------------------------------------------------------

    def _load_response(self, caller: Caller, response_id: str) -> tuple[str, Any]:
        """A stored response of the caller: its id in the store, and its session."""
        missing = Refused(
            f"there is no stored response {response_id[:100]!r}",
            kind="not_found",
            param="previous_response_id",
        )
        sessions = self.conversations.sessions
        if sessions is None or not response_id.startswith("resp_"):
            raise missing
        try:
            found = sessions.find(f"gateway.{response_id}")
            session = sessions.load(found.id)
        except StoreError as error:
            raise missing from error
        ours = session.metadata.get(_OURS) or {}
        if ours.get("owner") != caller.id or found.name != f"gateway.{response_id}":
            raise missing
        return found.id, session

    async def find_previous(self, asked: ModelRequest, caller: Caller) -> Found | None:
        """What a request goes on from, if it names a stored response."""
        if asked.store is None:
            asked.store = self.conversations.sessions is not None and "echoed" in asked.options
        if asked.store and self.conversations.sessions is None:
            raise Refused("this gateway stores nothing: its config names no store", param="store")
        if asked.previous is None:
            return None
        stored, session = await asyncio.to_thread(self._load_response, caller, asked.previous)
        session = _with_instructions(session, asked)
        check_conversation([*session.messages, *asked.messages], "input")
        return Found(session, 0, stored)

    async def store_response(
        self, caller: Caller, session: Any, parent: str | None, response: Mapping[str, Any]
    ) -> None:
        """Store a response with its session, so that the caller can go on from it."""
        ours = {"owner": caller.id, "response": response}
        sessions = self.conversations.sessions
        assert sessions is not None, "without a store nothing is to be stored"
        await asyncio.to_thread(
            sessions.add,
            session.with_metadata({_OURS: ours}),
            name=f"gateway.{response['id']}",
            parent=parent,
        )


class _Endpoint:
    """A door on the server."""

    def __init__(self, gateway: Gateway, door: _Door) -> None:
        self._gateway = gateway
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(self._gateway, self._door, scope, receive, send)
        await exchange.carry_out()


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, gateway: Gateway, door: _Door, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._gateway = gateway
        self._door = door
        self._form: Any = door.form
        self._scope = scope
        self._receive = receive
        self._send_raw = send
        self._id = new_id().replace("-", "")
        self._begun = time.monotonic()
        self._status = 0
        #: Since when the client has taken nothing of what it is sent.
        self._sending_since: float | None = None

    async def carry_out(self) -> None:
        gateway, metrics = self._gateway, self._gateway.metrics
        metrics.active += 1
        try:
            if metrics.active > gateway.settings.max_requests:
                raise Refused("too many requests at once", kind="overloaded", retry_after=1)
            await self._work()
        except _LeftError:
            # Nothing is lost: there is nobody left to tell.
            self._status = self._status or 499
        except Exception as error:
            refused = _logged_refusal(error)
            if not self._status:
                await self._send_whole(
                    refused.status, self._form.error_body(refused, self._id), refused.headers
                )
        finally:
            metrics.active -= 1
            metrics.note_request(self._door.name, self._status, time.monotonic() - self._begun)

    async def _work(self) -> None:
        gateway = self._gateway
        headers = Headers(scope=self._scope)
        caller = await gateway.identify(headers, self._scope)
        kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(f"the body is {kind[:100]!r}, and not application/json")
        body = await self._read_body(headers)
        can_store = gateway.conversations.sessions is not None
        context = _trace_context(headers)
        wish = Wish(self._form, _parse(body), body, can_store=can_store, context=context)
        await gateway.admit(caller, wish.model)
        shows_steps = headers.get(_STEPS_HEADER, "").lower() in ("1", "true", "yes")
        await self._while_client_stays(self._answer(wish, caller, shows_steps))

    async def _read_body(self, headers: Headers) -> bytes:
        settings = self._gateway.settings
        most = settings.max_body_bytes
        too_large = Refused(f"the request has more than {most} bytes", kind="too_large")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        try:
            return await asyncio.wait_for(
                self._receive_body(most, too_large), settings.body_seconds
            )
        except asyncio.TimeoutError:
            raise Refused(
                f"the request did not arrive within {settings.body_seconds:g} s", kind="timeout"
            ) from None

    async def _receive_body(self, most: int, too_large: Refused) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _LeftError
            piece = message.get("body", b"")
            size += len(piece)
            if size > most:
                raise too_large
            pieces.append(piece)
            if not message.get("more_body"):
                return b"".join(pieces)

    async def _while_client_stays(self, work: Any) -> None:
        """Carry out the work; end it when the client leaves, takes nothing, or time is up."""
        settings = self._gateway.settings
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._receive())
        deadline = self._begun + settings.request_seconds
        look = min(_LOOK_SECONDS, settings.write_seconds, settings.request_seconds)
        try:
            while not working.done():
                await asyncio.wait(
                    {working, leaving}, timeout=look, return_when=asyncio.FIRST_COMPLETED
                )
                now = time.monotonic()
                since = self._sending_since
                if working.done():
                    break
                if leaving.done() or (since is not None and now - since > settings.write_seconds):
                    raise _LeftError
                if now > deadline:
                    raise Refused(
                        f"the answer took longer than {settings.request_seconds:g} s",
                        kind="timeout",
                    )
        finally:
            leaving.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait({working})
        working.result()

    # --- answers ---------------------------------------------------------------------------------

    async def _answer(self, wish: Wish, caller: Caller, shows_steps: bool) -> None:
        gateway = self._gateway
        answer = Answer()
        previous = None
        if not wish.may_be_relayed:
            previous = await gateway.find_previous(wish.asked, caller)
        may_relay = wish.tells_usage or caller.key is None or not caller.key.is_limited
        opened = await gateway.upstream.open(wish, caller.id, previous, may_relay=may_relay)
        try:
            if isinstance(opened, Relayed):
                await self._relay(wish, opened, answer)
            elif wish.is_streamed:
                await self._stream(wish.asked, caller, opened, answer, shows_steps)
            else:
                await self._tell(wish.asked, caller, opened, answer, shows_steps)
        finally:
            await opened.close()
            gateway.spending.note(caller, wish.model, answer.usage)
            given, made = answer.usage.get("input", 0), answer.usage.get("output", 0)
            gateway.metrics.note_tokens(wish.model, given, made)

    async def _relay(self, wish: Wish, opened: Relayed, answer: Answer) -> None:
        """The bytes of an answer as they are; only what it has used is looked at."""
        headers = _pairs(_warning_headers(opened.warnings))
        kind = opened.answer.content_type.encode("latin-1", "replace")
        if not wish.is_streamed:
            whole = b"".join([data async for data in opened.answer.chunks()])
            answer.usage = usage_of_bytes(wish.form, whole, is_streamed=False)
            length = (b"content-length", str(len(whole)).encode())
            await self._begin(200, [(b"content-type", kind), length, *headers])
            await self._send(whole, is_last=True)
            return
        await self._begin(200, [(b"content-type", kind), *_EVENTS[1:], *headers])
        first, last = b"", deque[bytes](maxlen=_LAST_CHUNKS)
        events = WholeEvents()
        try:
            async for data in opened.answer.chunks():
                if data := events.take(data):
                    first = first or data
                    last.append(data)
                    await self._send(data)
            end = events.left
        except Exception as error:
            end = self._form.failure_event(_logged_refusal(error))
        finally:
            # Also of an answer that nobody waits for any more.
            answer.usage = usage_of_bytes(wish.form, first + b"".join(last), is_streamed=True)
        await self._send(end, is_last=True)

    async def _tell(
        self,
        asked: ModelRequest,
        caller: Caller,
        opened: Opened,
        answer: Answer,
        shows_steps: bool,
    ) -> None:
        """The answer in one piece."""
        steps: list[Any] = []
        shows_steps |= bool(asked.options.get("steps"))
        async for event in self._gateway.upstream.read(opened, answer):
            if shows_steps and is_step(event):
                steps.append(event)
        body = self._form.whole_answer(asked, answer, self._id, int(time.time()))
        await self._keep(asked, caller, opened, answer, body)
        if steps:
            body["agent_host_steps"] = json.loads(json.dumps(steps, default=str))
        await self._send_whole(200, body, _warning_headers([*opened.warnings, *answer.warnings]))

    async def _stream(
        self,
        asked: ModelRequest,
        caller: Caller,
        opened: Opened,
        answer: Answer,
        shows_steps: bool,
    ) -> None:
        """The answer as it comes; what fails from here on is told in the stream."""
        writer = self._form.Writer(asked, self._id, int(time.time()))
        shows_steps |= bool(asked.options.get("steps"))
        headers = [*_EVENTS, *_pairs(_warning_headers(opened.warnings))]
        await self._begin(200, headers)
        await self._send(writer.begin())
        try:
            async for event in self._gateway.upstream.read(opened, answer):
                data = b"" if opened.target.agent and is_call(event) else writer.feed(event)
                if shows_steps and is_step(event):
                    data += writer.step(event)
                if data:
                    await self._send(data)
            end = writer.end(answer)
            response = getattr(writer, "response", None)
            await self._keep(asked, caller, opened, answer, response)
            for warning in answer.warnings:
                end = f": warning: {' '.join(warning.split())}\n\n".encode() + end
        except _LeftError:
            raise
        except Exception as error:
            end = writer.fail(_logged_refusal(error))
        await self._send(end, is_last=True)

    async def _keep(
        self,
        asked: ModelRequest,
        caller: Caller,
        opened: Opened,
        answer: Answer,
        response: Mapping[str, Any] | None,
    ) -> None:
        """Store what the next request needs, before the client can send it."""
        gateway = self._gateway
        session = opened.events.session
        stored, problem = await gateway.upstream.keep(opened, caller.id, session)
        if problem:
            answer.warnings.append(problem)
        if asked.store and response is not None:
            try:
                await gateway.store_response(caller, session, stored, response)
            except StoreError as error:
                # The answer is there all the same.
                log.warning("response_not_stored", error=error.message)
                answer.warnings.append(f"the response is not stored: {error.message}")

    # --- sending ---------------------------------------------------------------------------------

    async def _begin(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._status = status
        own = (b"x-request-id", self._id.encode())
        start = {"type": "http.response.start", "status": status, "headers": [*headers, own]}
        await self._send_raw(start)

    async def _send(self, data: bytes, *, is_last: bool = False) -> None:
        self._sending_since = time.monotonic()
        await self._send_raw({"type": "http.response.body", "body": data, "more_body": not is_last})
        self._sending_since = None

    async def _send_whole(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        length = (b"content-length", str(len(data)).encode())
        await self._begin(status, [*_JSON, length, *_pairs(headers)])
        await self._send(data, is_last=True)


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _host_name(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _parse(body: bytes) -> Any:
    """The body as JSON, if it is what every reader of JSON would read."""
    try:
        found = json.loads(body, parse_constant=_refuse_constant)
        if b"\\ud" in body.lower():
            # Half a surrogate is no text that anybody could send on.
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise Refused("the body is nested too deeply") from None
    except UnicodeError:
        raise Refused("the body has text that is not Unicode") from None
    except ValueError as error:
        raise Refused(f"the body is not JSON: {error}"[:300]) from None
    return found


def _trace_context(headers: Headers) -> dict[str, Any] | None:
    """What plugins are told of the trace that a client is in, if it says so soundly.

    What is not sound is left out, as the W3C wants it: the trace begins anew.
    """
    parent = headers.get("traceparent", "")
    if not _TRACEPARENT.fullmatch(parent):
        return None
    state = headers.get("tracestate", "")
    known = {"tracestate": state} if 0 < len(state) <= _MAX_TRACESTATE else {}
    return {"trace_context": {"traceparent": parent, **known}}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _has_store(application: Application) -> bool:
    store = application.config.values.get("store")
    return bool(store) and store != "none"


def _reach(sessions: Any) -> None:
    sessions.list(limit=1)


def _with_instructions(session: Any, asked: ModelRequest) -> Any:
    """The session with the instructions of this request in place of those of earlier ones."""
    stored = list(session.messages)
    own = stored[0] if stored and stored[0]["role"] == "system" else None
    new = asked.messages[0] if asked.messages[0]["role"] == "system" else None
    if new is not None:
        asked.messages = asked.messages[1:]
    if (own or {}).get("content") == (new or {}).get("content"):
        return session
    asked.warnings.append("the instructions are others than before: native history is made anew")
    rest = stored[1:] if own else stored
    return session.with_messages([*([new] if new else []), *rest])


def _not_allowed(caller: Caller, model: str) -> Refused:
    return Refused(
        f"the key {caller.name!r} does not allow the model {model[:200]!r}",
        kind="permission",
        param="model",
    )


def _logged_refusal(error: Exception) -> Refused:
    refused = refusal_of(error)
    if isinstance(error, StoreError) and refused.kind == "overloaded":
        log.warning("store_unavailable", error=error.message)
    elif refused.kind == "internal":
        log.error("request_failed", error=f"{type(error).__name__}: {error}", exc_info=error)
    return refused


def _refusal_response(refused: Refused, form: Any) -> Response:
    return JSONResponse(form.error_body(refused), refused.status, headers=refused.headers)


def _describe_model(name: str) -> dict[str, Any]:
    """A model in the words of both vendors, whose lists have nothing in common that differs."""
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": name.partition("/")[0],
        "type": "model",
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
    }


def _warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    if not warnings:
        return {}
    text = " | ".join(" ".join(each.split()) for each in dict.fromkeys(warnings))
    return {"x-agent-host-warning": text.encode("ascii", "replace").decode()[:_MAX_WARNING]}


def _pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
