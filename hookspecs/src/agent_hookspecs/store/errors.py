"""What goes wrong with a store.

StoreError                     a store cannot do what it was asked for
├── StoreUnavailableError      it cannot be reached, opened, read or written
├── StoreBusyError             others used the database for longer than we wait
├── StoreFullError             there is no room left
├── StoreCorruptError          what is stored is damaged
├── StoreVersionError          a newer version of the host wrote it
├── SessionLockedError         another process writes to this session
├── NotStoredError             there is no such session, message or run
├── ContentNotStoredError      the session was stored without what was said in it
├── NoteChangedError           a note is not what it was when it was read
└── DecisionError              a decision does not fit what waits for it

RunCancelledError              somebody wanted a run to be cancelled

None of them loses what was stored before: a change is stored as a whole or not at all.
"""

from __future__ import annotations

from typing import Any

from agent_hookspecs.errors import AgentError
from agent_hookspecs.store.owners import Owner


class StoreError(AgentError):
    """A store cannot do what it was asked for; ``store`` is its URL without a password."""

    details: tuple[str, ...] = ("store",)

    def __init__(self, message: str, *, store: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.store = store


class StoreUnavailableError(StoreError):
    """The store cannot be reached, opened, read or written.

    Where it happened while a change was being confirmed, ``uncertain`` is true: the change may or
    may not have been stored.
    """

    details: tuple[str, ...] = ("store", "uncertain")

    def __init__(self, message: str, *, uncertain: bool = False, **known: Any) -> None:
        super().__init__(message, **known)
        self.uncertain = uncertain


class StoreBusyError(StoreError):
    """Others used the database for longer than we wait."""


class StoreFullError(StoreError):
    """There is no room left for what should be stored."""


class StoreCorruptError(StoreError):
    """What is stored is damaged, or was not written by this host at all."""


class StoreVersionError(StoreError):
    """A newer version of the host wrote it, and this one cannot know what it means."""


class SessionLockedError(StoreError):
    """Another process writes to this session; ``owner`` is that process, as far as it is known."""

    details: tuple[str, ...] = ("store", "session", "locked_by")

    def __init__(
        self, message: str, *, session: str, owner: Owner | None = None, **known: Any
    ) -> None:
        super().__init__(message, **known)
        self.session = session
        self.owner = owner
        #: The owner in words.
        self.locked_by = owner.describe() if owner is not None else None


class NotStoredError(StoreError):
    """There is no session or run of that id or name, or several that an abbreviation may mean."""


class ContentNotStoredError(StoreError):
    """The session was stored without what was said in it, so nobody can go on with it."""


class NoteChangedError(StoreError):
    """A note is not what it was when it was read, and was left as it is."""


class DecisionError(StoreError):
    """A decision does not fit: nothing waits for it, it was made already, or for something else."""


class RunCancelledError(AgentError):
    """Somebody, perhaps in another process, wanted the run to be cancelled; ``run`` is its id."""

    details: tuple[str, ...] = ("run",)

    def __init__(self, message: str, *, run: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.run = run


#: Every error, so that none is forgotten.
__all__ = [name for name in dir() if name.endswith("Error") and name != "AgentError"]
