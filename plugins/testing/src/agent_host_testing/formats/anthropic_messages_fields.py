"""The fields of a request to Anthropic's Messages API, block by block, and what each may hold.

What the messages have to be to each other is in `anthropic_messages_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_host_testing.formats.checks import (
    Check,
    Node,
    anything,
    each,
    flag,
    integer,
    json_object,
    legal,
    nullable,
    number,
    one_of,
    record,
    text,
    unique,
)
from agent_host_testing.wire import Request

__all__ = ["body_fields", "content_blocks"]

_identifier = legal(r"[a-zA-Z0-9_-]+", "id")
_tool_name = legal(r"[a-zA-Z0-9_-]{1,128}", "tool name")
_cache_control = nullable(
    record({"type": one_of("ephemeral"), "ttl": one_of("5m", "1h")}, ("type",))
)


def _solid_text(node: Node) -> None:
    if not text(node).strip():
        node.refuse(
            "text content blocks must contain non-whitespace text", "a text block says something"
        )


def _variants(field: str, variants: Mapping[str, Check]) -> Check:
    """An object whose ``field`` says which of the checks it has to pass."""

    def check(node: Node) -> None:
        kind = node.need(field)
        one_of(*variants)(kind)
        variants[kind.value](node)

    return check


def _block(fields: Mapping[str, Check], required: Sequence[str], *, cached: bool = True) -> Check:
    known: dict[str, Check] = {"type": text, **fields}
    if cached:
        known["cache_control"] = _cache_control
    return record(known, required)


_image_source = _variants(
    "type",
    {
        "base64": record(
            {
                "type": text,
                "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
                "data": text,
            },
            ("media_type", "data"),
        ),
        "url": record({"type": text, "url": text}, ("url",)),
        "file": record({"type": text, "file_id": text}, ("file_id",)),
    },
)
_document_source = _variants(
    "type",
    {
        "base64": record(
            {"type": text, "media_type": one_of("application/pdf"), "data": text},
            ("media_type", "data"),
        ),
        "text": record(
            {"type": text, "media_type": one_of("text/plain"), "data": text},
            ("media_type", "data"),
        ),
        "content": record({"type": text, "content": anything}, ("content",)),
        "url": record({"type": text, "url": text}, ("url",)),
        "file": record({"type": text, "file_id": text}, ("file_id",)),
    },
)
_citations = nullable(record({"enabled": flag}))

_TEXT_BLOCK = _block({"text": _solid_text, "citations": nullable(each(json_object))}, ("text",))
_IMAGE_BLOCK = _block({"source": _image_source}, ("source",))
_DOCUMENT_BLOCK = _block(
    {
        "source": _document_source,
        "title": nullable(text),
        "context": nullable(text),
        "citations": _citations,
    },
    ("source",),
)
_SEARCH_RESULT = _block(
    {"source": text, "title": text, "content": each(_TEXT_BLOCK), "citations": _citations},
    ("source", "title", "content"),
)
_RESULT_CONTENT = _variants(
    "type",
    {
        "text": _TEXT_BLOCK,
        "image": _IMAGE_BLOCK,
        "document": _DOCUMENT_BLOCK,
        "search_result": _SEARCH_RESULT,
        "tool_reference": _block({"tool_name": text}, ("tool_name",)),
    },
)


def _result_content(node: Node) -> None:
    if not isinstance(node.value, str):
        each(_RESULT_CONTENT)(node)


def _called_name(node: Node) -> None:
    if not 1 <= len(text(node)) <= 200:
        node.refuse("the name has a wrong length", "a called tool's name has 1 to 200 characters")


_SERVER_RESULT = _block(
    {"tool_use_id": _identifier, "content": anything, "caller": json_object},
    ("tool_use_id", "content"),
)
_USER_BLOCKS: dict[str, Check] = {
    "text": _TEXT_BLOCK,
    "image": _IMAGE_BLOCK,
    "document": _DOCUMENT_BLOCK,
    "search_result": _SEARCH_RESULT,
    "container_upload": _block({"file_id": text}, ("file_id",)),
    "tool_result": _block(
        {
            "tool_use_id": _identifier,
            "content": _result_content,
            "is_error": flag,
            "toolset_name": nullable(text),
        },
        ("tool_use_id",),
    ),
}
_ASSISTANT_BLOCKS: dict[str, Check] = {
    "text": _TEXT_BLOCK,
    "thinking": _block(
        {"thinking": text, "signature": text}, ("thinking", "signature"), cached=False
    ),
    "redacted_thinking": _block({"data": text}, ("data",), cached=False),
    "tool_use": _block(
        {
            "id": _identifier,
            "name": _called_name,
            "input": json_object,
            "caller": json_object,
            "toolset_name": nullable(text),
        },
        ("id", "name", "input"),
    ),
    "server_tool_use": _block(
        {"id": _identifier, "name": text, "input": json_object, "caller": json_object},
        ("id", "name", "input"),
    ),
    **{
        f"{kind}_tool_result": _SERVER_RESULT
        for kind in (
            "web_search",
            "web_fetch",
            "code_execution",
            "bash_code_execution",
            "text_editor_code_execution",
            "tool_search",
        )
    },
}
_CONTENT = {
    "user": _variants("type", _USER_BLOCKS),
    "assistant": _variants("type", _ASSISTANT_BLOCKS),
}


def _message(node: Node) -> None:
    role = node.need("role")
    if role.value == "system":
        role.refuse(
            'messages: Unexpected role "system"', "the system prompt is the top-level field system"
        )
    one_of(*_CONTENT)(role)
    record({"role": text, "content": anything}, ("content",))(node)
    for block in content_blocks(node):
        _CONTENT[role.value](block)


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


def _system(node: Node) -> None:
    if not isinstance(node.value, str):
        each(_variants("type", {"text": _TEXT_BLOCK}))(node)


_CUSTOM_TOOL = record(
    {
        "type": nullable(one_of("custom")),
        "name": _tool_name,
        "description": text,
        "input_schema": record({"type": one_of("object")}, ("type",), extra=anything),
        "cache_control": _cache_control,
        "strict": flag,
        "defer_loading": flag,
        "allowed_callers": each(text),
        "input_examples": each(json_object),
        "eager_input_streaming": nullable(flag),
    },
    ("name", "input_schema"),
)
_SERVER_TOOL = record(
    {"type": legal(r"[a-z_]+_\d{8}", "tool type"), "name": text, "cache_control": _cache_control},
    ("type", "name"),
    extra=anything,
)


def _tools(node: Node) -> None:
    tools = node.items()
    for tool in tools:
        custom = tool.child("type").value in (None, "custom")
        (_CUSTOM_TOOL if custom else _SERVER_TOOL)(tool)
    unique([tool.child("name") for tool in tools], "tool name")


_display = nullable(one_of("summarized", "omitted"))
_THINKING_CONFIG = _variants(
    "type",
    {
        "enabled": record(
            {"type": text, "budget_tokens": integer(1024), "display": _display}, ("budget_tokens",)
        ),
        "adaptive": record({"type": text, "display": _display}),
        "between_tools": record({"type": text}),
        "disabled": record({"type": text}),
    },
)
_choice = record({"type": text, "disable_parallel_tool_use": flag})
_TOOL_CHOICE = _variants(
    "type",
    {
        "auto": _choice,
        "any": _choice,
        "none": record({"type": text}),
        "tool": record({"type": text, "name": text, "disable_parallel_tool_use": flag}, ("name",)),
    },
)
_OUTPUT_CONFIG = record(
    {
        "effort": nullable(one_of("low", "medium", "high", "xhigh", "max")),
        "format": nullable(
            record({"type": one_of("json_schema"), "schema": json_object}, ("type", "schema"))
        ),
    }
)
_FIELDS: dict[str, Check] = {
    "model": legal(r".+", "model"),
    "max_tokens": integer(1),
    "messages": _messages,
    "system": _system,
    "tools": _tools,
    "tool_choice": _TOOL_CHOICE,
    "thinking": _THINKING_CONFIG,
    "output_config": _OUTPUT_CONFIG,
    "stream": flag,
    "stop_sequences": each(_solid_text),
    "temperature": number(0, 1),
    "top_p": number(0, 1),
    "top_k": integer(0),
    "metadata": record({"user_id": nullable(text)}),
    "service_tier": one_of("auto", "standard_only"),
    "container": anything,
    "inference_geo": nullable(text),
    "cache_control": _cache_control,
}
#: What the API knows only under an ``anthropic-beta`` header.
_BETA_FIELDS: dict[str, Check] = {
    "context_management": nullable(json_object),
    "mcp_servers": each(json_object),
    "output_format": nullable(json_object),
    "speed": nullable(one_of("standard", "fast")),
}


def body_fields(request: Request) -> Check:
    """What the body of this request may hold."""
    beta = _BETA_FIELDS if request.header("anthropic-beta") else {}
    return record({**_FIELDS, **beta}, ("model", "max_tokens", "messages"))
