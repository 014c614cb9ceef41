"""A provider that does its own I/O, with the standard library in place of the host's wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reference_common import TextProvider, request_body, warn_of_unsent

from agent_hookspecs import Context, NativeMessage, ProtocolError, State
from agent_hookspecs.errors import StreamCutError
from reference_library.connection import answer_of

__all__ = ["Library"]

Answer = tuple[list[dict[str, Any]], list[NativeMessage], list[NativeMessage], State]


class Library(TextProvider):
    """Opens a connection for each request and reads its lines."""

    name = "library"
    path = "lines"

    def call_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Answer:
        for chunk in self._chunks(native_messages, state, context, stream=False):
            self.process_chunk(chunk, native_messages, state)
        if not self.stream_complete(state):
            raise StreamCutError("the answer has no end")
        finals, natives, state = self.finalize(native_messages, state)
        return [], finals, natives, state

    def stream_api(
        self, native_messages: list[NativeMessage], state: State, context: Context
    ) -> Iterator[dict[str, Any]]:
        yield from self._chunks(native_messages, state, context, stream=True)

    def _chunks(
        self, natives: list[NativeMessage], state: State, context: Context, *, stream: bool
    ) -> Iterator[dict[str, Any]]:
        warn_of_unsent(state, context, self.name)
        config = state["config"]
        body = {**request_body("said", natives, state), "lines": stream}
        key = {"x-lines-key": config["api_key"]}
        with answer_of(config, self.path, body, key) as response:
            yield from self._read(response)

    def _read(self, response: Any) -> Iterator[dict[str, Any]]:
        for line in response:
            try:
                chunk = json.loads(line)
            except ValueError as error:
                raise ProtocolError("the answer is no JSON") from error
            if not isinstance(chunk, dict):
                raise ProtocolError("the answer is no object")
            yield chunk
