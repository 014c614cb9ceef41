"""The toolbox for those who write plugins; nothing in it is asked of a plugin.

The streaming accumulator and its mixins, what merges deltas, native histories, knobs, facts about
models, attachments, and tools from typed functions. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_hookspecs import _lazy_names

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
    from agent_hookspecs.authoring.tool_context import *

__getattr__, __dir__ = _lazy_names(
    globals(),
    "partial calls natives merging mixins facts knobs attachments function_tools tool_context",
)
