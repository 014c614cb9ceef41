"""Stored sessions and runs, and what they have used, as the page shows them."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from starlette.requests import Request

from agent_host_gateway.access import Caller
from agent_host_gateway.console.bodies import Row, read_number, read_object, read_text
from agent_host_gateway.refusals import Refused
from agent_host_gateway.server import Gateway

__all__ = ["PAGE", "Records"]

#: Begins the models that a key has used through the page, whose runs are stored besides.
PAGE = "page:"

_MANY = 100
_MESSAGES = 400
_STATES = ("pending", "running", "waiting", "succeeded", "failed", "cancelled")
#: How many runs are counted for the charts.
_COUNTED = 5000
_DAY = 86400


class Records:
    """What the store of an application holds."""

    def __init__(self, gateway: Gateway, application: Any) -> None:
        self._gateway = gateway
        self._application = application

    def routes(self) -> list[Row]:
        return [
            ("GET", "sessions", self._list_sessions),
            ("GET", "sessions/{session}", self._read_session),
            ("POST", "sessions/{session}/branch", self._branch),
            ("POST", "sessions/{session}/name", self._rename),
            ("DELETE", "sessions/{session}", self._delete),
            ("GET", "search", self._search),
            ("GET", "runs", self._list_runs),
            ("GET", "runs/{run}", self._read_run),
            ("GET", "usage", self._tell_usage),
        ]

    def _sessions(self) -> Any:
        if self._gateway.conversations.sessions is None:
            raise Refused('nothing is stored; put store = "sqlite:" into the config')
        return self._application.sessions

    async def _list_sessions(self, request: Request, caller: Caller) -> Any:
        skip = read_number(request.query_params, "skip", 0, 10**6)
        found = await asyncio.to_thread(self._sessions().list, _MANY + 1, skip)
        return {
            "sessions": [_plain_session(each) for each in found[:_MANY]],
            "more": len(found) > _MANY,
        }

    async def _read_session(self, request: Request, caller: Caller) -> Any:
        return await asyncio.to_thread(self._read_messages, request.path_params["session"])

    def _read_messages(self, name: str) -> Any:
        sessions = self._sessions()
        found = sessions.find(name)
        count = found.message_count
        messages = sessions.read_latest(found.id, min(count, _MESSAGES)) if count else []
        waiting = self._application.runs.list(states=("waiting",), session=found.id, limit=1)
        going_on = self._application.runs.list(states=("running",), session=found.id, limit=1)
        return {
            **_plain_session(found),
            "first": count - len(messages),
            "messages": [*messages],
            "waiting": _plain_run(waiting[0]) if waiting else None,
            "running": _plain_run(going_on[0]) if going_on else None,
        }

    async def _branch(self, request: Request, caller: Caller) -> Any:
        given = await read_object(request, 10_000)
        count, name = given.get("count"), read_text(given, "name") or None
        if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
            raise Refused("'count' is no number of messages", param="count")
        branch = await asyncio.to_thread(
            lambda: self._sessions().branch(request.path_params["session"], count, name=name)
        )
        return _plain_session(branch)

    async def _rename(self, request: Request, caller: Caller) -> Any:
        name = read_text(await read_object(request, 10_000), "name", most=200).strip() or None
        session = request.path_params["session"]
        return _plain_session(await asyncio.to_thread(self._sessions().rename, session, name))

    async def _delete(self, request: Request, caller: Caller) -> Any:
        found = await asyncio.to_thread(self._sessions().delete, request.path_params["session"])
        return _plain_session(found)

    async def _search(self, request: Request, caller: Caller) -> Any:
        text = request.query_params.get("q", "").strip()[:1000]
        found = await asyncio.to_thread(self._sessions().search, text, 50) if text else []
        return {
            "found": [
                {
                    "session": each.session,
                    "place": each.place,
                    "role": each.role,
                    "excerpt": each.excerpt,
                }
                for each in found
            ]
        }

    async def _list_runs(self, request: Request, caller: Caller) -> Any:
        self._sessions()
        state = request.query_params.get("state", "")
        if state and state not in _STATES:
            raise Refused(f"there is no state {state[:50]!r}", param="state")
        skip = read_number(request.query_params, "skip", 0, 10**6)
        found = await asyncio.to_thread(
            lambda: self._application.runs.list(
                states=(state,) if state else (), limit=_MANY + 1, skip=skip
            )
        )
        return {"runs": [_plain_run(each) for each in found[:_MANY]], "more": len(found) > _MANY}

    async def _read_run(self, request: Request, caller: Caller) -> Any:
        self._sessions()
        found = await asyncio.to_thread(self._application.runs.find, request.path_params["run"])
        return _plain_run(found)

    async def _tell_usage(self, request: Request, caller: Caller) -> Any:
        days = read_number(request.query_params, "days", 30, 366)
        return await asyncio.to_thread(self._count_usage, days)

    def _count_usage(self, days: int) -> Any:
        """What runs have used by day and model, and what keys have, as far as each is known."""
        since = time.time() - days * _DAY
        rows: list[dict[str, Any]] = []
        is_cut = False
        if self._gateway.conversations.sessions is not None:
            runs = self._application.runs
            counted = 0
            while counted < _COUNTED:
                found = runs.list(limit=500, skip=counted)
                counted += len(found)
                recent = [each for each in found if each.created >= since]
                rows += map(_used_by_run, recent)
                if len(found) < 500 or len(recent) < len(found):
                    break
            else:
                is_cut = True
        keys = {key.id: key.name for key in self._gateway.access.known_keys()}
        for row in self._gateway.spending.rows(_day_of(since)):
            rows.append(_used_by_key(row, keys))
        return {"rows": _sum(rows), "days": days, "cut": is_cut}


def _used_by_run(run: Any) -> dict[str, Any]:
    return {
        "day": _day_of(run.created),
        "model": f"{run.provider or '?'}/{run.model or '?'}",
        "key": "",
        "is_run": True,
        "requests": 1,
        "input": run.usage.get("input", 0),
        "output": run.usage.get("output", 0),
        "cost": None if run.cost is None else run.cost,
    }


def _used_by_key(row: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    _, is_of_page, model = row["model"].rpartition(PAGE)
    # Where no cost was told it was added up as nothing.
    cost = row["cost"] or None
    named = keys.get(row["key"], row["key"])
    return {**row, "key": named, "model": model, "cost": cost, "is_run": bool(is_of_page)}


def _sum(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each day, model and key; a cost of which a part is unknown is unknown."""
    joined: dict[tuple[str, str, str, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        joined[row["day"], row["model"], row["key"], row["is_run"]].append(row)
    return [
        {
            "day": day,
            "model": model,
            "key": key,
            "is_run": is_run,
            "requests": sum(each["requests"] for each in same),
            "input": sum(each["input"] or 0 for each in same),
            "output": sum(each["output"] or 0 for each in same),
            "cost": _add_costs([each["cost"] for each in same]),
        }
        for (day, model, key, is_run), same in sorted(joined.items())
    ]


def _add_costs(costs: list[Any]) -> float | None:
    if any(cost is None for cost in costs):
        return None
    return float(sum(Decimal(str(cost)) for cost in costs))


def _day_of(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def _plain_session(found: Any) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "title": found.title,
        "created": found.created,
        "updated": found.updated,
        "count": found.message_count,
        "parent": found.parent,
    }


def _plain_run(run: Any) -> dict[str, Any]:
    return {
        "id": run.id,
        "session": run.session,
        "state": run.state,
        "agent": run.agent,
        "provider": run.provider,
        "model": run.model,
        "created": run.created,
        "ended": run.ended,
        "usage": {
            key: value for key, value in run.usage.items() if isinstance(value, (int, float))
        },
        "cost": None if run.cost is None else str(run.cost),
        "reason": run.reason,
        "error": None if run.error is None else dict(run.error),
        "questions": [
            {"id": each.id, "kind": each.kind, "shown": dict(each.shown)}
            for each in run.questions
            if each.answer is None and run.state == "waiting"
        ],
    }
