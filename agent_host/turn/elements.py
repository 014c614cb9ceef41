"""The input elements that a stack's plugins suggest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_hookspecs.messages import ModelInfo
from agent_hookspecs.roles import PLUGIN_ROLES
from agent_host.plugins.stack import Stack
from agent_host.turn.context import request_context

__all__ = ["ui_elements"]


def ui_elements(stack: Stack, models: Sequence[ModelInfo], core: object) -> list[dict[str, Any]]:
    """Everyone's elements in the order of the stack; a plugin that fails is left out.

    ``models`` are those to choose from.
    """
    tags = sorted(stack.resolution.tags)
    elements: list[dict[str, Any]] = []
    for role in PLUGIN_ROLES:
        # For each role anew: what a plugin does to it is nobody else's affair.
        context = request_context(core, stack, None)
        found = stack.managers.role(role).hook.get_ui_elements(
            config=context["config"], tags=list(tags), models=list(models), context=context
        )
        # The provider is the only one of its role, the others' answers come as a list.
        for given in [found] if role == "provider" else found:
            elements += [element for element in given or () if isinstance(element, dict)]
    return elements
