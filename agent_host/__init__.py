"""A host for LLM agents whose every capability is a plugin.

Names are loaded when first used, so that the command line can start without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_host._version import __version__ as __version__

if TYPE_CHECKING:
    from agent_hookspecs.errors import *
    from agent_host.application import AgentApplication as AgentApplication
    from agent_host.core import AgentCore as AgentCore
    from agent_host.sessions.session import Session as Session

_DEFINED_IN = {
    "AgentApplication": "agent_host.application",
    "AgentCore": "agent_host.core",
    "Session": "agent_host.sessions.session",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        from agent_hookspecs import errors

        return sorted([*_DEFINED_IN, *errors.__all__, "__version__"])
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_DEFINED_IN.get(name, "agent_hookspecs.errors"))
    try:
        value = getattr(module, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
