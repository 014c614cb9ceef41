"""Reads one HTTP/1.1 answer from bytes, however they are cut.

Owns where the head and the body end, and how large what is not body may be. It has no socket, never
raises and never waits: whoever feeds it looks at what has come and at `failure`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from agent_host.wire.transport.errors import MalformedAnswerError, TruncatedAnswerError

__all__ = ["MAX_HEAD_BYTES", "Head", "ResponseParser"]

#: Heads, trailers and chunk extensions that are larger are refused.
MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_END: Final = b"\r\n\r\n"
_VERSIONS: Final = {"1.1": b"HTTP/1.1", "1.0": b"HTTP/1.0"}


class Head(NamedTuple):
    """The beginning of an answer, up to its body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    http_version: bytes


class ResponseParser:
    """Takes the bytes of one answer with `feed` and `feed_eof`.

    ``head`` is None until all of it is in. The body so far is got with `take_body`;
    ``is_complete`` says that there will be no more of it, ``failure`` that the answer is broken
    after it. ``has_surplus`` says that more came than this answer.
    """

    def __init__(self, *, is_head_request: bool = False) -> None:
        self._is_head_request = is_head_request
        self._body: list[bytes] = []
        self._headers: list[tuple[bytes, bytes]] = []
        #: The head as it came, until all of it is there.
        self._start = bytearray()
        self._head_bytes = 0
        self._may_stay_open = False
        self._is_chunked = False
        #: How much of the body is to come; None if its chunks or the connection's end tell.
        self._remaining: int | None = None
        #: The last bytes of a body in chunks, by which its exact end is known.
        self._tail = b""
        #: How many pieces of the body had come when the parser saw its end.
        self._pieces = 0
        self._without_body = 0
        self.head: Head | None = None
        self.is_complete = False
        self.has_surplus = False
        self.failure: MalformedAnswerError | TruncatedAnswerError | None = None
        self.on_body = self._body.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # As the standard says, chunks count if a server gives a length too. It is not trusted with
        # another request.
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self.is_complete and self._may_stay_open and not self.has_surplus

    def take_body(self) -> bytes:
        """What has come of the body since the last call."""
        body = self._body
        if not body:
            return b""
        taken = body[0] if len(body) == 1 else b"".join(body)
        body.clear()
        return taken

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        if self.failure is not None or not data:
            return
        if self.is_complete:
            self.has_surplus = True
        elif self.head is None:
            self._feed_head(data)
        elif self._is_chunked:
            self._feed_chunks(data)
        else:
            self._feed_plain(data)

    def feed_eof(self) -> None:
        """Take the end of the connection."""
        if self.is_complete or self.failure is not None:
            return
        if self.head is not None and not self._is_chunked and self._remaining is None:
            self._complete()
            return
        begun = self.head is not None or bool(self._head_bytes)
        self.failure = TruncatedAnswerError(
            "the server closed the connection before its answer was complete"
            if begun
            else "the server closed the connection without an answer"
        )

    def _feed_head(self, data: bytes) -> None:
        start = self._start
        while data and self.head is None and self.failure is None:
            before = len(start)
            start += data
            end = start.find(_HEAD_END, max(before - len(_HEAD_END) + 1, 0))
            length = len(data) if end < 0 else end + len(_HEAD_END) - before
            self._head_bytes += length
            if self._head_bytes > MAX_HEAD_BYTES:
                self._fail("the head of the answer is too large")
                return
            self._parse(data[:length])
            data = data[length:]
            if end >= 0 and self.head is None:
                # Empty lines, or an informational answer, after which the real one comes.
                start.clear()
        if data:
            self.feed(data)

    def _feed_plain(self, data: bytes) -> None:
        remaining = self._remaining
        if remaining is None:
            self._body.append(data)
            return
        if len(data) > remaining:
            self.has_surplus = True
            data = data[:remaining]
        self._remaining = remaining - len(data)
        self._body.append(data)
        if not self._remaining:
            self._complete()

    def _feed_chunks(self, data: bytes) -> None:
        body, had_body = self._body, len(self._body)
        self._tail = data[-6:] if len(data) >= 6 else (self._tail + data)[-6:]
        self._parse(data)
        if self.is_complete:
            # What the parser took for the body of a next answer is none.
            del body[self._pieces :]
            # It skips line breaks after an answer, but a server that sends them may have more in
            # store.
            if not self._tail.endswith(_HEAD_END) or self._tail == b"\r\n\r\n\r\n":
                self.has_surplus = True
        elif len(body) > had_body:
            self._without_body = 0
        else:
            self._without_body += len(data)
            if self._without_body > MAX_HEAD_BYTES:
                self._fail("what stands between the chunks of the answer is too large")

    def _parse(self, data: bytes) -> None:
        assert self._parser is not None, "an answer that is complete is not parsed"
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # Nothing is lost: the words become the failure of the answer.
            self._fail("the server switches to another protocol")
        except HttpParserError as error:
            if self.is_complete:
                self.has_surplus = True
            else:
                self._fail(str(error))

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or MalformedAnswerError(reason)
        self._parser = None

    def _complete(self) -> None:
        self.is_complete = True
        # It holds this object, which holds it.
        self._parser = None

    # What the parser reports.

    def on_header(self, name: bytes, value: bytes) -> None:
        # Those that come after the body are trailers, in which nobody is interested.
        if self.head is None:
            self._headers.append((name, value.rstrip(b" \t")))

    def on_message_begin(self) -> None:
        if self.is_complete:
            self.has_surplus = True

    def on_headers_complete(self) -> None:
        if self.head is not None or self._parser is None:
            return
        status = self._parser.get_status_code()
        version = _VERSIONS.get(self._parser.get_http_version())
        if version is None or not self._start.lstrip(b"\r\n").startswith(b"HTTP/") or status < 100:
            self.failure = MalformedAnswerError("the answer does not begin as HTTP/1.1 does")
        elif status == 101:
            self.failure = MalformedAnswerError("the server switches to another protocol")
        elif status < 200:
            self._headers.clear()
        else:
            self._may_stay_open = self._parser.should_keep_alive()
            self._begin_body(status)
            self.head = Head(status, self._headers, version)

    def on_message_complete(self) -> None:
        # Bodies that are not in chunks are measured here; informational answers have none.
        if self._is_chunked and not self.is_complete:
            self._pieces = len(self._body)
            self._complete()

    def _begin_body(self, status: int) -> None:
        """Find out how the body ends."""
        if self._is_head_request or status in (204, 304):
            self._complete()
            return
        fields = [(name.lower(), value) for name, value in self._headers]
        codings = [value.strip().lower() for name, value in fields if name == b"transfer-encoding"]
        lengths = [value for name, value in fields if name == b"content-length"]
        if codings:
            self._is_chunked = True
            if codings != [b"chunked"]:
                self.failure = MalformedAnswerError("the answer has an unknown transfer encoding")
            if lengths:
                self._may_stay_open = False
        elif lengths:
            # The parser has refused what is not a number, and more than one.
            self._remaining = int(lengths[0])
            if not self._remaining:
                self._complete()
