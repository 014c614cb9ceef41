"""The fields of a request to Anthropic's Messages API, block by block, and what each may hold.

What the messages have to be to each other is in `anthropic_messages_rules`.
"""

from __future__ import annotations

from agent_host_testing.formats.checks import Check, Node, legal, one_of, text, unique
from agent_host_testing.formats.tables import Rule, Table, compile_rule, text_or, variants
from agent_host_testing.wire import Request

__all__ = ["body_fields", "content_blocks"]

_identifier = legal(r"[a-zA-Z0-9_-]+", "id")


def _solid_text(node: Node) -> None:
    if not text(node).strip():
        node.refuse(
            "text content blocks must contain non-whitespace text", "a text block says something"
        )


def _called_name(node: Node) -> None:
    if not 1 <= len(text(node)) <= 200:
        node.refuse("the name has a wrong length", "a called tool's name has 1 to 200 characters")


# Blocks

_CACHED: Table = {"cache_control?": {"type!": ("ephemeral",), "ttl": ("5m", "1h")}}
_URL: Table = {"url!": "text"}
_FILE: Table = {"file_id!": "text"}
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE_SOURCE = variants(
    "type",
    {"base64": {"media_type!": _PICTURES, "data!": "text"}, "url": _URL, "file": _FILE},
)
_DOCUMENT_SOURCE = variants(
    "type",
    {
        "base64": {"media_type!": ("application/pdf",), "data!": "text"},
        "text": {"media_type!": ("text/plain",), "data!": "text"},
        "content": {"content!": "any"},
        "url": _URL,
        "file": _FILE,
    },
)
_CITATIONS: Table = {"enabled": "flag"}
_TEXT: Table = {"text!": _solid_text, "citations?": ["object"], **_CACHED}
_SAID: dict[str, Rule] = {
    "text": _TEXT,
    "image": {"source!": _IMAGE_SOURCE, **_CACHED},
    "document": {
        "source!": _DOCUMENT_SOURCE,
        "title?": "text",
        "context?": "text",
        "citations?": _CITATIONS,
        **_CACHED,
    },
    "search_result": {
        "source!": "text",
        "title!": "text",
        "content!": [{"type": "text", **_TEXT}],
        "citations?": _CITATIONS,
        **_CACHED,
    },
}
_RESULT_CONTENT = variants("type", {**_SAID, "tool_reference": {"tool_name!": "text", **_CACHED}})
_CALL: Table = {"id!": _identifier, "input!": "object", "caller": "object", **_CACHED}
_SERVER_RESULT: Table = {
    "tool_use_id!": _identifier,
    "content!": "any",
    "caller": "object",
    **_CACHED,
}
_SERVER_TOOLS = (
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
)
_CONTENT = {
    "user": variants(
        "type",
        {
            **_SAID,
            "container_upload": {**_FILE, **_CACHED},
            "tool_result": {
                "tool_use_id!": _identifier,
                "content": text_or([_RESULT_CONTENT]),
                "is_error": "flag",
                "toolset_name?": "text",
                **_CACHED,
            },
        },
    ),
    "assistant": variants(
        "type",
        {
            "text": _TEXT,
            "thinking": {"thinking!": "text", "signature!": "text"},
            "redacted_thinking": {"data!": "text"},
            "tool_use": {**_CALL, "name!": _called_name, "toolset_name?": "text"},
            "server_tool_use": {**_CALL, "name!": "text"},
            **{f"{tool}_tool_result": _SERVER_RESULT for tool in _SERVER_TOOLS},
        },
    ),
}


# Messages

_MESSAGE = compile_rule({"role": "text", "content!": "any"})


def _message(node: Node) -> None:
    role = node.need("role")
    if role.value == "system":
        role.refuse(
            'messages: Unexpected role "system"', "the system prompt is the top-level field system"
        )
    one_of(*_CONTENT)(role)
    _MESSAGE(node)
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


# Tools

_CUSTOM_TOOL = compile_rule(
    {
        "type?": ("custom",),
        "name!": legal(r"[a-zA-Z0-9_-]{1,128}", "tool name"),
        "description": "text",
        "input_schema!": {"type!": ("object",), "*": "any"},
        "strict": "flag",
        "defer_loading": "flag",
        "allowed_callers": ["text"],
        "input_examples": ["object"],
        "eager_input_streaming?": "flag",
        **_CACHED,
    }
)
_SERVER_TOOL = compile_rule(
    {"type!": legal(r"[a-z_]+_\d{8}", "tool type"), "name!": "text", "*": "any", **_CACHED}
)


def _tools(node: Node) -> None:
    tools = node.items()
    for tool in tools:
        custom = tool.child("type").value in (None, "custom")
        (_CUSTOM_TOOL if custom else _SERVER_TOOL)(tool)
    unique([tool.child("name") for tool in tools], "tool name")


# Everything

_PARALLEL: Table = {"disable_parallel_tool_use": "flag"}
_DISPLAY: Table = {"display?": ("summarized", "omitted")}
_FIELDS: Table = {
    "model!": legal(r".+", "model"),
    "max_tokens!": "integer 1..",
    "messages!": _messages,
    "system": text_or([variants("type", {"text": _TEXT})]),
    "tools": _tools,
    "tool_choice": variants(
        "type",
        {"auto": _PARALLEL, "any": _PARALLEL, "none": {}, "tool": {"name!": "text", **_PARALLEL}},
    ),
    "thinking": variants(
        "type",
        {
            "enabled": {"budget_tokens!": "integer 1024..", **_DISPLAY},
            "adaptive": _DISPLAY,
            "between_tools": {},
            "disabled": {},
        },
    ),
    "output_config": {
        "effort?": ("low", "medium", "high", "xhigh", "max"),
        "format?": {"type!": ("json_schema",), "schema!": "object"},
    },
    "stream": "flag",
    "stop_sequences": [_solid_text],
    "temperature": "number 0..1",
    "top_p": "number 0..1",
    "top_k": "integer 0..",
    "metadata": {"user_id?": "text"},
    "service_tier": ("auto", "standard_only"),
    "container": "any",
    "inference_geo?": "text",
    **_CACHED,
}
#: What the API knows only under an ``anthropic-beta`` header.
_BETA_FIELDS: Table = {
    "context_management?": "object",
    "mcp_servers": ["object"],
    "output_format?": "object",
    "speed?": ("standard", "fast"),
}
_BODY, _BETA_BODY = compile_rule(_FIELDS), compile_rule({**_FIELDS, **_BETA_FIELDS})


def body_fields(request: Request) -> Check:
    """What the body of this request may hold."""
    return _BETA_BODY if request.header("anthropic-beta") else _BODY
