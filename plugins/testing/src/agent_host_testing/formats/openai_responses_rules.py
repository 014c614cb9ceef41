"""What OpenAI's Responses accept: the shape of a request and of the items of its input.

Whether items are the ones that were handed out, and whether they are complete, is for the format to
say, which has the ledger.
"""

from __future__ import annotations

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

__all__ = ["check_body", "item_type"]

_call_id = legal(r"[a-zA-Z0-9_-]{1,64}", "call id")
_status = one_of("in_progress", "completed", "incomplete")
_detail = nullable(one_of("auto", "low", "high", "original"))


def _item_id(prefix: str) -> Check:
    return legal(rf"{prefix}_[a-zA-Z0-9_-]{{1,60}}", f"item id that begins with {prefix!r}")


_INPUT_PARTS: dict[str, Check] = {
    "input_text": record({"type": anything, "text": text}, ("text",)),
    "input_image": record(
        {
            "type": anything,
            "image_url": nullable(text),
            "file_id": nullable(text),
            "detail": _detail,
        }
    ),
    "input_file": record(
        {
            "type": anything,
            "file_data": nullable(text),
            "file_id": nullable(text),
            "file_url": nullable(text),
            "filename": nullable(text),
            "detail": _detail,
        }
    ),
    "input_audio": record({"type": anything, "input_audio": json_object}, ("input_audio",)),
}
_OUTPUT_PARTS: dict[str, Check] = {
    "output_text": record(
        {
            "type": anything,
            "text": text,
            "annotations": each(json_object),
            "logprobs": nullable(each(json_object)),
        },
        ("text",),
    ),
    "refusal": record({"type": anything, "refusal": text}, ("refusal",)),
}


def _message(node: Node) -> None:
    role = node.need("role")
    one_of("user", "assistant", "system", "developer")(role)
    by_model = role.value == "assistant"
    fields: dict[str, Check] = {
        "type": anything,
        "role": anything,
        "content": content(_OUTPUT_PARTS if by_model else _INPUT_PARTS),
        "status": _status,
    }
    if by_model:
        fields["id"] = _item_id("msg")
        fields["phase"] = nullable(one_of("commentary", "final_answer"))
    record(fields, ("content",))(node)


def _result(node: Node) -> None:
    fields = {
        "type": anything,
        "id": nullable(text),
        "call_id": _call_id,
        "output": content(_INPUT_PARTS),
        "status": nullable(_status),
    }
    record(fields, ("call_id", "output"))(node)


_ITEMS: dict[str, Check] = {
    "message": _message,
    "function_call": record(
        {
            "type": anything,
            "id": _item_id("fc"),
            "call_id": _call_id,
            "name": legal_name,
            "arguments": json_object_text,
            "status": _status,
        },
        ("call_id", "name", "arguments"),
    ),
    "function_call_output": _result,
    "custom_tool_call": record(
        {
            "type": anything,
            "id": _item_id("ctc"),
            "call_id": _call_id,
            "name": legal_name,
            "input": text,
            "status": _status,
        },
        ("call_id", "name", "input"),
    ),
    "custom_tool_call_output": _result,
    "reasoning": record(
        {
            "type": anything,
            "id": _item_id("rs"),
            "summary": each(
                record({"type": one_of("summary_text"), "text": text}, ("type", "text"))
            ),
            "content": nullable(each(json_object)),
            "encrypted_content": nullable(text),
            "status": _status,
        },
        ("id", "summary"),
    ),
    "item_reference": record({"type": anything, "id": text}, ("id",)),
    "image_generation_call": record({"id": _item_id("ig")}, ("id",), extra=anything),
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


def item_type(item: Node) -> str:
    """What an item is; a role is enough to be a message."""
    if "type" not in item.fields() and "role" in item.fields():
        return "message"
    kind = item.need("type")
    one_of(*_ITEMS, *_HOSTED_ITEMS)(kind)
    return str(kind.value)


def _item(node: Node) -> None:
    _ITEMS.get(item_type(node), anything)(node)


def _input(node: Node) -> None:
    if isinstance(node.value, list):
        each(_item)(node)
    else:
        text(node)


def _tool(node: Node) -> None:
    kind = node.need("type")
    one_of("function", "custom", *_HOSTED_TOOLS)(kind)
    if kind.value == "function":
        record({"type": anything, **FUNCTION_FIELDS}, ("name",))(node)
        strict_schema(node)
    elif kind.value == "custom":
        fields = {"name": legal_name, "description": text, "format": custom_format}
        record({"type": anything, **fields}, ("name",))(node)


def _tool_choice(node: Node) -> None:
    if not isinstance(node.value, dict):
        one_of("none", "auto", "required")(node)
        return
    kind = node.need("type")
    one_of("function", "custom", "allowed_tools", *_HOSTED_TOOLS)(kind)
    if kind.value in ("function", "custom"):
        record({"type": anything, "name": legal_name}, ("name",))(node)


def _format(node: Node) -> None:
    kind = node.need("type")
    one_of("text", "json_object", "json_schema")(kind)
    if kind.value == "json_schema":
        record({"type": anything, **SCHEMA_FIELDS}, ("name", "schema"))(node)
        strict_schema(node)
    else:
        record({"type": anything})(node)


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
_summary = nullable(one_of("auto", "concise", "detailed"))
_REASONING = record(
    {
        "effort": nullable(effort),
        "summary": _summary,
        "generate_summary": _summary,
        "context": nullable(text),
    }
)

_BODY = record(
    {
        "model": legal(r"(?s).+", "model"),
        "input": _input,
        "background": nullable(flag),
        "context_management": nullable(each(json_object)),
        "conversation": anything,
        "include": nullable(each(one_of(*_INCLUDABLE))),
        "instructions": nullable(text),
        "max_output_tokens": nullable(integer(16)),
        "max_tool_calls": nullable(integer(1)),
        "metadata": nullable(string_map),
        "moderation": nullable(json_object),
        "parallel_tool_calls": nullable(flag),
        "previous_response_id": nullable(text),
        "prompt": nullable(json_object),
        "prompt_cache_key": nullable(text),
        "prompt_cache_options": json_object,
        "prompt_cache_retention": nullable(one_of("in_memory", "24h")),
        "reasoning": nullable(_REASONING),
        "safety_identifier": nullable(text),
        "service_tier": nullable(one_of("auto", "default", "flex", "scale", "priority", "fast")),
        "store": nullable(flag),
        "stream": nullable(flag),
        "stream_options": nullable(record({"include_obfuscation": flag})),
        "temperature": nullable(number(0, 2)),
        "text": record({"format": _format, "verbosity": nullable(one_of("low", "medium", "high"))}),
        "tool_choice": _tool_choice,
        "tools": each(_tool),
        "top_logprobs": nullable(integer(0, 20)),
        "top_p": nullable(number(0, 1)),
        "truncation": nullable(one_of("auto", "disabled")),
        "user": text,
    },
    ("model",),
)


def check_body(body: Node) -> list[Node]:
    """The items of the input of a request that is in shape; text alone has none."""
    _BODY(body)
    if not any(map(body.has, ("input", "previous_response_id", "prompt", "conversation"))):
        body.need("input")
    if body.has("stream_options") and body.value.get("stream") is not True:
        body.child("stream_options").refuse("no stream is asked for", "only with stream: true")
    given = body.child("input")
    return given.items() if isinstance(given.value, list) else []
