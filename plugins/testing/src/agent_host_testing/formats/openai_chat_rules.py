"""What OpenAI's chat completions accept: the shape of a request and the order of its messages.

Answers are rendered elsewhere. Dialects that show reasoning add fields, which `body_rules` is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from agent_host_testing.formats.checks import (
    Check,
    Node,
    anything,
    each,
    flag,
    integer,
    json_object,
    json_object_text,
    legal,
    nullable,
    number,
    one_of,
    record,
    results_match,
    text,
)
from agent_host_testing.formats.openai_api import (
    FUNCTION_FIELDS,
    SCHEMA_FIELDS,
    content,
    custom_format,
    effort,
    legal_name,
    strict_schema,
    string_map,
)

__all__ = ["body_rules", "call_ids"]

_call_id = legal(r"[a-zA-Z0-9_-]{1,64}", "tool call id")

_TEXT_PART = record(
    {"type": anything, "text": text, "cache_control": json_object}, ("type", "text")
)
_PARTS: dict[str, Check] = {
    "text": _TEXT_PART,
    "refusal": record({"type": anything, "refusal": text}, ("refusal",)),
    "image_url": record(
        {
            "type": anything,
            "image_url": record(
                {"url": text, "detail": nullable(one_of("auto", "low", "high", "original"))},
                ("url",),
            ),
        },
        ("image_url",),
    ),
    "input_audio": record(
        {
            "type": anything,
            "input_audio": record(
                {"data": text, "format": one_of("wav", "mp3")}, ("data", "format")
            ),
        },
        ("input_audio",),
    ),
    "file": record(
        {
            "type": anything,
            "file": record({"file_data": text, "file_id": text, "filename": text}),
        },
        ("file",),
    ),
}


def _content(*kinds: str) -> Check:
    """A string, or an array of parts of these kinds."""
    return content({kind: _PARTS[kind] for kind in kinds}, 1)


def _call(node: Node) -> None:
    """A tool call in an assistant message."""
    one_of("function", "custom")(node.need("type"))
    kind = node.value["type"]
    inner = {
        "function": record(
            {"name": legal_name, "arguments": json_object_text}, ("name", "arguments")
        ),
        "custom": record({"name": legal_name, "input": text}, ("name", "input")),
    }
    record({"id": _call_id, "type": anything, kind: inner[kind]}, ("id", kind))(node)


_ASSISTANT_FIELDS: dict[str, Check] = {
    "role": anything,
    "content": nullable(_content("text", "refusal")),
    "refusal": nullable(text),
    "name": text,
    "tool_calls": each(_call, 1),
    "function_call": nullable(
        record({"name": legal_name, "arguments": text}, ("name", "arguments"))
    ),
    "audio": nullable(record({"id": text}, extra=anything)),
    "annotations": nullable(each(json_object)),
}


def _message_rules(reasoning: Mapping[str, Check]) -> dict[str, Check]:
    speech = {"role": anything, "content": _content("text"), "name": text}
    heard = _content("text", "image_url", "input_audio", "file")
    return {
        "system": record(speech, ("content",)),
        "developer": record(speech, ("content",)),
        "user": record({**speech, "content": heard}, ("content",)),
        "assistant": _assistant(record({**_ASSISTANT_FIELDS, **reasoning})),
        "tool": record(
            {"role": anything, "content": _content("text"), "tool_call_id": _call_id},
            ("content", "tool_call_id"),
        ),
        "function": record(
            {"role": anything, "content": nullable(text), "name": legal_name}, ("content", "name")
        ),
    }


def _assistant(shape: Check) -> Check:
    def check(node: Node) -> None:
        shape(node)
        if not any(map(node.has, ("content", "refusal", "tool_calls", "function_call", "audio"))):
            rule = "an assistant message has content, unless it calls tools or refuses"
            node.child("content").refuse("expected a string, got null", rule)

    return check


def call_ids(message: Node) -> list[Node]:
    """The ids of the calls in a message."""
    if not message.has("tool_calls"):
        return []
    return [call.child("id") for call in message.child("tool_calls").items()]


def _every_call_answered(messages: list[Node]) -> None:
    """The tool messages after an assistant's are the results of its calls, no more and no less."""
    pending: list[Node] = []
    results: list[Node] = []
    for message in messages:
        if message.value["role"] == "tool":
            if not pending:
                rule = "a tool message follows the assistant message whose call it answers"
                message.refuse("a tool message without a preceding call", rule)
            results.append(message.child("tool_call_id"))
            continue
        results_match(pending, results)
        pending, results = call_ids(message), []
    results_match(pending, results)


def _tool(node: Node) -> None:
    one_of("function", "custom")(node.need("type"))
    if node.value["type"] == "function":
        record({"type": anything, "function": _function}, ("function",))(node)
    else:
        custom = {"name": legal_name, "description": text, "format": custom_format}
        record({"type": anything, "custom": record(custom, ("name",))}, ("custom",))(node)


def _function(node: Node) -> None:
    record(FUNCTION_FIELDS, ("name",))(node)
    strict_schema(node)


def _tool_choice(node: Node) -> None:
    if not isinstance(node.value, dict):
        one_of("none", "auto", "required")(node)
        return
    one_of("function", "custom", "allowed_tools")(node.need("type"))
    kind = node.value["type"]
    chosen = anything if kind == "allowed_tools" else record({"name": legal_name}, ("name",))
    record({"type": anything, kind: chosen}, (kind,))(node)


def _response_format(node: Node) -> None:
    one_of("text", "json_object", "json_schema")(node.need("type"))
    if node.value["type"] != "json_schema":
        record({"type": anything})(node)
        return
    schema = record(SCHEMA_FIELDS, ("name",))
    record({"type": anything, "json_schema": schema}, ("json_schema",))(node)
    strict_schema(node.child("json_schema"))


def _stop(node: Node) -> None:
    if isinstance(node.value, str):
        return
    each(text)(node)
    if len(node.value) > 4:
        node.refuse("too many stop sequences", "there are at most 4 stop sequences")


_tokens = nullable(integer(1))
_penalty = nullable(number(-2, 2))

_FIELDS: dict[str, Check] = {
    "model": legal(r"(?s).+", "model"),
    "audio": nullable(json_object),
    "frequency_penalty": _penalty,
    "function_call": anything,
    "functions": each(_function, 1),
    "logit_bias": nullable(record({}, extra=number(-100, 100))),
    "logprobs": nullable(flag),
    "max_completion_tokens": _tokens,
    "max_tokens": _tokens,
    "metadata": nullable(string_map),
    "modalities": nullable(each(one_of("text", "audio"), 1)),
    "moderation": nullable(json_object),
    "n": nullable(integer(1, 128)),
    "parallel_tool_calls": flag,
    "prediction": nullable(json_object),
    "presence_penalty": _penalty,
    "prompt_cache_key": nullable(text),
    "prompt_cache_options": json_object,
    "prompt_cache_retention": nullable(one_of("in_memory", "24h")),
    "reasoning_effort": nullable(effort),
    "response_format": _response_format,
    "safety_identifier": nullable(text),
    "seed": nullable(integer()),
    "service_tier": nullable(one_of("auto", "default", "flex", "scale", "priority", "fast")),
    "stop": nullable(_stop),
    "store": nullable(flag),
    "stream": nullable(flag),
    "stream_options": nullable(record({"include_usage": flag, "include_obfuscation": flag})),
    "temperature": nullable(number(0, 2)),
    "tool_choice": _tool_choice,
    "tools": each(_tool, 1),
    "top_logprobs": nullable(integer(0, 20)),
    "top_p": nullable(number(0, 1)),
    "user": text,
    "verbosity": nullable(one_of("low", "medium", "high")),
    "web_search_options": json_object,
}


def _belongs_together(body: Node) -> None:
    """Fields that make sense, or are allowed, only beside others."""
    fields = body.fields()
    if body.has("stream_options") and fields.get("stream") is not True:
        body.child("stream_options").refuse("no stream is asked for", "only with stream: true")
    if body.has("max_tokens") and body.has("max_completion_tokens"):
        body.child("max_tokens").refuse(
            "'max_tokens' and 'max_completion_tokens' are both set", "one of the two is set"
        )
    if body.has("top_logprobs") and fields.get("logprobs") is not True:
        body.child("top_logprobs").refuse("logprobs are off", "only with logprobs: true")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.has(name) and not body.has("tools"):
            body.child(name).refuse("no tools are offered", f"{name!r} needs 'tools'")
    _chosen_tool_exists(body)
    wanted = (fields.get("response_format") or {}).get("type")
    if wanted == "json_object" and "json" not in json.dumps(fields["messages"]).lower():
        rule = "with json_object, the messages contain the word 'json'"
        body.child("messages").refuse("the word 'json' is not in the messages", rule)


def _chosen_tool_exists(body: Node) -> None:
    choice = body.fields().get("tool_choice")
    if not isinstance(choice, dict) or choice["type"] == "allowed_tools":
        return
    kind = choice["type"]
    names = [tool.get(kind, {}).get("name") for tool in body.fields()["tools"]]
    if choice[kind]["name"] not in names:
        body.child("tool_choice").refuse(
            f"there is no tool {choice[kind]['name']!r}", "the tool chosen is one of 'tools'"
        )


def body_rules(
    reasoning: Mapping[str, Check], extra: Iterable[str]
) -> Callable[[Node], list[Node]]:
    """A check of whole requests that gives back their messages.

    ``reasoning`` are the fields a dialect adds to assistant messages, ``extra`` those it adds to
    the request itself.
    """
    roles = _message_rules(reasoning)
    fields = {"messages": anything, **_FIELDS, **dict.fromkeys(extra, anything)}
    shape = record(fields, ("model", "messages"))

    def check(body: Node) -> list[Node]:
        shape(body)
        messages = body.child("messages").items(1)
        for message in messages:
            one_of(*roles)(message.need("role"))
            roles[message.value["role"]](message)
        _every_call_answered(messages)
        _belongs_together(body)
        return messages

    return check
