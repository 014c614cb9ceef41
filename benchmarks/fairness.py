"""How long slow plugins of one request make everybody else on the event loop wait."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from agent_hookspecs import ProviderPlugin, ToolPlugin
from agent_host.core import AgentCore
from benchmarks.measure import Samples, Table, progress, show

BLOCKED = 0.3
ROUNDS = 5


class SlowProvider(ProviderPlugin):
    """Blocks while it lists models, and while it answers."""

    name = "slow"

    def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        time.sleep(BLOCKED)
        return [{"id": "m"}]

    def call_api(self, native_messages: list[Any], state: dict[str, Any]) -> tuple[Any, ...]:
        time.sleep(BLOCKED)
        final = {"role": "assistant", "content": "done"}
        return [], [final], [*native_messages, final], state


class SlowTool(ToolPlugin):
    """Blocks while it prepares."""

    name = "slow_tool"

    def prepare(self, config: Any, state: Any) -> dict[str, Any]:
        time.sleep(BLOCKED)
        return {}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "slow", "description": "", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str) -> str:
        return "done"


async def largest_gap(number: int) -> float:
    """The longest a task that only yields waited while a request with slow plugins ran."""
    core = AgentCore()
    core.register_provider(SlowProvider)
    core.register_tool(SlowTool)
    session = core.add_message(core.create_session(), "user", "hi")
    request = asyncio.create_task(core.asend_request(session, {"round": number}))
    largest, before = 0.0, time.perf_counter()
    while not request.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        largest, before = max(largest, now - before), now
    await request
    await core.aclose()
    return largest


def run(quick: bool) -> list[Table]:
    table = Table(
        f"The event loop while plugins block for {BLOCKED * 1e3:.0f} ms each (ms)", ("worst",)
    )
    progress("slow plugins")
    gaps = [asyncio.run(largest_gap(number)) * 1e3 for number in range(1 if quick else ROUNDS)]
    table.add("largest gap", Samples(tuple(gaps)), worst=max(gaps))
    return [table]


if __name__ == "__main__":
    show(run(quick=False))
