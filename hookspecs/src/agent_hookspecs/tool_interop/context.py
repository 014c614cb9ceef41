"""The interop runtime of a request, as plugins find it in ``context``.

Owns the reading of ``context["tool_interop"]``; it tolerates any context, also none, because hooks
are called from tests and utilities too. It must not know who filled it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hookspecs.tool_interop.registry import DEFAULT_TOOL_INTEROP_REGISTRY, ToolInteropRegistry

__all__ = ["get_registry_from_context", "get_schema_target_formats_from_context"]


def get_registry_from_context(context: object) -> ToolInteropRegistry:
    """The request's registry, or the default one where the context has none."""
    registry = _runtime(context).get("registry")
    return registry if isinstance(registry, ToolInteropRegistry) else DEFAULT_TOOL_INTEROP_REGISTRY


def get_schema_target_formats_from_context(context: object) -> list[str]:
    """The tool schema formats that the request's stack accepts, best first; ``[]`` if unknown."""
    formats = _runtime(context).get("schema_target_formats")
    if not isinstance(formats, (list, tuple)):
        return []
    return [name for name in formats if isinstance(name, str)]


def _runtime(context: object) -> Mapping[Any, Any]:
    runtime = context.get("tool_interop") if isinstance(context, Mapping) else None
    return runtime if isinstance(runtime, Mapping) else {}
