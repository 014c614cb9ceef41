"""What an index says of files beside what installers tell: age, withdrawal and attestations.

It reads the pages of the Simple API in their form as JSON (PEP 691, 700 and 740); an index without
that form says nothing. It must not know what becomes of the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urljoin

from agent_hookspecs.errors import AgentError
from agent_hookspecs.values import dataclass
from agent_host.distributions.pins import Pin
from agent_host.distributions.web import Reader

__all__ = ["FileFacts", "find_facts"]

_FORM = "application/vnd.pypi.simple.v1+json"
#: The pages of projects with thousands of files have a few of these.
_MAX_PAGE = 64 << 20
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What an index says of one file; ``reason`` is why it says nothing."""

    uploaded: datetime | None = None
    #: Where its attestations are.
    provenance: str = ""
    #: Why its author has withdrawn it; empty if nobody has.
    yanked: str = ""
    reason: str = ""


def find_facts(pins: Iterable[Pin], indexes: Sequence[str], reader: Reader) -> dict[str, FileFacts]:
    """What the first index that lists them says of the files of these pins, by their names."""
    wanted = [pin for pin in pins if pin.is_on_index]

    def find(pin: Pin) -> FileFacts:
        return _find_file(pin, indexes, reader)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip([pin.name for pin in wanted], pool.map(find, wanted), strict=True))


def _find_file(pin: Pin, indexes: Sequence[str], reader: Reader) -> FileFacts:
    reason = "no index is known"
    for index in indexes:
        page = f"{index.rstrip('/')}/{pin.name}/"
        try:
            document = reader.get(page, {"accept": _FORM}, _MAX_PAGE)
            if document.status != 200:
                reason = f"the index answers with {document.status}"
                continue
            if not document.headers.get("content-type", "").startswith(_FORM):
                reason = "the index has no pages as JSON"
                continue
            files = json.loads(document.raw)["files"]
            found = next((each for each in files if _is_same(each, pin)), None)
            if found is not None:
                return _read_facts(found, page)
            reason = "the index does not list the file"
        except AgentError as error:
            reason = f"the index cannot be reached: {error.message}"
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"the page of the index cannot be read: {error!r:.80}"
    return FileFacts(reason=reason)


def _is_same(file: Mapping[str, Any], pin: Pin) -> bool:
    return bool(pin.sha256) and file.get("hashes", {}).get("sha256") == pin.sha256


def _read_facts(file: Mapping[str, Any], page: str) -> FileFacts:
    provenance = file.get("provenance")
    return FileFacts(
        uploaded=_read_time(file.get("upload-time")),
        provenance=urljoin(page, provenance) if isinstance(provenance, str) else "",
        yanked=str(file.get("yanked") or ""),
    )


def _read_time(text: object) -> datetime | None:
    """A time as PEP 700 has it, in UTC; the oldest Python reads no Z."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        # Nothing is lost: an age that cannot be read is not known, and that is told.
        return None
    return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found
