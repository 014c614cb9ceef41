"""`SessionStoreConformance`: what is asked of a store of sessions and runs."""

from __future__ import annotations

from agent_host_testing.suites.store_histories import StoredHistoryChecks
from agent_host_testing.suites.store_notes import StoredNoteChecks
from agent_host_testing.suites.store_runs import StoredRunChecks
from agent_host_testing.suites.store_sessions import StoredSessionChecks
from agent_host_testing.suites.store_writers import StoreWriterChecks

__all__ = ["SessionStoreConformance"]


class SessionStoreConformance(
    StoredSessionChecks, StoredHistoryChecks, StoredRunChecks, StoredNoteChecks, StoreWriterChecks
):
    """Subclass it in a test file, name the store with ``plugin``, and say where stores may be."""
