"""Gemini's generateContent: its addresses and what its answers look like.

Which requests it refuses is in `google_generate_rules`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agent_host_testing.formats.encoding import arguments_value, made_signature, sse
from agent_host_testing.formats.google_generate_rules import (
    first_refusal,
    remember,
    signs_calls,
)
from agent_host_testing.formats.tool_search import refuse_search
from agent_host_testing.script import (
    Call,
    Failure,
    FailureKind,
    Finish,
    Part,
    Picture,
    Reply,
    Search,
    Text,
    Thought,
    Tokens,
)
from agent_host_testing.wire import (
    Ledger,
    Operation,
    Problem,
    Refusal,
    Request,
    WireFormat,
    pieces,
)

if TYPE_CHECKING:
    from agent_host_testing.batches import BatchDesk

__all__ = ["GoogleGenerate"]

_ADDRESS = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)")

_FINISH_REASONS: dict[Finish, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "blocked": "PROHIBITED_CONTENT",
    "refusal": "SAFETY",
    # The API pauses no turns; what it has is an end for other reasons.
    "pause": "OTHER",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
}

_FINISH_MESSAGES: dict[Finish, str] = {
    "tool_calls": "Model generated function call(s).",
    "malformed_call": "Malformed function call",
}

_ERRORS: dict[FailureKind, tuple[int, str]] = {
    # A wrong key is a bad request to this API; only the details say more.
    "authentication": (400, "INVALID_ARGUMENT"),
    "permission": (403, "PERMISSION_DENIED"),
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "model_not_found": (404, "NOT_FOUND"),
    "context_length": (400, "INVALID_ARGUMENT"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "overloaded": (503, "UNAVAILABLE"),
    "server": (500, "INTERNAL"),
}

_RATINGS = [
    {"category": f"HARM_CATEGORY_{category}", "probability": "NEGLIGIBLE"}
    for category in ("SEXUALLY_EXPLICIT", "HATE_SPEECH", "HARASSMENT", "DANGEROUS_CONTENT")
]


class GoogleGenerate(WireFormat):
    name: ClassVar[str] = "google.generate"
    whole_type: ClassVar[str] = "application/json; charset=UTF-8"
    marks_failed_results: ClassVar[bool] = True

    def operation(self, request: Request) -> Operation | None:
        if request.method == "POST" and _ADDRESS.fullmatch(request.path):
            return "generate"
        if request.method == "GET" and request.path in ("/v1beta/models", "/v1/models"):
            return "models"
        return None

    def wants_stream(self, request: Request) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def content_type(self, request: Request) -> str:
        in_events = self.wants_stream(request) and _in_events(request)
        return self.stream_type if in_events else self.whole_type

    def credential(self, request: Request) -> str | None:
        return request.header("x-goog-api-key") or request.query.get("key") or None

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return first_refusal(request, _model_name(request), ledger)

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        answer = _Answer(reply, request, ledger)
        parts = [_data(part, signature) for part, signature in answer.parts]
        # Where the last signature has no part to be on, an empty text carries it.
        parts += answer.closing
        document = answer.document(parts, done=1.0, last=True)
        return json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        answer = _Answer(reply, request, ledger)
        documents = answer.documents()
        if reply.failure is not None:
            documents.append(_error(reply.failure))
        if _in_events(request):
            return [sse(document, end="\r\n") for document in documents]
        elements = [json.dumps(document, ensure_ascii=False, indent=2) for document in documents]
        separated = ["[" + elements[0], *("\n,\n" + element for element in elements[1:]), "\n]"]
        return [element.encode() for element in separated]

    def refusal(self, failure: Failure) -> Refusal:
        status, _ = _ERRORS[failure.kind]
        body = json.dumps(_error(failure), ensure_ascii=False, indent=2)
        return Refusal(status, body.encode(), dict(failure.headers))

    def rejection(self, problem: Problem) -> Refusal:
        if problem.status == 401:
            return self.refusal(Failure("authentication", str(problem)))
        return super().rejection(problem)

    def open_desk(self) -> BatchDesk:
        from agent_host_testing.formats.google_batches import GoogleBatchDesk

        return GoogleBatchDesk()

    def models(self, names: Sequence[str], request: Request) -> bytes:
        first = int(request.query.get("pageToken") or 0)
        last = first + int(request.query.get("pageSize") or 50)
        listing: dict[str, Any] = {"models": [_model(name) for name in names[first:last]]}
        if last < len(names):
            listing["nextPageToken"] = str(last)
        return json.dumps(listing, indent=2).encode()


class _Answer:
    """One reply on its way to documents: signatures on their parts, and what all chunks share."""

    def __init__(self, reply: Reply, request: Request, ledger: Ledger) -> None:
        self._reply = reply
        self._model = _model_name(request)
        self._id = ledger.new_id("fakeResponse")
        self.parts, left = _sign_parts(_arriving_parts(reply), ledger, signs_calls(self._model))
        self.closing = [{"text": "", "thoughtSignature": left}] if left else []
        whole = [_data(part, signature) for part, signature in self.parts]
        remember([*whole, *self.closing], request, ledger)

    def documents(self) -> list[dict[str, Any]]:
        """The documents of a stream: a fragment each, all calls that stand together in one."""
        shown: list[list[dict[str, Any]]] = []
        calls_open = False
        for part, signature in self.parts:
            if isinstance(part, Call) and calls_open:
                shown[-1].append(_data(part, signature))
            else:
                shown += _fragments(part, signature, self._reply.fragments)
            calls_open = isinstance(part, Call)
        if self.closing or not shown:
            shown.append(self.closing)
        end = len(shown) if self._reply.failure is None else 0
        return [
            self.document(parts, number / len(shown), last=number == end)
            for number, parts in enumerate(shown, start=1)
        ]

    def document(self, parts: list[dict[str, Any]], done: float, *, last: bool) -> dict[str, Any]:
        """One document, when ``done`` of the answer has been said."""
        reply = self._reply
        document: dict[str, Any] = {}
        if reply.ending == "blocked" and not reply.parts:
            document["promptFeedback"] = {"blockReason": "SAFETY", "safetyRatings": _RATINGS}
        else:
            document["candidates"] = [self._candidate(parts, last)]
        if reply.tokens is not None:
            document["usageMetadata"] = _usage(reply.tokens, done)
        return {**document, "modelVersion": self._model, "responseId": self._id}

    def _candidate(self, parts: list[dict[str, Any]], last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"} if parts else {}}
        ending = self._reply.ending
        if last:
            candidate["finishReason"] = _FINISH_REASONS[ending]
        candidate["index"] = 0
        if last and ending in _FINISH_MESSAGES:
            candidate["finishMessage"] = _FINISH_MESSAGES[ending]
        if last and ending in ("blocked", "refusal"):
            candidate["safetyRatings"] = _RATINGS
        return candidate


def _arriving_parts(reply: Reply) -> list[Part]:
    """The parts that arrive: of a call the model got wrong there is only the finish reason."""
    lost = Call if reply.ending == "malformed_call" else ()
    return [part for part in reply.parts if not isinstance(part, lost)]


def _sign_parts(
    parts: Sequence[Part], ledger: Ledger, signs_calls: bool
) -> tuple[list[tuple[Part, str | None]], str | None]:
    """Each part with its signature, and a signature that is left over.

    A thought's signature is not on the thought but on what comes after it, unless that has one of
    its own. Models that sign calls sign the first of those that stand together.
    """
    signed: list[tuple[Part, str | None]] = []
    carried: str | None = None
    after_call = False
    for part in parts:
        if isinstance(part, Thought):
            carried = part.signature or carried
            if not part.redacted:
                signed.append((part, None))
            after_call = False
            continue
        if isinstance(part, Search):
            refuse_search()
        own = None if isinstance(part, Picture) else part.signature
        signature, carried = own or carried, None
        if isinstance(part, Call) and signature is None and signs_calls and not after_call:
            signature = made_signature(ledger)
        after_call = isinstance(part, Call)
        signed.append((part, signature))
    return signed, carried


def _data(part: Part, signature: str | None) -> dict[str, Any]:
    if isinstance(part, Text):
        data: dict[str, Any] = {"text": part.text}
    elif isinstance(part, Thought):
        data = {"text": part.text, "thought": True}
    elif isinstance(part, Search):
        refuse_search()
    elif isinstance(part, Picture):
        data = {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    else:
        call: dict[str, Any] = {"name": part.name, "args": arguments_value(part)}
        # This wire does without ids; one is sent where the script has one.
        data = {"functionCall": call if part.id is None else {**call, "id": part.id}}
    return data if signature is None else {**data, "thoughtSignature": signature}


def _fragments(part: Part, signature: str | None, count: int) -> list[list[dict[str, Any]]]:
    if not isinstance(part, Text | Thought):
        return [[_data(part, signature)]]
    whole = _data(part, None)
    shown = [[{**whole, "text": piece}] for piece in pieces(part.text, count)]
    if signature is not None:
        shown.append([{"text": "", "thoughtSignature": signature}])
    return shown


def _usage(tokens: Tokens, done: float) -> dict[str, Any]:
    """What has been counted by now; each document says it anew."""
    said = tokens.output - tokens.reasoning
    spoken = said if done >= 1 else int(said * done)
    usage: dict[str, Any] = {"promptTokenCount": tokens.input}
    if spoken:
        usage["candidatesTokenCount"] = spoken
    usage["totalTokenCount"] = tokens.input + spoken + tokens.reasoning
    if tokens.cached_input:
        usage["cachedContentTokenCount"] = tokens.cached_input
    usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": tokens.input}]
    if tokens.reasoning:
        usage["thoughtsTokenCount"] = tokens.reasoning
    return {**usage, "serviceTier": "standard"}


def _error(failure: Failure) -> dict[str, Any]:
    status, name = _ERRORS[failure.kind]
    error: dict[str, Any] = {"code": status, "message": failure.message, "status": name}
    if failure.kind == "context_length":
        error["message"] = (
            "The input token count (1048577) exceeds the maximum number of tokens allowed "
            f"(1048576). {failure.message}"
        )
    if failure.kind == "authentication":
        error["message"] = f"API key not valid. Please pass a valid API key. {failure.message}"
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            }
        ]
    if failure.kind == "rate_limit":
        error["details"] = [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
        ]
    return {"error": error}


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.replace("-", " ").title(),
        "description": "A model of the fake server.",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": True,
    }


def _model_name(request: Request) -> str:
    address = _ADDRESS.fullmatch(request.path)
    return address[1] if address else ""


def _in_events(request: Request) -> bool:
    return request.query.get("alt") == "sse"
