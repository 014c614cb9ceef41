"""pydantic-ai through its direct API, without an agent around it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.cases import PROMPT, TOOL, WIRES, Case

library: Any = import_module("pydantic_ai")
direct: Any = import_module("pydantic_ai.direct")
models: Any = import_module("pydantic_ai.models")

_DEFINITION = import_module("pydantic_ai.tools").ToolDefinition(
    name=TOOL["name"],
    description=TOOL["description"],
    parameters_json_schema=TOOL["parameters"],
)

#: The name in its modules and classes, and the class of the model.
_MODELS = {"chat": ("OpenAI", "OpenAIChatModel"), "anthropic": ("Anthropic", "AnthropicModel")}


class Driver:
    speaks = ("chat", "anthropic")

    def __init__(self, server: str) -> None:
        self.server = server
        self._made = cache(self._make)

    @staticmethod
    def _make(wire: str, base: str, asynchronous: bool) -> Any:
        # Its clients belong to the loop that used them first, so the two kinds are kept apart.
        name = WIRES[wire].model
        kind, model = _MODELS[wire]
        provided = import_module(f"pydantic_ai.providers.{kind.lower()}")
        provider = getattr(provided, f"{kind}Provider")
        address = f"{base}/v1" if wire == "chat" else base
        made = getattr(import_module(f"pydantic_ai.models.{kind.lower()}"), model)
        return made(name, provider=provider(base_url=address, api_key="none"))

    def _asked(self, case: Case, *, asynchronous: bool) -> tuple[Any, Any, Any]:
        model = self._made(case.wire, case.base(self.server), asynchronous)
        offered = [_DEFINITION] if case.has_call else []
        parameters = models.ModelRequestParameters(function_tools=offered)
        return model, [library.ModelRequest.user_text_prompt(PROMPT)], parameters

    def stream(self, case: Case) -> int:
        model, messages, parameters = self._asked(case, asynchronous=False)
        with direct.model_request_stream_sync(
            model, messages, model_request_parameters=parameters
        ) as events:
            return sum(event.event_kind in ("part_start", "part_delta") for event in events)

    async def astream(self, case: Case) -> int:
        model, messages, parameters = self._asked(case, asynchronous=True)
        seen = 0
        async with direct.model_request_stream(
            model, messages, model_request_parameters=parameters
        ) as events:
            async for event in events:
                seen += event.event_kind in ("part_start", "part_delta")
        return seen

    def request(self, case: Case) -> int:
        model, messages, _ = self._asked(case, asynchronous=False)
        return len(direct.model_request_sync(model, messages).text or "")

    async def arequest(self, case: Case) -> int:
        model, messages, _ = self._asked(case, asynchronous=True)
        return len((await direct.model_request(model, messages)).text or "")
