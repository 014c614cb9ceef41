"""Sessions, runs, questions and leases as rows of tables.

The order of columns stands here once; statements name them from these lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from agent_hookspecs.store.encoding import decode_item, encode_item
from agent_hookspecs.store.owners import Owner
from agent_hookspecs.store.rules import clean_text
from agent_hookspecs.store.values import Question, SessionLease, SessionSummary, StoredRun

__all__ = [
    "LEASE_COLUMNS",
    "QUESTION_COLUMNS",
    "RUN_COLUMNS",
    "SESSION_COLUMNS",
    "lease_from_row",
    "lease_row",
    "question_row",
    "run_from_row",
    "run_row",
    "session_from_row",
    "session_row",
]

#: The columns of a session that its summary consists of.
SESSION_COLUMNS = (
    "id",
    "name",
    "title",
    "created",
    "updated",
    "message_count",
    "parent",
    "shared_count",
    "has_content",
)
#: The columns of a run as its writer states them.
RUN_COLUMNS = (
    "id",
    "session",
    "state",
    "parent",
    "agent",
    "provider",
    "model",
    "created",
    "updated",
    "ended",
    "usage",
    "cost",
    "reason",
    "error",
    "details",
)
#: The columns of a question.
QUESTION_COLUMNS = ("run", "position", "id", "kind", "shown", "digest", "answer")
#: The columns of a lease.
LEASE_COLUMNS = ("session", "token", "owner", "expires")


def session_row(session: SessionSummary) -> tuple[Any, ...]:
    values = [getattr(session, column) for column in SESSION_COLUMNS]
    return (*values[:-1], int(session.has_content))


def session_from_row(row: Sequence[Any], owner: Owner | None = None) -> SessionSummary:
    values = dict(zip(SESSION_COLUMNS, row, strict=True))
    return SessionSummary(**{**values, "has_content": bool(values["has_content"])}, owner=owner)


def run_row(run: StoredRun) -> tuple[Any, ...]:
    return (
        run.id,
        run.session,
        run.state,
        run.parent,
        _text(run.agent),
        _text(run.provider),
        _text(run.model),
        run.created,
        run.updated,
        run.ended,
        encode_item(run.usage),
        None if run.cost is None else str(run.cost),
        _text(run.reason),
        None if run.error is None else encode_item(run.error),
        encode_item(run.details),
    )


def run_from_row(
    row: Sequence[Any], cancel_requested: bool, questions: Iterable[Sequence[Any]]
) -> StoredRun:
    """``questions`` are the rows of the run's questions, in order."""
    values = dict(zip(RUN_COLUMNS, row, strict=True))
    values["usage"] = decode_item(values["usage"])
    values["cost"] = None if values["cost"] is None else Decimal(values["cost"])
    values["error"] = None if values["error"] is None else decode_item(values["error"])
    values["details"] = decode_item(values["details"])
    return StoredRun(
        **values,
        cancel_requested=bool(cancel_requested),
        questions=tuple(map(_question_from_row, questions)),
    )


def _text(value: str | None) -> str | None:
    return None if value is None else clean_text(value)


def question_row(run: str, position: int, question: Question) -> tuple[Any, ...]:
    answer = None if question.answer is None else encode_item(question.answer)
    shown = encode_item(question.shown)
    return run, position, question.id, question.kind, shown, question.digest, answer


def _question_from_row(row: Sequence[Any]) -> Question:
    _, _, id, kind, shown, digest, answer = row
    return Question(
        id=id,
        kind=kind,
        shown=decode_item(shown),
        digest=digest,
        answer=None if answer is None else decode_item(answer),
    )


def lease_row(lease: SessionLease) -> tuple[Any, ...]:
    return lease.session, lease.token, encode_item(lease.owner.to_dict()), lease.expires


def lease_from_row(row: Sequence[Any]) -> SessionLease:
    session, token, owner, expires = row
    return SessionLease(session, token, Owner(**decode_item(owner)), expires)
