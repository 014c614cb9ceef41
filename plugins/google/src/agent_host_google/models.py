"""What a model can do: from Google's listing where it tells, else from ``models.json``.

Owns the reading of the listing and the tags that gate the extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring import facts_about, load_facts, selected_model

__all__ = ["WIRE_TAG", "facts_of", "listed_models", "tags_of"]

WIRE_TAG = "wire:google.generate_content"

#: The media that Gemini models take, by the names in ``models.json``, and the tags that say so.
_MEDIA_TAGS = {
    "images": (
        "supports_images",
        "supports_image_urls",
        "accepts:image/heic",
        "accepts:image/heif",
    ),
    "documents": ("supports_documents", "supports_file_urls"),
    "audio": (
        "supports_audio",
        *(f"accepts:audio/{kind}" for kind in ("aac", "aiff", "flac", "mp4", "ogg")),
    ),
    "video": (
        "supports_video",
        *(f"accepts:video/{kind}" for kind in ("mpeg", "quicktime", "x-msvideo")),
    ),
}


def facts_of(config: Config) -> dict[str, Any]:
    """The row of ``models.json`` for the configured model; empty for a stranger."""
    model = config.get("model")
    name = model.rpartition("/")[2] if isinstance(model, str) else model
    return facts_about(name, load_facts(__package__))


def listed_models(body: Any) -> list[ModelInfo]:
    """The models in a listing, or the one that was asked for, if they can generate content."""
    told = body if isinstance(body, dict) else {}
    models = told.get("models", [told])
    return [
        _listed(model)
        for model in (models if isinstance(models, list) else ())
        if isinstance(model, dict)
        and isinstance(model.get("name"), str)
        and "generateContent" in (model.get("supportedGenerationMethods") or ())
    ]


def _listed(model: dict[str, Any]) -> ModelInfo:
    identity = model["name"].removeprefix("models/")
    known: dict[str, Any] = {"id": identity, "name": model.get("displayName") or identity}
    for key, name in (
        ("inputTokenLimit", "input_token_limit"),
        ("outputTokenLimit", "output_token_limit"),
        ("description", "description"),
    ):
        if model.get(key):
            known[name] = model[key]
    if isinstance(model.get("thinking"), bool):
        known["capabilities"] = {"reasoning": model["thinking"]}
    return cast(ModelInfo, known)


def tags_of(config: Config, models: Sequence[ModelInfo]) -> list[str]:
    """The tags of the configured model. A stranger is taken to know tools and nothing more."""
    facts = facts_of(config)
    listed = selected_model(
        {**config, "model": str(config.get("model") or "").removeprefix("models/")}, models
    )
    told = (listed or {}).get("capabilities")
    capabilities = told if isinstance(told, dict) else {}
    reasons = capabilities.get("reasoning", bool(facts.get("thinking")))
    can = {
        "supports_tools": facts.get("tools", True),
        "supports_reasoning": reasons and facts.get("thinking") is not False,
        "supports_structured_output": facts.get("structured", False),
        "supports_structured_output_with_tools": facts.get("structured_with_tools", False),
    }
    tags = ["provider:google", WIRE_TAG, "supports_streaming"]
    media = facts.get("media", tuple(_MEDIA_TAGS))
    return [
        *tags,
        *(tag for tag, able in can.items() if able),
        *(tag for kind in media for tag in _MEDIA_TAGS[kind]),
    ]
