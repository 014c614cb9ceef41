"""Text that may leave the host: without secrets, whoever wrote it."""

from __future__ import annotations

from agent_hookspecs.logs import redact

__all__ = ["describe_error"]


def describe_error(error: BaseException) -> str:
    """A foreign exception in words, without secrets; its ``__str__`` may fail as well."""
    try:
        text = redact(str(error))
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
