"""Reasoning on the Responses API: how much of it, and in which form it is returned.

Owns the request's ``reasoning`` and the wish for encrypted items, which let a model go on thinking
where it stopped although nothing is stored. Showing, keeping and replaying what comes is not its
business: that happens whoever asked for it.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import (
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import EFFORTS, knob_elements, knob_schema, take_effort
from agent_host_openai._version import __version__
from agent_host_openai.models import efforts_of
from agent_host_openai.responses import WIRE

__all__ = ["OpenAIResponsesReasoning"]

_ENCRYPTED = "reasoning.encrypted_content"
_SUMMARIES = ("auto", "concise", "detailed")
#: What a model offers that is said to reason and of which nothing else is known.
_USUAL = ("low", "medium", "high")


class OpenAIResponsesReasoning(ProviderExtensionPlugin):
    """Asks models that can reason for an effort, for summaries and for encrypted items."""

    name = "openai_responses_reasoning"
    version = __version__
    label = "OpenAI reasoning"
    required_tags = (WIRE, "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **knob_schema("effort"),
            "reasoning_summary": {
                "type": "string",
                "required": False,
                "enum": [*_SUMMARIES],
                "description": "Ask for a summary of the reasoning; some accounts may not.",
            },
        }

    def get_ui_elements(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        efforts = efforts_of(config.get("model")) or EFFORTS
        options = [{"value": each, "label": each} for each in _SUMMARIES]
        summary = {"type": "select", "key": "reasoning_summary", "label": "Reasoning summary"}
        return [*knob_elements("effort", efforts=efforts), {**summary, "options": options}]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        config = state["config"]
        payload = state["request"].setdefault("payload", {})
        known = efforts_of(config.get("model"))
        warn = get_warn_from_context(context, self.name)
        effort = take_effort(state, _USUAL if known is None else known, warn)
        asked = {"effort": effort, "summary": config.get("reasoning_summary")}
        if wanted := {key: value for key, value in asked.items() if value}:
            payload["reasoning"] = {**wanted, **payload.get("reasoning", {})}
        if not payload.get("store") and _ENCRYPTED not in payload.get("include", ()):
            payload["include"] = [_ENCRYPTED, *payload.get("include", ())]
        return native_messages, state
