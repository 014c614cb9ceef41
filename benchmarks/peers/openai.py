"""OpenAI's own SDK: chat completions as plain events."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.cases import WIRES, Case
from benchmarks.peers.asking import chat_options, has_fragment

openai: Any = import_module("openai")


class Driver:
    speaks = ("chat",)

    def __init__(self, server: str) -> None:
        self.server = server
        # A client for each address, made before it is timed.
        self.client = cache(lambda base: openai.OpenAI(base_url=base, api_key="none"))
        self.aclient = cache(lambda base: openai.AsyncOpenAI(base_url=base, api_key="none"))

    def _base(self, case: Case) -> str:
        return f"{case.base(self.server)}/v1"

    def _options(self, case: Case) -> dict[str, Any]:
        return {"model": WIRES["chat"].model, **chat_options(case)}

    def stream(self, case: Case) -> int:
        create = self.client(self._base(case)).chat.completions.create
        return sum(has_fragment(each, case) for each in create(stream=True, **self._options(case)))

    async def astream(self, case: Case) -> int:
        create = self.aclient(self._base(case)).chat.completions.create
        seen = 0
        async for chunk in await create(stream=True, **self._options(case)):
            seen += has_fragment(chunk, case)
        return seen

    def request(self, case: Case) -> int:
        create = self.client(self._base(case)).chat.completions.create
        return len(create(**self._options(case)).choices[0].message.content)

    async def arequest(self, case: Case) -> int:
        create = self.aclient(self._base(case)).chat.completions.create
        return len((await create(**self._options(case))).choices[0].message.content)
