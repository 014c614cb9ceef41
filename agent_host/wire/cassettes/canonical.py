"""What makes two requests the same: method, address and body, without what is secret.

Headers have no say: keys are in them, and versions of programs. It reads and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from agent_hookspecs.logs import MASK, mask_secrets, names_secret, redact
from agent_hookspecs.values import dataclass
from agent_host.wire.request import WireRequest, content_of, without_userinfo

__all__ = ["CanonicalRequest", "canonical_request", "describe_difference"]

_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class CanonicalRequest:
    """A request as it is recorded; ``body`` is JSON, or text where it is none."""

    method: str
    url: str
    body: Any

    @property
    def key(self) -> str:
        """What its recordings are found by."""
        text = json.dumps([self.method, self.url, self.body], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]


def canonical_request(request: WireRequest) -> CanonicalRequest:
    """The request without what is secret and without what does not matter."""
    return CanonicalRequest(request.method.upper(), _plain_url(request.url), _plain_body(request))


def _plain_url(url: str) -> str:
    parts = urlsplit(without_userinfo(url))
    query = [
        (name, MASK if names_secret(name) else redact(value))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit((*parts[:3], urlencode(sorted(query)), ""))


def _plain_body(request: WireRequest) -> Any:
    text = content_of(request.body).decode("utf-8", "backslashreplace")
    try:
        body = json.loads(text) if text else None
    except ValueError:
        # Nothing is lost: what is no JSON is compared as text.
        return mask_secrets(text)
    return mask_secrets(body)


def describe_difference(asked: CanonicalRequest, recorded: CanonicalRequest) -> tuple[int, str]:
    """How much two requests differ, and where they do so first."""
    if (asked.method, asked.url) != (recorded.method, recorded.url):
        return 1 << 30, f"it went to {recorded.method} {recorded.url}"
    differences = [*_differences("", asked.body, recorded.body)]
    return len(differences), differences[0] if differences else ""


def _differences(where: str, asked: Any, recorded: Any) -> Iterator[str]:
    if isinstance(asked, dict) and isinstance(recorded, dict):
        for key in sorted({*asked, *recorded}):
            place = f"{where}.{key}" if where else str(key)
            if key not in asked:
                yield f"{place} was {_shown(recorded[key])}, and is not there now"
            elif key not in recorded:
                yield f"{place} was not there, and is {_shown(asked[key])} now"
            else:
                yield from _differences(place, asked[key], recorded[key])
    elif isinstance(asked, list) and isinstance(recorded, list):
        for number, (new, old) in enumerate(zip(asked, recorded, strict=False)):
            yield from _differences(f"{where}[{number}]", new, old)
        if len(asked) != len(recorded):
            yield f"{where} had {len(recorded)} items, and has {len(asked)} now"
    elif asked != recorded:
        yield f"{where or 'the body'} was {_shown(recorded)}, and is {_shown(asked)} now"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
