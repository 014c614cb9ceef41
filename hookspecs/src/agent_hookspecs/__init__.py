"""The contract between Agent Host and its plugins.

A plugin imports this package and nothing of the host. What the contract is stands here, what helps
to write plugins in `agent_hookspecs.authoring`. Names are loaded when first used, so that a host
which only lists plugins does not pay for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hookspecs._version import (
        API_VERSION as API_VERSION,
        __version__ as __version__,
    )
    from agent_hookspecs.errors import *
    from agent_hookspecs.events import *
    from agent_hookspecs.logs import (
        get_logger as get_logger,
        get_warn_from_context as get_warn_from_context,
        redact as redact,
    )
    from agent_hookspecs.markers import (
        hookimpl as hookimpl,
        hookspec as hookspec,
    )
    from agent_hookspecs.messages import *
    from agent_hookspecs.roles import (
        FeaturePlugin as FeaturePlugin,
        ProviderExtensionPlugin as ProviderExtensionPlugin,
        ProviderPlugin as ProviderPlugin,
        ToolPlugin as ToolPlugin,
    )
    from agent_hookspecs.session import *

#: Where each public name is defined; read by `__getattr__` on first use.
_MODULES = {
    "_version": (
        "API_VERSION",
        "__version__",
    ),
    "errors": (
        "AgentError",
        "AuthenticationError",
        "BindingError",
        "CollisionError",
        "ConfigError",
        "ConnectionFailedError",
        "ContentBlockedError",
        "ContextLengthError",
        "ContractError",
        "DescriptorError",
        "GatingError",
        "HookError",
        "HookResultError",
        "IncompatibleError",
        "InvalidRequestError",
        "LoadError",
        "MalformedCallError",
        "ModelNotFoundError",
        "OrderingError",
        "OverloadedError",
        "PluginError",
        "ProtocolError",
        "ProviderError",
        "RateLimitError",
        "RequestTimeoutError",
        "ResolutionError",
        "ServerError",
        "SessionError",
        "SourceError",
        "StreamCutError",
        "ToolArgumentsError",
        "ToolDeniedError",
        "ToolError",
        "TransportError",
        "UnknownPluginError",
        "UnknownToolError",
    ),
    "logs": (
        "get_logger",
        "get_warn_from_context",
        "redact",
    ),
    "events": (
        "ApprovalRequiredEvent",
        "DoneEvent",
        "ErrorEvent",
        "Event",
        "FinalEvent",
        "PartialEvent",
        "ReasoningEvent",
        "RequestStartedEvent",
        "ToolCallDeltaEvent",
        "ToolCallEvent",
        "ToolCallStartedEvent",
        "ToolResultEvent",
        "ToolStartedEvent",
        "ToolUpdateEvent",
        "TurnEndEvent",
        "UsageEvent",
        "WarningEvent",
    ),
    "markers": (
        "hookimpl",
        "hookspec",
    ),
    "messages": (
        "Action",
        "ActionResult",
        "Config",
        "Context",
        "CoreMessage",
        "Effect",
        "Framing",
        "MessageMetadata",
        "ModelInfo",
        "MultipartContent",
        "NativeChunk",
        "NativeMessage",
        "RequestSpec",
        "Role",
        "State",
        "ToolResult",
        "Usage",
    ),
    "roles": (
        "FeaturePlugin",
        "ProviderExtensionPlugin",
        "ProviderPlugin",
        "ToolPlugin",
    ),
    "session": ("Session",),
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
