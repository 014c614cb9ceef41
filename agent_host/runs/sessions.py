"""`Sessions`: what an application says of stored sessions, and does with them beside runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.errors import NotStoredError
from agent_hookspecs.store.owners import current_owner
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import FoundMessage, SessionSummary
from agent_host.runs.recorder import mask_change
from agent_host.runs.storage import Storage
from agent_host.runs.transfer import export_lines, export_markdown, import_lines
from agent_host.sessions.changes import change_between, common_messages, restore_session
from agent_host.sessions.session import Session

__all__ = ["Sessions"]


class Sessions:
    """The stored sessions of an application, as ``app.sessions``.

    ``session`` is an id, a name, or the beginning of an id that no other session has. Methods
    block; async programs call them in a thread.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def list(self, limit: int = 50, skip: int = 0) -> Sequence[SessionSummary]:
        """The sessions, the latest changed first."""
        return self._storage.open().list_sessions(limit, skip)

    def find(self, session: str) -> SessionSummary:
        """What a list shows of one session."""
        return self._storage.open().find_session(session)

    def find_latest(self) -> SessionSummary:
        """The session that was changed last."""
        found = self.list(limit=1)
        if not found:
            store = self._storage.open()
            raise NotStoredError(
                "there is no session to go on with", store=store.url, hint="begin a new one"
            )
        return found[0]

    def load(self, session: str) -> Session:
        """A session as it is stored now."""
        store = self._storage.open()
        found = store.find_session(session)
        return restore_session(found.id, store.load_history(found.id))

    def read_latest(self, session: str, count: int) -> Sequence[CoreMessage]:
        """The last messages; the cost depends on how many and not on the session's length."""
        store = self._storage.open()
        return store.read_messages(store.find_session(session).id, -count, count)

    def search(self, text: str, limit: int = 20) -> Sequence[FoundMessage]:
        """Messages that contain all the words, the latest first."""
        return self._storage.open().search_messages(text, limit)

    def rename(self, session: str, name: str | None) -> SessionSummary:
        """Give a session a name that no other has, or take it away."""
        store = self._storage.open()
        found = store.find_session(session)
        store.rename_session(found.id, name)
        return store.find_session(found.id)

    def branch(
        self, session: str, count: int | None = None, *, name: str | None = None
    ) -> SessionSummary:
        """A new session that begins with the first ``count`` messages of another, or with all."""
        store = self._storage.open()
        found = store.find_session(session)
        count = found.message_count if count is None else count
        branch = SessionSummary(id=new_id(), name=name, created=time.time())
        return store.branch_session(found.id, count, branch)

    def add(
        self, session: Session, *, name: str | None = None, parent: str | None = None
    ) -> SessionSummary:
        """Store a session that no run has made, under a new id.

        ``parent`` is the id of a stored one that it goes on from: what both share is not stored
        again.
        """
        store = self._storage.open()
        made, owner = SessionSummary(id=new_id(), name=name, created=time.time()), current_owner()
        if parent is None:
            change = mask_change(change_between(Session(id=made.id), session))
            lease, _ = store.begin_session(made, owner, change)
            store.release_lease(lease)
            return store.find_session(made.id)
        before = restore_session(parent, store.load_history(parent))
        shared = common_messages(before, session)
        store.branch_session(parent, shared, made)
        lease = store.acquire_lease(made.id, owner)
        try:
            branch = restore_session(made.id, store.load_history(made.id))
            store.append(lease, mask_change(change_between(branch, session)), release=True)
        except BaseException:
            store.release_lease(lease)
            raise
        return store.find_session(made.id)

    def delete(self, session: str) -> SessionSummary:
        """Remove a session, its runs, and every trace of what only it has said."""
        store = self._storage.open()
        found = store.find_session(session)
        store.delete_session(found.id)
        self._storage.forget_session(found.id)
        return found

    def edit(self, session: str, change: Callable[[Session], Session]) -> Session:
        """Store what ``change`` makes of a session; nobody else writes to it meanwhile."""
        store = self._storage.open()
        found = store.find_session(session)
        lease = store.acquire_lease(found.id, current_owner())
        try:
            before = restore_session(found.id, store.load_history(found.id))
            after = change(before)
            store.append(lease, mask_change(change_between(before, after)))
        finally:
            store.release_lease(lease)
            self._storage.forget_session(found.id)
        return after

    def export_lines(self, session: str) -> Iterator[str]:
        """A session with its runs as lines of JSON, exactly; see `import_lines`."""
        store = self._storage.open()
        return export_lines(store, store.find_session(session))

    def export_markdown(self, session: str) -> Iterator[str]:
        """A session as lines of Markdown, for people."""
        found = self.find(session)
        return export_markdown(self.load(found.id), found)

    def import_lines(self, lines: Iterable[str], *, as_new: bool = False) -> SessionSummary:
        """Store what `export_lines` gave; ``as_new`` under new ids."""
        return import_lines(self._storage.open(), lines, as_new=as_new)
