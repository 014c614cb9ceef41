"""Token counts: what servers report, in one form, and the request for them in streams.

Owns the many names under which servers report the same count. Which report of a stream counts is
decided where chunks are read: the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs import NativeMessage, ProviderExtensionPlugin, State
from agent_hookspecs.messages import Usage
from agent_host_openai_compatible._version import __version__

__all__ = ["ChatUsage", "normalised_usage"]

_PROMPT = (("prompt_tokens",),)
_OUTPUT = (("completion_tokens",),)
_TOTAL = (("total_tokens",),)
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
)
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))
#: Where a cost stands, and how many of its units make a dollar.
_COSTS: tuple[tuple[tuple[str, ...], float], ...] = (
    (("cost",), 1.0),
    (("cost", "total_cost"), 1.0),
    (("total_cost",), 1.0),
    (("cost_in_usd_ticks",), 1e10),
)


def normalised_usage(raw: Mapping[str, Any]) -> Usage:
    """The counts of one answer; ``raw`` stays as the server sent it.

    Some servers leave reasoning out of ``completion_tokens``; their total tells.
    """
    usage: Usage = {}
    prompt, output = _count(raw, _PROMPT), _count(raw, _OUTPUT)
    reasoning, cached = _count(raw, _REASONING), _count(raw, _CACHED)
    if prompt is not None:
        usage["input"] = prompt
    if output is not None:
        apart = prompt is not None and reasoning is not None
        if apart and _count(raw, _TOTAL) == (prompt or 0) + output + (reasoning or 0):
            output += reasoning or 0
        usage["output"] = output
    if cached is not None:
        usage["cached_input"] = cached
    if reasoning is not None:
        usage["reasoning"] = reasoning
    for path, units in _COSTS:
        cost = _found(raw, path) if path[0] in raw else None
        if isinstance(cost, (int, float)) and not isinstance(cost, bool):
            usage["cost"] = cost / units
            break
    usage["raw"] = dict(raw)
    return usage


def _count(raw: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int | None:
    """The first number of tokens that stands at one of the places."""
    for path in paths:
        if path[0] in raw:
            value = _found(raw, path)
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if type(value) is int and value >= 0:
                return value
    return None


def _found(raw: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = raw
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class ChatUsage(ProviderExtensionPlugin):
    """Asks for the token counts of streams, which most servers of the format send on request."""

    name = "chat_usage"
    version = __version__
    label = "Token counts of streams"
    required_tags = ("wire:openai-chat",)
    forbidden_tags = ("quirk:no_stream_options",)

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[NativeMessage], State]:
        # Beside the payload: only whoever builds the request knows whether it is a stream.
        state["request"]["stream_options"] = {"include_usage": True}
        return native_messages, state
