"""The extension ``google_thinking``: how hard a model thinks, and showing what it thinks.

Owns ``thinkingConfig``. Gemini 2.5 is given a budget of tokens, later models a level; which of them
a model has stands in ``models.json``. Thoughts are kept by the provider in any case.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs import (
    Config,
    Context,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import (
    Partial,
    knob_elements,
    knob_schema,
    show_patch,
    take_effort,
)
from agent_host_google._version import __version__
from agent_host_google.models import WIRE_TAG, facts_of
from agent_host_google.requests import generation_config

__all__ = ["GoogleThinking"]

#: What models without facts are taken to understand; every model that has levels has these.
_LEVELS = ("low", "high")
#: Tokens for an effort, within the model's own limits; the greatest effort is the upper one.
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}

Messages = list[dict[str, Any]]


class GoogleThinking(ProviderExtensionPlugin):
    """Thinking for the models that think."""

    name = "google_thinking"
    version = __version__
    label = "Gemini thinking"
    required_tags = (WIRE_TAG, "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **knob_schema("effort"),
            "include_thoughts": {
                "type": "boolean",
                "required": False,
                "default": True,
                "description": "Whether the answer should come with a summary of the thoughts.",
            },
        }

    def get_ui_elements(self, config: Config) -> list[dict[str, Any]]:
        shown = {"type": "checkbox", "key": "include_thoughts", "label": "Show thoughts"}
        return [*knob_elements("effort", efforts=_offered(_thinking(config))), shown]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        thinking = _thinking(state["config"])
        warn = get_warn_from_context(context, self.name)
        effort = take_effort(state, _offered(thinking), warn)
        given = generation_config(state).get("thinkingConfig") or {}
        settings = _amount(effort, thinking) if effort else {}
        if "thinkingBudget" in given or "thinkingLevel" in given:
            # What stands in the API's own words counts, and it refuses two amounts.
            settings = {}
        thinks = thinking.get("default", True) if effort is None else effort != "none"
        if thinks and state["config"].get("include_thoughts", True):
            settings["includeThoughts"] = True
        if settings or given:
            generation_config(state)["thinkingConfig"] = {**settings, **given}
        return native_messages, state

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: Messages,
        native_messages: list[NativeMessage],
        state: State,
    ) -> tuple[Messages, Messages, list[NativeMessage], State]:
        answer = state.get("answer")
        if answer is not None and (thought := answer.thought):
            partial: Partial = state["partial"]
            partial.append_text("reasoning", thought)
            show_patch(partial_messages, {"reasoning": thought})
        return partial_messages, final_messages, native_messages, state


def _thinking(config: Config) -> dict[str, Any]:
    known = facts_of(config).get("thinking")
    return known if isinstance(known, dict) else {"levels": list(_LEVELS)}


def _offered(thinking: dict[str, Any]) -> tuple[str, ...]:
    """The efforts that differ: of several with one budget only the least."""
    if "budget" not in thinking:
        return tuple(thinking["levels"])
    efforts = [*_BUDGETS, "max"] if thinking.get("off") else [*_BUDGETS, "max"][1:]
    budgets: dict[int, str] = {}
    for effort in efforts:
        budgets.setdefault(_budget(effort, thinking), effort)
    return tuple(budgets.values())


def _amount(effort: str, thinking: dict[str, Any]) -> dict[str, Any]:
    if "budget" not in thinking:
        return {"thinkingLevel": effort}
    return {"thinkingBudget": _budget(effort, thinking)}


def _budget(effort: str, thinking: dict[str, Any]) -> int:
    least, most = thinking["budget"]
    budget = _BUDGETS.get(effort, most)
    return int(budget if effort == "none" else max(least, min(budget, most)))
