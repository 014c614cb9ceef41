"""litellm: one function for every provider. Its price table stays the one it ships with."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.cases import Case
from benchmarks.peers.asking import chat_options, has_fragment

litellm: Any = import_module("litellm")

# Models that its price table knows: it complains at every request about others.
_MODELS = {"chat": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5"}
_PATHS = {"chat": "/v1", "anthropic": "/v1/messages"}


class Driver:
    speaks = tuple(_MODELS)

    def __init__(self, server: str) -> None:
        self.server = server
        litellm.telemetry = False

    def _options(self, case: Case) -> dict[str, Any]:
        base = case.base(self.server) + _PATHS[case.wire]
        asked = {"model": _MODELS[case.wire], "api_base": base, "api_key": "none"}
        return {**asked, **chat_options(case)}

    def stream(self, case: Case) -> int:
        chunks = litellm.completion(stream=True, **self._options(case))
        return sum(has_fragment(chunk, case) for chunk in chunks)

    async def astream(self, case: Case) -> int:
        seen = 0
        async for chunk in await litellm.acompletion(stream=True, **self._options(case)):
            seen += has_fragment(chunk, case)
        return seen

    def request(self, case: Case) -> int:
        return len(litellm.completion(**self._options(case)).choices[0].message.content)

    async def arequest(self, case: Case) -> int:
        answer = await litellm.acompletion(**self._options(case))
        return len(answer.choices[0].message.content)
