"""OpenAI's files and batches, as far as batches need them."""

from __future__ import annotations

import json
import re
from typing import Any

from agent_host_testing.batches import (
    BatchDesk,
    KeptBatch,
    allow_keys,
    find_or_refuse,
    line_request,
)
from agent_host_testing.formats.checks import Node, Refused, one_of, text
from agent_host_testing.formats.encoding import compact
from agent_host_testing.wire import Problem, Request

__all__ = ["OpenAIBatchDesk"]

_BATCHES = re.compile(r"/v1/batches(?:/([^/]+)(/cancel)?)?")
_FILES = re.compile(r"/v1/files(?:/([^/]+)/content)?")
_ENDPOINTS = ("/v1/responses", "/v1/chat/completions")
_LINE = ("custom_id", "method", "url", "body")
_PART = re.compile(rb'name="([^"]+)"[^\r]*\r\n(?:[^\r]+\r\n)*\r\n(.*)\r\n', re.DOTALL)
_STATES = {
    "ended": "completed",
    "cancelled": "cancelled",
    "expired": "expired",
    "failed": "failed",
    None: "in_progress",
}


class OpenAIBatchDesk(BatchDesk):
    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, bytes] = {}

    def has_address(self, request: Request) -> bool:
        return bool(_BATCHES.fullmatch(request.path) or _FILES.fullmatch(request.path))

    def respond(self, request: Request) -> tuple[str, bytes]:
        if found := _FILES.fullmatch(request.path):
            return self._file(request, found[1])
        found = _BATCHES.fullmatch(request.path)
        assert found is not None, "has_address has looked"
        match request.method, found[1], found[2]:
            case "POST", None, None:
                return _json(_told(self._make(request)))
            case "GET", None, None:
                return self._page(request)
            case "GET", id, None:
                return _json(_told(self.look_at(id)))
            case "POST", id, "/cancel":
                batch = self.find(id)
                self.end(batch, "cancelled")
                return _json(_told(batch))
        raise Refused(Problem("no such method", "batches are made and looked at", "", 405))

    def _file(self, request: Request, id: str | None) -> tuple[str, bytes]:
        if request.method == "GET" and id is not None:
            batches = (each for each in self.kept if id.startswith(f"{each.id}-"))
            return "application/jsonl", _results(find_or_refuse(batches, f"file {id!r}"), id)
        fields = _form(request)
        one_of(b"batch")(Node(fields.get("purpose"), "purpose"))
        id = f"file-{len(self._files) + 1}"
        self._files[id] = fields.get("file") or b""
        told = {"id": id, "object": "file", "bytes": len(self._files[id]), "purpose": "batch"}
        return _json({**told, "created_at": 0, "filename": "batch.jsonl", "status": "processed"})

    def _make(self, request: Request) -> KeptBatch:
        node = Node(request.body)
        required = ("input_file_id", "endpoint", "completion_window")
        allow_keys(node, required, "metadata", "output_expires_after")
        one_of(*_ENDPOINTS)(node.child("endpoint"))
        one_of("24h")(node.child("completion_window"))
        wanted = text(node.child("input_file_id"))
        file = find_or_refuse(
            (file for id, file in self._files.items() if id == wanted), f"file {wanted!r}"
        )
        endpoint, metadata = request.body["endpoint"], request.body.get("metadata") or {}
        lines: dict[str, Request] = {}
        problem = ""
        try:
            lines = _lines(request, file, endpoint)
        except Refused as refused:
            # The file is looked at when the batch was made already.
            problem = str(refused.problem)
        mark = next(iter(metadata.values()), "")
        batch = self.keep("batch_", lines, mark, endpoint=endpoint, metadata=metadata, file=wanted)
        if problem:
            self.end(batch, "failed", problem)
        return batch

    def _page(self, request: Request) -> tuple[str, bytes]:
        latest = self.kept[::-1]
        if after := request.query.get("after"):
            latest = latest[1 + [each.id for each in latest].index(after) :]
        most = int(request.query.get("limit") or 20)
        page = [_told(each) for each in latest[:most]]
        return _json({"object": "list", "data": page, "has_more": len(latest) > most})


def _lines(origin: Request, file: bytes, endpoint: str) -> dict[str, Request]:
    lines: dict[str, Request] = {}
    models = set()
    for number, content in enumerate(file.splitlines(), 1):
        node = Node(json.loads(content), f"line {number}")
        allow_keys(node, _LINE)
        one_of("POST")(node.child("method"))
        one_of(endpoint)(node.child("url"))
        id, body = text(node.child("custom_id")), node.child("body").fields()
        if id in lines:
            node.child("custom_id").refuse("duplicate custom_id", "every custom_id is used once")
        models.add(body.get("model"))
        if len(models) > 1:
            node.refuse("another model", "the requests of a batch have the same model")
        if body.get("stream"):
            node.refuse("stream is not supported", "requests of a batch are not streamed")
        lines[id] = line_request(origin, endpoint, body)
    if not lines:
        Node(None, "file").refuse("the file is empty", "a file has at least one request")
    return lines


def _form(request: Request) -> dict[str, bytes]:
    """The fields of an uploaded form."""
    kind, _, boundary = request.header("content-type").partition("boundary=")
    if not kind.startswith("multipart/form-data") or not boundary:
        Node(kind, "content-type").refuse("no form", "files come as multipart/form-data")
    parts = (b"\r\n" + request.raw).split(b"\r\n--" + boundary.encode())
    fields = {}
    for part in parts[1:-1]:
        found = _PART.search(part + b"\r\n")
        if found:
            fields[found[1].decode()] = found[2]
    return fields


def _told(batch: KeptBatch) -> dict[str, Any]:
    """A batch as the API describes it."""
    output = [id for id, answer in batch.answers.items() if answer.status < 400]
    errors = len(batch.lines) - len(output) if batch.ending == "expired" else batch.refusal_count
    is_over = batch.ending is not None
    problem = {"code": "invalid_json_line", "message": batch.problem, "param": None, "line": 1}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.known["endpoint"],
        "errors": {"object": "list", "data": [problem]} if batch.problem else None,
        "input_file_id": batch.known["file"],
        "completion_window": "24h",
        "status": _STATES[batch.ending],
        "output_file_id": f"{batch.id}-output" if is_over and output else None,
        "error_file_id": f"{batch.id}-errors" if is_over and errors else None,
        "created_at": int(batch.created),
        "request_counts": {
            "total": len(batch.lines),
            "completed": len(output),
            "failed": batch.refusal_count,
        },
        "metadata": batch.known["metadata"] or None,
    }


def _results(batch: KeptBatch, file: str) -> bytes:
    """The lines of a file of results."""
    told: list[dict[str, Any]] = []
    # The order is not that of the requests.
    for id in reversed(batch.lines):
        answer = batch.answers.get(id)
        head = {"id": f"batch_req_{len(told)}", "custom_id": id}
        is_error = answer is None or answer.status >= 400
        if is_error != file.endswith("-errors"):
            continue
        if answer is not None:
            response = {"status_code": answer.status, "request_id": "r", "body": answer.body}
            told.append({**head, "response": response, "error": None})
        elif batch.ending == "expired":
            message = "This request could not be executed before the completion window expired."
            error = {"code": "batch_expired", "message": message}
            told.append({**head, "response": None, "error": error})
    return b"".join(compact(each).encode() + b"\n" for each in told)


def _json(document: Any) -> tuple[str, bytes]:
    return "application/json", compact(document).encode()
