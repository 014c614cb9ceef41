"""What can go wrong with distributions; each says which one, which file, and the way out."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = [
    "CatalogError",
    "ConflictError",
    "DistributionError",
    "InstallerError",
    "LockError",
    "OtherPythonError",
]


class DistributionError(AgentError):
    """An environment cannot be changed, or not in this way."""


class InstallerError(DistributionError):
    """The installer failed; ``output`` is the end of what it said."""

    details: tuple[str, ...] = ("output",)

    def __init__(self, message: str, *, output: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.output = output


class ConflictError(InstallerError):
    """No set of versions fits all that is wanted; the message names both sides."""


class LockError(DistributionError):
    """A list of wanted distributions or a lock that cannot be read; ``file`` is its path."""

    details: tuple[str, ...] = ("file",)

    def __init__(self, message: str, *, file: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.file = file


class CatalogError(DistributionError):
    """The index of a catalog that cannot be had or read; ``source`` is its file or address."""

    details: tuple[str, ...] = ("source",)

    def __init__(self, message: str, *, source: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = source


class OtherPythonError(LockError):
    """A sound lock whose wheels are for another Python; ``versions`` are those that it has."""

    def __init__(self, message: str, *, file: str, versions: dict[str, str]) -> None:
        hint = "agent-host plugins sync makes it anew for this Python, with the same versions"
        super().__init__(message, file=file, hint=hint)
        self.versions = versions
