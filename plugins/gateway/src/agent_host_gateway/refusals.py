"""`Refused`: why a request is not carried out, in words that every door can put into its own form.

It must not know any door, nor the server; a door turns the kind into its API's word for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agent_hookspecs import AgentError
from agent_hookspecs.logs import redact

__all__ = ["Kind", "Refused", "refusal_of"]

#: What went wrong, by whose fault.
Kind = Literal[
    "invalid",
    "too_large",
    "authentication",
    "permission",
    "not_found",
    "rate_limit",
    "budget",
    "overloaded",
    "upstream",
    "timeout",
    "internal",
]

_STATUS: dict[Kind, int] = {
    "invalid": 400,
    "too_large": 413,
    "authentication": 401,
    "permission": 403,
    "not_found": 404,
    "rate_limit": 429,
    "budget": 429,
    "overloaded": 503,
    "upstream": 502,
    "timeout": 504,
    "internal": 500,
}
#: Errors by the name of their class, because some are the host's own. A key that a provider refuses
#: is the gateway's and not the client's.
_KINDS: dict[str, Kind] = {
    "InputError": "invalid",
    "InvalidRequestError": "invalid",
    "ContextLengthError": "invalid",
    "ContentBlockedError": "invalid",
    "ModelNotFoundError": "not_found",
    "UnknownPluginError": "not_found",
    "NotStoredError": "not_found",
    "SessionLockedError": "overloaded",
    "StoreUnavailableError": "overloaded",
    "StoreBusyError": "overloaded",
    "RateLimitError": "rate_limit",
    "OverloadedError": "overloaded",
    "RequestTimeoutError": "timeout",
    "ProviderError": "upstream",
}
#: What clients are told of errors whose own words name what is none of their business.
_TOLD = {
    "StoreUnavailableError": "the store of the gateway cannot be reached; try again later",
    "StoreBusyError": "the store of the gateway is busy; try again later",
}
#: What clients look for in place of the status.
_CODES = {
    "ContextLengthError": "context_length_exceeded",
    "ContentBlockedError": "content_filter",
    "ModelNotFoundError": "model_not_found",
    "UnknownPluginError": "model_not_found",
}


class Refused(Exception):
    """Why a request is not carried out; ``param`` names what of it is at fault."""

    def __init__(
        self,
        message: str,
        *,
        kind: Kind = "invalid",
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind: Kind = kind
        self.param = param
        self.code = code
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return _STATUS[self.kind]

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says beside its body."""
        if self.retry_after is None:
            return {}
        return {"retry-after": str(max(1, round(self.retry_after)))}


def refusal_of(error: Exception) -> Refused:
    """What a client is told of an error of the host; its secrets are taken out."""
    if isinstance(error, Refused):
        return error
    names = [each.__name__ for each in type(error).__mro__]
    kind: Kind = next((_KINDS[name] for name in names if name in _KINDS), "internal")
    if not isinstance(error, AgentError):
        # What it says is for the log: it may name paths and values of ours.
        return Refused("the gateway failed at this request; its log says why", kind="internal")
    told: Mapping[str, Any] = error.to_dict()
    return Refused(
        next((_TOLD[name] for name in names if name in _TOLD), redact(error.message)),
        kind=kind,
        code=next((_CODES[name] for name in names if name in _CODES), None),
        retry_after=told.get("retry_after"),
    )
