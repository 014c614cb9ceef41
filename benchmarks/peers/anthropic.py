"""Anthropic's own SDK: messages as plain events."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.cases import TOOL, WIRES, Case
from benchmarks.peers.asking import MESSAGES

anthropic: Any = import_module("anthropic")


class Driver:
    speaks = ("anthropic",)

    def __init__(self, server: str) -> None:
        self.server = server
        self.client = cache(lambda base: anthropic.Anthropic(base_url=base, api_key="none"))
        self.aclient = cache(lambda base: anthropic.AsyncAnthropic(base_url=base, api_key="none"))

    def _options(self, case: Case) -> dict[str, Any]:
        asked: dict[str, Any] = {"model": WIRES["anthropic"].model, "max_tokens": 4096}
        if case.has_call:
            schema = TOOL["parameters"]
            asked["tools"] = [{"name": TOOL["name"], "input_schema": schema}]
        return {**asked, "messages": MESSAGES}

    def stream(self, case: Case) -> int:
        create = self.client(case.base(self.server)).messages.create
        events = create(stream=True, **self._options(case))
        return sum(event.type == "content_block_delta" for event in events)

    async def astream(self, case: Case) -> int:
        create = self.aclient(case.base(self.server)).messages.create
        seen = 0
        async for event in await create(stream=True, **self._options(case)):
            seen += event.type == "content_block_delta"
        return seen

    def request(self, case: Case) -> int:
        create = self.client(case.base(self.server)).messages.create
        return len(create(**self._options(case)).content[0].text)

    async def arequest(self, case: Case) -> int:
        create = self.aclient(case.base(self.server)).messages.create
        return len((await create(**self._options(case))).content[0].text)
