"""The JSON documents of a recorded answer, cut apart as its framing says.

Owns a reading of the framings that is not the host's, so that neither has to trust the other. It
must not know what the documents mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agent_host_testing.corpus.recording import Recording

__all__ = ["documents_of"]


def documents_of(recording: Recording) -> list[dict[str, Any]]:
    """The objects of the answer, in order; what is none, such as an end marker, is left out."""
    text = recording.body.decode("utf-8", "replace")
    texts: Iterable[str] = [text]
    if recording.framing == "sse":
        texts = _event_data(text)
    elif recording.framing == "ndjson":
        texts = text.splitlines()
    found = [document for each in texts for document in _parsed(each)]
    return [document for document in found if isinstance(document, dict)]


def _event_data(text: str) -> Iterator[str]:
    """The data of each event; a line with no colon in it says nothing here."""
    data: list[str] = []
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if not line and data:
            yield "\n".join(data)
            data = []
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))


def _parsed(text: str) -> list[Any]:
    """The document in a text, or those of a list."""
    try:
        document = json.loads(text)
    except ValueError:
        return []
    return document if isinstance(document, list) else [document]
