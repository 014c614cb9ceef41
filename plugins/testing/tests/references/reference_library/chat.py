"""A provider that does its own I/O, with the standard library in place of the host's wire."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agent_hookspecs import Config, NativeMessage, ProtocolError, ProviderPlugin, State
from agent_hookspecs.authoring import AccumulatorStreamingMixin, requested_knobs, take_knob
from agent_hookspecs.errors import OverloadedError, RateLimitError, ServerError
from reference_library.connection import answer_of

__all__ = ["Library"]

_KNOBS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "stop": "stop"}


class Library(AccumulatorStreamingMixin, ProviderPlugin):
    """Opens a connection for each request and reads the events of the chat format itself."""

    name = "library"
    version = "1.0"
    requires_api_key = True
    requires_base_url = True

    def init(self, config: Config) -> State:
        knobs = requested_knobs(config)
        return {"config": config, "request": {}, "partial": None, "knobs": knobs}

    def call_api(
        self, native_messages: list[NativeMessage], state: State
    ) -> tuple[list[Any], list[NativeMessage], list[NativeMessage], State]:
        with answer_of(*self._request(native_messages, state, stream=False)) as response:
            document = _document(response.read())
        _, _, natives, state = self.process_chunk(document, native_messages, state)
        finals, natives, state = self.finalize(natives, state)
        return [], finals, natives, state

    def stream_api(
        self, native_messages: list[NativeMessage], state: State
    ) -> Iterator[dict[str, Any]]:
        with answer_of(*self._request(native_messages, state, stream=True)) as response:
            yield from _events(response)

    def _request(
        self, natives: list[NativeMessage], state: State, *, stream: bool
    ) -> tuple[Config, str, dict[str, Any], dict[str, str]]:
        config = state["config"]
        messages = [{k: v for k, v in each.items() if k != "_metadata"} for each in natives]
        body: dict[str, Any] = {"model": config.get("model"), "messages": messages}
        for knob, key in _KNOBS.items():
            if (value := take_knob(state, knob)) is not None:
                body[key] = value
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        key = {"authorization": f"Bearer {config['api_key']}"}
        return config, "chat/completions", body, key


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise ProtocolError("the answer is no JSON") from error
    if not isinstance(document, dict):
        raise ProtocolError("the answer is no object")
    return document


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        event = _document(data)
        if isinstance(told := event.get("error"), dict):
            kinds = {"overloaded": OverloadedError, "rate_limit": RateLimitError}
            found = (kind for word, kind in kinds.items() if word in str(told))
            raise next(found, ServerError)(f"the answer ends in an error: {told.get('message')}")
        yield event
