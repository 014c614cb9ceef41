"""How the formats whose answers hold parsed JSON turn values into bytes.

Knows nothing of a vendor: what stands in an answer is for the formats to say.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from agent_host_testing.script import Call
from agent_host_testing.wire import Ledger

__all__ = ["arguments_text", "arguments_value", "compact", "made_signature", "sse"]


# One for all: long streams are many small values, and json.dumps would make an encoder for each.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact(value: Any) -> str:
    """The value as JSON without spaces, in characters rather than escapes."""
    return _ENCODER.encode(value)


def sse(value: Any, event: str = "", end: str = "\n") -> bytes:
    """One server-sent event, with a name if it has one."""
    name = f"event: {event}{end}" if event else ""
    return f"{name}data: {compact(value)}{end}{end}".encode()


def arguments_text(call: Call) -> str:
    """The call's arguments as the text a model would write."""
    if isinstance(call.arguments, str):
        return call.arguments
    return compact(dict(call.arguments))


def arguments_value(call: Call) -> Any:
    """The call's arguments as a value; text that is no JSON stays text, for clients to refuse."""
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        # Nothing is lost: arguments that are no JSON are sent as they are.
        return call.arguments


def made_signature(ledger: Ledger) -> str:
    """A signature for what the script left unsigned and the vendor would not."""
    return base64.b64encode(ledger.new_id("signature of the fake server ").encode()).decode()
