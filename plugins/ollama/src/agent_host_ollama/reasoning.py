"""The extension ``ollama_thinking``: whether and how hard a model thinks, and showing it.

Owns ``think``. Most models think or do not; the few that have levels are in ``models.json``. What
was thought is kept by the provider in any case, and goes back with the history.
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
    knob_elements,
    knob_schema,
    show_patch,
    take_effort,
)
from agent_host_ollama._version import __version__
from agent_host_ollama.models import WIRE_TAG, levels_of

__all__ = ["OllamaThinking"]

#: What a model that thinks or does not can be asked for.
_SWITCH = ("none", "high")

Messages = list[dict[str, Any]]


class OllamaThinking(ProviderExtensionPlugin):
    """Thinking for the models that can."""

    name = "ollama_thinking"
    version = __version__
    label = "Ollama thinking"
    required_tags = (WIRE_TAG, "supports_reasoning")

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("effort")

    def get_ui_elements(self, config: Config) -> list[dict[str, Any]]:
        return knob_elements("effort", efforts=levels_of(config) or _SWITCH)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        think = _think(state, context)
        if think is not None:
            state["request"].setdefault("payload", {}).setdefault("think", think)
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
        if answer is not None and (thought := answer.thinking):
            state["partial"].append_text("reasoning", thought)
            show_patch(partial_messages, {"reasoning": thought})
        return partial_messages, final_messages, native_messages, state


def _think(state: State, context: Context) -> bool | str | None:
    """What to ask for; None leaves it to the model, and the knob to the host if it was set."""
    levels = levels_of(state["config"])
    warn = get_warn_from_context(context, "ollama_thinking")
    effort = take_effort(state, levels or _SWITCH, warn)
    return effort if levels or effort is None else effort != "none"
