"""Conversations of the page: runs are begun here, go on by themselves, and are followed.

A run belongs to the server and not to the page that began it: whoever reloads the page finds it
again in the store. What needs somebody's consent waits there, and goes on when it has it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from agent_hookspecs.logs import get_logger
from agent_host_gateway.access import Caller
from agent_host_gateway.console.bodies import Row, read_number, read_object, read_text
from agent_host_gateway.console.forms import Forms, request_options
from agent_host_gateway.console.records import PAGE
from agent_host_gateway.refusals import Refused, refusal_of
from agent_host_gateway.server import Gateway

__all__ = ["Conversing", "plain_event"]

log = get_logger(__name__)

_MAX_RUNS = 32
_MAX_FOLLOWERS = 32
_MAX_PROMPT = 1_000_000
_MAX_FILES = 20
#: What a person may answer to a call that wants to run; what is allowed for good is for the owner
#: of the machine to say.
_ANSWERS = ("once", "deny")
#: A line that says nothing, so that nobody on the way takes a quiet run for a dead one.
_QUIET_SECONDS = 15.0
_QUIET = b": quiet\n\n"


class Conversing:
    """The runs that pages have begun in this process."""

    def __init__(self, gateway: Gateway, application: Any, forms: Forms) -> None:
        self._gateway = gateway
        self._application = application
        self._forms = forms
        self._running: set[asyncio.Task[None]] = set()
        self._followers = 0

    def routes(self) -> list[Row]:
        return [
            ("POST", "runs", self._begin),
            ("POST", "runs/{run}/decisions", self._go_on),
            ("POST", "runs/{run}/cancel", self._cancel),
            ("GET", "runs/{run}/events", self._follow),
        ]

    async def close(self) -> None:
        """End what goes on; it is stored as cancelled and can be resumed."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _begin(self, request: Request, caller: Caller) -> Any:
        given = await read_object(request, self._gateway.settings.max_body_bytes)
        self._require_store()
        model = read_text(given, "model")
        options = request_options(self._gateway, caller, model)
        await self._admit(caller)
        settings = given.get("settings") or {}
        await asyncio.to_thread(self._forms.check_settings, settings, options)
        stream = await asyncio.to_thread(
            lambda: self._application.astream(
                _read_prompt(given),
                session=read_text(given, "session") or None,
                settings=settings,
                park=True,
                **options,
            )
        )
        return await self._start(stream, caller, model)

    async def _go_on(self, request: Request, caller: Caller) -> Any:
        given = await read_object(request, 100_000)
        self._require_store()
        decisions = given.get("decisions") or {}
        if not isinstance(decisions, Mapping):
            raise Refused("'decisions' is no object", param="decisions")
        run = await asyncio.to_thread(self._application.runs.find, request.path_params["run"])
        answers = {
            question.id: _read_answer(question, decisions[question.id])
            for question in run.questions
            if question.id in decisions
        }
        await self._admit(caller)
        after = await asyncio.to_thread(self._last_event, run.id)
        stream = await asyncio.to_thread(
            lambda: self._application.aresume_stream(run.id, answers, park=True)
        )
        model = f"agent/{run.agent}" if run.agent else f"{run.provider}/{run.model}"
        return {**await self._start(stream, caller, model), "after": after}

    async def _cancel(self, request: Request, caller: Caller) -> Any:
        run = await asyncio.to_thread(self._application.runs.cancel, request.path_params["run"])
        return {"run": run.id, "state": run.state}

    async def _follow(self, request: Request, caller: Caller) -> Any:
        run = await asyncio.to_thread(self._application.runs.find, request.path_params["run"])
        if self._followers >= _MAX_FOLLOWERS:
            raise Refused("too many pages follow runs", kind="overloaded", retry_after=5)
        after = read_number(request.query_params, "after", 0, 10**9)
        # Proxies are not to hold events back.
        unbuffered = {"x-accel-buffering": "no"}
        return StreamingResponse(
            self._events(run.id, after), headers=unbuffered, media_type="text/event-stream"
        )

    def _last_event(self, run: str) -> int:
        """The number of the latest event that is stored, after which the page goes on."""
        return max((each.number for each in self._application.runs.events(run)), default=0)

    def _require_store(self) -> None:
        if self._gateway.conversations.sessions is None:
            raise Refused('a conversation needs a store; put store = "sqlite:" into the config')

    async def _admit(self, caller: Caller) -> None:
        """Refuse what the key has no budget for."""
        if caller.key is not None and caller.key.is_limited:
            await self._gateway.spending.admit(caller.key)

    async def _start(self, stream: Any, caller: Caller, model: str) -> dict[str, Any]:
        """Let a run go on by itself; its id, as soon as others can find it."""
        if len(self._running) >= _MAX_RUNS:
            raise Refused("too many runs go on", kind="overloaded", retry_after=5)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._carry_out(stream, begun, caller, model))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await begun
        return {"run": stream.run_id, "session": stream.session.id}

    async def _carry_out(
        self, stream: Any, begun: asyncio.Future[None], caller: Caller, model: str
    ) -> None:
        try:
            async with stream:
                async for event in stream:
                    if event["type"] == "usage":
                        self._gateway.spending.note(caller, PAGE + model, event["usage"])
                    # Both may come before the run is stored, and what failed is raised next.
                    if event["type"] not in ("warning", "error") and not begun.done():
                        begun.set_result(None)
            if not begun.done():
                begun.set_result(None)
        except Exception as error:
            if not begun.done():
                begun.set_exception(error)
            elif refusal_of(error).kind == "internal":
                log.error("run_failed", error=f"{type(error).__name__}: {error}", exc_info=error)
        finally:
            if not begun.done():
                begun.cancel()

    async def _events(self, run: str, after: int) -> AsyncIterator[bytes]:
        """The events of a run as a browser reads them, until it is over or waits."""
        self._followers += 1
        events = self._application.runs.awatch(run, after)
        reading: asyncio.Future[Any] | None = None
        try:
            while True:
                if reading is None:
                    reading = asyncio.ensure_future(anext(events, None))
                done, _ = await asyncio.wait({reading}, timeout=_QUIET_SECONDS)
                if not done:
                    yield _QUIET
                    continue
                event, reading = reading.result(), None
                if event is None:
                    break
                yield _line("event", plain_event(event))
            found = await asyncio.to_thread(self._application.runs.find, run)
            yield _line("end", {"state": found.state, "session": found.session})
        finally:
            self._followers -= 1
            if reading is not None:
                reading.cancel()


def plain_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without the session in it, which the page reads from the store."""
    plain = {key: value for key, value in event.items() if key != "session"}
    if event["type"] == "child":
        plain["event"] = plain_event(event["event"])
    return plain


def _line(kind: str, value: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(value, default=str)}\n\n".encode()


def _read_prompt(given: Mapping[str, Any]) -> list[Any]:
    prompt = read_text(given, "prompt", most=_MAX_PROMPT)
    files = given.get("files") or []
    if not isinstance(files, list) or len(files) > _MAX_FILES:
        raise Refused(f"'files' is no list of at most {_MAX_FILES}", param="files")
    parts: list[Any] = [prompt] if prompt.strip() else []
    for each in files:
        try:
            parts.append(base64.b64decode(each, validate=True))
        except (binascii.Error, TypeError, ValueError):
            raise Refused("a file is not base64", param="files") from None
    if not parts:
        raise Refused("there is nothing to send", param="prompt")
    return parts


def _read_answer(question: Any, answer: Any) -> str:
    if question.kind == "approval" and answer not in _ANSWERS:
        raise Refused(f"the answer is one of {', '.join(_ANSWERS)}", param="decisions")
    if not isinstance(answer, str) or len(answer) > 10_000:
        raise Refused("an answer is a text", param="decisions")
    return answer
