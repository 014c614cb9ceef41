"""What OpenAI's chat completions accept: the shape of a request and the order of its messages.

The fields are in ``rules/openai_chat.json``; here is what no table can say. Answers are rendered
elsewhere. Dialects that show reasoning add fields, which `body_rules` is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent_host_testing.formats.checks import Check, Node, one_of, results_match, text
from agent_host_testing.formats.notation import Rules
from agent_host_testing.formats.openai_api import API_FUNCTIONS, API_RULES, strict_schema
from agent_host_testing.script import Call

__all__ = ["body_rules", "call_ids", "calls_of"]


def body_rules(reasoning: Mapping[str, Any], extra: Iterable[str]) -> Callable[[Node], list[Node]]:
    """A check of whole requests that gives back their messages.

    ``reasoning`` are the fields a dialect adds to assistant messages, ``extra`` those it adds to
    the request itself.
    """

    def assistant(node: Node) -> None:
        fields(node)
        if not any(map(node.has, ("content", "refusal", "tool_calls", "function_call", "audio"))):
            rule = "an assistant message has content, unless it calls tools or refuses"
            node.child("content").refuse("expected a string, got null", rule)

    def tool_choice(node: Node) -> None:
        (rules["chosen tool"] if isinstance(node.value, dict) else _mode)(node)

    def check(body: Node) -> list[Node]:
        shape(body)
        messages = body.child("messages").items()
        _every_call_answered(messages)
        rules.check_needs(body)
        _belongs_together(body)
        return messages

    functions = {**_FUNCTIONS, "assistant": assistant, "tool choice": tool_choice}
    rules = Rules("openai_chat", functions)
    fields = rules.compile({"&": "assistant fields", **reasoning})
    shape = rules.compile({"&": "body", **dict.fromkeys(extra, "any")})
    return check


def call_ids(message: Node) -> list[Node]:
    """The ids of the calls in a message."""
    if not message.has("tool_calls"):
        return []
    return [call.child("id") for call in message.child("tool_calls").items()]


def calls_of(message: Node) -> list[tuple[Node, Call]]:
    """The calls in a message, each with its place."""
    made = message.child("tool_calls").items() if message.has("tool_calls") else []
    return [(node, _call(node.value)) for node in made]


def _call(made: dict[str, Any]) -> Call:
    inner = made.get("function") or made["custom"]
    return Call(inner["name"], inner.get("arguments", inner.get("input")), made["id"])


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


def _function(node: Node) -> None:
    API_RULES["function fields"](node)
    strict_schema(node)


def _schema(node: Node) -> None:
    API_RULES["schema fields"](node)
    strict_schema(node)


def _few_stops(node: Node) -> None:
    stops = node.items()
    for stop in stops:
        text(stop)
    if len(stops) > 4:
        node.refuse("too many stop sequences", "there are at most 4 stop sequences")


_mode = one_of("none", "auto", "required")
_FUNCTIONS: dict[str, Check] = {
    **API_FUNCTIONS,
    "function": _function,
    "schema": _schema,
    "few stops": _few_stops,
}


def _belongs_together(body: Node) -> None:
    """Fields that make sense, or are allowed, only beside others."""
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
