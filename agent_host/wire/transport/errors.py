"""What went wrong with a connection, as the exceptions by which an HTTP library tells it."""

from __future__ import annotations

from typing import Any

from agent_host.wire.transport.parser import MalformedAnswerError

__all__ = ["connecting_error", "reading_error", "sending_error"]


def connecting_error(library: Any, exc: BaseException) -> Exception:
    """The exception of ``library`` for a connection that could not be made."""
    kind = library.ConnectTimeout if isinstance(exc, TimeoutError) else library.ConnectError
    error: Exception = kind(str(exc))
    return error


def sending_error(library: Any, exc: BaseException) -> Exception:
    """The exception of ``library`` for a request that could not be sent."""
    kind = library.WriteTimeout if isinstance(exc, TimeoutError) else library.WriteError
    error: Exception = kind(str(exc))
    return error


def reading_error(library: Any, exc: BaseException) -> Exception:
    """The exception of ``library`` for an answer that could not be read to its end."""
    if isinstance(exc, TimeoutError):
        kind = library.ReadTimeout
    elif isinstance(exc, MalformedAnswerError):
        kind = library.RemoteProtocolError
    else:
        kind = library.ReadError
    error: Exception = kind(str(exc))
    return error
