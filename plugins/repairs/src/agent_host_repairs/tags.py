"""The feature that reads ``<tool_call>{…}</tool_call>`` in an assistant's text as tool calls.

Owns that notation. A block counts only if it is whole, is one JSON object and names a tool that the
request offered; everything else stays text. It must not run calls, nor know the chunks of a stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

from agent_hookspecs import Context, FeaturePlugin, NativeMessage, State
from agent_hookspecs.authoring import finish_tool_calls, taken_call_ids
from agent_hookspecs.tool_interop import (
    ToolInteropRegistry,
    ToolInteropTarget,
    compact_json,
    get_registry_from_context,
    get_schema_target_formats_from_context,
    parse_tool_arguments,
)
from agent_host_repairs._version import __version__
from agent_host_repairs.outgoing import payload_of

__all__ = ["ToolCallTags"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_SPACE = re.compile(r"[ \t\r\n]*")
#: A text with more broken blocks than this is no text of calls; each costs up to its whole length.
_MAX_BROKEN = 64


class ToolCallTags(FeaturePlugin):
    """Moves tagged calls from the text of a final message into its ``tool_calls``."""

    name = "assistant_content_tool_call_tags_to_tool_calls"
    version = __version__
    label = "Tool calls from text tags"
    required_tags = ("repair:assistant_content_tool_call_tags_to_tool_calls",)
    # Before other features, so that they see the calls.
    priority = 100

    def finalize(
        self,
        final_messages: list[NativeMessage],
        native_messages: list[NativeMessage],
        state: State,
        context: Context,
    ) -> tuple[list[NativeMessage], list[NativeMessage], State]:
        tagged = [final for final in final_messages if _may_hold_calls(final)]
        if not tagged:
            return final_messages, native_messages, state
        registry = get_registry_from_context(context)
        offered = _offered(state, registry)
        for final in tagged:
            text, found = _split(final["content"], offered)
            if not found:
                continue
            before = dict(final)
            calls = finish_tool_calls(found, taken=taken_call_ids(native_messages))
            # In place, because the same message stands in the native history.
            final["content"] = text
            final["tool_calls"] = _native(calls, registry, context)
            turn = len(final_messages)
            native_messages = _also_in_history(native_messages, turn, before, final)
        return final_messages, native_messages, state


def _may_hold_calls(final: object) -> bool:
    """Whether it is an assistant's text with a tag; one with real calls means its tags as text."""
    return (
        isinstance(final, dict)
        and final.get("role") == "assistant"
        and isinstance(final.get("content"), str)
        and _OPEN in final["content"]
        and not final.get("tool_calls")
    )


def _offered(state: State, registry: ToolInteropRegistry) -> set[str]:
    """The names the model may call: those declared to it, and those its tools go by here."""
    payload = payload_of(state)
    if payload.get("tool_choice") == "none":
        return set()
    config = state.get("config") or {}
    lists = [tools for tools in (payload.get("tools"), config.get("tools")) if tools]
    views = (
        registry.inspect_schema(tool)
        for tools in lists
        if isinstance(tools, (list, tuple))
        for tool in tools
    )
    return {view.name for view in views if view is not None}


def _split(text: str, offered: Collection[str]) -> tuple[str, list[dict[str, Any]]]:
    """The text without its calls, and the calls, whose ids are still blank."""
    kept: list[str] = []
    calls: list[dict[str, Any]] = []
    done = 0
    for start, end, call in _blocks(text):
        if call["function"]["name"] in offered:
            kept.append(text[done:start])
            calls.append(call)
            done = end
    kept.append(text[done:])
    rest = "".join(kept)
    return (rest if rest.strip() else ""), calls


def _blocks(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Each well-formed block: where it begins and ends, and its call."""
    start, broken = text.find(_OPEN), 0
    while start >= 0 and broken <= _MAX_BROKEN:
        end = start + len(_OPEN)
        try:
            # By the JSON's own end, not by the next tag: arguments may quote the tags.
            value, after = _JSON.raw_decode(text, _past_space(text, end))
        except (ValueError, RecursionError):
            # Nothing is lost: what is no call stays in the text.
            value, after = None, end
        after = _past_space(text, after)
        call = _call(value) if text.startswith(_CLOSE, after) else None
        if call is None:
            broken += 1
        else:
            end = after + len(_CLOSE)
            yield start, end, call
        start = text.find(_OPEN, end)


def _past_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _call(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    name = value.get("name")
    arguments, problem = parse_tool_arguments(value.get("arguments", value.get("parameters")))
    written = compact_json(arguments)
    if not isinstance(name, str) or problem or written is None:
        return None
    return {"type": "function", "function": {"name": name, "arguments": written}}


def _native(
    calls: list[dict[str, Any]], registry: ToolInteropRegistry, context: Context
) -> list[Any]:
    """The calls as the provider's own messages hold them."""
    formats = get_schema_target_formats_from_context(context)
    if not formats:
        return calls
    target = ToolInteropTarget(formats[0])
    return registry.convert_tool_calls(calls, target=target, target_formats=formats)


def _also_in_history(
    native_messages: list[NativeMessage], turn: int, before: NativeMessage, final: NativeMessage
) -> list[NativeMessage]:
    """The history with ``final`` in the place of its own copy among the last ``turn`` messages."""
    for place in range(len(native_messages) - 1, max(-1, len(native_messages) - 1 - turn), -1):
        if native_messages[place] is final:
            break
        if native_messages[place] == before:
            return [*native_messages[:place], final, *native_messages[place + 1 :]]
    return native_messages


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)
