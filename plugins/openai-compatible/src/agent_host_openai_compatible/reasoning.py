"""Reasoning on the chat format: asking for it, and showing what came.

Owns the knob ``effort`` for servers of the format and the way of reasoning from native messages to
core metadata. Reading it from chunks is the reader's; sending it back is decided by the server's
data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs import Context, CoreMessage, NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.authoring import (
    EFFORTS,
    accumulate_reasoning,
    knob_elements,
    knob_schema,
    show_patch,
    take_effort,
)
from agent_hookspecs.logs import get_warn_from_context
from agent_host_openai_compatible._version import __version__
from agent_host_openai_compatible.answers import told_in

__all__ = ["ChatReasoning", "ChatThoughts", "effort_body"]

_Fold = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


def effort_body(effort: str, forms: Mapping[str, Any]) -> dict[str, Any]:
    """What the effort adds to a body, by its own form or the one for all (``*``)."""
    form = forms.get(effort, forms.get("*", {}))
    return cast(dict[str, Any], _filled(form, effort))


def _filled(form: Any, effort: str) -> Any:
    if isinstance(form, Mapping):
        return {key: _filled(value, effort) for key, value in form.items()}
    return effort if form == "$effort" else form


class ChatReasoning(ProviderExtensionPlugin):
    """Asks models that can reason for the effort that the config names."""

    name = "chat_reasoning"
    version = __version__
    label = "Reasoning"
    required_tags = ("wire:openai-chat", "supports_reasoning")
    forbidden_tags = ("reasoning:own",)

    def get_config_schema(self) -> dict[str, Any]:
        return knob_schema("effort")

    def get_ui_elements(self) -> list[dict[str, Any]]:
        return knob_elements("effort", efforts=EFFORTS)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        facts = state.get("facts") or {}
        warn = get_warn_from_context(context, self.name)
        effort = take_effort(state, facts.get("efforts") or (), warn)
        if effort is not None:
            payload = state["request"].setdefault("payload", {})
            payload.update(effort_body(effort, facts.get("effort_body") or {}))
        return native_messages, state


class ChatThoughts(ProviderExtensionPlugin):
    """Shows the reasoning that a server sends, asked for or not, and keeps it with the messages."""

    name = "chat_thoughts"
    version = __version__
    label = "Reasoning text"
    required_tags = ("wire:openai-chat",)

    def process_chunk(
        self,
        native_chunk: object,
        partial_messages: list[dict[str, Any]],
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
    ) -> _Fold:
        if "new_reasoning" in state:
            show_patch(partial_messages, {"reasoning": state.pop("new_reasoning")})
        return partial_messages, final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [_with_thoughts(*pair) for pair in zip(native_messages, messages, strict=True)]


def _with_thoughts(native: NativeMessage, message: CoreMessage) -> CoreMessage:
    unsent = (native.get("_metadata") or {}).get("unsent") or {}
    found: dict[str, Any] = {}
    patch, _ = accumulate_reasoning({**unsent, **native}, None)
    text = (patch or {}).get("reasoning")
    if text:
        found["reasoning"] = text
    if details := native.get("reasoning_details") or unsent.get("reasoning_details"):
        found["reasoning_details"] = details
        if not text and (told := told_in(details)):
            found["reasoning"] = told
    if not found or message["role"] != "assistant":
        return message
    return cast(CoreMessage, {**message, "metadata": {**message["metadata"], **found}})
