"""Server-sent events around documents, for the formats that give their events names."""

from __future__ import annotations

__all__ = ["named_events"]


def named_events(*documents: bytes, end: bytes = b"\n") -> bytes:
    """A stream in which each event is called what its document's ``type``, its first key, says."""
    return b"".join(
        b"event: %s%sdata: %s%s%s" % (document.split(b'"', 4)[3], end, document, end, end)
        for document in documents
    )
