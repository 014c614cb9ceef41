"""Gemini's streamGenerateContent as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.formats.pieces import CALL, arguments_of, as_json, words


def events(content: str, count: int) -> Iterator[bytes]:
    if content in ("string", "objects"):
        call = {"functionCall": {"name": CALL, "args": arguments_of(content, count)}}
        yield _event(_answer(call, count, "STOP"))
        return
    about = {"thought": True} if content == "reasoning" else {}
    for number, word in enumerate(words(count), 1):
        yield _event(_answer({"text": word, **about}, number))
    yield _event(_answer({"text": ""}, count, "STOP"))


def _event(answer: dict[str, Any]) -> bytes:
    return b"data: %s\r\n\r\n" % as_json(answer)


def _answer(part: dict[str, Any], count: int, reason: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    counts = {"promptTokenCount": 20, "candidatesTokenCount": count, "totalTokenCount": count + 20}
    details = [{"modality": "TEXT", "tokenCount": 20}]
    return {
        "candidates": [candidate],
        "usageMetadata": {**counts, "promptTokensDetails": details},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "nXbqaLzUGqOfz7IP1dSG6A8",
    }


def whole(count: int) -> dict[str, Any]:
    return _answer({"text": "".join(words(count))}, count, "STOP")


def listing() -> dict[str, Any]:
    entry = {
        "name": "models/gemini-2.5-flash",
        "displayName": "Gemini 2.5 Flash",
        "supportedGenerationMethods": ["generateContent"],
        "thinking": True,
    }
    return {"models": [entry]}
