"""Gemini's batches: requests that are answered within a day, at half the price.

Owns what is asked of ``batchGenerateContent`` and of the operations that it begins. The requests go
inline, and so do the answers, so that nothing is left in the user's files. It must not know what a
request says.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from agent_hookspecs import Config, ProtocolError, RequestSpec
from agent_hookspecs.batch import BatchReply, SubmittedBatch
from agent_host_google.vertex import vertex_base

__all__ = ["GoogleBatches", "batch_endpoint"]

_METHOD = ":generateContent"
_PAGE = 100
_STATE = "BATCH_STATE_"
_OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
#: The HTTP status of each code of an error that has none.
#: They are counted from 1.
_STATUSES = dict(
    enumerate((499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401), 1)
)


def batch_endpoint(config: Config, request: RequestSpec) -> GoogleBatches | None:
    """The endpoint for a request; None at Vertex, whose batches go through its own storage."""
    is_known = vertex_base(config) is None and request["url"].endswith(_METHOD)
    return GoogleBatches(request) if is_known else None


class GoogleBatches:
    """See `agent_hookspecs.batch.BatchEndpoint`."""

    #: The API bounds the bytes alone; a little is left for what stands around the requests.
    max_requests = 100_000
    max_bytes = 19_000_000
    price_share = 0.5

    def __init__(self, request: RequestSpec) -> None:
        self._headers = {**request["headers"]}
        #: The address of the model, and of the API.
        self._model = request["url"].removesuffix(_METHOD)
        version, _, _ = self._model.rpartition("/")
        self._base = version.rpartition("/")[0]
        self.group = self._model

    def encode_request(self, id: str, request: RequestSpec) -> bytes:
        """One of the ``requests``, with its id beside it."""
        line = {"request": request["body"], "metadata": {"key": id}}
        return json.dumps(line, separators=(",", ":")).encode()

    def submit(
        self, mark: str, requests: Sequence[bytes]
    ) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """Submit the requests; the mark is the name that people see."""
        head = f'{{"batch":{{"displayName":"{mark}","inputConfig":{{"requests":{{"requests":['
        spec: RequestSpec = {
            "method": "POST",
            "url": f"{self._model}:batchGenerateContent",
            "headers": {**self._headers, "content-type": "application/json"},
            "body": head.encode() + b",".join(requests) + b"]}}}}",
        }
        return _read_batch((yield spec))

    def list_batches(self, since: float) -> Generator[RequestSpec, Any, list[SubmittedBatch]]:
        """The batches of the project."""
        found: list[SubmittedBatch] = []
        token = ""
        while True:
            page = yield self._ask("GET", f"batches?pageSize={_PAGE}{token}")
            found += [_read_batch(each) for each in _object(page).get("operations") or ()]
            if not page.get("nextPageToken"):
                return found
            token = f"&pageToken={quote(page['nextPageToken'], safe='')}"

    def look_up(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """How far a batch is."""
        return _read_batch((yield self._ask("GET", quote(id))))

    def cancel(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """End a batch, unless it is over."""
        now = yield from self.look_up(id)
        if not now.is_over:
            yield self._ask("POST", f"{quote(id)}:cancel")
        return now

    def result_requests(self, batch: SubmittedBatch) -> list[RequestSpec]:
        """The request for the operation, which has the answers once it is over."""
        return [{**self._ask("GET", quote(batch.id)), "framing": "json"}]

    def read_replies(self, document: Any) -> Iterator[BatchReply]:
        """The replies in an operation."""
        operation = _object(document)
        output = operation.get("response") or _metadata(operation).get("output") or {}
        inlined = output.get("inlinedResponses") or {}
        for each in inlined.get("inlinedResponses") or ():
            id = str((each.get("metadata") or {}).get("key") or "")
            error = each.get("error")
            if isinstance(each.get("response"), dict):
                yield BatchReply(id, 200, each["response"])
            elif isinstance(error, dict):
                status = _STATUSES.get(int(error.get("code") or 0), 500)
                # As it is told of a request by itself.
                yield BatchReply(id, status, {"error": {**error, "code": status}})
            else:
                yield BatchReply(id, None)

    def _ask(self, method: str, path: str) -> RequestSpec:
        return {"method": method, "url": f"{self._base}/{path}", "headers": self._headers}


def _read_batch(told: Any) -> SubmittedBatch:
    operation = _object(told)
    metadata = _metadata(operation)
    counts: Mapping[str, Any] = metadata.get("batchStats") or {}
    # Numbers of 64 bits are text in Google's JSON, and those that are 0 are left out.
    total, pending = (
        int(counts.get("requestCount") or 0),
        int(counts.get("pendingRequestCount") or 0),
    )
    state = str(metadata.get("state") or "").removeprefix(_STATE).removeprefix("JOB_STATE_")
    error = operation.get("error")
    told_why = error.get("message") if isinstance(error, dict) else None
    why = "" if state == "SUCCEEDED" else f"it was {state.lower()}" if state in _OVER else ""
    return SubmittedBatch(
        id=str(operation.get("name") or metadata.get("name")),
        is_over=state in _OVER or bool(operation.get("done")),
        mark=str(metadata.get("displayName") or ""),
        total=total,
        done=total - pending,
        failed=int(counts.get("failedRequestCount") or 0),
        created=_time(metadata.get("createTime")),
        problem=str(told_why or why),
    )


def _metadata(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = operation.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _time(told: object) -> float | None:
    """A time in UTC, to the second: the oldest Python reads fractions of three or six digits."""
    if not isinstance(told, str):
        return None
    try:
        return datetime.fromisoformat(f"{told[:19]}+00:00").timestamp()
    except ValueError:
        # Nothing is lost: it is a time that nobody has told.
        return None


def _object(told: Any) -> dict[str, Any]:
    if isinstance(told, dict):
        return told
    raise ProtocolError(
        "the answer is none of Gemini's batches",
        hint="check the base URL: the server behind it may have no batches; --engine local asks "
        "for each line",
    )
