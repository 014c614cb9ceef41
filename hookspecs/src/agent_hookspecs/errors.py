"""Every error this ecosystem raises on purpose.

AgentError
├── ConfigError                  a setting is missing, unknown or wrong
├── SessionError                 session data that cannot be read
├── PluginError                  a plugin is at fault
│   ├── DescriptorError          its agent_plugin.json cannot be read or is invalid
│   ├── SourceError              its path:, pkg: or git+ source cannot be used
│   ├── LoadError                its code cannot be imported or constructed
│   ├── IncompatibleError        it was made for another version of the contract
│   ├── ContractError            it does not meet its role's contract
│   │   └── BindingError         a hook's signature asks for arguments that do not exist
│   ├── CollisionError           it claims a name that another plugin has
│   └── HookError                one of its hooks raised
│       └── HookResultError      one of its hooks returned something of the wrong shape
├── ResolutionError              no stack of plugins can be made for a request
│   ├── UnknownPluginError       a plugin was named that is not there or not usable
│   ├── GatingError              plugins switch each other on and off for ever
│   └── OrderingError            before and after form a cycle
├── ToolError                    a tool call cannot be run
│   ├── UnknownToolError         no active tool has that name
│   ├── ToolArgumentsError       the arguments are not what the tool's schema asks
│   └── ToolRetry                the tool asks the model to call it in another way
└── ProviderError                the model's side failed
    ├── AuthenticationError      the key is missing, wrong or not allowed
    ├── InvalidRequestError      the provider refused the request as it is
    │   ├── ModelNotFoundError   there is no such model or endpoint
    │   └── ContextLengthError   the conversation is too long for the model
    ├── RateLimitError           too many requests, or no quota left
    ├── OverloadedError          the provider is up but busy
    ├── ServerError              the provider failed
    ├── ContentBlockedError      the provider withheld the answer
    ├── MalformedCallError       the model produced a tool call the provider gave up on
    └── TransportError           the bytes did not get through
        ├── ConnectionFailedError  no connection could be made
        ├── RequestTimeoutError  connect, first byte, idle or total time ran out
        ├── StreamCutError       the answer stopped before its protocol's end
        └── ProtocolError        the answer is not what the protocol allows
            └── AnswerTooLargeError  it goes beyond a limit

Messages are for the person who reads them: what happened, to which plugin or key. The way out is
in ``hint``. Errors know nothing of the host; foreign exceptions are mapped to them at one seam and
kept as ``__cause__``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hookspecs.messages import Usage


class AgentError(Exception):
    """The root of the tree. ``hint`` says what to do next; it may be empty."""

    #: Attributes of the class that belong in `to_dict`, besides type, message and hint.
    details: tuple[str, ...] = ()

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Constructors take keywords that pickle does not know of.
        return _restore_error, (type(self), self.args, self.__dict__)

    def explain(self) -> str:
        """The message and the way out, as one sentence for a table or a log line."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __str__(self) -> str:
        # A traceback, and whoever writes an error down, should not lose the way out.
        return self.explain()

    def to_dict(self) -> dict[str, Any]:
        """JSON-serialisable form, as it appears in ``error`` events and under ``--json``."""
        found = {name: getattr(self, name) for name in self.details}
        return {
            "type": type(self).__name__,
            "message": self.message,
            "hint": self.hint,
            **{name: value for name, value in found.items() if value is not None},
        }


def _restore_error(
    kind: type[AgentError], args: tuple[Any, ...], values: dict[str, Any]
) -> AgentError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(values)
    return error


class ConfigError(AgentError):
    """A setting is missing, unknown or wrong; ``key`` is its path, ``file`` where it stands."""

    details: tuple[str, ...] = ("key", "file")

    def __init__(
        self, message: str, *, key: str | None = None, file: str | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.file = file


class SessionError(AgentError):
    """Session data that cannot be read: not a session, damaged, or of a newer schema version."""


class PluginError(AgentError):
    """A plugin is at fault. ``plugin`` is its id, or its bundle where no id is known yet."""

    details: tuple[str, ...] = ("plugin",)

    def __init__(self, message: str, *, plugin: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin


class DescriptorError(PluginError):
    """An ``agent_plugin.json`` that cannot be read or is invalid; ``key`` is the JSON path."""

    details: tuple[str, ...] = ("plugin", "key", "file")

    def __init__(
        self, message: str, *, key: str | None = None, file: str | None = None, **known: Any
    ) -> None:
        super().__init__(message, **known)
        self.key = key
        self.file = file


class SourceError(PluginError):
    """A ``path:``, ``pkg:`` or ``git+`` source that cannot be used."""


class LoadError(PluginError):
    """Importing or constructing a plugin class failed."""


class IncompatibleError(PluginError):
    """The plugin's ``api`` range does not contain the host's contract version."""


class ContractError(PluginError):
    """The class does not meet its role's contract, or disagrees with its descriptor."""

    details: tuple[str, ...] = ("plugin", "hook")

    def __init__(self, message: str, *, hook: str | None = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.hook = hook


class BindingError(ContractError):
    """A hook implementation asks for an argument that its hook does not have."""


class CollisionError(PluginError):
    """Two plugins claim one name; ``owners`` are the distributions or bundles involved."""

    details: tuple[str, ...] = ("plugin", "owners")

    def __init__(self, message: str, *, owners: tuple[str, ...] = (), **known: Any) -> None:
        super().__init__(message, **known)
        self.owners = owners


class HookError(PluginError):
    """A hook raised. The plugin's own exception is ``__cause__``."""

    details: tuple[str, ...] = ("plugin", "hook")

    def __init__(self, message: str, *, plugin: str, hook: str, hint: str = "") -> None:
        super().__init__(message, plugin=plugin, hint=hint)
        self.hook = hook


class HookResultError(HookError):
    """A hook returned a value of another shape than its specification says."""


class ResolutionError(AgentError):
    """No stack of plugins can be made for this request; ``plugins`` are those involved."""

    details: tuple[str, ...] = ("plugins",)

    def __init__(self, message: str, *, plugins: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.plugins = plugins


class UnknownPluginError(ResolutionError):
    """A plugin was named that is not installed, or that is installed but cannot be used."""


class GatingError(ResolutionError):
    """The rounds of gating come back to a set they have seen: plugins flip each other."""


class OrderingError(ResolutionError):
    """``before`` and ``after`` form a cycle, or point at a plugin of another role."""


class ToolError(AgentError):
    """A tool call cannot be run. ``tool`` is the wire name the model used."""

    details: tuple[str, ...] = ("tool",)

    def __init__(self, message: str, *, tool: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.tool = tool


class UnknownToolError(ToolError):
    """No active tool has that name."""


class ToolArgumentsError(ToolError):
    """The arguments are not JSON, too large, or not what the tool's schema asks."""


class ToolRetry(ToolError):
    """Raised by a tool that wants to be called in another way; the model is told the message."""


class ProviderError(AgentError):
    """The model's side failed.

    ``retryable`` says whether the same request could succeed later; ``retry_after`` is the wait in
    seconds that the provider asked for. ``excerpt`` is the redacted beginning of what it answered,
    ``usage`` the token counts that it reported before it failed.
    """

    details: tuple[str, ...] = (
        "provider",
        "status",
        "code",
        "request_id",
        "retryable",
        "retry_after",
        "excerpt",
        "usage",
    )
    #: What `retryable` is when the raiser does not say.
    usually_retryable = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        excerpt: str | None = None,
        usage: Usage | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retryable = self.usually_retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.excerpt = excerpt
        self.usage = usage


class AuthenticationError(ProviderError):
    """The key is missing, wrong, or not allowed to do this (401, 403)."""


class InvalidRequestError(ProviderError):
    """The provider refused the request as it is (400, 409, 413, 422)."""


class ModelNotFoundError(InvalidRequestError):
    """There is no such model or endpoint (404)."""


class ContextLengthError(InvalidRequestError):
    """The conversation is longer than the model's window."""


class RateLimitError(ProviderError):
    """Too many requests, or no quota left (429)."""

    usually_retryable = True


class OverloadedError(ProviderError):
    """The provider is up but busy (503, 529, or an error event that says so)."""

    usually_retryable = True


class ServerError(ProviderError):
    """The provider failed (other 5xx)."""

    usually_retryable = True


class ContentBlockedError(ProviderError):
    """The provider withheld the prompt or the answer."""


class MalformedCallError(ProviderError):
    """The model produced a tool call that the provider itself gave up on."""

    usually_retryable = True


class TransportError(ProviderError):
    """The bytes did not get through."""

    usually_retryable = True


class ConnectionFailedError(TransportError):
    """No connection could be made: name, address, TLS or proxy."""


class RequestTimeoutError(TransportError):
    """Time ran out; ``phase`` is ``connect``, ``first_byte``, ``idle`` or ``total``."""

    details: tuple[str, ...] = (*ProviderError.details, "phase")

    def __init__(self, message: str, *, phase: str, **known: Any) -> None:
        super().__init__(message, **known)
        self.phase = phase


class StreamCutError(TransportError):
    """The answer stopped before its protocol's end: reset, short body, or no closing event."""


class ProtocolError(TransportError):
    """The answer is not what the protocol allows: a web page, garbage, one event too large."""

    usually_retryable = False


class AnswerTooLargeError(ProtocolError):
    """The answer goes beyond a limit; ``limit`` is the setting that says how far it may go."""

    details: tuple[str, ...] = (*ProviderError.details, "limit")

    def __init__(self, message: str, *, limit: str, **known: Any) -> None:
        super().__init__(message, **known)
        self.limit = limit


#: Every error, so that none is forgotten.
__all__ = [name for name in dir() if name.endswith(("Error", "Retry"))]
