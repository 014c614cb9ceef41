"""A folder of recordings: a file for each exchange, named by its request and how often it was made.

The form is that of recorded traffic in the testing kit. Secrets are never written: headers of
requests are left out, of answers only those are kept that say something to a program, and what is
known as a secret is masked wherever it stands.
"""

from __future__ import annotations

import json
import os
import re
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent_hookspecs.logs import mask_secrets, redact
from agent_hookspecs.values import dataclass
from agent_host.private import replace_private
from agent_host.wire.cassettes.canonical import (
    CanonicalRequest,
    canonical_request,
    describe_difference,
)
from agent_host.wire.cassettes.errors import CassetteError, ReplayMissError
from agent_host.wire.request import WireRequest

__all__ = ["RecordedAnswer", "Recorder", "Replayer"]

#: Of an answer's headers those that are kept.
_KEPT: Final = re.compile(r"content-type|retry-after(-ms)?|x-should-retry|.*rate-?limit.*")
_FILE: Final = re.compile(r"(?P<key>[0-9a-f]{16})-(?P<number>\d+)\.json")
_FRAMINGS: Final = {"text/event-stream": "sse", "application/x-ndjson": "ndjson"}


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What a server has answered; ``is_whole`` is False if the connection broke before its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool = True


class Recorder:
    """Writes exchanges into a folder. What it has of a request is replaced by what comes now."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._written = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CassetteError(
                f"{folder} cannot be written: {error.strerror}", hint="name another folder"
            ) from error

    def write(self, request: WireRequest, answer: RecordedAnswer) -> None:
        """Write an exchange; threads may do so at once."""
        asked = canonical_request(request)
        with self._lock:
            number = self._counts.get(asked.key, 0)
            if not number:
                for old in self._folder.glob(f"{asked.key}-*.json"):
                    old.unlink(missing_ok=True)
            self._counts[asked.key] = number + 1
            self._written += 1
            place = self._written
        document = _document(asked, answer, self._folder.resolve().name, place)
        text = json.dumps(document, indent=1, ensure_ascii=False)
        file = self._folder / f"{asked.key}-{number}.json"
        replace_private(file, text.encode("utf-8", "surrogatepass") + b"\n")


def _document(
    asked: CanonicalRequest, answer: RecordedAnswer, name: str, place: int
) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    framing = _FRAMINGS.get(kind, "json")
    body, is_redacted = _written_body(answer.body)
    wants_stream = isinstance(asked.body, dict) and bool(asked.body.get("stream"))
    return {
        "source": f"agent-host:{name}#{place}",
        "group": f"agent-host:{name}",
        "provider": asked.url.partition("://")[2].partition("/")[0],
        # Whoever reads it knows which one it is by the address.
        "protocol": "",
        "request": {"method": asked.method, "url": asked.url, "headers": {}, "body": asked.body},
        "response": {
            "status": answer.status,
            "headers": {
                key: redact(value) for key, value in answer.headers.items() if _KEPT.fullmatch(key)
            },
            **body,
            **({} if answer.is_whole else {"cut": True}),
        },
        "stream": wants_stream or framing != "json",
        "framing": framing,
        "fidelity": "wire+redacted" if is_redacted else "wire",
        "expected": {},
    }


def _written_body(body: bytes) -> tuple[dict[str, str], bool]:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        # Nothing is lost: what is no text is written in letters.
        return {"body": "", "body_base64": b64encode(body).decode()}, False
    # What merely looks like a secret stays: answers are kept byte for byte.
    masked = mask_secrets(text)
    return {"body": masked}, masked != text


class Replayer:
    """Gives recorded answers; a request that has none is an error."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._lock = threading.Lock()
        self._used: dict[str, int] = {}
        self._files: dict[str, list[Path]] = {}
        if not self._folder.is_dir():
            raise CassetteError(f"there is no folder {folder}", hint="record into it first")
        found = [
            (named["key"], int(named["number"]), file)
            for file in self._folder.iterdir()
            if (named := _FILE.fullmatch(file.name))
        ]
        for key, _, file in sorted(found):
            self._files.setdefault(key, []).append(file)

    def answer(self, request: WireRequest) -> RecordedAnswer:
        """The next recorded answer to the request; the last of them again and again."""
        asked = canonical_request(request)
        with self._lock:
            files = self._files.get(asked.key)
            number = self._used.get(asked.key, 0)
            self._used[asked.key] = number + 1
        if files is None:
            raise self._miss(asked)
        document = _read(files[min(number, len(files) - 1)])
        try:
            return _answer_of(document)
        except (KeyError, TypeError, ValueError) as error:
            raise _unreadable(files[0], error) from error

    def _miss(self, asked: CanonicalRequest) -> ReplayMissError:
        nearest: tuple[int, str] | None = None
        for files in self._files.values():
            recorded = _request_of(_read(files[0]))
            found = describe_difference(asked, recorded)
            if nearest is None or found[0] < nearest[0]:
                nearest = found
        difference = redact(nearest[1]) if nearest else ""
        said = f"; the nearest differs: {difference}" if nearest else "; there are none at all"
        return ReplayMissError(
            f"{self._folder} has no recording of {asked.method} {asked.url}{said}",
            difference=difference,
            hint="record it again, or ask what was recorded",
        )


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes().decode("utf-8", "surrogatepass"))
        if isinstance(document, dict):
            return document
        raise ValueError("it is no object")
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> CassetteError:
    return CassetteError(
        f"{file} is no recording: {type(error).__name__}: {error}", hint="record it again"
    )


def _request_of(document: Mapping[str, Any]) -> CanonicalRequest:
    request = document.get("request") or {}
    return CanonicalRequest(
        str(request.get("method")), str(request.get("url")), request.get("body")
    )


def _answer_of(document: Mapping[str, Any]) -> RecordedAnswer:
    response = document["response"]
    encoded = response.get("body_base64")
    body = (
        response["body"].encode("utf-8", "surrogatepass") if encoded is None else b64decode(encoded)
    )
    return RecordedAnswer(
        int(response["status"]), dict(response["headers"]), body, not response.get("cut")
    )
