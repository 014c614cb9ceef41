"""Token counts of the Messages API in the terms that all providers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import Usage

__all__ = ["merge_usage", "normalised_usage"]


def merge_usage(known: dict[str, Any], report: Mapping[str, Any]) -> None:
    """Add a further report of the same answer to the counts that are known.

    Reports are cumulative, so a count replaces the one before; what a report leaves out stands.
    """
    for key, value in report.items():
        if value is not None or key not in known:
            known[key] = value


def normalised_usage(raw: dict[str, Any]) -> Usage:
    """The API counts tokens that its cache gave or took apart from the rest of the prompt."""
    read = _count(raw, "cache_read_input_tokens")
    written = _count(raw, "cache_creation_input_tokens")
    usage: Usage = {
        "input": _count(raw, "input_tokens") + written + read,
        "output": _count(raw, "output_tokens"),
        "cached_input": read,
    }
    if written:
        usage["cache_write"] = written
        lasting = raw.get("cache_creation")
        if isinstance(lasting, Mapping) and "ephemeral_1h_input_tokens" in lasting:
            usage["cache_write_1h"] = _count(lasting, "ephemeral_1h_input_tokens")
    tools = raw.get("server_tool_use")
    if isinstance(tools, Mapping) and (searches := _count(tools, "web_search_requests")):
        usage["searches"] = searches
    details = raw.get("output_tokens_details")
    if isinstance(details, Mapping) and "thinking_tokens" in details:
        usage["reasoning"] = _count(details, "thinking_tokens")
    usage["raw"] = raw
    return usage


def _count(counts: Mapping[str, Any], key: str) -> int:
    value = counts.get(key)
    return value if isinstance(value, int) else 0
