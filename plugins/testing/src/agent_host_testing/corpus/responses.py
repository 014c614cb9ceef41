"""Requests and answers of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_hookspecs.messages import Role
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
    left,
    media,
    signature,
    strict_schema,
    without_unset,
)

__all__ = ["responses_answer", "responses_counts", "responses_turn", "responses_usage"]

FAMILY = "openai.responses"

_TAKEN = (
    "input",
    "instructions",
    "model",
    "stream",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "parallel_tool_calls",
    "text",
    "reasoning",
)
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def responses_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    tools = body.get("tools") or ()
    own = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    hosted = [tool for tool in tools if tool.get("type") not in ("function", "custom")]
    text = dict(body.get("text") or {})
    asked = text.get("format") or {}
    schema = asked["schema"] if asked.get("type") == "json_schema" else None
    if schema is not None:
        del text["format"]
    reasoning = dict(body.get("reasoning") or {})
    choice = body.get("tool_choice")
    settings = without_unset(
        model=body.get("model"),
        max_output_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        parallel_tool_calls=body.get("parallel_tool_calls"),
        effort=reasoning.pop("effort", None),
        tool_choice=choice.get("name") if isinstance(choice, Mapping) else choice,
        response_schema=schema,
        builtin_tools=list(map(dict, hosted)) or None,
    )
    extra = left(body, _TAKEN).get("extra_body", {})
    extra |= without_unset(text=text or None, reasoning=reasoning or None)
    return Turn(
        tuple(_entries(body)),
        tuple(strict_schema(t) if t["type"] == "function" else dict(t) for t in own),
        {**settings, **({"extra_body": extra} if extra else {})},
        FAMILY,
    )


def responses_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    return {
        "input_tokens": raw.get("input_tokens"),
        "output_tokens": raw.get("output_tokens"),
        "total_tokens": raw.get("total_tokens"),
        "cache_read_tokens": (raw.get("input_tokens_details") or {}).get("cached_tokens"),
        "reasoning_tokens": (raw.get("output_tokens_details") or {}).get("reasoning_tokens"),
    }


def responses_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract."""
    usage = responses_usage(raw)
    return {
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "cached_input": usage["cache_read_tokens"],
        "reasoning": usage["reasoning_tokens"],
    }


def responses_answer(documents: Sequence[Any]) -> Answer:
    """The items of an answer, each as it was finished."""
    done = [each for each in documents if each.get("type") == "response.output_item.done"]
    items = [each["item"] for each in sorted(done, key=lambda each: each.get("output_index", 0))]
    for document in documents:
        listed = (document.get("response") or document).get("output") or ()
        items = items if len(items) >= len(listed) else list(listed)
    while items and items[-1].get("type") == "reasoning":
        # The API refuses reasoning that led to nothing.
        items.pop()
    texts = [part for item in items for part in item.get("content") or () if _is_text(item)]
    notes = [note for part in texts for note in part.get("annotations") or ()]
    return answered({"input": items}, notes)


def _is_text(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "message"


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    if body.get("instructions"):
        yield Entry("system", (text_block(body["instructions"]),))
    given = body["input"]
    if isinstance(given, str):
        yield Entry("user", (text_block(given),))
        return
    for item in given:
        yield _entry(item)


def _entry(item: Mapping[str, Any]) -> Entry:
    kind = item.get("type", "message")
    if kind == "message":
        role = item["role"]
        speaker: Role = "system" if role == "developer" else role
        return Entry(speaker, tuple(_contents(item.get("content"))))
    if kind in _CALLS:
        arguments = item["arguments"] if kind == "function_call" else item["input"]
        value = parse_arguments(arguments) if kind == "function_call" else arguments
        call = {"id": item["call_id"], "name": item["name"], "arguments": value, "text": arguments}
        return Entry("assistant", (Block("call", call),))
    if kind in _OUTPUTS:
        content = tuple(_contents(item.get("output")))
        result = {"id": item["call_id"], "name": None, "content": content}
        return Entry("tool", (Block("result", result),))
    if kind == "reasoning":
        pieces = [*(item.get("summary") or ()), *(item.get("content") or ())]
        text = "".join(piece.get("text", "") for piece in pieces)
        signed = signature(item.get("encrypted_content"))
        return Entry("assistant", (Block("reasoning", {"text": text, "signature": signed}),))
    return Entry("assistant", (Block("native", {"part": _taken_back(item)}),))


def _taken_back(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without the sources of a search, which the API gives on request and never takes."""
    action = item.get("action")
    if not isinstance(action, Mapping):
        return dict(item)
    return {**item, "action": {k: v for k, v in action.items() if k != "sources"}}


def _contents(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield text_block(content)
    for part in content if isinstance(content, (list, tuple)) else ():
        kind = part.get("type")
        if kind in ("input_text", "output_text"):
            yield text_block(part["text"])
        elif kind == "refusal":
            yield text_block(part["refusal"])
        elif kind == "input_image":
            yield media("image", url=part.get("image_url"), file_id=part.get("file_id"))
        elif kind == "input_file":
            url = part.get("file_data") or part.get("file_url")
            file_id = part.get("file_id")
            yield media("file", file_id=file_id, url=url, name=part.get("filename"))
        else:
            yield Block("native", {"part": dict(part)})
