"""Requests and answers of OpenAI's chat API and of those who copy it, Mistral's among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_hookspecs.messages import Role
from agent_hookspecs.tool_interop import OPENAI_CHAT
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
    strict_schema,
    without_unset,
)

__all__ = ["chat_answer", "chat_counts", "chat_turn", "chat_usage"]

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
        strict_schema(tool["function"]) if "function" in tool else dict(tool)
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


def chat_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract; the total tells who leaves reasoning out of the output."""
    usage = chat_usage(raw)
    prompt, output = usage["input_tokens"] or 0, usage["output_tokens"] or 0
    thought = usage["reasoning_tokens"] or 0
    apart = thought if usage["total_tokens"] == prompt + output + thought else 0
    return {
        "input": usage["input_tokens"],
        "output": None if usage["output_tokens"] is None else output + apart,
        "cached_input": usage["cache_read_tokens"],
        "reasoning": usage["reasoning_tokens"],
    }


def chat_answer(documents: Sequence[Any]) -> Answer:
    """What the first choice of an answer says, be it whole or in deltas."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": []}
    citations: list[Any] = []
    for document in documents:
        cited = document.get("citations")
        citations = cited if isinstance(cited, list) else citations
        for choice in document.get("choices") or ():
            if choice and not choice.get("index"):
                # A stream may repeat all of the message beside each delta.
                streamed = len(documents) > 1 and choice.get("delta")
                _hear(message, streamed or choice.get("message") or choice.get("delta") or {})
    notes = message.get("annotations") or []
    return answered({"messages": [message]}, [*citations, *notes])


def _hear(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add to the message what a delta says."""
    for key in ("reasoning", "reasoning_content", "refusal"):
        if isinstance(delta.get(key), str):
            message[key] = message.get(key, "") + delta[key]
    content = delta.get("content")
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        block = _part(part) if part.get("type") != "text" or part.get("text") else None
        if block is not None and block.kind == "reasoning":
            message["reasoning"] = message.get("reasoning", "") + block.value["text"]
        elif block is not None and block.kind == "text":
            message["content"] += block.value["text"]
    for detail in delta.get("reasoning_details") or ():
        _hear_detail(message.setdefault("reasoning_details", []), detail)
    message.setdefault("annotations", []).extend(delta.get("annotations") or ())
    legacy = delta.get("function_call")
    calls = delta.get("tool_calls") or ([{"function": legacy}] if legacy else ())
    for place, call in enumerate(calls):
        _hear_call(message["tool_calls"], call, call.get("index", place))


def _hear_detail(details: list[dict[str, Any]], detail: Mapping[str, Any]) -> None:
    last = details[-1] if details else {}
    same = ("type", "index")
    if not last or [last.get(key) for key in same] != [detail.get(key) for key in same]:
        details.append(dict(detail))
        return
    grown = {key: last.get(key, "") + detail[key] for key in ("text", "summary") if detail.get(key)}
    last.update({**{key: value for key, value in detail.items() if value is not None}, **grown})


def _hear_call(calls: list[dict[str, Any]], call: Mapping[str, Any], place: int) -> None:
    known = [each for each in calls if each["index"] == place]
    begun = not known or (call.get("id") and known[-1]["id"] not in (None, call["id"]))
    kind = "custom" if "custom" in call else "function"
    text = "input" if kind == "custom" else "arguments"
    if begun:
        calls.append({"index": place, "id": call.get("id"), kind: {"name": "", text: ""}})
    heard, named = (calls if begun else known)[-1], call.get(kind) or {}
    heard["id"] = heard["id"] or call.get("id")
    heard[kind]["name"] += named.get("name") or ""
    given = named.get(text) or ""
    heard[kind][text] = heard[kind][text] + given if isinstance(given, str) else given


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
        text = function.get("input", function.get("arguments"))
        given = text if "input" in function else parse_arguments(text)
        known = {"id": call.get("id"), "name": function["name"], "arguments": given}
        signed = signature(_extra(call).get("thought_signature"))
        written = text if isinstance(text, str) else None
        yield Block("call", {**known, **without_unset(text=written, signature=signed)})


def _extra(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What Gemini adds to a call where it speaks this format."""
    return (call.get("extra_content") or {}).get("google") or {}


def _detail(detail: Mapping[str, Any]) -> Block:
    text = detail.get("text") or detail.get("summary") or ""
    signed = signature(detail.get("data") or detail.get("signature"))
    return Block("reasoning", {"text": text, "signature": signed})
