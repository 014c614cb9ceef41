"""A host for one check: a core with the package under test, asked in any of its four ways.

Owns who waits and what a caller sees. It must not know what a check is about, nor any wire.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.roles import ToolPlugin
from agent_host.core import AgentCore
from agent_host.plugins.catalog import Catalog
from agent_host.plugins.stack import PreparedTool, Stack
from agent_host.sessions.session import Session

__all__ = [
    "CANARY",
    "PATIENCE",
    "Host",
    "Outcome",
    "ToolCall",
    "prepared_tool",
    "recording_tools",
]

#: The key of every check. It looks like nobody's key, so that no pattern but its value finds it.
CANARY = "canary.conformance.5e1f7c0d"

#: Seconds for which anything may take: enough for a busy machine, so that a hang is a failure.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as it stands in a core message; ``arguments`` is the text."""

    id: str
    name: str
    arguments: str


@dataclass
class Outcome:
    """What a caller saw of one request; ``asked`` is how many messages the session had before."""

    session: Session
    events: list[dict[str, Any]] = field(default_factory=list)
    error: Exception | None = None
    asked: int = field(init=False)

    def __post_init__(self) -> None:
        self.asked = self.session.count

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def expect(self) -> Outcome:
        """Give it back if the request succeeded; raise what it failed with."""
        if self.error is not None:
            raise self.error
        return self

    @property
    def shown(self) -> str:
        """The text of all partial events."""
        return "".join(event["message"]["content"] for event in self.of("partial"))

    @property
    def finals(self) -> list[dict[str, Any]]:
        """The messages that the answer consists of, as plain dicts; mostly one."""
        messages: list[dict[str, Any]] = self.session.to_dict()["messages"]
        return messages[self.asked :] or messages[-1:]

    @property
    def answer(self) -> dict[str, Any]:
        """The answer as one message, also where it came as several."""
        finals = self.finals
        text = "".join(final["content"] for final in finals)
        return {**finals[-1], "content": text, "metadata": self.metadata}

    @property
    def metadata(self) -> dict[str, Any]:
        """What the messages of the answer say of it; calls and reasoning of all of them."""
        merged: dict[str, Any] = {}
        for final in self.finals:
            about = dict(final["metadata"])
            for key in ("tool_calls", "reasoning"):
                if merged.get(key) and about.get(key):
                    about[key] = merged[key] + about[key]
            merged |= about
        return merged

    @property
    def natives(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.session.to_dict()["metadata"].get("native_messages", [])
        return found

    @property
    def calls(self) -> list[ToolCall]:
        """The calls in the answer, of whichever OpenAI-like shape."""
        return [_call(call) for call in self.metadata.get("tool_calls") or ()]

    def comparable(self) -> Any:
        """What must be the same however the request was made: messages and natives.

        Ids that a provider makes up for calls may be others each time; so they are compared by
        the place of the call.
        """
        said = self.session.to_dict()["messages"]
        return self._without_ids({"messages": said, "native_messages": self.natives})

    def comparable_events(self) -> Any:
        """The events without the session, which is compared by itself, and the error."""
        shown = [{k: v for k, v in event.items() if k != "session"} for event in self.events]
        raised = self.error.to_dict() if isinstance(self.error, AgentError) else repr(self.error)
        return self._without_ids({"events": shown, "error": raised})

    def _without_ids(self, value: Any) -> Any:
        places = {call.id: f"call {n}" for n, call in enumerate(self.calls) if call.id}
        return _replaced(json.loads(json.dumps(value)), places)


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    """A copy in which each text, or key, that is one of the names has another."""
    if isinstance(value, dict):
        return {names.get(key, key): _replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _call(call: Mapping[str, Any]) -> ToolCall:
    inner = call.get("function") or call.get("custom") or call
    arguments = inner.get("arguments", inner.get("input", ""))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(call.get("id") or call.get("call_id") or ""), str(inner["name"]), text)


class Host:
    """A core with the plugins of a catalog, and tools that note what they are called with."""

    def __init__(self, catalog: Catalog, tools: Sequence[type] = ()) -> None:
        self.core = AgentCore(catalog=catalog)
        for tool in tools:
            self.core.register_tool(tool)

    def ask(
        self,
        session: Session,
        config: Mapping[str, Any],
        *,
        stream: bool = True,
        asynchronous: bool = False,
    ) -> Outcome:
        """Send the session and wait for the end; an error is part of the outcome."""
        outcome = Outcome(session)
        settings = dict(config)
        try:
            if asynchronous:
                asyncio.run(self._aask(outcome, settings, stream))
            elif stream:
                self._stream(outcome, settings)
            else:
                outcome.session, _ = self.core.send_request(session, settings)
        except Exception as error:
            outcome.error = error
        return outcome

    def _stream(self, outcome: Outcome, config: dict[str, Any]) -> None:
        with self.core.send_request_stream(outcome.session, config) as stream:
            try:
                outcome.events += stream  # type: ignore[arg-type]
            finally:
                outcome.session = stream.session

    async def _aask(self, outcome: Outcome, config: dict[str, Any], stream: bool) -> None:
        reading = self._astream(outcome, config) if stream else self._awhole(outcome, config)
        try:
            await asyncio.wait_for(reading, PATIENCE)
        finally:
            await self.core.async_wire.aclose()

    async def _awhole(self, outcome: Outcome, config: dict[str, Any]) -> None:
        outcome.session, _ = await self.core.asend_request(outcome.session, config)

    async def _astream(self, outcome: Outcome, config: dict[str, Any]) -> None:
        async with self.core.asend_request_stream(outcome.session, config) as stream:
            try:
                async for event in stream:
                    outcome.events.append(event)  # type: ignore[arg-type]
            finally:
                outcome.session = stream.session

    def run_calls(self, outcome: Outcome, config: Mapping[str, Any]) -> Session:
        """Run the calls of an answer; the session with their results."""
        calls = outcome.metadata.get("tool_calls") or ()
        errors = outcome.metadata.get("tool_call_errors")
        results = self.core.execute_tool_calls(calls, dict(config), errors=errors)
        return outcome.session.with_added(*results)

    def close(self) -> None:
        self.core.close()


def prepared_tool(stack: Stack, plugin: str) -> PreparedTool:
    """A tool plugin as a stack has it: with its state and what it offers."""
    for tool in stack.tools:
        if tool.plugin.name == plugin:
            return tool
    told = "; ".join(message for message, _ in stack.warnings)
    raise LookupError(told or f"{plugin!r} takes no part")


def recording_tools(
    noted: list[tuple[str, Any]], names: Sequence[str] = ("weather", "clock")
) -> type[ToolPlugin]:
    """A tool plugin whose tools answer with what they were given, and note it."""

    class ConformanceTools(ToolPlugin):
        name = "conformance_tools"
        version = "1"
        effects = dict.fromkeys(names, "read")

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [_schema(name) for name in names]

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            noted.append((tool_name, payload))
            return f"{tool_name} was asked {json.dumps(payload, sort_keys=True)}"

    return ConformanceTools


def _schema(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The {name} of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string", "description": "Where."}},
        },
    }
