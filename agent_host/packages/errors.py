"""What can go wrong with packages; the messages name the package, the file and the way out."""

from __future__ import annotations

from agent_hookspecs.errors import AgentError

__all__ = ["ConflictError", "InstallerError", "LockError", "PackageError"]


class PackageError(AgentError):
    """An environment cannot be changed, or not in this way."""


class InstallerError(PackageError):
    """The installer failed; ``output`` is the end of what it said."""

    details: tuple[str, ...] = ("output",)

    def __init__(self, message: str, *, output: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.output = output


class ConflictError(InstallerError):
    """No set of versions fits all that is wanted; the message names both sides."""


class LockError(PackageError):
    """A list of wanted packages or a lock that cannot be read; ``file`` is its path."""

    details: tuple[str, ...] = ("file",)

    def __init__(self, message: str, *, file: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.file = file
