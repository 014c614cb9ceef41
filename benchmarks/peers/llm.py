"""llm, with its own models of OpenAI's chat format; it makes a client for every prompt."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.cases import PROMPT, WIRES, Case

models: Any = import_module("llm.default_plugins.openai_models")


class Driver:
    speaks = ("chat",)

    def __init__(self, server: str) -> None:
        self.server = server

    def _model(self, kind: Any, case: Case) -> Any:
        if case.has_call:
            raise NotImplementedError("it shows calls only when they are complete")
        base = f"{case.base(self.server)}/v1"
        return kind("bench", model_name=WIRES["chat"].model, api_base=base, key="none")

    def stream(self, case: Case) -> int:
        return sum(bool(text) for text in self._model(models.Chat, case).prompt(PROMPT))

    async def astream(self, case: Case) -> int:
        seen = 0
        async for text in self._model(models.AsyncChat, case).prompt(PROMPT):
            seen += bool(text)
        return seen

    def request(self, case: Case) -> int:
        return len(self._model(models.Chat, case).prompt(PROMPT, stream=False).text())

    async def arequest(self, case: Case) -> int:
        return len(await self._model(models.AsyncChat, case).prompt(PROMPT, stream=False).text())
