"""Retries and failures: how long to wait, and what a refusal becomes."""

from __future__ import annotations

import json
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import (
    AuthenticationError,
    ConfigError,
    ConnectionFailedError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProtocolError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamCutError,
)
from agent_hookspecs.logs import redact, remember_secrets
from agent_host.wire.failures import describe_body, failure
from agent_host.wire.retry import RetryPolicy, retry_after

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"RETRY-AFTER": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:20 -0000"}, 60.0),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after": "9" * 400}, 1e9),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "a while"}, None),
        ({"retry-after": "Tue, 99 Nov 2023 22:14:20 GMT"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, NOW) == expected


@given(st.text(max_size=40), st.sampled_from(["retry-after", "retry-after-ms"]))
def test_retry_after_never_raises_and_is_never_negative(value: str, name: str) -> None:
    wait = retry_after({name: value}, NOW)
    assert wait is None or 0 <= wait <= 1e9


def test_backoff_doubles_with_full_jitter_up_to_the_cap() -> None:
    error = ServerError("x")
    full = RetryPolicy(max_retries=9, base=0.5, cap=3.0, random=lambda: 1.0)
    assert [full.delay(n, error) for n in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    none = RetryPolicy(max_retries=9, random=lambda: 0.0)
    assert none.delay(4, error) == 0.0
    half = RetryPolicy(max_retries=9, base=1.0, random=lambda: 0.5)
    assert half.delay(1, error) == 1.0


def test_default_jitter_stays_within_the_backoff() -> None:
    policy = RetryPolicy(max_retries=5000)
    assert all(0 <= (policy.delay(2, ServerError("x")) or 0) <= 2.0 for _ in range(50))
    assert (policy.delay(4999, ServerError("x")) or 0) <= policy.cap


def test_retries_end_after_the_maximum() -> None:
    policy = RetryPolicy(max_retries=2)
    assert policy.delay(1, ServerError("x")) is not None
    assert policy.delay(2, ServerError("x")) is None
    assert RetryPolicy(max_retries=0).delay(0, ServerError("x")) is None


def test_only_retryable_errors_are_retried() -> None:
    policy = RetryPolicy()
    for error in (
        ServerError("x"),
        RateLimitError("x"),
        StreamCutError("x"),
        ConnectionFailedError("x"),
    ):
        assert policy.delay(0, error) is not None
    for refused in (
        AuthenticationError("x"),
        InvalidRequestError("x"),
        ProtocolError("x"),
        RateLimitError("x", retryable=False),
        ConfigError("x"),
    ):
        assert policy.delay(0, refused) is None


@given(st.floats(0, 60), st.floats(0, 1), st.integers(0, 3))
def test_what_the_provider_asks_for_is_the_minimum(wait: float, luck: float, attempt: int) -> None:
    policy = RetryPolicy(max_retries=4, random=lambda: luck)
    delay = policy.delay(attempt, RateLimitError("x", retry_after=wait))
    assert delay is not None
    assert wait <= delay <= wait + policy.base


def test_waits_beyond_our_patience_are_not_waited() -> None:
    error = failure(429, {"retry-after": "3600"}, b"", "acme", now=NOW)
    assert RetryPolicy().delay(0, error) is None
    assert RetryPolicy(patience=4000).delay(0, error) is not None
    assert "wait 3600 s" in error.explain()


def body(**error: Any) -> bytes:
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("status", "answer", "kind", "retryable"),
    [
        (400, body(message="bad"), InvalidRequestError, False),
        (401, b"", AuthenticationError, False),
        (402, body(message="Insufficient balance"), RateLimitError, False),
        (403, b"", AuthenticationError, False),
        (404, b"", ModelNotFoundError, False),
        (408, b"", ServerError, True),
        (409, b"", InvalidRequestError, False),
        (413, b"", InvalidRequestError, False),
        (418, b"", InvalidRequestError, False),
        (422, b"", InvalidRequestError, False),
        (429, b"", RateLimitError, True),
        (429, body(code="insufficient_quota"), RateLimitError, False),
        (429, body(type="insufficient_quota"), RateLimitError, False),
        (500, b"", ServerError, True),
        (500, body(type="overloaded_error"), OverloadedError, True),
        (502, b"", ServerError, True),
        (503, b"", OverloadedError, True),
        (504, b"", ServerError, True),
        (529, b"", OverloadedError, True),
        (302, b"", ProtocolError, False),
        (204, b"", ProtocolError, False),
        (400, body(message="API key not valid. Please pass one."), AuthenticationError, False),
        (400, body(code="context_length_exceeded"), ContextLengthError, False),
        (
            400,
            body(message="This model's maximum context length is 8192 tokens."),
            ContextLengthError,
            False,
        ),
        (
            400,
            body(message="prompt is too long: 210000 tokens > 200000"),
            ContextLengthError,
            False,
        ),
        (
            413,
            body(message="the request exceeds the available context size"),
            ContextLengthError,
            False,
        ),
        (429, body(message="context length"), RateLimitError, True),
    ],
)
def test_status_and_body_decide_the_error(
    status: int, answer: bytes, kind: type[ProviderError], retryable: bool
) -> None:
    error = failure(status, {}, answer, "acme")
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider) == (status, "acme")
    assert error.message.startswith(f"acme answered HTTP {status}")
    json.dumps(error.to_dict())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"error":{"message":"no such thing"}}', "no such thing"),
        (b'{"error":"no such thing"}', "no such thing"),
        (b'{"message":"no such thing"}', "no such thing"),
        (b'{"detail":"no such thing"}', "no such thing"),
        (b'{"detail":[{"loc":["body"],"msg":"no such thing"}]}', "no such thing"),
        (b'{"errors":[{"message":"no such thing"}]}', "no such thing"),
        (b'[{"error":{"message":"no such thing"}}]', "no such thing"),
        (b"no such thing", "no such thing"),
        (b'{"error":{}}', '{"error":{}}'),
        (b'{"unfinished', '{"unfinished'),
        (b"", "with an empty body"),
        (b" \n", "with an empty body"),
        (b"<html><head><title>502 Bad Gateway</title></head></html>", "'502 Bad Gateway'"),
        (b"<html><body>x</body></html>", "an HTML page"),
        (b"\xff\xfe", "HTTP 502"),
    ],
)
def test_message_is_found_in_every_shape_of_body(answer: bytes, words: str) -> None:
    error = failure(502, {"Content-Type": "text/html"}, answer, "acme")
    assert words in error.message


@given(st.integers(300, 599), st.binary(max_size=300))
def test_any_answer_gives_an_error(status: int, answer: bytes) -> None:
    assert isinstance(failure(status, {}, answer, None), ProviderError)


def test_deeply_nested_body_is_quoted_not_parsed() -> None:
    assert failure(500, {}, b"[" * 100_000, None).excerpt == "[" * 500


@pytest.mark.parametrize("name", ["x-request-id", "Request-Id", "X-Goog-Request-Id", "CF-Ray"])
def test_request_id_is_found(name: str) -> None:
    assert failure(500, {name: "req_1"}, b"", None).request_id == "req_1"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": "1113", "message": "no balance"}, "1113"),
        ({"code": 1113, "message": "no balance"}, "1113"),
        ({"code": "1113", "type": "invalid_request_error"}, "1113"),
        ({"code": "429", "type": "rate_limit_error"}, "rate_limit_error"),
        ({"code": 429, "status": "RESOURCE_EXHAUSTED"}, "RESOURCE_EXHAUSTED"),
        ({"code": True, "message": "no"}, None),
        ({"code": "429", "message": "no"}, None),
    ],
)
def test_codes_that_are_numbers_are_kept_unless_they_repeat_the_status(
    error: dict[str, Any], code: str | None
) -> None:
    assert failure(429, {}, json.dumps({"error": error}).encode()).code == code


def test_a_message_that_is_cut_says_so() -> None:
    body = json.dumps({"error": {"message": "word " * 1000}}).encode()
    message = failure(400, {}, body, "acme").message
    assert message.startswith("acme answered HTTP 400: word word")
    assert message.endswith("…")
    assert len(message) == 1000


def test_code_retry_after_and_the_servers_own_advice_are_kept() -> None:
    error = failure(429, {"Retry-After-Ms": "1500"}, body(message="slow", code="rate_limit"), "a")
    assert (error.code, error.retry_after) == ("rate_limit", 1.5)
    assert failure(429, {"x-should-retry": "false"}, b"", "a").retryable is False
    assert failure(409, {"x-should-retry": "true"}, b"", "a").retryable is True


def test_redirect_names_the_target_host_alone() -> None:
    error = failure(307, {"location": "https://u:p@new.example/x?key=1"}, b"", "a")
    assert "new.example" in error.hint
    assert "p@" not in error.hint
    assert "key" not in error.hint


SECRET = 'my"own/secret-value'


@pytest.mark.parametrize(
    "leak",
    [
        SECRET,
        json.dumps(SECRET),
        "https://h/?k=my%22own%2Fsecret-value",
        "Authorization: Bearer abc.def-ghi_123",
        "Incorrect API key provided: sk-proj-abc****wxyz.",
        "api_key=0123456789abcdef",
        '{"x-api-key": "0123456789abcdef"}',
        "https://h/v1?key=AIzaSyA0123456789abcdefghijk",
        "AIzaSyA0123456789abcdefghijk",
    ],
)
def test_secrets_are_masked_in_message_and_excerpt(leak: str) -> None:
    remember_secrets([SECRET, ""])
    for text in (leak, json.dumps({"error": {"message": leak}}), "x" * 490 + " " + leak):
        error = failure(401, {}, text.encode(), "acme")
        shown = f"{error.message} {error.excerpt} {error.to_dict()}"
        for part in ("secret-value", "abc.def", "sk-proj", "0123456789"):
            assert part not in shown


def test_ordinary_words_survive_redaction() -> None:
    text = "The model `gpt-x` does not exist; task-oriented keys are described at https://h/docs."
    assert redact(text) == text


def test_excerpt_is_short() -> None:
    error = failure(500, {}, b"word " * 10_000, "acme")
    assert error.excerpt is not None
    assert len(error.excerpt) <= 500
    assert len(error.message) <= 1000


def test_plain_text_is_described_by_type_and_beginning() -> None:
    assert (
        describe_body(b"hello\nyou", "text/plain").summary == "text/plain that begins 'hello you'"
    )
    assert describe_body(b"", "text/plain").summary == "an empty body"


def recorded_refusals() -> list[Any]:
    kinds = {400: InvalidRequestError, 401: AuthenticationError, 429: RateLimitError}
    found = []
    for path in sorted(CORPUS.glob("*/*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["response"]["status"] in kinds:
            kind = kinds[record["response"]["status"]]
            found.append(pytest.param(record["response"], kind, id=path.stem[:60]))
    return found or [
        pytest.param({}, None, marks=pytest.mark.skip(reason="no recordings beside the repository"))
    ]


@pytest.mark.parametrize(("response", "kind"), recorded_refusals())
def test_recorded_refusal_gives_the_providers_own_words(
    response: dict[str, Any], kind: type[ProviderError]
) -> None:
    text = response["body"]
    error = failure(response["status"], response["headers"], text.encode(), "acme")
    assert isinstance(error, kind)
    assert not error.retryable
    assert json.loads(text)["error"]["message"][:60] in error.message
