"""Ollama's own chat API: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.formats.pieces import CALL, arguments_of, as_json, words

_MODEL = "qwen3:4b"


def events(content: str, count: int) -> Iterator[bytes]:
    if content in ("string", "objects"):
        function = {"name": CALL, "arguments": arguments_of(content, count)}
        yield _line({"content": "", "tool_calls": [{"function": function}]})
    for word in words(count if content in ("text", "reasoning") else 0):
        yield _line({"content": word} if content == "text" else {"content": "", "thinking": word})
    yield as_json(_end("", count)) + b"\n"


def _line(message: dict[str, Any]) -> bytes:
    return as_json(_answer({"role": "assistant", **message}, done=False)) + b"\n"


def _answer(message: dict[str, Any], *, done: bool) -> dict[str, Any]:
    moment = "2025-10-09T08:53:20.123456789Z"
    return {"model": _MODEL, "created_at": moment, "message": message, "done": done}


def _end(text: str, count: int) -> dict[str, Any]:
    return {
        **_answer({"role": "assistant", "content": text}, done=True),
        "done_reason": "stop",
        "total_duration": 4883583458,
        "load_duration": 1334875,
        "prompt_eval_count": 20,
        "prompt_eval_duration": 342546000,
        "eval_count": count,
        "eval_duration": 4535599000,
    }


def whole(count: int) -> dict[str, Any]:
    return _end("".join(words(count)), count)


def listing() -> dict[str, Any]:
    """What ``/api/show`` says of the model."""
    return {
        "modelfile": f"# FROM {_MODEL}\nFROM {_MODEL}\n",
        "details": {"family": "qwen3", "parameter_size": "4.0B"},
        "model_info": {"qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking"],
    }
