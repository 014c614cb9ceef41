"""Requests and answers of Cohere's v2 Chat API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.entries import (
    Answer,
    Block,
    Entry,
    Turn,
    parse_arguments,
    text_block,
)
from agent_host_testing.corpus.reading import (
    answered,
    function_schema,
    left,
    media,
    without_unset,
)

__all__ = ["cohere_answer", "cohere_counts", "cohere_turn", "cohere_usage"]

_TAKEN = (
    "messages",
    "model",
    "stream",
    "tools",
    "tool_choice",
    "max_tokens",
    "temperature",
    "stop_sequences",
    "seed",
    "response_format",
)


def cohere_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    asked = body.get("response_format") or {}
    schema = asked.get("json_schema") or asked.get("schema")
    choice = body.get("tool_choice")
    settings = without_unset(
        model=body.get("model"),
        max_output_tokens=body.get("max_tokens"),
        temperature=body.get("temperature"),
        stop=body.get("stop_sequences"),
        seed=body.get("seed"),
        tool_choice=choice.lower() if isinstance(choice, str) else None,
        response_schema=schema,
    )
    taken = _TAKEN if schema else [key for key in _TAKEN if key != "response_format"]
    return Turn(
        tuple(_entries(body["messages"])),
        tuple(function_schema(tool["function"]) for tool in body.get("tools") or ()),
        {**settings, **left(body, taken)},
        "cohere.chat",
    )


def cohere_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    counts = raw.get("tokens") or raw.get("billed_units") or {}
    return {
        "input_tokens": counts.get("input_tokens"),
        "output_tokens": counts.get("output_tokens"),
        "cache_read_tokens": raw.get("cached_tokens"),
    }


def cohere_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract."""
    usage = cohere_usage(raw)
    return {
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "cached_input": usage["cache_read_tokens"],
    }


def cohere_answer(documents: Sequence[Any]) -> Answer:
    """The message of an answer, be it whole or in events."""
    message: dict[str, Any] = {"role": "assistant"}
    for document in documents:
        if "message" in document:
            message = dict(document["message"])
        else:
            _hear(message, (document.get("delta") or {}).get("message") or {}, document)
    for key in ("content", "tool_calls"):
        if isinstance(message.get(key), dict):
            message[key] = [message[key][place] for place in sorted(message[key])]
    return answered({"messages": [message]}, message.get("citations") or ())


def _hear(message: dict[str, Any], said: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Add to the message what an event says; contents and calls are gathered by their place."""
    kind, place = str(event.get("type")), event.get("index", 0)
    if kind == "tool-plan-delta":
        message["tool_plan"] = message.get("tool_plan", "") + said["tool_plan"]
    elif kind == "citation-start":
        message.setdefault("citations", []).append(said["citations"])
    elif kind in ("content-start", "content-delta"):
        block = message.setdefault("content", {}).setdefault(place, {})
        for key in ("text", "thinking"):
            if isinstance(said["content"].get(key), str):
                block[key] = block.get(key, "") + said["content"][key]
                block["type"] = key
    elif kind in ("tool-call-start", "tool-call-delta"):
        call = message.setdefault("tool_calls", {}).setdefault(place, {"function": {}})
        given = said["tool_calls"]
        call |= {key: given[key] for key in ("id", "type") if key in given}
        for key, text in given["function"].items():
            call["function"][key] = call["function"].get(key, "") + text


def _entries(messages: Any) -> Iterator[Entry]:
    for message in messages:
        blocks = tuple(_contents(message.get("content")))
        if message["role"] == "tool":
            result = {"id": message.get("tool_call_id"), "name": None, "content": blocks}
            yield Entry("tool", (Block("result", result),))
        elif message["role"] == "assistant":
            # What is said before a call is a plan to this API.
            plan = [text_block(message["tool_plan"])] if message.get("tool_plan") else []
            calls = map(_call, message.get("tool_calls") or ())
            yield Entry("assistant", (*plan, *blocks, *calls))
        else:
            yield Entry(message["role"], blocks)


def _call(call: Mapping[str, Any]) -> Block:
    function = call["function"]
    text = function.get("arguments")
    known = {"id": call.get("id"), "name": function["name"], "arguments": parse_arguments(text)}
    return Block("call", {**known, **without_unset(text=text)})


def _contents(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield text_block(content)
    for part in content if isinstance(content, (list, tuple)) else ():
        if part.get("type") == "text":
            yield text_block(part.get("text") or "")
        elif part.get("type") == "thinking":
            yield Block("reasoning", {"text": part.get("thinking") or "", "signature": None})
        elif part.get("type") == "image_url":
            yield media("image", url=part["image_url"]["url"])
        else:
            # Results may be documents; our tools give text, and the model reads both.
            yield text_block(json.dumps(part, sort_keys=True))
