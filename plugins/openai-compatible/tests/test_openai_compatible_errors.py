"""Refusals whose words say more than their status, and those that are left to the host."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_hookspecs import errors
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.errors import reported_error


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"code": "content_filter", "message": "no"}}, errors.ContentBlockedError),
        (403, {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["x"]}}},
         errors.ContentBlockedError),
        (400, {"error": {"code": "tool_use_failed", "message": "x"}}, errors.MalformedCallError),
        (400, {"error": {"code": "model_not_found", "message": "x"}}, errors.ModelNotFoundError),
        (400, {"code": "bad", "error": "Incorrect API key provided"}, errors.AuthenticationError),
        (400, {"error": {"type": "too_many_prompt_tokens", "message": "x", "code": 400}},
         errors.ContextLengthError),
        (400, {"error": {"type": "requested_too_many_tokens", "message": "x", "code": 400}},
         errors.ContextLengthError),
    ],
)  # fmt: skip
def test_a_refusal_is_typed_by_its_words(status: int, body: Any, kind: type[Exception]) -> None:
    found = ChatCompletionsProvider().map_error(status, {}, json.dumps(body).encode())
    assert type(found) is kind
    assert isinstance(found, errors.ProviderError)
    assert (found.status, found.provider) == (status, "custom")
    assert found.hint


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"error": {"message": "bad key", "code": "invalid_api_key"}}'),
        (404, b'{"error": {"code": "model_not_found"}}'),
        (429, b'{"error": {"message": "slow"}}'),
        (422, b'{"detail": [{"msg": "field required"}]}'),
        (500, b'{"message": "oops"}'),
        (502, b"<html></html>"),
        (400, b'["odd"]'),
        (400, b"null"),
        (503, b""),
    ],
)
def test_what_the_status_tells_is_left_to_the_host(status: int, body: bytes) -> None:
    assert ChatCompletionsProvider().map_error(status, {}, body) is None


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": "insufficient_quota", "message": "x"}, errors.RateLimitError, False),
        ({"code": 402, "message": "no credit"}, errors.RateLimitError, False),
        ({"code": "429", "message": "x"}, errors.RateLimitError, True),
        ({"code": 502, "message": "x"}, errors.ServerError, True),
        ({"code": 503, "message": "x"}, errors.OverloadedError, True),
        ({"type": "overloaded_error"}, errors.OverloadedError, True),
        ({"message": "This model's maximum context length is 5"}, errors.ContextLengthError, False),
        ({"code": 401}, errors.AuthenticationError, False),
        ({"code": "context_length_exceeded", "status": 500}, errors.ContextLengthError, False),
        (
            {"innererror": {"code": "content_filter"}, "code": 400},
            errors.ContentBlockedError,
            False,
        ),
        ({}, errors.ServerError, True),
    ],
)
def test_errors_in_answers_are_typed_by_code_type_and_words(
    error: Any, kind: type[Exception], retryable: bool
) -> None:
    found = reported_error(error, provider="p")
    assert type(found) is kind
    assert found.retryable is retryable


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("boom", "Provider returned error (boom)"),
        ('{"error": {"message": "no such tool", "code": 3}}', "(no such tool)"),
        ({"error": {"message": "no such tool"}}, "(no such tool)"),
    ],
)
@pytest.mark.parametrize(("status", "kind"), [
    (400, errors.InvalidRequestError), (429, errors.RateLimitError), (502, errors.ServerError),
])  # fmt: skip
def test_a_refusal_of_a_router_tells_what_its_upstream_said(
    status: int, kind: type[Exception], raw: Any, words: str
) -> None:
    error = {"code": status, "message": "Provider returned error", "metadata": {"raw": raw}}
    found = ChatCompletionsProvider().map_error(status, {}, json.dumps({"error": error}).encode())
    assert type(found) is kind
    assert words in found.message


def test_a_word_beside_a_bare_error_is_the_code() -> None:
    body = b'{"code": "invalid-argument", "error": "Incorrect API key provided: xa***"}'
    found = ChatCompletionsProvider().map_error(400, {}, body)
    assert isinstance(found, errors.AuthenticationError)
    assert found.code == "invalid-argument"


def test_the_upstream_of_a_router_is_quoted() -> None:
    error = {"code": 502, "message": "Provider returned error", "metadata": {"raw": "boom"}}
    assert "Provider returned error (boom)" in reported_error(error, provider="p").message
