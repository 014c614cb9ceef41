"""What OpenAI's Responses accept: the shape of a request and of the items of its input.

Whether items are the ones that were handed out, and whether they are complete, is for the format to
say, which has the ledger.
"""

from __future__ import annotations

from agent_host_testing.formats.checks import Check, Node, legal, one_of
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
from agent_host_testing.formats.tables import Rule, Table, compile_rule, text_or, variants

__all__ = ["check_body", "item_type"]

_call_id = legal(r"[a-zA-Z0-9_-]{1,64}", "call id")
_STATUS = ("in_progress", "completed", "incomplete")


def _item_id(prefix: str) -> Check:
    return legal(rf"{prefix}_[a-zA-Z0-9_-]{{1,60}}", f"item id that begins with {prefix!r}")


# Items

_DETAIL: Table = {"detail?": ("auto", "low", "high", "original")}
_heard = text_or(
    [
        variants(
            "type",
            {
                "input_text": {"text!": "text"},
                "input_image": {"image_url?": "text", "file_id?": "text", **_DETAIL},
                "input_file": {
                    "file_data?": "text",
                    "file_id?": "text",
                    "file_url?": "text",
                    "filename?": "text",
                    **_DETAIL,
                },
                "input_audio": {"input_audio!": "object"},
            },
        )
    ]
)
_said = text_or(
    [
        variants(
            "type",
            {
                "output_text": {
                    "text!": "text",
                    "annotations": ["object"],
                    "logprobs?": ["object"],
                },
                "refusal": {"refusal!": "text"},
            },
        )
    ]
)
_HEARD: Table = {"type": "any", "content!": _heard, "status": _STATUS}
_MESSAGE = variants(
    "role",
    {
        "user": _HEARD,
        "assistant": {
            "type": "any",
            "id": _item_id("msg"),
            "content!": _said,
            "phase?": ("commentary", "final_answer"),
            "status": _STATUS,
        },
        "system": _HEARD,
        "developer": _HEARD,
    },
)
_CALL: Table = {"type": "any", "call_id!": _call_id, "name!": legal_name, "status": _STATUS}
_RESULT: Table = {
    "type": "any",
    "id?": "text",
    "call_id!": _call_id,
    "output!": _heard,
    "status?": _STATUS,
}
_TABLES: dict[str, Rule] = {
    "message": _MESSAGE,
    "function_call": {**_CALL, "id": _item_id("fc"), "arguments!": "object text"},
    "function_call_output": _RESULT,
    "custom_tool_call": {**_CALL, "id": _item_id("ctc"), "input!": "text"},
    "custom_tool_call_output": _RESULT,
    "reasoning": {
        "type": "any",
        "id!": _item_id("rs"),
        "summary!": [{"type!": ("summary_text",), "text!": "text"}],
        "content?": ["object"],
        "encrypted_content?": "text",
        "status": _STATUS,
    },
    "item_reference": {"type": "any", "id!": "text"},
    "image_generation_call": {"id!": _item_id("ig"), "*": "any"},
}
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
_ITEMS = {
    **{kind: compile_rule(rule) for kind, rule in _TABLES.items()},
    **{kind: compile_rule("any") for kind in _HOSTED_ITEMS},
}


def item_type(item: Node) -> str:
    """What an item is; a role is enough to be a message."""
    if "type" not in item.fields() and "role" in item.fields():
        return "message"
    kind = item.need("type")
    one_of(*_ITEMS)(kind)
    return str(kind.value)


def _item(node: Node) -> None:
    _ITEMS[item_type(node)](node)


# Tools

_HOSTED_TOOLS = (
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
)
_HOSTED: dict[str, Rule] = dict.fromkeys(_HOSTED_TOOLS, "any")
_NAMED: Table = {"name!": legal_name}
_FUNCTION = compile_rule({"type": "any", **FUNCTION_FIELDS})
_SCHEMA = compile_rule({"type": "any", **SCHEMA_FIELDS, "schema!": "object"})


def _function(node: Node) -> None:
    _FUNCTION(node)
    strict_schema(node)


def _schema(node: Node) -> None:
    _SCHEMA(node)
    strict_schema(node)


_TOOL = variants(
    "type",
    {
        "function": _function,
        "custom": {**_NAMED, "description": "text", "format": custom_format},
        **_HOSTED,
    },
)
_CHOICE = variants(
    "type", {"function": _NAMED, "custom": _NAMED, "allowed_tools": "any", **_HOSTED}
)
_mode = one_of("none", "auto", "required")


def _tool_choice(node: Node) -> None:
    (_CHOICE if isinstance(node.value, dict) else _mode)(node)


# Everything

_INCLUDABLE = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
)
_SUMMARY = ("auto", "concise", "detailed")
_BODY = compile_rule(
    {
        **COMMON_FIELDS,
        "input": text_or([_item]),
        "background?": "flag",
        "context_management?": ["object"],
        "conversation": "any",
        "include?": [_INCLUDABLE],
        "instructions?": "text",
        "max_output_tokens?": "integer 16..",
        "max_tool_calls?": "integer 1..",
        "parallel_tool_calls?": "flag",
        "previous_response_id?": "text",
        "prompt?": "object",
        "reasoning?": {
            "effort?": EFFORTS,
            "summary?": _SUMMARY,
            "generate_summary?": _SUMMARY,
            "context?": "text",
        },
        "stream_options?": {"include_obfuscation": "flag"},
        "text": {
            "format": variants("type", {"text": {}, "json_object": {}, "json_schema": _schema}),
            "verbosity?": ("low", "medium", "high"),
        },
        "tool_choice": _tool_choice,
        "tools": [_TOOL],
        "truncation?": ("auto", "disabled"),
    }
)


def check_body(body: Node) -> list[Node]:
    """The items of the input of a request that is in shape; text alone has none."""
    _BODY(body)
    if not any(map(body.has, ("input", "previous_response_id", "prompt", "conversation"))):
        body.need("input")
    check_needs(body, (STREAM_NEEDS,))
    given = body.child("input")
    return given.items() if isinstance(given.value, list) else []
