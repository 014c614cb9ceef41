"""Gemini's batches: operations whose requests and answers are inline."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from agent_host_testing.batches import BatchDesk, KeptBatch, allow_keys, line_request
from agent_host_testing.formats.checks import Node, Refused, text
from agent_host_testing.formats.encoding import compact
from agent_host_testing.wire import Problem, Request

__all__ = ["GoogleBatchDesk"]

_MAKE = re.compile(r"(/v1(?:beta)?/models/[^/:]+):batchGenerateContent")
_ADDRESS = re.compile(r"/v1(?:beta)?/(batches(?:/[^/:]+)?)(:cancel)?")
_STATES = {
    "ended": "SUCCEEDED",
    "cancelled": "CANCELLED",
    "expired": "EXPIRED",
    "failed": "FAILED",
    None: "PENDING",
}
#: What the RPC below has for a status of HTTP.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 429: 8, 500: 13, 503: 14}


class GoogleBatchDesk(BatchDesk):
    def has_address(self, request: Request) -> bool:
        return bool(_MAKE.fullmatch(request.path) or _ADDRESS.fullmatch(request.path))

    def respond(self, request: Request) -> tuple[str, bytes]:
        if request.method == "POST" and (made := _MAKE.fullmatch(request.path)):
            return _json(_operation(self._make(request, made[1])))
        found = _ADDRESS.fullmatch(request.path)
        if found is not None and request.method == "GET" and found[2] is None:
            if found[1] == "batches":
                return self._page(request)
            return _json(_operation(self.look_at(found[1])))
        if found is not None and request.method == "POST" and found[2] is not None:
            self.end(self.find(found[1]), "cancelled")
            return _json({})
        raise Refused(Problem("no such method", "batches are made and looked at", "", 404))

    def _make(self, request: Request, model: str) -> KeptBatch:
        node = Node(request.body)
        allow_keys(node, ("batch",))
        batch = node.child("batch")
        # The reference calls the name required, and Google's own client leaves it out.
        allow_keys(batch, ("inputConfig",), "displayName", "priority")
        name = text(batch.child("displayName")) if batch.has("displayName") else ""
        allow_keys(batch.child("inputConfig"), ("requests",))
        requests = batch.child("inputConfig").child("requests")
        allow_keys(requests, ("requests",))
        lines: dict[str, Request] = {}
        for entry in requests.child("requests").items(1):
            allow_keys(entry, ("request",), "metadata")
            metadata = entry.child("metadata")
            key = text(metadata.need("key")) if metadata.value else str(len(lines))
            body = entry.child("request").fields()
            lines[key] = line_request(request, f"{model}:generateContent", body)
        return self.keep("batches/b", lines, name)

    def _page(self, request: Request) -> tuple[str, bytes]:
        first = int(request.query.get("pageToken") or 0)
        last = first + int(request.query.get("pageSize") or 50)
        page: dict[str, Any] = {"operations": [_operation(each) for each in self.kept[first:last]]}
        if last < len(self.kept):
            page["nextPageToken"] = str(last)
        return _json(page)


def _operation(batch: KeptBatch) -> dict[str, Any]:
    left = 0 if batch.ending else len(batch.lines) - len(batch.answers)
    counts = {
        "requestCount": len(batch.lines),
        "successfulRequestCount": len(batch.answers) - batch.refusal_count,
        "failedRequestCount": batch.refusal_count,
        "pendingRequestCount": left,
    }
    created = datetime.fromtimestamp(batch.created, timezone.utc)
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": batch.id,
        "displayName": batch.mark,
        "createTime": f"{created:%Y-%m-%dT%H:%M:%S.%f}000Z",
        # Numbers of 64 bits are text, and those that are 0 are left out.
        "batchStats": {name: str(count) for name, count in counts.items() if count},
        "state": f"BATCH_STATE_{_STATES[batch.ending]}",
    }
    operation: dict[str, Any] = {"name": batch.id, "metadata": metadata}
    if batch.ending is not None:
        operation["done"] = True
    if batch.ending in ("failed", "expired", "cancelled"):
        operation["error"] = {"code": 13, "message": batch.problem or f"batch {batch.ending}"}
    if batch.ending is not None and batch.answers:
        answers = [_answer(batch, id) for id in batch.lines if id in batch.answers]
        metadata["output"] = {"inlinedResponses": {"inlinedResponses": answers}}
    if batch.ending == "ended":
        # An operation has either an error or a response.
        operation["response"] = metadata["output"]
    return operation


def _answer(batch: KeptBatch, id: str) -> dict[str, Any]:
    answer, metadata = batch.answers[id], {"key": id}
    if answer.status < 400:
        return {"response": answer.body, "metadata": metadata}
    told = answer.body.get("error") or {}
    error = {"code": _CODES.get(answer.status, 13), "message": told.get("message", "")}
    return {"error": error, "metadata": metadata}


def _json(document: Any) -> tuple[str, bytes]:
    return "application/json; charset=UTF-8", compact(document).encode()
