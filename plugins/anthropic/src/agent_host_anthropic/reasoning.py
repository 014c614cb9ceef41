"""The extensions ``anthropic_thinking`` and ``anthropic_thoughts``.

The first owns the knob ``effort``, the setting ``thinking`` and what the API forbids beside
thinking. The second shows what was thought: other servers of the API have models that nobody knows,
and they think without being asked. The thinking itself is part of the native message, kept by the
provider whoever else is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from agent_hookspecs import (
    Config,
    Context,
    CoreMessage,
    ModelInfo,
    NativeMessage,
    ProviderExtensionPlugin,
    State,
    get_warn_from_context,
)
from agent_hookspecs.authoring import Partial, knob_elements, knob_schema, take_effort, take_knob
from agent_host_anthropic._version import __version__
from agent_host_anthropic.facts import ModelFacts, efforts_of, model_facts
from agent_host_anthropic.outgoing import called_before_thinking

__all__ = ["AnthropicThinking", "AnthropicThoughts"]

Messages = list[dict[str, Any]]
Warn = Callable[[str], None]

#: How many tokens each effort may think, where the request has to say.
_BUDGETS = {
    "minimal": 1024,
    "low": 4096,
    "medium": 8192,
    "high": 16384,
    "xhigh": 24576,
    "max": 31999,
}
_LEAST_BUDGET = 1024
#: What a budget leaves for the answer when both have to share.
_ROOM = 1024
_THINKING = ("thinking", "redacted_thinking")


class AnthropicThinking(ProviderExtensionPlugin):
    """Asks models that can think how hard to do so."""

    name = "anthropic_thinking"
    version = __version__
    label = "Anthropic thinking"
    required_tags = ("wire:anthropic.messages", "supports_reasoning")
    after = ("anthropic_tools",)

    def get_config_schema(self) -> dict[str, Any]:
        return {
            **knob_schema("effort"),
            "thinking": {
                "type": "object",
                "required": False,
                "description": "The thinking object as the API takes it, in place of one made "
                "from effort.",
            },
            "thinking_display": {
                "type": "string",
                "enum": ["summarized", "omitted"],
                "required": False,
                "description": "Whether adaptive thinking comes with its text.",
            },
        }

    def get_ui_elements(self, config: Config, models: Sequence[ModelInfo]) -> list[dict[str, Any]]:
        return knob_elements("effort", efforts=efforts_of(config, models))

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        config, payload = state["config"], state["request"]["payload"]
        warn = get_warn_from_context(context, self.name)
        facts = model_facts(payload.get("model"))
        effort = take_knob(state, "effort")
        given = config.get("thinking")
        if given:
            payload["thinking"] = dict(given)
        elif effort == "none":
            _switch_off(payload, facts, warn)
        elif effort is not None:
            _switch_on(native_messages, payload, effort, facts, warn)
            if display := config.get("thinking_display"):
                _display(payload, display)
        if effort not in (None, "none"):
            _say_effort(payload, effort, facts, warn)
        if payload.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            _drop_conflicts(payload, warn)
        return native_messages, state


class AnthropicThoughts(ProviderExtensionPlugin):
    """Shows the thinking that comes, asked for or not, and puts it into the messages' metadata."""

    name = "anthropic_thoughts"
    version = __version__
    label = "Anthropic thoughts"
    required_tags = ("wire:anthropic.messages",)
    after = ("anthropic_tools",)

    def process_chunk(
        self,
        native_chunk: Any,
        partial_messages: Messages,
        final_messages: Messages,
        native_messages: Messages,
        state: State,
    ) -> tuple[Messages, Messages, Messages, State]:
        if type(native_chunk) is dict:
            kind = native_chunk.get("type")
            if kind == "content_block_delta":
                delta = native_chunk.get("delta")
                if type(delta) is dict and delta.get("type") == "thinking_delta":
                    _show(delta.get("thinking"), partial_messages, state)
            elif kind == "content_block_start":
                block = native_chunk.get("content_block")
                if isinstance(block, dict) and block.get("type") == "thinking":
                    _show(block.get("thinking"), partial_messages, state)
            elif kind == "message":
                _show(_text(native_chunk.get("content")), partial_messages, state)
        return partial_messages, final_messages, native_messages, state

    def from_native_messages(
        self, native_messages: Sequence[NativeMessage], messages: list[CoreMessage]
    ) -> list[CoreMessage]:
        if len(native_messages) != len(messages):
            return messages
        return [_explained(*pair) for pair in zip(native_messages, messages, strict=True)]


def _switch_on(
    natives: Sequence[NativeMessage],
    payload: dict[str, Any],
    effort: str,
    facts: ModelFacts,
    warn: Warn,
) -> None:
    if facts.thinking == "adaptive":
        payload["thinking"] = {"type": "adaptive"}
    elif called_before_thinking(natives):
        warn("thinking stays off in this turn: its tool calls were made without")
    elif budget := _budget(effort, payload.get("max_tokens"), facts, warn):
        payload["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _budget(effort: str, most: int | None, facts: ModelFacts, warn: Warn) -> int | None:
    """The tokens to think with; always fewer than the whole answer may have."""
    wanted = _BUDGETS[effort]
    limit = facts.max_output if most is None else most
    if limit <= _LEAST_BUDGET:
        warn(f"thinking stays off: it takes more than the {limit} tokens an answer may have")
        return None
    budget = min(wanted, max(_LEAST_BUDGET, limit - _ROOM))
    if budget < wanted:
        warn(
            f"effort {effort!r} thinks with {budget} tokens and not with {wanted}: "
            f"an answer may have {limit}"
        )
    return budget


def _switch_off(payload: dict[str, Any], facts: ModelFacts, warn: Warn) -> None:
    if facts.thinking_off in ("disabled", "between_tools"):
        payload["thinking"] = {"type": facts.thinking_off}
    elif facts.thinking_off == "never":
        warn(f"{payload['model']} always thinks; effort 'none' is sent as 'low'")
        payload.setdefault("output_config", {})["effort"] = "low"


def _say_effort(payload: dict[str, Any], effort: str, facts: ModelFacts, warn: Warn) -> None:
    if not facts.efforts:
        # The budget says it all.
        return
    wanted = {"knobs": {"effort": effort}}
    # Where a budget says it too, that is what counts.
    told = warn if facts.thinking == "adaptive" else _tell_nobody
    payload.setdefault("output_config", {})["effort"] = take_effort(wanted, facts.efforts, told)


def _tell_nobody(text: str) -> None:
    """Takes what is not worth a warning."""


def _display(payload: dict[str, Any], display: str) -> None:
    if "thinking" in payload:
        payload["thinking"] = {**payload["thinking"], "display": display}


def _drop_conflicts(payload: dict[str, Any], warn: Warn) -> None:
    """Leave out what the API refuses beside thinking."""
    if payload.get("temperature") not in (None, 1):
        del payload["temperature"]
        warn("temperature is not sent: the API takes none while the model thinks")
    choice = payload.get("tool_choice") or {}
    if choice.get("type") in ("any", "tool"):
        rest = {key: value for key, value in choice.items() if key not in ("type", "name")}
        payload["tool_choice"] = {"type": "auto", **rest}
        warn("tool_choice is sent as auto: no call can be forced while the model thinks")


def _show(text: object, partials: Messages, state: State) -> None:
    if not text or not isinstance(text, str):
        return
    accumulated = state.get("partial")
    if type(accumulated) is not Partial:
        accumulated = state["partial"] = Partial.of(accumulated)
    accumulated.append_text("reasoning", text)
    if partials:
        partials[-1] = {**partials[-1], "reasoning": text}
    else:
        partials.append({"role": "assistant", "content": "", "reasoning": text})


def _explained(native: NativeMessage, message: CoreMessage) -> CoreMessage:
    content = native.get("content")
    blocks = content if isinstance(content, list) else []
    details = [block for block in blocks if _is_thinking(block)]
    if not details:
        return message
    known: dict[str, Any] = {"reasoning_details": details}
    if text := _text(details):
        known["reasoning"] = text
    return cast(CoreMessage, {**message, "metadata": {**message["metadata"], **known}})


def _is_thinking(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _THINKING


def _text(blocks: object) -> str:
    """The thinking that can be read, of all blocks."""
    if not isinstance(blocks, list):
        return ""
    texts = (block.get("thinking") for block in blocks if _is_thinking(block))
    return "".join(text for text in texts if isinstance(text, str))
