"""Anthropic's Message Batches: requests that are answered within a day, at half the price.

Owns what is asked of that API and what its results hold. It must not know what a request says. The
API keeps nothing with a batch but its requests, so that only their ids tell whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from agent_hookspecs import Config, ProtocolError, RequestSpec
from agent_hookspecs.batch import BatchReply, SubmittedBatch
from agent_host_anthropic.requests import DEFAULT_BASE_URL, endpoint
from agent_host_anthropic.vertex import vertex_base

__all__ = ["AnthropicBatches", "batch_endpoint"]

_PAGE = 100
_COUNTS = ("succeeded", "errored", "canceled", "expired")
#: The status that each kind of error has when a request is asked by itself.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def batch_endpoint(config: Config, request: RequestSpec) -> AnthropicBatches | None:
    """The endpoint for a request; None at Vertex, which has batches of another kind."""
    is_at_vertex = vertex_base(config, DEFAULT_BASE_URL) is not None
    return None if is_at_vertex else AnthropicBatches(config, request)


class AnthropicBatches:
    """See `agent_hookspecs.batch.BatchEndpoint`."""

    max_requests = 100_000
    #: A little is left for what stands around the requests.
    max_bytes = 255_000_000
    price_share = 0.5

    def __init__(self, config: Config, request: RequestSpec) -> None:
        #: With the beta features that the request asks for: they hold for a whole batch.
        self._headers = {**request["headers"]}
        self._base = endpoint(config, "messages/batches")
        betas = next((v for k, v in self._headers.items() if k.lower() == "anthropic-beta"), "")
        self.group = f"{self._base} {betas}".strip()

    def encode_request(self, id: str, request: RequestSpec) -> bytes:
        """One of the ``requests``."""
        line = {"custom_id": id, "params": request["body"]}
        return json.dumps(line, separators=(",", ":")).encode()

    def submit(
        self, mark: str, requests: Sequence[bytes]
    ) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """Submit the requests."""
        spec = self._ask("POST", "")
        spec["headers"] = {**self._headers, "content-type": "application/json"}
        spec["body"] = b'{"requests":[' + b",".join(requests) + b"]}"
        return _read_batch((yield spec))

    def list_batches(self, since: float) -> Generator[RequestSpec, Any, list[SubmittedBatch]]:
        """The batches of the workspace, the latest first."""
        found: list[SubmittedBatch] = []
        after = ""
        while True:
            page = _object((yield self._ask("GET", f"?limit={_PAGE}{after}")), "data")
            found += [_read_batch(each) for each in page["data"]]
            if not page.get("has_more") or (found and (found[-1].created or since) < since):
                return found
            after = f"&after_id={quote(found[-1].id, safe='')}"

    def look_up(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """How far a batch is."""
        return _read_batch((yield self._ask("GET", f"/{quote(id, safe='')}")))

    def cancel(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """End a batch, unless it is over."""
        now = yield from self.look_up(id)
        if now.is_over:
            return now
        return _read_batch((yield self._ask("POST", f"/{quote(id, safe='')}/cancel")))

    def result_requests(self, batch: SubmittedBatch) -> list[RequestSpec]:
        """The request for all results."""
        # Not the address that the batch names: the key goes nowhere but where the config says.
        url = f"/{quote(batch.id, safe='')}/results"
        return [{**self._ask("GET", url), "framing": "ndjson"}] if batch.results else []

    def read_replies(self, document: Any) -> Iterator[BatchReply]:
        """The reply in a line of the results."""
        line = _object(document, "custom_id")
        result, id = line.get("result") or {}, str(line["custom_id"])
        match result.get("type"):
            case "succeeded":
                yield BatchReply(id, 200, result["message"])
            case "errored":
                told = result.get("error") or {}
                # In a result it is once more within one; older ones have it by itself.
                body = told if isinstance(told.get("error"), dict) else {"error": told}
                status = _STATUSES.get(str(body["error"].get("type")), 500)
                yield BatchReply(id, status, {"type": "error", **body})
            case other:
                yield BatchReply(id, None, problem=f"it was {other}")

    def _ask(self, method: str, path: str) -> RequestSpec:
        return {"method": method, "url": f"{self._base}{path}", "headers": self._headers}


def _read_batch(told: Any) -> SubmittedBatch:
    batch = _object(told, "processing_status")
    counts: Mapping[str, int] = batch.get("request_counts") or {}
    done = sum(counts.get(name) or 0 for name in _COUNTS)
    is_over = batch["processing_status"] == "ended"
    return SubmittedBatch(
        id=batch["id"],
        is_over=is_over,
        total=done + (counts.get("processing") or 0),
        done=done,
        failed=done - (counts.get("succeeded") or 0),
        created=_time(batch.get("created_at")),
        results=(batch["id"],) if batch.get("results_url") else (),
        problem="its results are not kept any more" if is_over and batch.get("archived_at") else "",
    )


def _time(told: object) -> float | None:
    """A time in UTC, to the second: the oldest Python reads fractions of three or six digits."""
    if not isinstance(told, str):
        return None
    try:
        return datetime.fromisoformat(f"{told[:19]}+00:00").timestamp()
    except ValueError:
        # Nothing is lost: it is a time that nobody has told.
        return None


def _object(told: Any, key: str) -> dict[str, Any]:
    if isinstance(told, dict) and key in told:
        return told
    raise ProtocolError(
        "the answer is none of the Message Batches API",
        hint="check the base URL: the server behind it may have no batches; --engine local asks "
        "for each line",
    )
