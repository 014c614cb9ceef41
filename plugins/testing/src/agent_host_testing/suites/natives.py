"""A conversation in the native messages of each of the kit's formats, as a provider retains it.

Data only: a question, two calls of one turn with their results, and an answer. What a plugin does
with messages that it was not written for is seen with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["NATIVES", "Natives"]

_SCHEMA = {"type": "object", "properties": {"place": {"type": "string", "description": "Where."}}}
_ARGUMENTS = '{"place": "Oslo"}'
_ASKED = "What is the weather there?"
_SAID = "It rains."
_RESULTS = ("Rain.", "Noon.")


@dataclass(frozen=True, slots=True)
class Natives:
    """The history without its last message, that message, the tools, and the tag of the wire."""

    tag: str
    history: list[dict[str, Any]]
    final: dict[str, Any]
    tools: list[dict[str, Any]]


def _function_call(name: str, number: int) -> dict[str, Any]:
    function = {"name": name, "arguments": _ARGUMENTS}
    return {"id": f"call_{number}", "type": "function", "function": function}


_DECLARED = {"name": "weather", "description": "The weather.", "parameters": _SCHEMA}

NATIVES: dict[str, Natives] = {
    "openai.chat": Natives(
        "wire:openai-chat",
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": _ASKED}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [_function_call("weather", 1), _function_call("clock", 2)],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": _RESULTS[0]},
            {"role": "tool", "tool_call_id": "call_2", "content": _RESULTS[1]},
        ],
        {"role": "assistant", "content": _SAID},
        [{"type": "function", "function": _DECLARED}],
    ),
    "openai.responses": Natives(
        "wire:openai-responses",
        [
            {"role": "user", "content": [{"type": "input_text", "text": _ASKED}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
            *(
                {
                    "type": "function_call",
                    "id": f"fc_{number}",
                    "call_id": f"call_{number}",
                    "name": name,
                    "arguments": _ARGUMENTS,
                }
                for number, name in ((1, "weather"), (2, "clock"))
            ),
            *(
                {"type": "function_call_output", "call_id": f"call_{number}", "output": result}
                for number, result in enumerate(_RESULTS, 1)
            ),
        ],
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": _SAID, "annotations": []}],
        },
        [{"type": "function", **_DECLARED}],
    ),
    "anthropic.messages": Natives(
        "wire:anthropic.messages",
        [
            {"role": "user", "content": [{"type": "text", "text": _ASKED}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look.", "signature": "c2lnbmVk"},
                    *(
                        {"type": "tool_use", "id": call, "name": name, "input": {"place": "Oslo"}}
                        for call, name in (("toolu_1", "weather"), ("toolu_2", "clock"))
                    ),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
                    for number, result in enumerate(_RESULTS, 1)
                ],
            },
        ],
        {"role": "assistant", "content": [{"type": "text", "text": _SAID}]},
        [{"name": "weather", "description": "The weather.", "input_schema": _SCHEMA}],
    ),
    "google.generate": Natives(
        "wire:google.generate_content",
        [
            {"role": "user", "parts": [{"text": _ASKED}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Look.", "thought": True},
                    {
                        "functionCall": {"name": "weather", "args": {"place": "Oslo"}},
                        "thoughtSignature": "c2lnbmVk",
                    },
                    {"functionCall": {"name": "clock", "args": {"place": "Oslo"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": name, "response": {"result": result}}}
                    for name, result in zip(("weather", "clock"), _RESULTS, strict=True)
                ],
            },
        ],
        {"role": "model", "parts": [{"text": _SAID}]},
        [{"functionDeclarations": [_DECLARED]}],
    ),
    "ollama.chat": Natives(
        "wire:ollama.chat",
        [
            {"role": "user", "content": _ASKED},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Look.",
                "tool_calls": [
                    {"function": {"name": name, "arguments": {"place": "Oslo"}}}
                    for name in ("weather", "clock")
                ],
            },
            {"role": "tool", "tool_name": "weather", "content": _RESULTS[0]},
            {"role": "tool", "tool_name": "clock", "content": _RESULTS[1]},
        ],
        {"role": "assistant", "content": _SAID},
        [{"type": "function", "function": _DECLARED}],
    ),
}
