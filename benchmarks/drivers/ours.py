"""The host with the provider that is installed for the format, its extensions, and every event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agent_hookspecs import ToolPlugin
from agent_host import AgentCore
from agent_host.plugins.load import load_catalog
from benchmarks.cases import PROMPT, TOOL, WIRES, Case

__all__ = ["Driver", "SaveDocument", "config_of"]

#: The event that stands for a fragment of each content.
_FRAGMENTS = {
    "text": "partial",
    "reasoning": "reasoning",
    "string": "tool_call_delta",
    "objects": "tool_call_delta",
}


class SaveDocument(ToolPlugin):
    """A tool to be called; nothing here runs it."""

    name = "benchmark_tool"
    effect = "write"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [TOOL]

    def execute_tool(self, tool_name: str) -> str:
        return "done"


def config_of(case: Case, server: str) -> dict[str, Any]:
    wire = WIRES[case.wire]
    return {
        "provider": wire.provider,
        "model": wire.model,
        "base_url": case.base(server),
        # Not a word that tests may print: whatever is a key is redacted for the whole process.
        "api_key": "benchmark-key",
        # Whatever tools are installed here, only ours is offered, and only where one is called: a
        # name that no tool has would be warned of at every request.
        "use_tools": [TOOL["name"]] if case.has_call else [],
        # The longest answers here are longer than any that is real.
        "max_answer_bytes": 256 << 20,
    }


class Driver:
    """``warm`` is what a program that will stream much asks for before it begins."""

    warm = True

    def __init__(self, server: str) -> None:
        self.server = server
        catalog = load_catalog()
        installed = {record.name for record in catalog.usable("provider")}
        self.speaks = [name for name, wire in WIRES.items() if wire.provider in installed]
        self.core, self.with_tools = AgentCore(catalog=catalog), AgentCore(catalog=catalog)
        self.with_tools.register_tool(SaveDocument)
        self.session = self.core.add_message(self.core.create_session(), "user", PROMPT)
        if self.warm and self.speaks:
            self.core.warm_up(config_of(Case(self.speaks[0], "text", 1), server))

    def _core(self, case: Case) -> AgentCore:
        return self.with_tools if case.has_call else self.core

    def stream(self, case: Case) -> int:
        fragment, watcher = _FRAGMENTS[case.content], _Watcher()
        events = self._core(case).send_request_stream(self.session, config_of(case, self.server))
        if case.has_call:
            for event in events:
                if event["type"] == fragment:
                    watcher.see(event)
            return watcher.seen
        seen = 0
        for event in events:
            if event["type"] == fragment:
                seen += 1
        return seen

    async def astream(self, case: Case) -> int:
        fragment, watcher = _FRAGMENTS[case.content], _Watcher()
        events = self._core(case).asend_request_stream(self.session, config_of(case, self.server))
        if case.has_call:
            async for event in events:
                if event["type"] == fragment:
                    watcher.see(event)
            return watcher.seen
        seen = 0
        async for event in events:
            if event["type"] == fragment:
                seen += 1
        return seen

    def request(self, case: Case) -> int:
        _, finals = self.core.send_request(self.session, config_of(case, self.server))
        return len(finals[0]["content"])

    async def arequest(self, case: Case) -> int:
        _, finals = await self.core.asend_request(self.session, config_of(case, self.server))
        return len(finals[0]["content"])

    async def hold(self, case: Case) -> Callable[[], Awaitable[Any]]:
        stream = self.core.asend_request_stream(self.session, config_of(case, self.server))
        async for event in stream:
            if event["type"] == "partial":
                break
        return stream.aclose


class _Watcher:
    """Shows the arguments of calls as they grow, as a UI would."""

    def __init__(self) -> None:
        self.shown: dict[int, list[str]] = {}
        self.seen = 0

    def see(self, event: Any) -> None:
        self.seen += 1
        self.shown.setdefault(event["index"], []).append(event["arguments"])
