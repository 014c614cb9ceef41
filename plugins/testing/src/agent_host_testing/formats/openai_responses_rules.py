"""What OpenAI's Responses accept: the shape of a request and of the items of its input.

The fields are in ``rules/openai_responses.json``; here is what no table can say. Whether items are
the ones that were handed out, and whether they are complete, is for the format to say, which has
the ledger.
"""

from __future__ import annotations

from agent_host_testing.formats.checks import Node, anything, one_of
from agent_host_testing.formats.deferred import callable_tools
from agent_host_testing.formats.notation import Rules
from agent_host_testing.formats.openai_api import API_FUNCTIONS, strict_schema

__all__ = ["check_body", "item_type"]

#: Items that have a rule of their name.
_OWN_ITEMS = (
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "item_reference",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
)
#: Items of tools that the vendor runs; what is in them is between it and itself.
_HOSTED_ITEMS = (
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
    "web_search_call",
)


def check_body(body: Node) -> list[Node]:
    """The items of the input of a request that is in shape; text alone has none."""
    _RULES["body"](body)
    if not any(map(body.has, ("input", "previous_response_id", "prompt", "conversation"))):
        body.need("input")
    _RULES.check_needs(body)
    _check_deferred(body)
    given = body.child("input")
    return given.items() if isinstance(given.value, list) else []


def _check_deferred(body: Node) -> None:
    tools = body.child("tools").value or ()
    if any(tool["type"] == "tool_search" for tool in tools):
        return
    if any(tool.get("defer_loading") for tool in callable_tools(body.value)):
        body.child("tools").refuse(
            "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
            "deferred tools come with the search that finds them",
        )


def item_type(item: Node) -> str:
    """What an item is; a role is enough to be a message."""
    if "type" not in item.fields() and "role" in item.fields():
        return "message"
    kind = item.need("type")
    one_of(*_OWN_ITEMS, *_HOSTED_ITEMS)(kind)
    return str(kind.value)


def _item(node: Node) -> None:
    kind = item_type(node)
    (_RULES[kind] if kind in _OWN_ITEMS else anything)(node)


def _function(node: Node) -> None:
    _RULES["function declaration"](node)
    strict_schema(node)


def _schema(node: Node) -> None:
    _RULES["schema declaration"](node)
    strict_schema(node)


def _tool_choice(node: Node) -> None:
    (_RULES["chosen tool"] if isinstance(node.value, dict) else _mode)(node)


_mode = one_of("none", "auto", "required")
_RULES = Rules(
    "openai_responses",
    {
        **API_FUNCTIONS,
        "item": _item,
        "function": _function,
        "schema": _schema,
        "tool choice": _tool_choice,
    },
)
