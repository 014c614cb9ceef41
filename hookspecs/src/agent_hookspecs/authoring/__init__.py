"""The toolbox for those who write plugins; nothing in it is asked of a plugin.

The streaming accumulator and its mixins, what merges deltas, native histories, knobs, facts about
models, attachments, and tools from typed functions. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hookspecs.authoring.attachments import *
    from agent_hookspecs.authoring.calls import *
    from agent_hookspecs.authoring.facts import *
    from agent_hookspecs.authoring.function_tools import *
    from agent_hookspecs.authoring.knobs import *
    from agent_hookspecs.authoring.merging import *
    from agent_hookspecs.authoring.mixins import *
    from agent_hookspecs.authoring.natives import *
    from agent_hookspecs.authoring.partial import *

#: Where each public name is defined; read by `__getattr__` on first use.
_MODULES = {
    "attachments": (
        "attachment",
        "expand_attachments",
        "refers_to_files",
    ),
    "calls": (
        "tool_call_id",
        "unique_call_id",
    ),
    "facts": (
        "facts_about",
        "load_facts",
        "selected_model",
    ),
    "function_tools": (
        "tool",
        "tools",
    ),
    "knobs": (
        "EFFORTS",
        "knob_elements",
        "knob_schema",
        "nearest_effort",
        "requested_knobs",
        "take_effort",
        "take_knob",
    ),
    "merging": (
        "finish_tool_calls",
        "first_choice",
    ),
    "mixins": (
        "AccumulatorExtensionMixin",
        "AccumulatorStreamingMixin",
        "accumulate_reasoning",
        "accumulate_tool_calls",
        "show_patch",
    ),
    "natives": (
        "Rendering",
        "bare_messages",
        "render_history",
        "retained_count",
        "taken_call_ids",
    ),
    "partial": (
        "Partial",
        "plain",
    ),
}
_DEFINED_IN = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_DEFINED_IN)


def __getattr__(name: str) -> Any:
    module = _DEFINED_IN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
