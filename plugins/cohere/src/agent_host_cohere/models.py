"""What a model can do: from Cohere's list of models where it tells, else from ``models.json``.

Owns the reading of the list and the tags that gate the extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring import facts_about, load_facts, selected_model

__all__ = ["WIRE_TAG", "is_known", "listed_models", "tags_of"]

WIRE_TAG = "wire:cohere.chat"
#: What models can do, and the tags that say so.
_TAGS = {
    "tools": "supports_tools",
    "reasoning": "supports_reasoning",
    "structured_output": "supports_structured_output",
    "images": "supports_images",
}
#: The list's words for the same.
_FEATURES = {
    "tools": "tools",
    "reasoning": "reasoning",
    "json_schema": "structured_output",
    "vision": "images",
}
#: Of a model that nobody knows; most can call tools.
_STRANGER = ("tools",)


def is_known(model: object) -> bool:
    """Whether the model has a row of facts, so that the list need not be asked."""
    return "capabilities" in facts_about(model, load_facts(__package__))


def listed_models(body: Any) -> list[ModelInfo]:
    """The models of a list that can chat."""
    listed = body.get("models") if isinstance(body, dict) else None
    return [
        _describe_model(entry)
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and entry["name"]
        and "chat" in (entry.get("endpoints") or ("chat",))
    ]


def _describe_model(entry: dict[str, Any]) -> ModelInfo:
    known: dict[str, Any] = {"id": entry["name"], "name": entry["name"]}
    if entry.get("context_length"):
        known["context_length"] = int(entry["context_length"])
    if entry.get("is_deprecated"):
        known["deprecated"] = True
    features = entry.get("features")
    if isinstance(features, list) and features:
        known["capabilities"] = [able for word, able in _FEATURES.items() if word in features]
    return cast(ModelInfo, known)


def tags_of(config: Config, models: Sequence[ModelInfo]) -> list[str]:
    """The tags of the configured model."""
    listed = (selected_model(config, models) or {}).get("capabilities")
    facts = facts_about(config.get("model"), load_facts(__package__))
    able = listed if isinstance(listed, list) else facts.get("capabilities", _STRANGER)
    tags = [tag for ability, tag in _TAGS.items() if ability in able]
    if "images" in able:
        tags.append("supports_image_urls")
    return ["provider:cohere", WIRE_TAG, "supports_streaming", *tags]
