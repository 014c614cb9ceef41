"""The fields of a request to Anthropic's Messages API, block by block, and what each may hold.

They are in ``rules/anthropic_messages.json``; here is what no table can say. What the messages have
to be to each other is in `anthropic_messages_rules`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_host_testing.formats.checks import Check, Node, one_of, text, unique
from agent_host_testing.formats.notation import Rules
from agent_host_testing.wire import Request

__all__ = ["body_fields", "content_blocks"]


def body_fields(request: Request) -> Check:
    """What the body of this request may hold; some is known only under ``anthropic-beta``."""
    return _RULES["beta body" if request.header("anthropic-beta") else "body"]


def _solid_text(node: Node) -> None:
    if not text(node).strip():
        node.refuse(
            "text content blocks must contain non-whitespace text", "a text block says something"
        )


def _called_name(node: Node) -> None:
    if not 1 <= len(text(node)) <= 200:
        node.refuse("the name has a wrong length", "a called tool's name has 1 to 200 characters")


def _message(node: Node) -> None:
    role = node.need("role")
    if role.value == "system":
        role.refuse(
            'messages: Unexpected role "system"', "the system prompt is the top-level field system"
        )
    one_of("user", "assistant")(role)
    _RULES["message"](node)
    for block in content_blocks(node):
        _RULES[role.value](block)


def content_blocks(message: Node) -> list[Node]:
    """The blocks of a message; words alone are one of them."""
    content = message.child("content")
    if isinstance(content.value, str):
        words = {"type": "text", "text": content.value}
        return [Node(words, content.place)] if content.value else []
    return content.items()


def _messages(node: Node) -> None:
    messages = node.items(least=1)
    for position, message in enumerate(messages):
        _message(message)
        may_be_empty = message is messages[-1] and message.value["role"] == "assistant"
        if not content_blocks(message) and not may_be_empty:
            message.child("content").refuse(
                "all messages must have non-empty content",
                "only the last message may be empty, if it is the assistant's",
            )
        if position == 0 and message.value["role"] != "user":
            message.child("role").refuse(
                'first message must use the "user" role', "a conversation begins with the user"
            )
    _no_trailing_space(messages[-1])


def _no_trailing_space(message: Node) -> None:
    blocks = content_blocks(message)
    if message.value["role"] != "assistant" or not blocks or blocks[-1].value["type"] != "text":
        return
    words = blocks[-1].value["text"]
    if words != words.rstrip():
        blocks[-1].refuse(
            "final assistant content cannot end with trailing whitespace",
            "an answer that the model is to continue ends in no space",
        )


def _tools(node: Node) -> None:
    tools = node.items()
    for tool in tools:
        _RULES[_kind_of_tool(tool.child("type").value)](tool)
    unique([tool.child("name") for tool in tools], "tool name")
    _deferred_tools(node, tools)


def _kind_of_tool(given: object) -> str:
    if given in (None, "custom"):
        return "custom tool"
    is_search = str(given).startswith("tool_search_tool_")
    return "tool search" if is_search else "server tool"


def _deferred_tools(node: Node, tools: Sequence[Node]) -> None:
    deferred = [tool for tool in tools if tool.child("defer_loading").value is True]
    if deferred and len(deferred) == len(tools):
        node.refuse(
            "All tools have defer_loading set. At least one tool must be non-deferred.",
            "one tool is there from the beginning, such as the search",
        )
    for tool in deferred:
        for name in ("cache_control", "input_examples"):
            if tool.has(name):
                tool.child(name).refuse(
                    f"Tools with defer_loading cannot use {name}",
                    "a deferred tool is no part of what a cache keeps, and has no examples",
                )


_RULES = Rules(
    "anthropic_messages",
    {
        "solid text": _solid_text,
        "called name": _called_name,
        "messages": _messages,
        "tools": _tools,
    },
)
