"""What is known of OpenAI's models, as tags and as the settings that each of them refuses.

The facts are rows of ``models.json``. A model without a row is taken for one that can call tools
and nothing else. It must not know how either API writes a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs import Config, ModelInfo
from agent_hookspecs.authoring.facts import facts_about, load_facts

__all__ = [
    "can",
    "described",
    "efforts_of",
    "facts_of",
    "misses_its_api",
    "refused_knobs",
    "tags_of",
    "takes_parallel_setting",
]

_TAGS = {
    "tools": "supports_tools",
    "reasoning": "supports_reasoning",
    "structured_output": "supports_structured_output",
    "images": "supports_images",
    "documents": "supports_documents",
    "audio": "supports_audio",
    "custom": "supports_custom_tools",
    "tool_search": "supports_tool_search",
}
#: What every model can that has another ability.
_ALONG = {
    "images": "supports_image_urls",
    "structured_output": "supports_structured_output_with_tools",
}
#: Tags of a model that nobody has heard of.
_STRANGER = ("supports_tools",)


def facts_of(model: object) -> dict[str, Any]:
    """The row of a model, of a fine-tuned one that of its base; ``{}`` if there is none."""
    if not isinstance(model, str):
        return {}
    name = model.split(":")[1] if model.startswith("ft:") else model
    return facts_about(name.rpartition("/")[2], load_facts(__package__))


def tags_of(model: object) -> list[str]:
    """What the model can do, as tags."""
    facts = facts_of(model)
    if not facts:
        return [*_STRANGER]
    tags = [tag for fact, tag in _TAGS.items() if facts.get(fact)]
    return [*tags, *(tag for fact, tag in _ALONG.items() if facts.get(fact))]


def can(config: Config, tag: str) -> bool:
    """Whether the selected model has a tag, after what the user adds and takes away."""
    twins = {tag, "supports_thinking"} if tag == "supports_reasoning" else {tag}
    if twins.intersection(config.get("remove_tags") or ()):
        return False
    added = config.get("add_tags") or ()
    return bool(twins.intersection(added)) or tag in tags_of(config.get("model"))


def efforts_of(model: object) -> list[str] | None:
    """The efforts on offer; None when nothing is known of the model."""
    facts = facts_of(model)
    if not facts:
        return None
    return list(facts.get("efforts") or ())


def refused_knobs(config: Config) -> list[str]:
    """The knobs that the model refuses: some always, some only while it reasons."""
    facts = facts_of(config.get("model"))
    refused = list(facts.get("refuses") or ())
    if config.get("effort") not in (None, "none"):
        refused += facts.get("refuses_while_reasoning") or ()
    return refused


def takes_parallel_setting(config: Config) -> bool:
    """Whether the model lets itself be told how many calls to make at a time."""
    return facts_of(config.get("model")).get("parallel", True) is not False


def misses_its_api(config: Config, api: str) -> str | None:
    """The only API that serves the model, if it is not ``api``."""
    only = facts_of(config.get("model")).get("api")
    return only if isinstance(only, str) and only != api else None


def described(models: Sequence[ModelInfo]) -> list[ModelInfo]:
    """Those of the models that answer in text, by name, each with what is known of it."""
    found: list[ModelInfo] = []
    for model in models:
        facts = facts_of(model.get("id"))
        if facts.get("kind") != "other":
            known = {fact: bool(facts.get(fact)) for fact in _TAGS} if facts else None
            described: dict[str, Any] = {**model, **({"capabilities": known} if known else {})}
            if efforts := efforts_of(model.get("id")):
                described["efforts"] = efforts
            found.append(described)  # type: ignore[arg-type]
    return sorted(found, key=lambda model: model["id"])
