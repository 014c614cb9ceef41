"""Requests of OpenAI's chat API and of those who copy it, Mistral's among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_hookspecs.messages import Role
from agent_hookspecs.tool_interop import OPENAI_CHAT
from agent_host_testing.corpus.entries import Block, Entry, Turn, parse_arguments, text_block
from agent_host_testing.corpus.reading import (
    data_url,
    function_schema,
    left,
    media,
    model_in,
    signature,
    without_unset,
)

__all__ = ["chat_turn", "chat_usage"]

_TAKEN = (
    "messages",
    "model",
    "stream",
    "stream_options",
    "n",
    "tools",
    "functions",
    "tool_choice",
    "function_call",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "stop",
    "seed",
    "parallel_tool_calls",
    "reasoning_effort",
)


def chat_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    schema, taken = _response_schema(body)
    tools = [
        function_schema(tool["function"]) if "function" in tool else dict(tool)
        for tool in body.get("tools") or ()
    ]
    settings = without_unset(
        model=body.get("model") or model_in(url),
        max_output_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        temperature=body.get("temperature"),
        stop=_stop_list(body.get("stop")),
        seed=body.get("seed"),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        effort=body.get("reasoning_effort"),
        tool_choice=_choice(body.get("tool_choice") or body.get("function_call")),
        response_schema=schema,
    )
    return Turn(
        tuple(_entries(body["messages"])),
        (*tools, *map(function_schema, body.get("functions") or ())),
        {**settings, **left(body, (*_TAKEN, *taken))},
        OPENAI_CHAT,
    )


def chat_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    prompt = raw.get("prompt_tokens_details") or {}
    completion = raw.get("completion_tokens_details") or {}
    return {
        "input_tokens": raw.get("prompt_tokens"),
        "output_tokens": raw.get("completion_tokens"),
        "total_tokens": raw.get("total_tokens"),
        "cache_read_tokens": prompt.get("cached_tokens"),
        "reasoning_tokens": completion.get("reasoning_tokens"),
    }


def _stop_list(stop: Any) -> Any:
    return [stop] if isinstance(stop, str) else stop


def _choice(choice: Any) -> str | None:
    if isinstance(choice, Mapping):
        return str((choice.get("function") or choice)["name"])
    return "required" if choice == "any" else choice


def _response_schema(body: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    asked = body.get("response_format") or {}
    if asked.get("type") == "json_schema":
        return asked["json_schema"]["schema"], ("response_format",)
    return None, ()


def _entries(messages: Any) -> Iterator[Entry]:
    for message in messages:
        role = message["role"]
        if role in ("tool", "function"):
            content = tuple(_contents(message.get("content")))
            name = message.get("name")
            result = {"id": message.get("tool_call_id"), "name": name, "content": content}
            yield Entry("tool", (Block("result", result),))
        elif role == "assistant":
            yield Entry("assistant", tuple(_answer(message)))
        else:
            speaker: Role = "system" if role in ("system", "developer") else "user"
            yield Entry(speaker, tuple(_contents(message.get("content"))))


def _contents(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield text_block(content)
    for part in content if isinstance(content, (list, tuple)) else ():
        yield _part(part)


def _part(part: Mapping[str, Any]) -> Block:
    kind = part.get("type")
    if kind == "text":
        return text_block(part["text"])
    if kind == "thinking":
        thought = part["thinking"]
        pieces = thought if isinstance(thought, list) else [{"text": thought}]
        text = "".join(piece.get("text", "") for piece in pieces)
        return Block("reasoning", {"text": text, "signature": None})
    if kind == "image_url":
        image = part["image_url"]
        return media("image", url=image if isinstance(image, str) else image["url"])
    if kind == "file":
        file = part["file"]
        places = without_unset(file_id=file.get("file_id"), url=file.get("file_data"))
        return media("file", **places, name=file.get("filename"))
    if kind == "input_audio":
        audio = part["input_audio"]
        return media("audio", url=data_url(f"audio/{audio['format']}", audio["data"]))
    return Block("native", {"part": dict(part)})


def _answer(message: Mapping[str, Any]) -> Iterator[Block]:
    details = message.get("reasoning_details")
    spoken = message.get("reasoning_content") or message.get("reasoning")
    if details:
        yield from map(_detail, details)
    elif spoken:
        yield Block("reasoning", {"text": spoken, "signature": None})
    yield from _contents(message.get("content"))
    if message.get("refusal"):
        yield text_block(message["refusal"])
    called = message.get("function_call")
    for call in message.get("tool_calls") or ([{"function": called}] if called else ()):
        function = call.get("function") or call["custom"]
        given = (
            function["input"] if "input" in function else parse_arguments(function.get("arguments"))
        )
        yield Block("call", {"id": call.get("id"), "name": function["name"], "arguments": given})


def _detail(detail: Mapping[str, Any]) -> Block:
    text = detail.get("text") or detail.get("summary") or ""
    signed = signature(detail.get("data") or detail.get("signature"))
    return Block("reasoning", {"text": text, "signature": signed})
