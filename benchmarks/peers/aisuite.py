"""aisuite: one call for every provider, through OpenAI's SDK for this one. It has no async."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.cases import WIRES, Case
from benchmarks.peers.asking import chat_options, has_fragment

aisuite: Any = import_module("aisuite")


class Driver:
    speaks = ("chat",)

    def __init__(self, server: str) -> None:
        self.server = server
        # A client for each address, made before it is timed.
        self.client = cache(
            lambda base: aisuite.Client({"openai": {"base_url": base, "api_key": "none"}})
        )

    def _answer(self, case: Case, **how: Any) -> Any:
        create = self.client(f"{case.base(self.server)}/v1").chat.completions.create
        return create(model=f"openai:{WIRES['chat'].model}", **chat_options(case), **how)

    def stream(self, case: Case) -> int:
        return sum(has_fragment(chunk, case) for chunk in self._answer(case, stream=True))

    def request(self, case: Case) -> int:
        return len(self._answer(case).choices[0].message.content)
