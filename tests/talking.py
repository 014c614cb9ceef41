"""Providers that answer from memory, and the four ways of asking one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

from agent_hookspecs import Event, ProviderPlugin
from agent_host import AgentCore, Session

__all__ = ["WAYS", "Way", "ask", "core_with", "events_of", "said", "talker"]

Way = Literal["call", "acall", "stream", "astream"]
WAYS: tuple[Way, ...] = ("call", "acall", "stream", "astream")

Natives = list[dict[str, Any]]


def talker(
    sent: list[Natives] | None = None,
    answer: str | Callable[[Natives], str] = "Hi",
    **attributes: Any,
) -> type[ProviderPlugin]:
    """A provider of two methods; ``sent`` gets what each request would have put on a wire."""

    class Talker(ProviderPlugin):
        name = "talker"

        def init(self, config: dict[str, Any]) -> dict[str, Any]:
            return {"config": config, "request": {}, "partial": None}

        def call_api(self, native_messages: Natives, state: dict[str, Any]) -> Any:
            override = state["request"].get("messages")
            history = override if isinstance(override, list) else native_messages
            if sent is not None:
                sent.append([{k: v for k, v in m.items() if k != "_metadata"} for m in history])
            text = answer if isinstance(answer, str) else answer(native_messages)
            final = {"role": "assistant", "content": text}
            return [], [final], [*native_messages, final], state

    return type("Talker", (Talker,), attributes)


def core_with(*plugins: type, **options: Any) -> AgentCore:
    """A core with these plugins registered, each by its role."""
    core = AgentCore(**options)
    for plugin in plugins:
        getattr(core, f"register_{plugin.role}")(plugin)  # type: ignore[attr-defined]
    return core


def said(*texts: str, role: str = "user") -> Session:
    """A session with these messages."""
    return Session([{"role": role, "content": text} for text in texts])


def ask(
    core: AgentCore, session: Session, config: dict[str, Any] | None = None, way: Way = "call"
) -> tuple[Session, Sequence[dict[str, Any]]]:
    """The session and the finals, whichever way they were asked for."""
    config = config or {}
    if way == "call":
        answered, finals = core.send_request(session, config)
        return answered, [dict(final) for final in finals]
    if way == "acall":
        answered, finals = asyncio.run(_awaited(core, session, config))
        return answered, [dict(final) for final in finals]
    (final,) = [e for e in events_of(core, session, config, way) if e["type"] == "final"]
    return final["session"], [dict(message) for message in final["messages"]]


def events_of(
    core: AgentCore, session: Session, config: dict[str, Any] | None = None, way: Way = "stream"
) -> list[Event]:
    """Every event of a streamed request."""
    if way == "stream":
        return list(core.send_request_stream(session, config or {}))

    async def collected() -> list[Event]:
        events = [event async for event in core.asend_request_stream(session, config or {})]
        await core.async_wire.aclose()
        return events

    return asyncio.run(collected())


async def _awaited(core: AgentCore, session: Session, config: dict[str, Any]) -> Any:
    answer = await core.asend_request(session, config)
    # Its connections belong to this event loop, which ends with the request.
    await core.async_wire.aclose()
    return answer
