"""The server of a recorded session: one API at the addresses of any server that speaks it.

Owns how a recorded answer is cut into pieces, and where a recorded request went. What was asked is
for others to judge.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal
from urllib.parse import parse_qs, urlsplit

from agent_host_testing.corpus.protocols import protocol_of, translate_recording
from agent_host_testing.corpus.recording import Recording
from agent_host_testing.formats import FORMATS, wire_format
from agent_host_testing.script import Failure, Raw, Reply
from agent_host_testing.server import FakeServer
from agent_host_testing.wire import Ledger, Operation, Problem, Refusal, Request, WireFormat

__all__ = ["EVERY_WAY", "WAYS", "Playback", "Way", "address_differences"]

_NOT_SENT = ("content-length", "content-encoding", "transfer-encoding", "connection")
_VERSION = re.compile(r"/v\d")
#: Streams in random cuts have so many of them; so many bytes at either end of a stream in tiny
#: pieces come one by one.
_CUTS, _SINGLE_BYTES = 24, 400

Pieces = Literal["random cuts", "tiny pieces"]


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways in which the same bytes can be asked for and arrive."""

    awaited: bool = False
    pieces: Pieces = "random cuts"
    seed: int = 0

    def __str__(self) -> str:
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{'awaited' if self.awaited else 'blocking'}, in {self.pieces}{seed}"


#: Who waits and how the bytes arrive both change between these two.
WAYS = (Way(), Way(awaited=True, pieces="tiny pieces"))
_PIECES: tuple[Pieces, ...] = ("random cuts", "tiny pieces")
EVERY_WAY = tuple(
    Way(awaited, pieces, seed)
    for awaited in (False, True)
    for pieces in _PIECES
    for seed in range(3)
)


class Playback:
    """A server that answers with the recording that it was last given; a context manager."""

    def __init__(self, group: Sequence[Recording], way: Way) -> None:
        self._way = way
        self._answers: list[Raw] = []
        self._api = _AnyAddress(protocol_of(group[0]).format)
        self.server = FakeServer(
            self._api, strict=False, models=_models(group), rest=lambda request: self._answers[-1]
        )

    def __enter__(self) -> Playback:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def base_url(self, recording: Recording) -> str:
        """What to call this server so that requests go where the recorded one went.

        The whole endpoint, with its query, where the base alone would not say which version is
        meant; those who have no version in their addresses are named so by their users too.
        """
        address = urlsplit(recording.url)
        base = _base_path(recording)
        if base is None:
            return self.server.url
        has_own_versions = not protocol_of(recording).format.startswith("openai.")
        if has_own_versions or (_VERSION.search(base) and not address.query):
            return self.server.url + base
        query = f"?{address.query}" if address.query else ""
        return self.server.url + address.path + query

    def play(self, recording: Recording) -> None:
        """Answer with this recording from now on."""
        headers = {
            name: value
            for name, value in recording.headers.items()
            if name.lower() not in _NOT_SENT and value.isascii()
        }
        self._answers.append(Raw(_pieces(recording, self._way), recording.status, headers))

    def last_request(self, since: int) -> Request | None:
        """The last request to generate after the first ``since``; None if there was none."""
        made = [r for r in self.server.requests[since:] if self._api.operation(r) == "generate"]
        return made[-1] if made else None


def address_differences(recording: Recording, request: Request) -> list[str]:
    """Whether the request went to another path, or version, than the recorded one."""
    # Where the path is not of the protocol, as with other clouds, who plays it has another address.
    if _base_path(recording) is None:
        return []
    address = urlsplit(recording.url)
    wanted, given = address.path, request.path
    versions = parse_qs(address.query).get("api-version", [])
    found = [f"it went to {given} instead of {wanted}"] if given != wanted else []
    if versions and [request.query.get("api-version")] != versions:
        found.append(f"its api-version is {request.query.get('api-version')}, not {versions[0]}")
    return found


def _base_path(recording: Recording) -> str | None:
    """What comes before the endpoint; None if the address is not of the protocol."""
    endpoint = protocol_of(recording).endpoint
    found = re.fullmatch(f"(.*?){endpoint}", urlsplit(recording.url).path)
    return found[1] if found else None


def _models(group: Sequence[Recording]) -> tuple[str, ...]:
    names = (translate_recording(recording).settings.get("model") for recording in group)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _pieces(recording: Recording, way: Way) -> tuple[bytes, ...]:
    """The body, a stream's in pieces of any length."""
    body = recording.body
    if not recording.stream or len(body) < 2:
        return (body,)
    chance = random.Random(f"{way.seed} {recording.name}")
    places = set(chance.sample(range(1, len(body)), min(_CUTS, len(body) - 1)))
    if way.pieces == "tiny pieces":
        # Not all of a long stream: time grows with the pieces, and its middle is like its ends.
        inside = range(1, len(body))
        places |= {*inside[:_SINGLE_BYTES], *inside[-_SINGLE_BYTES:]}
    edges = [0, *sorted(places), len(body)]
    return tuple(body[start:end] for start, end in pairwise(edges))


class _AnyAddress(WireFormat):
    """An API whose requests are taken at any address and are never found wrong.

    What has to be said besides the recorded answers is said in the format of that name. Of one that
    the kit does not know, only the recorded answers are known: it has no list of models.
    """

    name: ClassVar[str] = "recorded"

    def __init__(self, format: str) -> None:
        self._is_known = format in FORMATS
        self._api = wire_format(format if self._is_known else "openai.chat")
        self.request_id_header = self._api.request_id_header

    def operation(self, request: Request) -> Operation | None:
        if not self._is_known:
            return "generate" if request.method == "POST" else None
        known = self._api.operation(request)
        return known or ("generate" if request.method == "POST" else "models")

    def wants_stream(self, request: Request) -> bool:
        return self._api.wants_stream(request)

    def credential(self, request: Request) -> str | None:
        return self._api.credential(request)

    def problem(self, request: Request, ledger: Ledger) -> Problem | None:
        return None

    def whole(self, reply: Reply, request: Request, ledger: Ledger) -> bytes:
        return self._api.whole(reply, request, ledger)

    def events(self, reply: Reply, request: Request, ledger: Ledger) -> list[bytes]:
        return self._api.events(reply, request, ledger)

    def refusal(self, failure: Failure) -> Refusal:
        return self._api.refusal(failure)

    def models(self, names: Sequence[str], request: Request) -> bytes:
        if self._api.operation(request) is None:
            request = replace(request, path=f"{self._api.base_path}/models")
        return self._api.models(names, request)
