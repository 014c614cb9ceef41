"""`Wish`: a request before anybody knows who answers it.

Where client and provider speak the same, the request is relayed and its fields are none of our
business; elsewhere the door reads it, and refuses what cannot be honoured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from agent_hookspecs import Usage
from agent_host_gateway.neutral import ModelRequest

__all__ = ["WholeEvents", "Wish", "usage_of_bytes"]

#: What stands in signatures that are ours, and that nobody else takes for one.
_OURS = b"agent-host."
#: How events end.
_ENDS = (b"\n\n", b"\r\n\r\n")
#: A larger event is passed on in pieces.
_MAX_EVENT = 1 << 20


class Wish:
    """What a client has sent through a door, whose module is ``form``.

    ``context`` is what plugins are told of it, such as the trace that the client is in.
    """

    def __init__(
        self,
        form: Any,
        body: Any,
        raw: bytes,
        *,
        can_store: bool,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.context = context
        self._body = body
        self._can_store = can_store
        self._has_ours = _OURS in raw
        if not (isinstance(body, dict) and isinstance(body.get("model"), str)):
            # The door says what is wrong with it.
            assert self.asked
        self.model: str = body["model"]

    @cached_property
    def asked(self) -> ModelRequest:
        """The request as the door reads it."""
        asked: ModelRequest = self.form.read_request(self._body)
        return asked

    @property
    def is_streamed(self) -> bool:
        return self._body.get("stream") is True

    @property
    def tells_usage(self) -> bool:
        """Whether the answer says what it has used, also if nobody here reads the rest."""
        options = self._body.get("stream_options")
        told = isinstance(options, dict) and options.get("include_usage") is True
        return told or not self.is_streamed or self.form.WIRE != "wire:openai-chat"

    @property
    def may_be_relayed(self) -> bool:
        """Whether whoever speaks the same could answer it as it is."""
        stores = self._body.get("store")
        is_ours = self._has_ours or self._body.get("previous_response_id") is not None
        if "input" in self._body:
            is_ours |= stores is True or (stores is None and self._can_store)
        return not is_ours

    def body_for(self, model: str) -> bytes:
        """The request as the client has written it, for a model of the provider."""
        body = {**self._body, "model": model}
        if "input" in body:
            # Else the provider stores it, where the client could not find it again.
            body["store"] = False
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class WholeEvents:
    """Events of a stream that is relayed: one that is not complete waits for the rest of it.

    So an answer that breaks off ends with an event, behind which an error can be told.
    """

    def __init__(self) -> None:
        self.left = b""

    def take(self, data: bytes) -> bytes:
        """As much as can be sent now."""
        if self.left:
            data = self.left + data
        if data.endswith(_ENDS):
            self.left = b""
            return data
        end = max(data.rfind(each) + len(each) if each in data else 0 for each in _ENDS)
        self.left = data[end:]
        if len(self.left) > _MAX_EVENT:
            end, self.left = len(data), b""
        return data[:end]


def usage_of_bytes(form: Any, data: bytes, *, is_streamed: bool) -> Usage:
    """What an answer says that it has used, from its bytes, or the beginning and end of them."""
    usage = Usage()
    for line in data.splitlines() if is_streamed else [data]:
        text = line.removeprefix(b"data:").strip()
        if b'"usage"' not in text:
            continue
        try:
            document = json.loads(text)
        except ValueError:
            # Nothing is lost: it was cut, and the whole of it stands elsewhere or nowhere.
            continue
        told: Mapping[str, Any] = form.read_usage(document) if isinstance(document, dict) else {}
        for key, amount in told.items():
            if isinstance(amount, int) and amount:
                usage[key] = amount  # type: ignore[literal-required]
    return usage
