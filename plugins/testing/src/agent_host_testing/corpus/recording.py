"""Recorded traffic as it lies on disk: one JSON file for each HTTP exchange with a real provider.

Owns the fields of a recording. It must not know what any protocol means by them.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from agent_host_testing.corpus.protocols import RecordedProtocol

__all__ = ["Expected", "ExpectedCall", "Recording", "group_sessions", "load_recordings"]


class _ExpectedCallRequired(TypedDict):
    id: str | None
    name: str
    arguments: Any


class ExpectedCall(_ExpectedCallRequired, total=False):
    """A call of the answer; ``arguments_raw`` is there when they were not a JSON object."""

    arguments_raw: Any
    kind: str


class Expected(TypedDict, total=False):
    """What the vendor's own SDK made of the answer; ``usage`` are the provider's own numbers."""

    id: str | None
    model: str | None
    text: str
    reasoning: str
    tool_calls: list[ExpectedCall]
    finish_reason: str | None
    refusal: str | None
    tool_plan: str | None
    usage: dict[str, int | None] | None
    server_tools: list[str]
    error: dict[str, Any] | None
    signature_sha256_16: list[str]
    signature_sha256_16_item_done: list[str]


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange. ``name`` is the file's; ``number`` its place in the session ``group``.

    ``own`` is how it is read, if its protocol is none of the kit's.
    """

    name: str
    group: str
    number: int
    provider: str
    protocol: str
    url: str
    request: Mapping[str, Any]
    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: bool
    framing: str
    expected: Expected
    own: RecordedProtocol | None = None

    def __str__(self) -> str:
        return self.name


def load_recordings(path: str | Path) -> list[Recording]:
    """Every recording below the folder, sessions together and in order.

    Raises ValueError naming the file that is none.
    """
    found = []
    for file in sorted(Path(path).rglob("*.json")):
        try:
            found.append(_recording(file.stem, json.loads(file.read_text("utf-8"))))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} is no recording: {error!r}") from error
    return sorted(found, key=lambda recording: (recording.group, recording.number, recording.name))


def _recording(name: str, document: Mapping[str, Any]) -> Recording:
    # Not above: the protocols know what a recording is.
    from agent_host_testing.corpus.protocols import protocol_at

    request, response = document["request"], document["response"]
    encoded = response.get("body_base64")
    text: str = response["body"]
    return Recording(
        name=name,
        group=document["group"],
        number=int(document["source"].rpartition("#")[2]),
        provider=document["provider"],
        # The host, which knows no protocol, leaves it to the address.
        protocol=document["protocol"] or protocol_at(request["url"]),
        url=request["url"],
        request=request["body"],
        status=response["status"],
        headers=response.get("headers") or {},
        body=text.encode("utf-8", "surrogatepass") if encoded is None else b64decode(encoded),
        stream=document["stream"],
        framing=document["framing"],
        expected=document["expected"],
    )


def group_sessions(recordings: Iterable[Recording]) -> list[list[Recording]]:
    """The recordings by session, each in order; one that changes its protocol is two."""
    groups: dict[tuple[str, str], list[Recording]] = {}
    for recording in recordings:
        groups.setdefault((recording.group, recording.protocol), []).append(recording)
    return [sorted(group, key=lambda recording: recording.number) for group in groups.values()]
