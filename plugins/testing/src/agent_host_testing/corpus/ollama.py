"""Requests and answers of Ollama's own chat API."""

from __future__ import annotations

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
    data_url,
    function_schema,
    left,
    media,
    without_unset,
)

__all__ = ["ollama_answer", "ollama_counts", "ollama_turn", "ollama_usage"]

_TAKEN = ("messages", "model", "stream", "tools", "options", "format")
_KNOBS = {"num_predict": "max_output_tokens", "temperature": "temperature", "seed": "seed"}


def ollama_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    options = dict(body.get("options") or {})
    knobs = {knob: options.pop(key) for key, knob in _KNOBS.items() if key in options}
    if "stop" in options:
        stop = options.pop("stop")
        knobs["stop"] = [stop] if isinstance(stop, str) else stop
    asked = body.get("format")
    schema = asked if isinstance(asked, Mapping) else None
    extra = left(body, _TAKEN).get("extra_body", {})
    extra |= without_unset(options=options or None, format=None if schema else asked or None)
    return Turn(
        tuple(_entries(body["messages"])),
        tuple(function_schema(tool["function"]) for tool in body.get("tools") or ()),
        {
            **without_unset(model=body.get("model"), response_schema=schema, **knobs),
            **({"extra_body": extra} if extra else {}),
        },
        "ollama.chat",
    )


def ollama_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    return {
        "input_tokens": raw.get("prompt_eval_count"),
        "output_tokens": raw.get("eval_count"),
    }


def ollama_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract."""
    usage = ollama_usage(raw)
    return {"input": usage["input_tokens"], "output": usage["output_tokens"]}


def ollama_answer(documents: Sequence[Any]) -> Answer:
    """The message of an answer, be it whole or in lines."""
    said = [document.get("message") or {} for document in documents]
    message = {
        "role": "assistant",
        **{key: "".join(m.get(key) or "" for m in said) for key in ("thinking", "content")},
        "tool_calls": [call for each in said for call in each.get("tool_calls") or ()],
    }
    return answered({"messages": [message]})


def _entries(messages: Any) -> Iterator[Entry]:
    for message in messages:
        role = message["role"]
        if role == "tool":
            name = message.get("tool_name") or message.get("name")
            content = (text_block(message.get("content") or ""),)
            # The API tells results apart by the tool's name and needs no ids.
            yield Entry("tool", (Block("result", {"id": None, "name": name, "content": content}),))
        else:
            yield Entry(role, tuple(_blocks(message)))


def _blocks(message: Mapping[str, Any]) -> Iterator[Block]:
    if message.get("thinking"):
        yield Block("reasoning", {"text": message["thinking"], "signature": None})
    yield text_block(message.get("content") or "")
    for image in message.get("images") or ():
        yield media("image", url=data_url("image/png", image))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = parse_arguments(function.get("arguments"))
        yield Block("call", {"id": None, "name": function["name"], "arguments": arguments})
