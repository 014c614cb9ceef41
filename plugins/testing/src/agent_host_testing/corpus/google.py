"""Requests and answers of Gemini's generateContent, whichever cloud they went to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_host_testing.corpus.entries import Answer, Block, Entry, Turn, text_block
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

__all__ = ["generate_answer", "generate_counts", "generate_turn", "generate_usage"]

FAMILY = "google.generate_content"

_TAKEN = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
_CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
_KNOBS = {
    "maxOutputTokens": "max_output_tokens",
    "temperature": "temperature",
    "stopSequences": "stop",
    "seed": "seed",
}
_SCHEMAS = ("responseSchema", "responseJsonSchema")


def generate_turn(body: Mapping[str, Any], url: str) -> Turn:
    """The conversation, tools and settings of a request."""
    body = _camel(body)
    generation = _camel(body.get("generationConfig") or {})
    schema = next((generation.pop(key) for key in _SCHEMAS if key in generation), None)
    if schema is not None:
        generation.pop("responseMimeType", None)
    knobs = {knob: generation.pop(key) for key, knob in _KNOBS.items() if key in generation}
    tool_config = _camel(body.get("toolConfig") or {})
    calling = _camel(tool_config.pop("functionCallingConfig", None) or {})
    allowed = calling.get("allowedFunctionNames") or []
    tools = [_camel(tool) for tool in body.get("tools") or ()]
    declared = [each for tool in tools for each in tool.get("functionDeclarations") or ()]
    hosted = [tool for tool in tools if "functionDeclarations" not in tool]
    settings = without_unset(
        **knobs,
        model=model_in(url),
        response_schema=schema,
        tool_choice=allowed[0] if len(allowed) == 1 else _CHOICES.get(calling.get("mode", "")),
        builtin_tools=hosted or None,
    )
    rest = left(body, _TAKEN).get("extra_body", {})
    rest |= without_unset(generationConfig=generation or None, toolConfig=tool_config or None)
    extra = {"extra_body": rest} if rest else {}
    return Turn(
        tuple(_entries(body)),
        tuple(_declaration(each) for each in declared),
        {**settings, **extra},
        FAMILY,
    )


def generate_usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's numbers under the names of the recordings."""
    return {
        "input_tokens": raw.get("promptTokenCount"),
        "output_tokens": raw.get("candidatesTokenCount"),
        "total_tokens": raw.get("totalTokenCount"),
        "cache_read_tokens": raw.get("cachedContentTokenCount"),
        "reasoning_tokens": raw.get("thoughtsTokenCount"),
    }


def generate_counts(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of the contract: what Gemini's own tools read is prompt, thoughts are output."""
    usage = generate_usage(raw)
    prompt, answer, thought = (
        usage[f"{count}_tokens"] for count in ("input", "output", "reasoning")
    )
    read = raw.get("toolUsePromptTokenCount")
    return {
        "input": _sum(prompt, read),
        "output": _sum(answer, thought),
        "cached_input": usage["cache_read_tokens"],
        "reasoning": thought,
    }


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


#: What a candidate says of its sources, beside its parts.
_SOURCES = ("groundingMetadata", "citationMetadata", "urlContextMetadata")


def generate_answer(documents: Sequence[Any]) -> Answer:
    """The parts of the first candidate; of its sources, what was said last."""
    parts: list[Any] = []
    sources: dict[str, Any] = {}
    for document in documents:
        for candidate in document.get("candidates") or ():
            if not candidate.get("index"):
                parts += (candidate.get("content") or {}).get("parts") or ()
                sources |= {key: candidate[key] for key in _SOURCES if candidate.get(key)}
    return answered({"contents": [{"role": "model", "parts": parts}]}, sources.values())


def _camel(value: Mapping[str, Any]) -> dict[str, Any]:
    """The API reads its keys in both spellings."""
    return {
        re.sub(r"_([a-z])", lambda found: found[1].upper(), key): item
        for key, item in value.items()
    }


def _deep_camel(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_camel(item) for key, item in _camel(value).items()}
    if isinstance(value, (list, tuple)):
        return [_deep_camel(item) for item in value]
    return value


def _declaration(declared: Mapping[str, Any]) -> dict[str, Any]:
    declared = _camel(declared)
    key = "parameters" if "parameters" in declared else "parametersJsonSchema"
    schema = function_schema(declared, key)
    return {**schema, "parameters": _lower_types(schema["parameters"])}


def _lower_types(schema: Any) -> Any:
    """A schema as everybody else writes it."""
    if isinstance(schema, list):
        return [_lower_types(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: item.lower() if key == "type" and isinstance(item, str) else _lower_types(item)
        for key, item in schema.items()
    }


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    instructions = body.get("systemInstruction")
    if instructions:
        yield Entry("system", tuple(_parts(instructions)))
    for content in body["contents"]:
        blocks = tuple(_parts(content))
        if content.get("role") == "model":
            yield Entry("assistant", blocks)
        else:
            yield from user_entries(blocks)


def _parts(content: Any) -> Iterator[Block]:
    """The parts of a content; the API also takes a single one, and a text in its place."""
    if isinstance(content, str):
        yield text_block(content)
        return
    given = content.get("parts") or ()
    yield from map(_part, [given] if isinstance(given, Mapping) else given)


def _part(part: Mapping[str, Any]) -> Block:
    part = _camel(part)
    signed = signature(part.get("thoughtSignature"))
    if part.get("thought"):
        return Block("reasoning", {"text": part.get("text", ""), "signature": signed})
    if "text" in part:
        return text_block(part["text"], signature=signed)
    if "functionCall" in part:
        call = part["functionCall"]
        value = {"id": call.get("id"), "name": call["name"], "arguments": call.get("args") or {}}
        return Block("call", {**value, **without_unset(signature=signed)})
    if "functionResponse" in part:
        return _result(part["functionResponse"])
    if "fileData" in part:
        file = _camel(part["fileData"])
        return _file(file.get("mimeType"), file["fileUri"])
    if "inlineData" in part:
        inline = _camel(part["inlineData"])
        return _file(inline["mimeType"], data_url(inline["mimeType"], inline["data"]))
    own = _deep_camel({key: item for key, item in part.items() if key != "thoughtSignature"})
    return Block("native", {"part": own, **without_unset(signature=signed)})


def _file(media_type: str | None, url: str) -> Block:
    kind = (media_type or "").partition("/")[0]
    named = kind if kind in ("image", "audio", "video") else "file"
    return media(named, url=url, media_type=media_type)


#: The keys under which clients put what a tool gave if it is no object.
_WRAPPERS = ("result", "output", "error")


def _result(response: Mapping[str, Any]) -> Block:
    """What a tool gave, as text; an object that is no wrapper is given as JSON."""
    given = response.get("response") or {}
    value: Any = given
    if len(given) == 1:
        [(key, only)] = given.items()
        value = only if isinstance(only, str) or key in _WRAPPERS else given
    content = (text_block(_written(value)), *map(_part, response.get("parts") or ()))
    result = {"id": response.get("id"), "name": response["name"], "content": content}
    return Block("result", {**result, **({"error": True} if [*given] == ["error"] else {})})


def _written(value: Any) -> str:
    """A value as text; JSON is written in one way, whoever wrote it."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return value
        if not isinstance(read, (dict, list)):
            return value
        value = read
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
