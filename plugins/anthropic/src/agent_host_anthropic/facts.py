"""What is known of a model: its limits, its way of thinking, and the tags that follow.

The provider's listing counts where it says something, else ``models.json``, else what is safe for a
stranger. It must not know requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring import EFFORTS, facts_about, load_facts, selected_model

__all__ = ["ModelFacts", "efforts_of", "is_known", "model_facts", "tags_of"]

#: ``adaptive``: the model decides how much; ``budget``: the request says how many tokens.
ThinkingKind: TypeAlias = Literal["adaptive", "budget"]

#: How thinking is switched off: by leaving it out, by a type of its own, or never.
ThinkingOff: TypeAlias = Literal["omit", "disabled", "between_tools", "never"]

_STRANGER_OUTPUT = 8192
#: A model that thinks and is not in the data is newer than the data.
_STRANGER_EFFORTS = ("low", "medium", "high")

_ALWAYS = (
    "provider:anthropic",
    "wire:anthropic.messages",
    "supports_streaming",
    "supports_prompt_caching",
    "supports_image_urls",
    "supports_file_urls",
)
_LISTED_EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One row of ``models.json``, with what is assumed where it says nothing.

    ``default_output`` is sent as ``max_tokens`` when nobody sets it: models before 4.5 refuse a
    request whose prompt and ``max_tokens`` together exceed the window, so theirs is small.
    """

    max_output: int
    default_output: int
    thinking: ThinkingKind
    thinking_off: ThinkingOff
    efforts: tuple[str, ...]
    sampling: bool
    forced_tools: bool


def model_facts(model: object) -> ModelFacts:
    """What a request has to know of the model."""
    return _facts_of(model if isinstance(model, str) else "")


# Every request asks several times.
@lru_cache(64)
def _facts_of(model: str) -> ModelFacts:
    row = _row(model)
    largest = row.get("max_output", _STRANGER_OUTPUT)
    return ModelFacts(
        max_output=largest,
        default_output=row.get("default_output", largest),
        thinking=row.get("thinking", "adaptive"),
        thinking_off=row.get("thinking_off", "omit"),
        efforts=tuple(row.get("efforts", () if row else _STRANGER_EFFORTS)),
        sampling=row.get("sampling", True),
        forced_tools=row.get("forced_tools", True),
    )


def is_known(model: object) -> bool:
    """Whether there is a row for the model."""
    return bool(_row(model))


def efforts_of(config: Config, models: Sequence[ModelInfo]) -> list[str]:
    """The efforts that a person may choose for the selected model."""
    listed = _listed(config, models).get("effort")
    if isinstance(listed, Mapping):
        told = [name for name in _LISTED_EFFORTS if _supported(listed.get(name))]
        if told:
            return ["none", *told]
    facts = model_facts(config.get("model"))
    return [*EFFORTS] if facts.thinking == "budget" else ["none", *facts.efforts]


def tags_of(config: Config, models: Sequence[ModelInfo]) -> list[str]:
    """The tags of the provider with the selected model."""
    row, listed = _row(config.get("model")), _listed(config, models)
    thinks = _told(listed, "thinking")
    shaped = _told(listed, "structured_outputs")
    sees, reads = _told(listed, "image_input"), _told(listed, "pdf_input")
    media = row.get("media", ("images", "documents"))
    shapes = row.get("structured", False) if shaped is None else shaped
    can = {
        "supports_tools": row.get("tools", True),
        "supports_tool_search": row.get("tool_search", False),
        "supports_reasoning": "thinking" in row if thinks is None else thinks,
        "supports_structured_output": shapes,
        "supports_structured_output_with_tools": shapes,
        "supports_images": "images" in media if sees is None else sees,
        "supports_documents": "documents" in media if reads is None else reads,
    }
    return [*_ALWAYS, *(tag for tag, yes in can.items() if yes)]


def _row(model: object) -> dict[str, Any]:
    return facts_about(model, load_facts("agent_host_anthropic"))


def _listed(config: Config, models: Sequence[ModelInfo]) -> Mapping[str, Any]:
    """The capabilities that the listing gives the selected model."""
    selected = selected_model(config, models)
    capabilities = selected.get("capabilities") if selected else None
    return capabilities if isinstance(capabilities, Mapping) else {}


def _told(capabilities: Mapping[str, Any], name: str) -> bool | None:
    capability = capabilities.get(name)
    return _supported(capability) if isinstance(capability, Mapping) else None


def _supported(capability: object) -> bool:
    return isinstance(capability, Mapping) and capability.get("supported") is True
