"""What OpenAI's chat completions accept: the shape of a request and the order of its messages.

Answers are rendered elsewhere. Dialects that show reasoning add fields, which `body_rules` is told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from agent_host_testing.formats.checks import Check, Node, legal, one_of, results_match
from agent_host_testing.formats.openai_api import (
    COMMON_FIELDS,
    EFFORTS,
    FUNCTION_FIELDS,
    SCHEMA_FIELDS,
    STREAM_NEEDS,
    check_needs,
    custom_format,
    legal_name,
    strict_schema,
)
from agent_host_testing.formats.tables import Table, compile_rule, some, text_or, variants

__all__ = ["body_rules", "call_ids"]

_call_id = legal(r"[a-zA-Z0-9_-]{1,64}", "tool call id")


# Messages

_PARTS: dict[str, Table] = {
    "text": {"text!": "text", "cache_control": "object"},
    "refusal": {"refusal!": "text"},
    "image_url": {"image_url!": {"url!": "text", "detail?": ("auto", "low", "high", "original")}},
    "input_audio": {"input_audio!": {"data!": "text", "format!": ("wav", "mp3")}},
    "file": {"file!": {"file_data": "text", "file_id": "text", "filename": "text"}},
}


def _content(*kinds: str) -> Check:
    """A string, or an array of parts of these kinds."""
    return text_or(some(variants("type", {kind: _PARTS[kind] for kind in kinds})))


_CALL = variants(
    "type",
    {
        "function": {
            "id!": _call_id,
            "function!": {"name!": legal_name, "arguments!": "object text"},
        },
        "custom": {"id!": _call_id, "custom!": {"name!": legal_name, "input!": "text"}},
    },
)
_SPEECH: Table = {"content!": _content("text"), "name": "text"}
_ASSISTANT: Table = {
    "role": "any",
    "content?": _content("text", "refusal"),
    "refusal?": "text",
    "name": "text",
    "tool_calls": some(_CALL),
    "function_call?": {"name!": legal_name, "arguments!": "text"},
    "audio?": {"id": "text", "*": "any"},
    "annotations?": ["object"],
}
_ROLES: dict[str, Table] = {
    "system": _SPEECH,
    "developer": _SPEECH,
    "user": {**_SPEECH, "content!": _content("text", "image_url", "input_audio", "file")},
    "tool": {"content!": _content("text"), "tool_call_id!": _call_id},
    "function": {"name!": legal_name, "content?": "text"},
}


def _assistant(reasoning: Table) -> Check:
    shape = compile_rule({**_ASSISTANT, **reasoning})

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


# Tools

_FUNCTION = compile_rule(FUNCTION_FIELDS)
_SCHEMA = compile_rule(SCHEMA_FIELDS)


def _function(node: Node) -> None:
    _FUNCTION(node)
    strict_schema(node)


def _schema(node: Node) -> None:
    _SCHEMA(node)
    strict_schema(node)


_TOOL = variants(
    "type",
    {
        "function": {"function!": _function},
        "custom": {
            "custom!": {"name!": legal_name, "description": "text", "format": custom_format}
        },
    },
)
_NAMED: Table = {"name!": legal_name}
_CHOICE = variants(
    "type",
    {
        "function": {"function!": _NAMED},
        "custom": {"custom!": _NAMED},
        "allowed_tools": {"allowed_tools!": "any"},
    },
)
_mode = one_of("none", "auto", "required")


def _tool_choice(node: Node) -> None:
    (_CHOICE if isinstance(node.value, dict) else _mode)(node)


# Everything


def _few(node: Node) -> None:
    if len(node.items()) > 4:
        node.refuse("too many stop sequences", "there are at most 4 stop sequences")
    _STOPS(node)


_STOPS = compile_rule(["text"])
_FIELDS: Table = {
    **COMMON_FIELDS,
    "audio?": "object",
    "frequency_penalty?": "number -2..2",
    "function_call": "any",
    "functions": some(_function),
    "logit_bias?": {"*": "number -100..100"},
    "logprobs?": "flag",
    "max_completion_tokens?": "integer 1..",
    "max_tokens?": "integer 1..",
    "modalities?": some(("text", "audio")),
    "n?": "integer 1..128",
    "parallel_tool_calls": "flag",
    "prediction?": "object",
    "presence_penalty?": "number -2..2",
    "reasoning_effort?": EFFORTS,
    "response_format": variants(
        "type", {"text": {}, "json_object": {}, "json_schema": {"json_schema!": _schema}}
    ),
    "seed?": "integer",
    "stop?": text_or(_few),
    "stream_options?": {"include_usage": "flag", "include_obfuscation": "flag"},
    "tool_choice": _tool_choice,
    "tools": some(_TOOL),
    "verbosity?": ("low", "medium", "high"),
    "web_search_options": "object",
}
_NEEDS = (
    STREAM_NEEDS,
    ("top_logprobs", "logprobs", True, "logprobs are off", "only with logprobs: true"),
    ("tool_choice", "tools", None, "no tools are offered", "'tool_choice' needs 'tools'"),
    (
        "parallel_tool_calls",
        "tools",
        None,
        "no tools are offered",
        "'parallel_tool_calls' needs 'tools'",
    ),
)


def _belongs_together(body: Node) -> None:
    """Fields that make sense, or are allowed, only beside others."""
    check_needs(body, _NEEDS)
    if body.has("max_tokens") and body.has("max_completion_tokens"):
        body.child("max_tokens").refuse(
            "'max_tokens' and 'max_completion_tokens' are both set", "one of the two is set"
        )
    _chosen_tool_exists(body)
    fields = body.fields()
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


def body_rules(reasoning: Table, extra: Iterable[str]) -> Callable[[Node], list[Node]]:
    """A check of whole requests that gives back their messages.

    ``reasoning`` are the fields a dialect adds to assistant messages, ``extra`` those it adds to
    the request itself.
    """
    message = variants("role", {**_ROLES, "assistant": _assistant(reasoning)})
    more: Table = dict.fromkeys(extra, "any")
    shape = compile_rule({**_FIELDS, "messages!": some(message), **more})

    def check(body: Node) -> list[Node]:
        shape(body)
        messages = body.child("messages").items()
        _every_call_answered(messages)
        _belongs_together(body)
        return messages

    return check
