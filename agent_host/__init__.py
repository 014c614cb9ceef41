"""A host for LLM agents whose every capability is a plugin.

Names are loaded when first used, so that the command line can start without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_host._version import __version__ as __version__

if TYPE_CHECKING:
    from agent_hookspecs.errors import (
        AgentError as AgentError,
        AnswerTooLargeError as AnswerTooLargeError,
        AuthenticationError as AuthenticationError,
        BindingError as BindingError,
        CollisionError as CollisionError,
        ConfigError as ConfigError,
        ConnectionFailedError as ConnectionFailedError,
        ContentBlockedError as ContentBlockedError,
        ContextLengthError as ContextLengthError,
        ContractError as ContractError,
        DescriptorError as DescriptorError,
        GatingError as GatingError,
        HookError as HookError,
        HookResultError as HookResultError,
        IncompatibleError as IncompatibleError,
        InvalidRequestError as InvalidRequestError,
        LoadError as LoadError,
        MalformedCallError as MalformedCallError,
        ModelNotFoundError as ModelNotFoundError,
        OrderingError as OrderingError,
        OverloadedError as OverloadedError,
        PluginError as PluginError,
        ProtocolError as ProtocolError,
        ProviderError as ProviderError,
        RateLimitError as RateLimitError,
        RequestTimeoutError as RequestTimeoutError,
        ResolutionError as ResolutionError,
        ServerError as ServerError,
        SessionError as SessionError,
        SourceError as SourceError,
        StreamCutError as StreamCutError,
        ToolArgumentsError as ToolArgumentsError,
        ToolError as ToolError,
        ToolRetry as ToolRetry,
        TransportError as TransportError,
        UnknownPluginError as UnknownPluginError,
        UnknownToolError as UnknownToolError,
    )
    from agent_hookspecs.events import (
        ApprovalRequiredEvent as ApprovalRequiredEvent,
        ChildEvent as ChildEvent,
        DoneEvent as DoneEvent,
        ErrorEvent as ErrorEvent,
        Event as Event,
        FinalEvent as FinalEvent,
        PartialEvent as PartialEvent,
        ReasoningEvent as ReasoningEvent,
        RequestStartedEvent as RequestStartedEvent,
        ToolCallDeltaEvent as ToolCallDeltaEvent,
        ToolCallEvent as ToolCallEvent,
        ToolCallStartedEvent as ToolCallStartedEvent,
        ToolResultEvent as ToolResultEvent,
        ToolStartedEvent as ToolStartedEvent,
        ToolUpdateEvent as ToolUpdateEvent,
        TurnEndEvent as TurnEndEvent,
        UsageEvent as UsageEvent,
        WarningEvent as WarningEvent,
    )
    from agent_hookspecs.messages import CoreMessage as CoreMessage, Usage as Usage
    from agent_host.agent.limits import Limits as Limits
    from agent_host.agent.policy import (
        Approval as Approval,
        Decision as Decision,
        Edited as Edited,
    )
    from agent_host.application import AgentApplication as AgentApplication, Answer as Answer
    from agent_host.application.options import (
        ResumeOptions as ResumeOptions,
        RunOptions as RunOptions,
    )
    from agent_host.application.watching import EventFeed as EventFeed, RunEvent as RunEvent
    from agent_host.config.given import AppConfig as AppConfig
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
    from agent_host.output import (
        OutputCutError as OutputCutError,
        OutputError as OutputError,
        OutputInvalidError as OutputInvalidError,
        OutputRefusedError as OutputRefusedError,
    )
    from agent_host.sessions.session import Session as Session

_DEFINED_IN = {
    "AgentApplication": "agent_host.application",
    "AgentCore": "agent_host.core",
    "Answer": "agent_host.application",
    "AppConfig": "agent_host.config.given",
    "Approval": "agent_host.agent.policy",
    "AsyncStream": "agent_host.drivers.asynchronous",
    "Audio": "agent_host.input",
    "CoreMessage": "agent_hookspecs.messages",
    "Decision": "agent_host.agent.policy",
    "Edited": "agent_host.agent.policy",
    "EventFeed": "agent_host.application.watching",
    "File": "agent_host.input",
    "Image": "agent_host.input",
    "InputError": "agent_host.input",
    "Limits": "agent_host.agent.limits",
    "OutputCutError": "agent_host.output",
    "OutputError": "agent_host.output",
    "OutputInvalidError": "agent_host.output",
    "OutputRefusedError": "agent_host.output",
    "Prompt": "agent_host.input",
    "ResumeOptions": "agent_host.application.options",
    "RunEvent": "agent_host.application.watching",
    "RunOptions": "agent_host.application.options",
    "Session": "agent_host.sessions.session",
    "Stream": "agent_host.drivers.blocking",
    "Usage": "agent_hookspecs.messages",
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
