"""Anthropic's Message Batches."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from agent_host_testing.batches import BatchDesk, KeptBatch, allow_keys, line_request
from agent_host_testing.formats.checks import Node, Refused, legal, unique
from agent_host_testing.formats.encoding import compact
from agent_host_testing.wire import Problem, Request

__all__ = ["AnthropicBatchDesk"]

_ADDRESS = re.compile(r"/v1/messages/batches(?:/([^/]+)(/cancel|/results)?)?")
_CUSTOM_ID = legal("[a-zA-Z0-9_-]{1,64}", "custom_id")


class AnthropicBatchDesk(BatchDesk):
    def has_address(self, request: Request) -> bool:
        return _ADDRESS.fullmatch(request.path) is not None

    def respond(self, request: Request) -> tuple[str, bytes]:
        found = _ADDRESS.fullmatch(request.path)
        assert found is not None, "has_address has looked"
        match request.method, found[1], found[2]:
            case "POST", None, None:
                return self._json(self._make(request), request)
            case "GET", None, None:
                return self._page(request)
            case "GET", id, None:
                return self._json(self.look_at(id), request)
            case "GET", id, "/results":
                return "application/x-jsonl", _results(self.find(id))
            case "POST", id, "/cancel":
                batch = self.find(id)
                self.end(batch, "cancelled")
                return self._json(batch, request)
        raise Refused(Problem("no such method", "batches are made and looked at", "", 405))

    def _make(self, request: Request) -> KeptBatch:
        node = Node(request.body)
        allow_keys(node, ("requests",))
        entries = node.child("requests").items(1)
        for entry in entries:
            allow_keys(entry, ("custom_id", "params"))
            _CUSTOM_ID(entry.child("custom_id"))
            if entry.child("params").fields().get("stream"):
                entry.child("params").refuse("stream is not supported", "batches do not stream")
        unique((entry.child("custom_id") for entry in entries), "custom_id")
        lines = {
            each.value["custom_id"]: line_request(request, "/v1/messages", each.value["params"])
            for each in entries
        }
        return self.keep("msgbatch_", lines)

    def _page(self, request: Request) -> tuple[str, bytes]:
        latest = self.kept[::-1]
        if after := request.query.get("after_id"):
            latest = latest[1 + [each.id for each in latest].index(after) :]
        most = int(request.query.get("limit") or 20)
        page = [_told(each, request) for each in latest[:most]]
        ids = [each["id"] for each in page]
        listing = {"data": page, "has_more": len(latest) > most}
        ends = {"first_id": ids[0], "last_id": ids[-1]} if ids else {}
        return "application/json", compact({**listing, **ends}).encode()

    def _json(self, batch: KeptBatch, request: Request) -> tuple[str, bytes]:
        return "application/json", compact(_told(batch, request)).encode()


def _told(batch: KeptBatch, request: Request) -> dict[str, Any]:
    created = datetime.fromtimestamp(batch.created, timezone.utc)
    answered, left = len(batch.answers), len(batch.lines) - len(batch.answers)
    results = f"http://{request.header('host')}/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "in_progress" if batch.ending is None else "ended",
        "request_counts": {
            "processing": left if batch.ending is None else 0,
            "succeeded": answered - batch.refusal_count,
            "errored": batch.refusal_count,
            "canceled": left if batch.ending == "cancelled" else 0,
            "expired": left if batch.ending == "expired" else 0,
        },
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "expires_at": created.isoformat().replace("+00:00", "Z"),
        "ended_at": None,
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": results if batch.ending is not None else None,
    }


def _results(batch: KeptBatch) -> bytes:
    if batch.ending is None:
        raise Refused(Problem("it has not ended", "results are there once a batch has ended"))
    lines = []
    # The order is not that of the requests.
    for id in reversed(batch.lines):
        answer = batch.answers.get(id)
        result: dict[str, Any]
        if answer is None:
            result = {"type": "canceled" if batch.ending == "cancelled" else "expired"}
        elif answer.status >= 400:
            result = {"type": "errored", "error": answer.body}
        else:
            result = {"type": "succeeded", "message": answer.body}
        lines.append(compact({"custom_id": id, "result": result}).encode() + b"\n")
    return b"".join(lines)
