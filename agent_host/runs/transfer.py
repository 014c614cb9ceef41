"""Sessions as files: exactly, as lines of JSON, and for people, as Markdown.

A line says by its ``type`` what it is: the session, then its messages, natives and runs with their
events. What was exported can be imported into any store, and is then exported as the same bytes,
but for what `agent_host.runs.imported` leaves out of runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

from agent_hookspecs.errors import SessionError
from agent_hookspecs.messages import CoreMessage
from agent_hookspecs.store.errors import NotStoredError, StoreError
from agent_hookspecs.store.owners import current_owner
from agent_hookspecs.store.protocol import SessionStore
from agent_hookspecs.store.rules import new_id
from agent_hookspecs.store.values import (
    Change,
    Checkpoint,
    NativeChange,
    SessionSummary,
    StoredHistory,
    StoredRun,
)
from agent_host.sessions.session import Session

if TYPE_CHECKING:
    from agent_host.runs.imported import ImportedHead

__all__ = ["export_lines", "export_markdown", "import_lines"]

_VERSION = 1
_HINT = "use what sessions export has written"
_KINDS = ("session", "message", "native", "run", "event")
#: What a store says of a run by itself.
_NOT_OURS = ("updated", "cancel_requested")
#: Where a part of a message says where its medium is.
_PLACES = ("url", "data", "file_id")


def export_lines(store: SessionStore, session: SessionSummary) -> Iterator[str]:
    """A session as lines of JSON, without line ends."""
    history = store.load_history(session.id)
    yield _line(
        "session",
        version=_VERSION,
        id=session.id,
        name=session.name,
        created=session.created,
        parent=session.parent,
        metadata=history.metadata,
        origin=history.origin,
        checkpoints=[[c.covered, c.length, c.digest] for c in history.checkpoints],
    )
    for message in history.messages:
        yield _line("message", message=message)
    for native in history.natives:
        yield _line("native", native=native)
    # From the first to the last, as they came.
    for run in reversed(_all_runs(store, session.id)):
        yield _line("run", run=_run_to_dict(run))
        after = 0
        while events := store.read_events(run.id, after):
            yield from (_line("event", run=run.id, event=each.event) for each in events)
            after = events[-1].number


def _all_runs(store: SessionStore, session_id: str) -> list[StoredRun]:
    found: list[StoredRun] = []
    while more := store.list_runs(session=session_id, limit=500, skip=len(found)):
        found += more
    return found


def _line(kind: str, **values: Any) -> str:
    # Everything but ASCII is escaped: so is half a surrogate, which no file could hold.
    return json.dumps({"type": kind, **values}, separators=(",", ":"))


def _run_to_dict(run: StoredRun) -> dict[str, Any]:
    values = {
        each.name: getattr(run, each.name) for each in fields(run) if each.name not in _NOT_OURS
    }
    questions = [
        {each.name: getattr(question, each.name) for each in fields(question)}
        for question in run.questions
    ]
    return {**values, "cost": None if run.cost is None else str(run.cost), "questions": questions}


def import_lines(
    store: SessionStore, lines: Iterable[str], *, as_new: bool = False
) -> SessionSummary:
    """Store a session that was exported; with ``as_new`` under new ids, as if it were another."""
    from agent_host.runs.imported import read_head, read_run

    read = _read_lines(lines)
    head = read_head(read["session"][0])
    session_id = new_id() if as_new else head.id
    history = _read_history(session_id, head, read)
    runs = [read_run(each.get("run"), session_id) for each in read["run"]]
    events: dict[str, list[Any]] = {run.id: [] for run in runs}
    for each in read["event"]:
        if not isinstance(each.get("event"), dict):
            raise SessionError("an event is no object", hint=_HINT)
        events.get(str(each.get("run")), []).append(each["event"])
    new_ids = {run.id: new_id() if as_new else run.id for run in runs}
    _refuse_known(store, session_id, [] if as_new else runs)
    made = SessionSummary(
        id=session_id,
        name=None if as_new else head.name,
        created=head.created or time.time(),
        parent=head.parent,
    )
    store.create_session(made)
    lease = store.acquire_lease(session_id, current_owner())
    try:
        store.append(lease, _as_change(history))
        for run in runs:
            moved = replace(
                run, id=new_ids[run.id], parent=new_ids.get(run.parent or "", run.parent)
            )
            store.append(lease, Change(run=moved, events=events[run.id]))
    except BaseException:
        store.release_lease(lease)
        store.delete_session(session_id)
        raise
    store.release_lease(lease)
    return store.find_session(session_id)


def _refuse_known(store: SessionStore, session_id: str, runs: list[StoredRun]) -> None:
    for what, find, known in (
        ("session", store.find_session, [session_id]),
        ("run", store.find_run, [run.id for run in runs]),
    ):
        for each in known:
            try:
                found = cast(Any, find)(each)
            except NotStoredError:  # Nothing is lost: it is to be new.
                continue
            if found.id == each:
                raise StoreError(
                    f"{what} {each} is stored already",
                    store=store.url,
                    hint="import it under new ids (--as-new), or delete the session first",
                )


def _read_lines(lines: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    read: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _broken_error(number, f"is not JSON: {error}") from None
        kind = line.get("type") if isinstance(line, dict) else None
        if kind not in _KINDS:
            raise _broken_error(number, "is none of an exported session")
        if not read["session"] and kind != "session":
            raise _broken_error(number, "stands before the line of the session")
        if kind == "session":
            _check_head(line, number, is_first=not read["session"])
        read[kind].append(line)
    if not read["session"]:
        raise SessionError("there is no session in it", hint="export one as JSONL")
    return read


def _check_head(line: Mapping[str, Any], number: int, *, is_first: bool) -> None:
    if not is_first:
        raise _broken_error(number, "begins another session")
    version = line.get("version")
    if not isinstance(version, int) or not isinstance(line.get("id"), str):
        raise _broken_error(number, "has no version and id")
    if version > _VERSION:
        raise SessionError(
            f"the export has version {version}, this host reads up to {_VERSION}",
            hint="upgrade agent-host-core",
        )


def _broken_error(number: int, what: str) -> SessionError:
    return SessionError(f"line {number} {what}", hint=_HINT)


def _read_history(
    session_id: str, head: ImportedHead, read: Mapping[str, list[dict[str, Any]]]
) -> StoredHistory:
    try:
        history = StoredHistory(
            messages=[each["message"] for each in read["message"]],
            metadata=head.metadata or {},
            natives=[each["native"] for each in read["native"]],
            origin=head.origin or [],
            checkpoints=[Checkpoint(*each) for each in head.checkpoints or ()],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SessionError(f"the session cannot be read: {error}", hint=_HINT) from None
    if not all(isinstance(native, dict) for native in history.natives):
        raise SessionError("a native message is no object", hint=_HINT)
    # What a message must be is the session's own rule.
    Session(history.messages, history.metadata, id=session_id)
    return history


def _as_change(history: StoredHistory) -> Change:
    natives = NativeChange(
        unchanged=0,
        added=history.natives,
        origin=history.origin,
        checkpoints=history.checkpoints,
    )
    has_natives = bool(history.checkpoints or history.origin)
    return Change(
        messages=history.messages,
        natives=natives if has_natives else None,
        metadata=history.metadata,
    )


# --- Markdown ------------------------------------------------------------------------------------

_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


def export_markdown(session: Session, summary: SessionSummary) -> Iterator[str]:
    """A session for people, as lines of Markdown; pictures stand in it."""
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.created))
    yield f"# {summary.name or summary.title or 'Session'}"
    yield ""
    yield f"Session {summary.id}, begun {day}, {session.count} messages."
    for message in session.messages:
        yield ""
        yield f"## {_heading(message)}"
        yield from _message_lines(message)


def _heading(message: CoreMessage) -> str:
    name = _NAMES.get(message["role"], message["role"])
    metadata = message["metadata"]
    if message["role"] == "tool" and metadata.get("tool_name"):
        name = f"{name}: {metadata['tool_name']}"
    return f"{name} (broken off)" if metadata.get("partial") else name


def _message_lines(message: CoreMessage) -> Iterator[str]:
    metadata, content = message["metadata"], message["content"]
    if content.strip():
        yield ""
        if message["role"] == "tool":
            yield from _fence_text(content)
        else:
            yield from content.split("\n")
    for call in metadata.get("tool_calls") or ():
        function = call.get("function") if isinstance(call.get("function"), dict) else call
        yield ""
        yield f"Calls `{function.get('name', '')}`:"
        yield ""
        arguments = function.get("arguments", function.get("input", ""))
        yield from _fence_text(arguments if isinstance(arguments, str) else json.dumps(arguments))
    envelope = message.get("toolResult") or {}
    parts = [*(message.get("multipartContent") or ()), *_parts_of(envelope)]
    for part in parts:
        yield from _part_lines(part)


def _parts_of(envelope: Mapping[str, Any]) -> list[Any]:
    content = envelope.get("content")
    return content if isinstance(content, list) else []


def _part_lines(part: object) -> Iterator[str]:
    if not isinstance(part, Mapping) or part.get("type") == "text":
        return
    content = part.get("content")
    if not isinstance(content, Mapping):
        return
    place = next((content[key] for key in _PLACES if isinstance(content.get(key), str)), "")
    if place and "data" in content and place == content["data"] and not place.startswith("data:"):
        metadata = part.get("metadata")
        kind = metadata.get("media_type") if isinstance(metadata, Mapping) else None
        kind = kind or content.get("media_type") or content.get("mime_type") or "image/png"
        place = f"data:{kind};base64,{place}"
    name = content.get("name") or part.get("type")
    yield ""
    yield f"![{name}]({place})" if part.get("type") == "image" else f"[{name}]({place})"


def _fence_text(text: str) -> Iterator[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    yield fence
    yield from text.split("\n")
    yield fence
