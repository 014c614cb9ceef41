"""The Responses API: what is sent, what comes back, and how a conversation is carried on.

A native message is one of these:

- what goes in: an input item, such as ``{"role": "user", "content": …}`` or
  ``{"type": "function_call_output", …}``;
- what came back: a turn, ``{"role": "assistant", "output": [item, …]}``, whose items are those of
  the answer, whole and in order, so that reasoning stays before the call or the message it led to.
"""

from __future__ import annotations

#: The name of this API in the settings.
API = "responses"

#: The tag of the wire format, by which the extensions are gated.
WIRE = "wire:openai-responses"
