"""Tools across formats: what a declaration, call or result means, and how another API writes it.

An accessor explains an object of its format as a view; an adapter makes an object of its format
from a view. So n formats need n accessors and n adapters, and any of them converts to any other.
Plugins contribute formats through ``get_tool_interop_contribution``; the host composes the registry
of each request and hands it over in ``context["tool_interop"]``. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_hookspecs import _lazy_names

if TYPE_CHECKING:
    from agent_hookspecs.tool_interop.arguments import *
    from agent_hookspecs.tool_interop.contents import *
    from agent_hookspecs.tool_interop.context import *
    from agent_hookspecs.tool_interop.dialect import *
    from agent_hookspecs.tool_interop.formats import *
    from agent_hookspecs.tool_interop.generic import *
    from agent_hookspecs.tool_interop.names import *
    from agent_hookspecs.tool_interop.openai_chat import *
    from agent_hookspecs.tool_interop.openai_responses import *
    from agent_hookspecs.tool_interop.registry import *
    from agent_hookspecs.tool_interop.tool_format import *
    from agent_hookspecs.tool_interop.views import *

__getattr__, __dir__ = _lazy_names(
    globals(),
    "views arguments contents names dialect formats "
    "tool_format generic openai_chat openai_responses registry context",
)
