"""Requests with the standard library, and what can go wrong with them, in the host's errors."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from agent_hookspecs import Config
from agent_hookspecs.errors import (
    AuthenticationError,
    ConnectionFailedError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    StreamCutError,
)

__all__ = ["answer_of"]

_ERRORS: dict[int, type[ProviderError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: ModelNotFoundError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}


@contextmanager
def answer_of(
    config: Config, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> Iterator[http.client.HTTPResponse]:
    """The answer to a request, open as long as somebody reads it."""
    where = urlsplit(config["base_url"].rstrip("/"))
    connection = http.client.HTTPConnection(where.netloc, timeout=_patience(config))
    sent = {"content-type": "application/json", **headers}
    try:
        connection.request("POST", f"{where.path}/{path}", json.dumps(body), sent)
        response = connection.getresponse()
        if response.status >= 300:
            raise _refusal(response.status, dict(response.getheaders()), response.read())
        yield response
    except TimeoutError as error:
        raise RequestTimeoutError(f"the server is silent: {error}", phase="idle") from error
    except ConnectionRefusedError as error:
        raise ConnectionFailedError(f"there is no server: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise StreamCutError(f"the answer broke off: {error!r}") from error
    finally:
        connection.close()


def _patience(config: Config) -> float:
    given = config.get("timeout")
    if isinstance(given, Mapping):
        given = given.get("idle")
    return 60.0 if given is None else float(given)


def _refusal(status: int, given: Mapping[str, str], body: bytes) -> ProviderError:
    headers = {name.lower(): value for name, value in given.items()}
    text = body.decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except ValueError:
        # Nothing is lost: what is no JSON is told as it is.
        told = {}
    told = told if isinstance(told, dict) else {}
    words = str(told.get("message") or text[:200])
    usual = ServerError if status >= 500 else InvalidRequestError
    kind = _ERRORS.get(status, usual)
    code = told.get("code")
    if told.get("kind") == "context_length":
        kind = ContextLengthError
    return kind(
        f"the server answered HTTP {status}: {words}",
        status=status,
        code=code if isinstance(code, str) else None,
        request_id=headers.get("x-request-id"),
        retry_after=_wait(headers),
    )


def _wait(headers: Mapping[str, str]) -> float | None:
    """What the server asks to wait, in any of the forms of it."""
    if (exact := headers.get("retry-after-ms")) is not None:
        return float(exact) / 1000
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        return float(asked)
    except ValueError:
        # Nothing is lost: then it is a date.
        until = parsedate_to_datetime(asked)
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())
