"""The extension ``anthropic_caching``: marks what the API should keep of a prompt.

Owns the setting ``cache`` and the places of the markers. They are put into what is sent and never
into the native history, or they would add up beyond what the API takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_hookspecs import Context, NativeMessage, ProviderExtensionPlugin, State
from agent_host_anthropic._version import __version__

__all__ = ["AnthropicCaching", "count_markers", "place_markers"]

Block = dict[str, Any]

_MOST_MARKERS = 4
#: The API refuses a marker on these.
_UNMARKABLE = ("thinking", "redacted_thinking")


class AnthropicCaching(ProviderExtensionPlugin):
    """Prompt caching on request: ``cache`` is true, ``"5m"`` or ``"1h"``."""

    name = "anthropic_caching"
    version = __version__
    label = "Anthropic prompt caching"
    required_tags = ("wire:anthropic.messages", "supports_prompt_caching")

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "cache": {
                "type": ["boolean", "string"],
                "enum": [True, False, "5m", "1h"],
                "required": False,
                "description": "Keep the prompt in the provider's cache, for 5m unless said.",
            }
        }

    def get_ui_elements(self) -> list[dict[str, Any]]:
        options = [{"value": value, "label": value} for value in ("5m", "1h")]
        return [{"type": "select", "key": "cache", "label": "Prompt cache", "options": options}]

    def initialize_request(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> tuple[list[NativeMessage], State]:
        if cache := state["config"].get("cache"):
            marker = {"type": "ephemeral", **({"ttl": "1h"} if cache == "1h" else {})}
            state["request"]["cache_control"] = marker
        return native_messages, state


def count_markers(blocks: Iterable[Block]) -> int:
    """How many blocks are marked, those in the contents of results included."""
    count = 0
    for block in blocks:
        count += "cache_control" in block
        if isinstance(block.get("content"), list):
            count += count_markers(each for each in block["content"] if isinstance(each, dict))
    return count


def place_markers(body: dict[str, Any], marker: Block, marked: int) -> None:
    """Mark the end of what will be asked again: of the last turns, the system prompt, the tools.

    ``body`` and its own lists are the caller's; what is marked in them is replaced by a copy.
    ``marked`` blocks of the turns have a marker already; those count, for the API takes four.
    """
    turns, system, tools = body["messages"], body.get("system") or [], body.get("tools") or []
    left = _MOST_MARKERS - marked - count_markers(system) - count_markers(tools)
    # The most useful first. Of the turns, the last and the user's before it: where the request
    # before this one ended.
    for holder, place in ((turns, len(turns) - 1), (system, None), (tools, None), _asked(turns)):
        if left <= 0:
            return
        blocks = holder if place is None else holder[place]["content"]
        last = _last_markable(blocks)
        if last is None or "cache_control" in blocks[last]:
            continue
        left -= 1
        new = {**blocks[last], "cache_control": dict(marker)}
        if place is None:
            blocks[last] = new
        else:
            holder[place] = {**holder[place], "content": [*blocks[:last], new, *blocks[last + 1 :]]}


def _asked(turns: list[dict[str, Any]]) -> tuple[list[Any], int | None]:
    """The last turn of the user's but for the very last turn."""
    for place in range(len(turns) - 2, -1, -1):
        if turns[place]["role"] == "user":
            return turns, place
    return [], None


def _last_markable(blocks: list[Block]) -> int | None:
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if block.get("type") not in _UNMARKABLE and not block.get("defer_loading"):
            return place
    return None
