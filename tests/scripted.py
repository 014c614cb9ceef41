"""A model that says what a test tells it to, in every way a provider can be written.

Owns the providers, the chunks they are made of, and the checker of histories: what a strict API
would refuse. It must not know what any one test is about.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from agent_hookspecs import Event, ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin, accumulate_tool_calls
from agent_host import AgentApplication, Session

__all__ = [
    "WAYS",
    "Chunk",
    "Script",
    "Way",
    "answering",
    "app_with",
    "call",
    "call_delta",
    "calling",
    "check_history",
    "delta",
    "end",
    "events_of",
    "kinds",
    "of_kind",
    "saying",
    "scripted",
    "session_of",
]

Chunk = dict[str, Any]
Turn = Sequence[Chunk]
#: What the model says turn by turn; a function sees the history it is sent.
Script = Sequence[Turn] | Callable[[list[dict[str, Any]]], Turn]
Way = Literal["sync", "async"]
WAYS: tuple[Way, ...] = ("sync", "async")


def delta(**fields: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": fields}]}


def end(reason: str = "stop", **usage: int) -> Chunk:
    counted = {"usage": usage} if usage else {}
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **counted}


def saying(text: str, **usage: int) -> Turn:
    """A turn that answers."""
    return [delta(role="assistant", content=text), end("stop", **usage)]


def call(name: str, arguments: str = "{}", id: str = "c1", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


def call_delta(*calls: object) -> Chunk:
    return delta(tool_calls=list(calls))


def calling(*calls: Mapping[str, Any], text: str = "", **usage: int) -> Turn:
    """A turn that calls these tools, each in one piece."""
    numbered = [{"index": number, **each} for number, each in enumerate(calls)]
    said = [delta(content=text)] if text else []
    return [*said, call_delta(*numbered), end("tool_calls", **usage)]


def scripted(
    script: Script, sent: list[list[dict[str, Any]]] | None = None, **attributes: Any
) -> type[ProviderPlugin]:
    """A provider that streams the script; ``sent`` gets the history of each request."""
    turns = iter(script) if not callable(script) else None

    class Scripted(AccumulatorStreamingMixin, ProviderPlugin):
        name = "scripted"

        def get_tags(self, config: dict[str, Any]) -> list[str]:
            return ["provider:scripted", "supports_tools"]

        def init(self, config: dict[str, Any]) -> dict[str, Any]:
            return {"config": config, "request": {}, "partial": None}

        def to_native_messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            return [_to_native(message) for message in messages]

        def from_native_messages(self, native_messages: Sequence[Any]) -> list[dict[str, Any]]:
            return [_from_native(native) for native in native_messages]

        def stream_api(self, native_messages: list[dict[str, Any]]) -> Iterator[Chunk]:
            history = [{k: v for k, v in m.items() if k != "_metadata"} for m in native_messages]
            if sent is not None:
                sent.append(history)
            turn = script(history) if callable(script) else next(turns or iter(()))
            yield from turn

        def process_delta(self, delta: Any, accumulated: Any) -> Any:
            fragment, message = super().process_delta(delta, accumulated)
            patch, message = accumulate_tool_calls(delta, message)
            return ({**(fragment or {}), **patch} if patch else fragment), message

    return type("Scripted", (Scripted,), attributes)


def answering(
    answers: Sequence[dict[str, Any]], sent: list[list[dict[str, Any]]]
) -> type[ProviderPlugin]:
    """A provider that gives whole answers and hands on what is in them without looking at it."""
    said = iter(answers)

    class Answering(ProviderPlugin):
        name = "answering"

        def init(self, config: dict[str, Any]) -> dict[str, Any]:
            return {"config": config}

        def to_native_messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            return [_to_native(message) for message in messages]

        def from_native_messages(self, native_messages: Sequence[Any]) -> list[dict[str, Any]]:
            return [_from_native(native) for native in native_messages]

        def call_api(self, native_messages: list[dict[str, Any]], state: Any) -> Any:
            sent.append([*native_messages])
            final = next(said)
            return [], [final], [*native_messages, final], state

    return Answering


def _to_native(message: Mapping[str, Any]) -> dict[str, Any]:
    metadata = message.get("metadata") or {}
    native: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if metadata.get("tool_calls"):
        native["tool_calls"] = metadata["tool_calls"]
    if message["role"] == "tool":
        native["tool_call_id"] = metadata.get("tool_call_id")
    return native


def _from_native(native: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(native.get("_metadata") or {})
    if native.get("tool_calls"):
        metadata["tool_calls"] = native["tool_calls"]
    if native.get("refusal"):
        metadata["refusal"] = native["refusal"]
    return {"role": "assistant", "content": native.get("content") or "", "metadata": metadata}


def app_with(
    provider: type, *tools: Any, config: Mapping[str, Any] | None = None, **options: Any
) -> AgentApplication:
    """An application on this provider alone, with nothing of what is installed."""
    settings = {
        "allowed_plugins": ["nothing that is installed"],
        "agents": {"default": {"provider": getattr(provider, "name", None)}},
        **(config or {}),
    }
    app = AgentApplication(settings, tools=tools, **options)
    app.core.register_provider(provider)
    return app


def events_of(
    app: AgentApplication,
    prompt: str = "go",
    way: Way = "sync",
    into: list[Event] | None = None,
    **options: Any,
) -> list[Event]:
    """Every event of a run; ``into`` has those before an error, too."""
    events = [] if into is None else into
    if way == "sync":
        events.extend(app.stream(prompt, **options))
        return events

    async def collect() -> None:
        async for event in app.astream(prompt, **options):
            events.append(event)

    asyncio.run(collect())
    return events


def done(finish: str = "stop", word: str | None = "stop", limit: str | None = None) -> Any:
    """The last event of a run that ended so."""
    return {"type": "done", "finish": finish, "finish_reason": word, "limit": limit}


def kinds(events: Iterable[Event], *leaving_out: str) -> list[str]:
    return [event["type"] for event in events if event["type"] not in leaving_out]


def of_kind(events: Iterable[Event], kind: str) -> list[Any]:
    return [event for event in events if event["type"] == kind]


def check_history(messages: Iterable[Mapping[str, Any]]) -> None:
    """Refuse what a strict API would: native messages in the chat style, or core messages."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        role = message["role"]
        metadata = message.get("metadata") or {}
        if role == "tool":
            answered = message.get("tool_call_id") or metadata.get("tool_call_id")
            assert answered in waiting, f"a result for {answered!r}, which nobody waits for"
            waiting.remove(answered)
            continue
        assert not waiting, f"no result for {waiting} before the next {role} message"
        for each in message.get("tool_calls") or metadata.get("tool_calls") or ():
            identity, function = each["id"], each["function"]
            assert isinstance(identity, str), "an id is text"
            assert identity.strip(), "an id is not empty"
            assert identity not in seen, f"the id {identity!r} is used twice"
            assert isinstance(function["name"], str), "a name is text"
            assert function["name"], "a name is not empty"
            assert isinstance(json.loads(function["arguments"]), dict), "arguments are an object"
            seen.add(identity)
            waiting.append(identity)
    assert not waiting, f"no result for {waiting} at the end"


def session_of(events: Sequence[Event]) -> Session:
    """The session of the last turn that ended."""
    session = of_kind(events, "final")[-1]["session"]
    assert isinstance(session, Session)
    return session
