"""Requests and answers of Anthropic's Messages API."""

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
    model_in,
    signature,
    user_entries,
    without_unset,
)

__all__ = ["messages_answer", "messages_counts", "messages_turn", "messages_usage"]

FAMILY = "anthropic.messages"

_TAKEN = (
    "messages",
    "system",
    "model",
    "stream",
    "tools",
    "tool_choice",
    "max_tokens",
    "temperature",
    "stop_sequences",
    # Other clouds have the model in the address and the version in the body.
    "anthropic_version",
)


def messages_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    tools = [_without_marker(tool) for tool in body.get("tools") or ()]
    own = [tool for tool in tools if "input_schema" in tool]
    hosted = [tool for tool in tools if "input_schema" not in tool]
    choice = body.get("tool_choice") or {}
    parallel = choice.get("disable_parallel_tool_use")
    settings = without_unset(
        model=body.get("model") or model_in(url),
        max_output_tokens=body.get("max_tokens"),
        temperature=body.get("temperature"),
        stop=body.get("stop_sequences"),
        tool_choice=choice.get("name") or _CHOICES.get(choice.get("type", "")),
        parallel_tool_calls=None if parallel is None else not parallel,
        builtin_tools=hosted or None,
    )
    return Turn(
        tuple(_entries(body)),
        tuple(function_schema(tool, "input_schema") for tool in own),
        {**settings, **left(body, _TAKEN)},
        FAMILY,
    )


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def messages_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    return {
        "input_tokens": raw.get("input_tokens"),
        "output_tokens": raw.get("output_tokens"),
        "cache_read_tokens": raw.get("cache_read_input_tokens"),
        "cache_write_tokens": raw.get("cache_creation_input_tokens"),
    }


def messages_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract: the prompt with what the cache read and wrote of it."""
    usage = messages_usage(raw)
    read, written = usage["cache_read_tokens"] or 0, usage["cache_write_tokens"] or 0
    prompt = usage["input_tokens"]
    return {
        "input": None if prompt is None else prompt + read + written,
        "output": usage["output_tokens"],
        "cached_input": usage["cache_read_tokens"],
    }


def messages_answer(documents: Sequence[Any]) -> Answer:
    """The blocks of an answer, be it whole or in events."""
    blocks: dict[int, dict[str, Any]] = {}
    for document in documents:
        if document.get("type") == "message":
            blocks = dict(enumerate(map(dict, document["content"])))
        elif document.get("type") == "content_block_start":
            blocks[document["index"]] = dict(document["content_block"])
        elif document.get("type") == "content_block_delta" and document["index"] in blocks:
            _hear(blocks[document["index"]], document["delta"])
    for block in blocks.values():
        if _WRITTEN in block:
            block["input"] = parse_arguments(block.pop(_WRITTEN))
    content = [blocks[place] for place in sorted(blocks)]
    citations = [each for block in content for each in block.get("citations") or ()]
    return answered({"messages": [{"role": "assistant", "content": content}]}, citations)


#: Where the text of an input is gathered until it is whole.
_WRITTEN = "partial_json"
#: The keys of deltas that go on with what the block has under the same one.
_GROWING = ("text", "thinking", "signature", _WRITTEN)


def _hear(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add to a block what a delta says."""
    for key in _GROWING:
        if key in delta:
            block[key] = (block.get(key) or "") + delta[key]
    if "citation" in delta:
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    if body.get("system"):
        yield Entry("system", tuple(_contents(body["system"])))
    for message in body["messages"]:
        blocks = tuple(_contents(message["content"]))
        if message["role"] == "assistant":
            yield Entry("assistant", blocks)
        else:
            yield from user_entries(blocks)


def _contents(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield text_block(content)
    for block in content if isinstance(content, (list, tuple)) else ():
        yield _block(_without_marker(block))


def _without_marker(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _block(block: dict[str, Any]) -> Block:
    kind = block["type"]
    if kind == "text":
        return text_block(block["text"], citations=block.get("citations") or None)
    if kind == "thinking":
        signed = signature(block.get("signature"))
        return Block("reasoning", {"text": block["thinking"], "signature": signed})
    if kind == "redacted_thinking":
        return Block("reasoning", {"text": "", "signature": signature(block["data"])})
    if kind == "tool_use":
        value = {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        return Block("call", value)
    if kind == "tool_result":
        content = tuple(_contents(block.get("content")))
        result = {"id": block["tool_use_id"], "name": None, "content": content}
        return Block("result", {**result, **({"error": True} if block.get("is_error") else {})})
    if kind in ("image", "document"):
        return _medium(kind, block)
    return Block("native", {"part": block})


def _medium(kind: str, block: dict[str, Any]) -> Block:
    """A medium that any API could take; one with settings of its own is left as it is."""
    source = block["source"]
    type, name = source["type"], block.get("title")
    if set(block) - {"type", "source", "title"} or type not in ("base64", "url", "file"):
        return Block("native", {"part": block})
    url = source.get("url")
    if type == "base64":
        url = data_url(source["media_type"], source["data"])
    kind = "image" if kind == "image" else "file"
    return media(kind, url=url, file_id=source.get("file_id"), name=name)
