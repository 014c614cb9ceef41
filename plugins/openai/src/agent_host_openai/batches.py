"""OpenAI's Batch API: a file of requests that is answered within a day, at half the price.

Owns what is asked of it and what its files hold. It must not know what a request says, but for its
model: the requests of a batch have the same.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from agent_hookspecs import Config
from agent_hookspecs.batch import BatchReply, SubmittedBatch
from agent_hookspecs.errors import ProtocolError
from agent_hookspecs.messages import RequestSpec
from agent_host_openai.settings import SERVER, headers_for
from agent_host_openai_compatible.servers import endpoint, is_at_azure

__all__ = ["OpenAIBatches", "batch_endpoint"]

_ENDPOINTS = ("/chat/completions", "/responses")
_WINDOW = "24h"
#: Under this name of its metadata a batch has its mark.
_MARK = "agent_host_batch"
_BOUNDARY = "agent-host-batch-of-requests"
_PAGE = 100
_OVER = ("completed", "failed", "expired", "cancelled")


def batch_endpoint(config: Config, request: RequestSpec) -> OpenAIBatches | None:
    """The endpoint for a request; None at Azure, whose batches are deployments of their own."""
    path = urlsplit(request["url"]).path
    if is_at_azure(SERVER, config) or not path.endswith(_ENDPOINTS):
        return None
    return OpenAIBatches(config, request)


class OpenAIBatches:
    """See `agent_hookspecs.batch.BatchEndpoint`."""

    max_requests = 50_000
    max_bytes = 200_000_000
    price_share = 0.5

    def __init__(self, config: Config, request: RequestSpec) -> None:
        self._config = config
        self._headers = headers_for(config)
        path = urlsplit(request["url"]).path
        #: As the API names it, whatever stands before it at a gateway.
        self._path = f"/v1{next(each for each in _ENDPOINTS if path.endswith(each))}"
        body = request["body"]
        self.group = f"{self._url('/batches')} {self._path} {body.get('model')}"

    def encode_request(self, id: str, request: RequestSpec) -> bytes:
        """A line of the file."""
        line = {"custom_id": id, "method": "POST", "url": self._path, "body": request["body"]}
        return json.dumps(line, separators=(",", ":")).encode()

    def submit(
        self, mark: str, requests: Sequence[bytes]
    ) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """Put the requests into a file, and the file into a batch."""
        file = yield {
            "method": "POST",
            "url": self._url("/files"),
            "headers": {
                **self._headers,
                "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
            },
            "body": _form(mark, requests),
        }
        made = yield self._ask(
            "POST",
            "/batches",
            {
                "input_file_id": _object(file)["id"],
                "endpoint": self._path,
                "completion_window": _WINDOW,
                "metadata": {_MARK: mark},
            },
        )
        return _read_batch(made)

    def list_batches(self, since: float) -> Generator[RequestSpec, Any, list[SubmittedBatch]]:
        """The batches of the project, the latest first."""
        found: list[SubmittedBatch] = []
        after = ""
        while True:
            page = _object((yield self._ask("GET", f"/batches?limit={_PAGE}{after}")))
            found += [_read_batch(each) for each in page.get("data") or ()]
            if not page.get("has_more") or (found and (found[-1].created or since) < since):
                return found
            after = f"&after={quote(found[-1].id, safe='')}"

    def look_up(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """How far a batch is."""
        return _read_batch((yield self._ask("GET", f"/batches/{quote(id, safe='')}")))

    def cancel(self, id: str) -> Generator[RequestSpec, Any, SubmittedBatch]:
        """End a batch, unless it is over."""
        now = yield from self.look_up(id)
        if now.is_over:
            return now
        return _read_batch((yield self._ask("POST", f"/batches/{quote(id, safe='')}/cancel", {})))

    def result_requests(self, batch: SubmittedBatch) -> list[RequestSpec]:
        """The files with the answers and with the errors."""
        return [
            {**self._ask("GET", f"/files/{quote(file, safe='')}/content"), "framing": "ndjson"}
            for file in batch.results
        ]

    def read_replies(self, document: Any) -> Iterator[BatchReply]:
        """The reply in a line of a file."""
        line = _object(document)
        answer, error = line.get("response"), line.get("error")
        if isinstance(answer, dict):
            yield BatchReply(str(line["custom_id"]), answer["status_code"], answer.get("body"))
        else:
            problem = error.get("message") or error.get("code") if isinstance(error, dict) else ""
            yield BatchReply(str(line["custom_id"]), None, problem=str(problem or ""))

    def _ask(self, method: str, path: str, body: Any = None) -> RequestSpec:
        spec: RequestSpec = {"method": method, "url": self._url(path), "headers": self._headers}
        return spec if body is None else {**spec, "body": body}

    def _url(self, path: str) -> str:
        bare, _, query = path.partition("?")
        url = endpoint(SERVER, self._config, bare)
        return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _form(mark: str, requests: Sequence[bytes]) -> bytes:
    """The form that uploads a file of requests."""
    head = (
        f"--{_BOUNDARY}\r\n"
        'Content-Disposition: form-data; name="purpose"\r\n\r\n'
        "batch\r\n"
        f"--{_BOUNDARY}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{mark}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return b"".join((head.encode(), b"\n".join(requests), f"\r\n--{_BOUNDARY}--\r\n".encode()))


def _read_batch(told: Any) -> SubmittedBatch:
    batch = _object(told)
    counts, status = batch.get("request_counts") or {}, batch.get("status")
    files = (batch.get("output_file_id"), batch.get("error_file_id"))
    answered, failed = counts.get("completed"), counts.get("failed")
    return SubmittedBatch(
        id=batch["id"],
        is_over=status in _OVER,
        mark=(batch.get("metadata") or {}).get(_MARK, ""),
        total=counts.get("total"),
        done=None if answered is None else answered + (failed or 0),
        failed=failed,
        created=batch.get("created_at"),
        results=tuple(file for file in files if file),
        problem=_problem(batch) or ("" if status == "completed" else f"it was {status}"),
    )


def _problem(batch: dict[str, Any]) -> str:
    """Why a batch has failed as a whole, as far as it says."""
    errors = (batch.get("errors") or {}).get("data") or ()
    told = [
        f"line {each['line']} of its file: {each.get('message')}"
        if each.get("line")
        else str(each.get("message"))
        for each in errors[:3]
    ]
    return "; ".join(told)


def _object(told: Any) -> dict[str, Any]:
    if isinstance(told, dict) and ("id" in told or "data" in told or "custom_id" in told):
        return told
    raise ProtocolError(
        "the answer is none of the Batch API",
        hint="check the base URL: the server behind it may have no batches; --engine local asks "
        "for each line",
    )
