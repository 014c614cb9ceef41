"""What a suite of a store is told, and what its checks say to stores.

Each check opens the store of a place that no other check uses; opening it again is what another
process would do.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.events import Event
from agent_hookspecs.messages import CoreMessage, Role
from agent_hookspecs.store import (
    Change,
    Checkpoint,
    NativeChange,
    Owner,
    SessionLease,
    SessionStore,
    SessionSummary,
    StoreError,
    current_owner,
    new_id,
)
from agent_host_testing.store_trials import open_by_hook
from agent_host_testing.suites.checking import Conformance
from agent_host_testing.violations import Violation, require

__all__ = [
    "PAGE",
    "StoreSuite",
    "dead_owner",
    "expect_refusal",
    "message_of",
    "texts_of",
    "turn_end",
    "turn_of",
]

PAGE = "docs/stores.md"


class StoreSuite(Conformance):
    """What the checks of a store are told: where stores may be."""

    role = "store"

    def choose_place(self, folder: Path) -> tuple[str, Mapping[str, Any]]:
        """The URL of a store that no other check uses, and the options that go with it.

        ``folder`` is there for this check alone.
        """
        raise NotImplementedError(f"{type(self).__name__} must say where a store may be")

    @pytest.fixture(autouse=True)
    def _place(self, _prepare: None, tmp_path: Path) -> Iterator[None]:
        self.url, self.options = self.choose_place(tmp_path)
        self._opened: list[SessionStore] = []
        yield
        for store in self._opened:
            store.close()

    def another(self, **options: Any) -> SessionStore:
        """One more store object for the place, as the host opens it, with these options too."""
        store = open_by_hook(self.url, {**self.options, **options})
        self._opened.append(store)
        return store

    def begin(
        self, store: SessionStore, *said: str, name: str | None = None
    ) -> tuple[str, SessionLease]:
        """A new session in which this was said, and its lease."""
        session = new_id()
        store.create_session(SessionSummary(id=session, name=name))
        lease = store.acquire_lease(session, current_owner())
        if said:
            store.append(lease, Change(messages=[message_of(text) for text in said]))
        return session, lease


def message_of(content: str, role: Role = "user", **metadata: Any) -> CoreMessage:
    return {"role": role, "content": content, "metadata": metadata}


def texts_of(messages: Sequence[CoreMessage]) -> list[str]:
    return [message["content"] for message in messages]


@contextmanager
def expect_refusal(kind: type[StoreError], what: str) -> Iterator[list[StoreError]]:
    """The block must be refused with an error of this kind, which has a hint."""
    caught: list[StoreError] = []
    try:
        yield caught
    except kind as error:
        require(error.hint, f"the {type(error).__name__} says no way out")
        caught.append(error)
    else:
        raise Violation(f"{what} was not refused")


def turn_of(number: int) -> Change:
    """What a turn with one question and one answer adds to a session of such turns."""
    count = 2 * number
    return Change(
        messages=[message_of(f"ask {number}"), message_of(f"say {number}", "assistant")],
        natives=NativeChange(
            unchanged=count,
            added=[{"n": count}, {"n": count + 1}],
            origin=["acme", "https://acme.example"],
            checkpoints=[Checkpoint(count + 2, count + 2, f"digest {number}")],
        ),
    )


def turn_end(turn: int) -> Event:
    return {"type": "turn_end", "turn": turn}


def dead_owner() -> Owner:
    """A process of this machine that has ended."""
    program = "from agent_hookspecs.store import current_owner as o; import json; "
    command = [sys.executable, "-c", f"{program}print(json.dumps(o().to_dict()))"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: Mapping[str, Any] = json.loads(said)
    return Owner(**values)
