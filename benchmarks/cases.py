"""The wire formats that are measured, and what is asked of the fake server in each of them.

Clients and server share these names and nothing else. Every contestant's process imports this
module, so it needs little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["PROMPT", "TOOL", "WIRES", "Case", "Wire", "body_of"]

PROMPT = "Go on."
TOOL: dict[str, Any] = {
    "name": "save_document",
    "description": "Save a document.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}


class Wire(NamedTuple):
    """A wire format: who speaks it here, with which model, and where an answer is asked for."""

    label: str
    provider: str
    distribution: str
    model: str
    path: str
    framing: str = "sse"
    fragments_calls: bool = True


WIRES: dict[str, Wire] = {
    "chat": Wire(
        "OpenAI chat",
        "custom",
        "agent-host-openai-compatible",
        "gpt-5-mini",
        "/v1/chat/completions",
    ),
    "responses": Wire(
        "OpenAI Responses", "openai", "agent-host-openai", "gpt-5-mini", "/v1/responses"
    ),
    "anthropic": Wire(
        "Anthropic Messages",
        "anthropic",
        "agent-host-anthropic",
        "claude-sonnet-4-5",
        "/v1/messages",
    ),
    "google": Wire(
        "Gemini",
        "google",
        "agent-host-google",
        "gemini-2.5-flash",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        fragments_calls=False,
    ),
    "ollama": Wire(
        "Ollama",
        "ollama",
        "agent-host-ollama",
        "qwen3:4b",
        "/api/chat",
        framing="ndjson",
        fragments_calls=False,
    ),
}


class Case(NamedTuple):
    """What one answer is made of.

    ``content``: ``text``, ``reasoning``, a call whose arguments are one long ``string`` or many
    small ``objects``, ``whole`` for an answer that is not streamed, or ``json`` and ``calls``
    without ids, which the chat format has. ``transfer``: an HTTP chunk for ``each`` event or for
    ``several``, ``paced`` chunks of an event each that come a millisecond apart, one body with a
    ``length``, or ``idle``, which stops after the first few events and leaves the stream open.
    """

    wire: str
    content: str
    size: int
    transfer: str = "each"

    def base(self, server: str) -> str:
        """The address of an API that answers so."""
        return f"{server}/{self.content}/{self.size}/{self.transfer}"

    def url(self, server: str) -> str:
        path = WIRES[self.wire].path
        if self.content == "whole":
            path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
        return self.base(server) + path

    @property
    def has_call(self) -> bool:
        return self.content in ("string", "objects", "calls")


def body_of(case: Case) -> dict[str, Any]:
    """The shortest request that asks for the case, for those who write it by hand."""
    model, message = WIRES[case.wire].model, {"role": "user", "content": PROMPT}
    if case.wire == "google":
        return {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
    body: dict[str, Any] = {"model": model, "stream": case.content != "whole"}
    body["input" if case.wire == "responses" else "messages"] = [message]
    if case.wire == "anthropic":
        body["max_tokens"] = 4096
    return body
