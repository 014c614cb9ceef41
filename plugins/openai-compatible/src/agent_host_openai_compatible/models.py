"""The models behind a server: its listing, what each can do, and the tags that follow.

Owns the reading of listings, which differ in how much they tell, and the order of belief: the
model's own entry, then facts kept as data, then what the server's row says of all its models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring.facts import facts_about, load_facts, selected_model
from agent_host_openai_compatible.servers import Server, quirks_in_force

__all__ = ["CAPABILITIES", "listed_models", "model_facts", "model_tags", "told_capabilities"]

#: What tags can say of a model, and what is assumed of one that nobody knows.
CAPABILITIES: dict[str, bool] = {
    "tools": True,
    "reasoning": False,
    "structured_output": False,
    "structured_output_with_tools": False,
    "images": False,
    "documents": False,
    "audio": False,
}
#: Words by which listings call a capability.
_WORDS: dict[str, frozenset[str]] = {
    "tools": frozenset(
        {"tools", "tool-use", "tool_use", "function_calling", "function-calling", "tool_calling"}
    ),
    "reasoning": frozenset({"reasoning", "thinking", "include_reasoning"}),
    "structured_output": frozenset(
        {"structured_outputs", "structured_output", "structured-outputs", "json_schema"}
    ),
    "images": frozenset({"vision", "image", "images", "image-input"}),
    "documents": frozenset({"file", "file-input", "pdf"}),
    "audio": frozenset({"audio", "audio-input"}),
}


#: Media, and the words for them in a list of what a model takes.
_MEDIA = {"images": "image", "documents": "file", "audio": "audio"}


def listed_models(body: Any) -> list[ModelInfo]:
    """The models in an answer to the listing request, each with all that its entry says."""
    entries = body
    if isinstance(body, Mapping):
        entries = next((body[key] for key in ("data", "models") if key in body), None)
    models: list[ModelInfo] = []
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        identity = entry.get("id")
        if not isinstance(identity, str) or not identity:
            continue
        told = told_capabilities(entry)
        added: dict[str, Any] = {"told": told} if told else {}
        name = entry.get("name") or entry.get("display_name")
        if isinstance(name, str) and name:
            added["name"] = name
        models.append(cast(ModelInfo, {**entry, **added}))
    return models


def told_capabilities(entry: Mapping[str, Any]) -> dict[str, bool]:
    """What a listing entry says a model can or cannot do; silent on what it does not mention."""
    told: dict[str, bool] = {}
    for key in ("supported_parameters", "tags", "capabilities", "supported_features"):
        value = entry.get(key)
        if isinstance(value, Mapping):
            for what, words in _WORDS.items():
                found = [said for word in words if isinstance(said := value.get(word), bool)]
                if found:
                    told[what] = any(found)
        elif isinstance(value, list) and value:
            said = {word for word in value if isinstance(word, str)}
            for what, words in _WORDS.items():
                # A list of parameters says nothing of what may stand in a message.
                if what not in _MEDIA or said & words:
                    told[what] = bool(said & words)
    providers = entry.get("providers")
    for each in providers if isinstance(providers, list) else ():
        for what, key in (
            ("tools", "supports_tools"),
            ("structured_output", "supports_structured_output"),
        ):
            if isinstance(each, Mapping) and isinstance(each.get(key), bool):
                told[what] = told.get(what, False) or each[key]
    architecture = entry.get("architecture")
    inputs = architecture.get("input_modalities") if isinstance(architecture, Mapping) else None
    if isinstance(inputs, list):
        told |= {what: word in inputs for what, word in _MEDIA.items()}
    return told


def model_facts(server: Server, model: object, package: str) -> dict[str, Any]:
    """What is known of a model as data: ``efforts`` and ``effort_body`` are always there."""
    facts = facts_about(model, map(dict, server.models)) or facts_about(model, load_facts(package))
    return {"efforts": server.efforts, "effort_body": server.effort_body, **facts}


def model_tags(
    server: Server, config: Config, models: Sequence[ModelInfo], package: str
) -> list[str]:
    """The tags of the provider and of the model that the config selects."""
    facts = model_facts(server, config.get("model"), package)
    listed: Mapping[str, Any] = selected_model(config, models) or {}
    told = listed.get("told")
    can: dict[str, Any] = {**CAPABILITIES, **server.capabilities}
    can.update({what: facts[what] for what in CAPABILITIES if what in facts})
    can.update(told if isinstance(told, Mapping) else {})
    quirks = quirks_in_force(server, config)
    return [
        f"provider:{server.name}",
        "wire:openai-chat",
        "supports_streaming",
        *(f"supports_{what}" for what in CAPABILITIES if can.get(what)),
        *(["supports_image_urls"] if can.get("images") else []),
        *(["supports_file_urls"] if "file_urls" in quirks else []),
        *(f"quirk:{quirk}" for quirk in sorted(quirks)),
        *server.tags,
    ]
