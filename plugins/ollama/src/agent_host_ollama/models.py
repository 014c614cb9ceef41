"""What a model can do: from ``/api/show`` where it was asked, else from ``models.json``.

Owns the reading of listings and the tags that gate the extensions. One list says which models there
are, and knows nothing of them; what one model can do is told to those who ask for that model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring import facts_about, load_facts

__all__ = ["WIRE_TAG", "capabilities_of", "levels_of", "models_in", "tags_of"]

WIRE_TAG = "wire:ollama.chat"

#: How a description begins when ``ollama show`` writes it, and where it names the model.
_SHOWN_AS = re.compile(r"^#? ?FROM (\S+)", re.MULTILINE)


def models_in(body: Any) -> list[ModelInfo]:
    """The models of a listing, or the one that was shown."""
    if not isinstance(body, dict):
        return []
    listed = body.get("models")
    if isinstance(listed, list):
        entries = (_listed(entry) for entry in listed if isinstance(entry, dict))
        return [entry for entry in entries if entry is not None]
    shown = _shown(body)
    return [shown] if shown is not None else []


def _listed(entry: dict[str, Any]) -> ModelInfo | None:
    name = entry.get("model") or entry.get("name")
    return _described(name, entry) if isinstance(name, str) and name else None


def _shown(body: dict[str, Any]) -> ModelInfo | None:
    named = _SHOWN_AS.search(str(body.get("modelfile") or ""))
    if named is None or not isinstance(body.get("capabilities"), list):
        return None
    return _described(named[1], body)


def _described(name: str, source: dict[str, Any]) -> ModelInfo:
    details, about = source.get("details"), source.get("model_info")
    known: dict[str, Any] = {"id": name, "name": name}
    if isinstance(source.get("capabilities"), list):
        known["capabilities"] = list(source["capabilities"])
    for key in ("family", "parameter_size", "quantization_level"):
        if isinstance(details, dict) and details.get(key):
            known[key] = details[key]
    for key, value in (about if isinstance(about, dict) else {}).items():
        if key.endswith(".context_length") and isinstance(value, int):
            known["context_length"] = value
    return cast(ModelInfo, known)


def capabilities_of(config: Config, models: Sequence[ModelInfo] = ()) -> Sequence[str] | None:
    """What the configured model can do, in the API's words; None if nobody knows."""
    wanted = _full_name(config.get("model"))
    entry = next((each for each in models if _full_name(each.get("id")) == wanted), None)
    told = (entry or {}).get("capabilities")
    if isinstance(told, list):
        return told
    known: Sequence[str] | None = _facts(config).get("capabilities")
    return known


def levels_of(config: Config) -> tuple[str, ...]:
    """The levels of thinking that the model has; none where it only thinks or does not."""
    return tuple(_facts(config).get("levels", ()))


def tags_of(config: Config, models: Sequence[ModelInfo]) -> list[str]:
    """The tags of the configured model. A stranger is taken to know tools, and not to think."""
    known = capabilities_of(config, models)
    can = {
        "supports_tools": known is None or "tools" in known,
        "supports_reasoning": known is not None and "thinking" in known,
        "supports_images": known is not None and "vision" in known,
        # The server itself holds answers to a grammar, whatever the model.
        "supports_structured_output": known is None or "embedding" not in known,
    }
    tags = ["provider:ollama", WIRE_TAG, "supports_streaming"]
    return tags + [tag for tag, able in can.items() if able]


def _facts(config: Config) -> dict[str, Any]:
    model = config.get("model")
    name = model.rpartition("/")[2] if isinstance(model, str) else model
    return facts_about(name, load_facts(__package__))


def _full_name(model: object) -> str:
    """The name with its tag, which goes without saying when it is ``latest``."""
    name = model if isinstance(model, str) else ""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
