"""Token counts of Gemini as the host counts them. Knows ``usageMetadata`` and nothing else."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import Usage

__all__ = ["usage_of"]


def usage_of(raw: dict[str, Any]) -> Usage:
    """The counts of one answer, to which Gemini gives counts of their own within and beside others.

    What its tools put into the prompt and what the model thinks are counted apart from prompt and
    answer, cached tokens within the prompt.
    """
    usage: Usage = {}
    prompt, cached = _count(raw, "promptTokenCount"), _count(raw, "cachedContentTokenCount")
    searched = _count(raw, "toolUsePromptTokenCount")
    answer, thoughts = _count(raw, "candidatesTokenCount"), _count(raw, "thoughtsTokenCount")
    if prompt is not None or searched is not None:
        usage["input"] = (prompt or 0) + (searched or 0)
    if answer is not None or thoughts is not None:
        usage["output"] = (answer or 0) + (thoughts or 0)
    if cached is not None:
        usage["cached_input"] = cached
    if thoughts is not None:
        usage["reasoning"] = thoughts
    usage["raw"] = raw
    return usage


def _count(raw: dict[str, Any], key: str) -> int | None:
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
