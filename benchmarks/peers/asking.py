"""What all peers are asked: the messages and the tool, as the chat format writes them."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import PROMPT, TOOL, Case

__all__ = ["MESSAGES", "chat_options", "has_fragment"]

MESSAGES: list[Any] = [{"role": "user", "content": PROMPT}]
_TOOLS: list[Any] = [{"type": "function", "function": TOOL}]


def chat_options(case: Case) -> dict[str, Any]:
    return {"messages": MESSAGES, **({"tools": _TOOLS} if case.has_call else {})}


def has_fragment(chunk: Any, case: Case) -> bool:
    """Whether a chunk in the shape of the chat format brings some of what the case is about."""
    if not chunk.choices:
        return False
    delta = chunk.choices[0].delta
    if not case.has_call:
        return bool(delta.content)
    return bool(delta.tool_calls and delta.tool_calls[0].function.arguments)
