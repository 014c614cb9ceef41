"""any-llm, with one client for each address."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.cases import WIRES, Case
from benchmarks.peers.asking import chat_options, has_fragment

any_llm: Any = import_module("any_llm")

_PROVIDERS = {"chat": ("openai", "/v1"), "anthropic": ("anthropic", "")}


class Driver:
    speaks = tuple(_PROVIDERS)

    def __init__(self, server: str) -> None:
        self.server = server
        self._made = cache(self._make)

    @staticmethod
    def _make(provider: str, base: str, asynchronous: bool) -> Any:
        # Its clients belong to the loop that used them first, so the two kinds are kept apart.
        return any_llm.AnyLLM.create(provider, api_key="none", api_base=base)

    def _client(self, case: Case, *, asynchronous: bool) -> Any:
        provider, path = _PROVIDERS[case.wire]
        return self._made(provider, case.base(self.server) + path, asynchronous)

    def _options(self, case: Case) -> dict[str, Any]:
        return {"model": WIRES[case.wire].model, **chat_options(case)}

    def stream(self, case: Case) -> int:
        complete = self._client(case, asynchronous=False).completion
        chunks = complete(stream=True, **self._options(case))
        return sum(has_fragment(chunk, case) for chunk in chunks)

    async def astream(self, case: Case) -> int:
        complete = self._client(case, asynchronous=True).acompletion
        seen = 0
        async for chunk in await complete(stream=True, **self._options(case)):
            seen += has_fragment(chunk, case)
        return seen

    def request(self, case: Case) -> int:
        complete = self._client(case, asynchronous=False).completion
        return len(complete(**self._options(case)).choices[0].message.content)

    async def arequest(self, case: Case) -> int:
        complete = self._client(case, asynchronous=True).acompletion
        return len((await complete(**self._options(case))).choices[0].message.content)
