"""The input elements that a stack's plugins suggest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs.logs import get_logger
from agent_hookspecs.messages import ModelInfo
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.plugins.combining import told
from agent_host.plugins.stack import Stack
from agent_host.turn.context import request_context

__all__ = ["ui_elements"]

log = get_logger(__name__)


def ui_elements(stack: Stack, models: Sequence[ModelInfo], core: object) -> list[dict[str, Any]]:
    """Everyone's elements in the order of the stack; a plugin that fails is left out.

    ``models`` are those to choose from.
    """
    context = request_context(core, stack, None)
    tags = sorted(stack.resolution.tags)
    elements: list[dict[str, Any]] = []
    for role in PLUGIN_ROLES:
        for hook in stack.calls.implementations(role, "get_ui_elements"):
            try:
                given = hook.call(context["config"], list(tags), list(models), context)
                elements += [element for element in given or () if isinstance(element, dict)]
            except Exception as error:
                log.warning("ui_elements_unavailable", plugin=hook.plugin, error=told(error))
    return elements
