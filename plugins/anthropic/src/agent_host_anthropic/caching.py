"""The extension ``anthropic_caching``: marks what the API should keep of a prompt.

Owns the setting ``cache`` and the places of the markers. They are put into what is sent and never
into the native history, or they would add up beyond what the API takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_hookspecs import Context, NativeMessage, ProviderExtensionPlugin, State
from agent_host_anthropic._version import __version__

__all__ = ["AnthropicCaching", "place_markers"]

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


def place_markers(body: dict[str, Any], marker: Block) -> None:
    """Mark the end of what will be asked again: of the last turns, the system prompt, the tools.

    ``body`` and its lists are the caller's own; marked blocks are replaced by copies. Markers that
    stand there already count, for the API takes four.
    """
    left = _MOST_MARKERS - sum("cache_control" in block for block in _blocks(body))
    for blocks in _ends(body):
        if left <= 0:
            return
        place = _last_markable(blocks)
        if place is not None and "cache_control" not in blocks[place]:
            blocks[place] = {**blocks[place], "cache_control": dict(marker)}
            left -= 1


def _blocks(body: dict[str, Any]) -> Iterator[Block]:
    """Everything that may be marked, the contents of results included."""
    yield from body.get("tools") or ()
    yield from body.get("system") or ()
    for turn in body["messages"]:
        for block in turn["content"]:
            yield block
            if isinstance(block.get("content"), list):
                yield from (each for each in block["content"] if isinstance(each, dict))


def _ends(body: dict[str, Any]) -> Iterator[list[Block]]:
    """Where markers go, the most useful first.

    Of the turns, the last and the user's before it: where the request before this one ended.
    """
    turns = body["messages"]
    if turns:
        yield turns[-1]["content"]
    yield body.get("system") or []
    yield body.get("tools") or []
    earlier = [turn for turn in turns[:-1] if turn["role"] == "user"]
    if earlier:
        yield earlier[-1]["content"]


def _last_markable(blocks: list[Block]) -> int | None:
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if block.get("type") not in _UNMARKABLE and not block.get("defer_loading"):
            return place
    return None
