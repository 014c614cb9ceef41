"""What a line of a batch came to, as it stands in the file of results: plain JSON.

Nothing of it depends on when or how often the line was asked, so that the results of a batch that
was gone on with are those of one that was not disturbed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from agent_hookspecs.errors import AgentError
from agent_hookspecs.logs import redact_error
from agent_host.batch.lines import Line
from agent_host.output import OutputError
from agent_host.sessions.frozen import plain_copy

if TYPE_CHECKING:
    from agent_host.application.answer import Answer

__all__ = ["BatchResult", "result_of_answer", "result_of_error", "result_of_line"]


class _Required(TypedDict):
    id: str | int | None
    line: int
    status: Literal["succeeded", "failed"]
    input: str
    settings: str


class BatchResult(_Required, total=False):
    """The result of a line. ``input`` and ``settings`` are digests of what it was asked with.

    One that has ``succeeded`` has ``text``, ``finish`` and ``usage``, and ``data`` if it had an
    ``output_schema``; one that has ``failed`` has an ``error`` with ``type`` and ``message``.
    ``batch`` is the provider's own that it came from, if it did.
    """

    text: str
    data: Any
    finish: str
    finish_reason: str | None
    limit: str | None
    refusal: str
    tool_calls: list[Any]
    usage: Mapping[str, Any]
    cost: str | None
    warnings: list[str]
    run: str
    batch: str
    error: Mapping[str, Any]
    metadata: Mapping[str, Any]


def result_of_line(line: Line, settings: str) -> BatchResult:
    """What the result of a line begins with; of one that is wrong it is all."""
    result: BatchResult = {
        "id": line.id,
        "line": line.number,
        "status": "succeeded" if line.error is None else "failed",
        "input": line.digest,
        "settings": settings,
    }
    if line.error is not None:
        result["error"] = line.error.to_dict()
    if line.content.get("metadata"):
        result["metadata"] = line.content["metadata"]
    return result


def result_of_answer(head: BatchResult, answer: Answer[Any], wants_data: bool) -> BatchResult:
    """The result of a line that has an answer."""
    cost = answer.cost
    result: BatchResult = {
        **head,
        "text": answer.text,
        "finish": answer.finish,
        "finish_reason": answer.finish_reason,
        "usage": cast("Mapping[str, Any]", plain_copy(answer.usage)),
        "cost": None if cost is None else str(cost),
    }
    calls = [
        call for message in answer.messages for call in message["metadata"].get("tool_calls") or ()
    ]
    if calls:
        result["tool_calls"] = plain_copy(calls)
    if answer.limit is not None:
        result["limit"] = answer.limit
    if answer.refusal:
        result["refusal"] = answer.refusal
    if answer.warnings:
        result["warnings"] = [warning["message"] for warning in answer.warnings]
    if answer.run is not None:
        result["run"] = answer.run
    if wants_data:
        try:
            result["data"] = plain_copy(answer.data)
        except OutputError as error:
            return result_of_error(result, error)
    return result


def result_of_error(head: BatchResult, error: AgentError) -> BatchResult:
    """The result of a line that has failed."""
    redact_error(error)
    return {**head, "status": "failed", "error": error.to_dict()}
