"""`Storage`: the store of one application, and what this process knows of it.

The store is opened when it is first needed. Beside it stand the runs that go on in this process,
whose leases are renewed while they do, and the latest sessions, so that going on with one does not
read it again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_hookspecs.errors import AgentError
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.values import SessionSummary

if TYPE_CHECKING:
    from agent_host.runs.recorder import RunRecorder
    from agent_host.sessions.session import Session

__all__ = ["Storage"]

#: How often this process looks whether somebody else wants one of its runs to stop.
_LOOK_SECONDS = 1.0
#: How often leases are renewed; they are granted for three times as long.
_RENEW_SECONDS = 20.0
_MAX_SESSIONS = 64


class Storage:
    """``open_store`` makes the store; it is called once, and again if it failed.

    ``check`` raises a `ConfigError` if that cannot be, without opening anything.
    """

    def __init__(
        self, open_store: Callable[[], SessionStore], check: Callable[[], None] = lambda: None
    ) -> None:
        self._open_store = open_store
        self.check = check
        self._store: SessionStore | None = None
        self._recorders: dict[str, RunRecorder] = {}
        #: The latest sessions, each with the time at which it was stored.
        self._sessions: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._opening = threading.Lock()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._keeper: threading.Thread | None = None

    def open(self) -> SessionStore:
        """The store. A `StoreError` says why it cannot be opened."""
        with self._opening:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def close(self) -> None:
        with self._opening:
            store, self._store = self._store, None
        with self._lock:
            self._sessions.clear()
        if store is not None:
            store.close()

    # --- sessions as they were stored last -------------------------------------------------------

    def remember_session(self, session: Session) -> None:
        with self._lock:
            self._sessions[session.id] = session, time.time()
            self._sessions.move_to_end(session.id)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def forget_session(self, session_id: str) -> None:
        with self._lock:
            self._sessions.pop(session_id, None)

    def known_session(self, found: SessionSummary) -> Session | None:
        """The session, if this process was the last to change it."""
        session, stored_at = self._sessions.get(found.id, (None, 0.0))
        if session is None or session.count != found.message_count or found.updated > stored_at:
            return None
        return session

    # --- runs of this process --------------------------------------------------------------------

    @property
    def recorders(self) -> Mapping[str, RunRecorder]:
        """The runs that go on in this process, by id."""
        return self._recorders

    def add_run(self, recorder: RunRecorder) -> None:
        with self._lock:
            self._recorders[recorder.run.id] = recorder
            if self._keeper is None or not self._keeper.is_alive():
                # None has been started, or it was left behind by a fork.
                self._keeper = threading.Thread(target=self._keep_leases, daemon=True)
                self._keeper.start()
            self._changed.notify()

    def remove_run(self, recorder: RunRecorder) -> None:
        with self._lock:
            self._recorders.pop(recorder.run.id, None)

    def _keep_leases(self) -> None:
        """Renew the leases of runs that go on, and see whether one is to stop; ends when idle."""
        renewed = time.monotonic()
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._recorders, timeout=10 * _LOOK_SECONDS)
                recorders = list(self._recorders.values())
                if not recorders:
                    self._keeper = None
                    return
            time.sleep(_LOOK_SECONDS)
            is_time = time.monotonic() - renewed >= _RENEW_SECONDS
            if is_time:
                renewed = time.monotonic()
            for recorder in recorders:
                self._look_after(recorder, renew=is_time)

    def _look_after(self, recorder: RunRecorder, *, renew: bool) -> None:
        with suppress(AgentError):
            # Nothing is lost: what goes wrong the run itself tells when it next stores something.
            if recorder.run.id not in self._recorders:
                return
            if renew:
                recorder.renew()
            elif self.open().find_run(recorder.run.id).cancel_requested:
                recorder.request_cancel()
