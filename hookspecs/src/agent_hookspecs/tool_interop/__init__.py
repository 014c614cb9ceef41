"""Tools across formats: what a declaration, call or result means, and how another API writes it.

An accessor explains an object of its format as a view; an adapter makes an object of its format
from a view. So n formats need n accessors and n adapters, and any of them converts to any other.
Plugins contribute formats through ``get_tool_interop_contribution``; the host composes the registry
of each request and hands it over in ``context["tool_interop"]``.
"""

from __future__ import annotations

from agent_hookspecs.tool_interop.arguments import (
    compact_json,
    parse_tool_arguments,
)
from agent_hookspecs.tool_interop.contents import (
    content_part,
)
from agent_hookspecs.tool_interop.context import (
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_hookspecs.tool_interop.dialect import SchemaDialect, adapt_schema
from agent_hookspecs.tool_interop.formats import (
    ToolCallAccessor,
    ToolCallAdapter,
    ToolInteropContribution,
    ToolResultAccessor,
    ToolResultAdapter,
    ToolSchemaAccessor,
    ToolSchemaAdapter,
)
from agent_hookspecs.tool_interop.generic import (
    GENERIC_FUNCTION,
)
from agent_hookspecs.tool_interop.names import WireNames
from agent_hookspecs.tool_interop.openai_chat import (
    OPENAI_CHAT,
    OPENAI_CHAT_CUSTOM,
    OPENAI_CHAT_FUNCTION,
)
from agent_hookspecs.tool_interop.openai_responses import (
    OPENAI_RESPONSES,
    OPENAI_RESPONSES_CUSTOM,
    OPENAI_RESPONSES_FUNCTION,
    OpenAIResponsesFunctionFormat,
)
from agent_hookspecs.tool_interop.registry import (
    DEFAULT_TOOL_INTEROP_REGISTRY,
    ToolInteropRegistry,
)
from agent_hookspecs.tool_interop.tool_format import ToolFormat
from agent_hookspecs.tool_interop.views import (
    CallView,
    JsonObject,
    ResultView,
    SchemaView,
    ToolDescriptor,
    ToolInteropTarget,
    Warn,
)

__all__ = [
    "DEFAULT_TOOL_INTEROP_REGISTRY",
    "GENERIC_FUNCTION",
    "OPENAI_CHAT",
    "OPENAI_CHAT_CUSTOM",
    "OPENAI_CHAT_FUNCTION",
    "OPENAI_RESPONSES",
    "OPENAI_RESPONSES_CUSTOM",
    "OPENAI_RESPONSES_FUNCTION",
    "CallView",
    "JsonObject",
    "OpenAIResponsesFunctionFormat",
    "ResultView",
    "SchemaDialect",
    "SchemaView",
    "ToolCallAccessor",
    "ToolCallAdapter",
    "ToolDescriptor",
    "ToolFormat",
    "ToolInteropContribution",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "ToolResultAccessor",
    "ToolResultAdapter",
    "ToolSchemaAccessor",
    "ToolSchemaAdapter",
    "Warn",
    "WireNames",
    "adapt_schema",
    "compact_json",
    "content_part",
    "get_registry_from_context",
    "get_schema_target_formats_from_context",
    "parse_tool_arguments",
]
