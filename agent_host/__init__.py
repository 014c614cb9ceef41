"""A host for LLM agents whose every capability is a plugin.

Names are loaded when first used, so that the command line can start without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_host._version import __version__ as __version__

if TYPE_CHECKING:
    from agent_hookspecs.errors import *
    from agent_hookspecs.events import *
    from agent_host.agent.limits import Limits as Limits
    from agent_host.agent.policy import Approval as Approval, Decision as Decision
    from agent_host.application import AgentApplication as AgentApplication, Answer as Answer
    from agent_host.config import AppConfig as AppConfig
    from agent_host.core import AgentCore as AgentCore
    from agent_host.drivers.asynchronous import AsyncStream as AsyncStream
    from agent_host.drivers.blocking import Stream as Stream
    from agent_host.input import (
        Audio as Audio,
        File as File,
        Image as Image,
        InputError as InputError,
        Prompt as Prompt,
    )
    from agent_host.sessions.session import Session as Session

_DEFINED_IN = {
    "AgentApplication": "agent_host.application",
    "AgentCore": "agent_host.core",
    "Answer": "agent_host.application",
    "AppConfig": "agent_host.config",
    "Approval": "agent_host.agent.policy",
    "AsyncStream": "agent_host.drivers.asynchronous",
    "Audio": "agent_host.input",
    "Decision": "agent_host.agent.policy",
    "File": "agent_host.input",
    "Image": "agent_host.input",
    "InputError": "agent_host.input",
    "Limits": "agent_host.agent.limits",
    "Prompt": "agent_host.input",
    "Session": "agent_host.sessions.session",
    "Stream": "agent_host.drivers.blocking",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        from agent_hookspecs import errors, events

        return sorted([*_DEFINED_IN, *errors.__all__, *events.__all__, "__version__"])
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    rest = "agent_hookspecs.events" if name.endswith("Event") else "agent_hookspecs.errors"
    module = import_module(_DEFINED_IN.get(name, rest))
    try:
        value = getattr(module, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
