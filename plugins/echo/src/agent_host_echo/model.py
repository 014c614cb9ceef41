"""The echo model: from the payload of a request to an answer, always the same one.

It stands where a server would: it sees what is sent, never state or ``_metadata``, and answers in
OpenAI-like chunks or as one body. It must not know hooks.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any

from agent_hookspecs import (
    AuthenticationError,
    ModelInfo,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamCutError,
)
from agent_hookspecs.authoring import (
    taken_call_ids,
    tool_call_id,
)
from agent_host_echo.prompt import Call, End, Fail, Refuse, Text, Think, parse

__all__ = ["DEFAULT_MODEL", "HELP", "MODELS", "answer_at_once", "answer_in_chunks"]

#: Media that a model takes, which is to say that it names them in its answers.
_MEDIA = dict.fromkeys(("images", "documents", "audio", "video", "image_urls", "file_urls"), True)
MODELS: tuple[ModelInfo, ...] = (
    {
        "id": "echo-reasoner",
        "name": "Echo Reasoner",
        "capabilities": {"tools": True, "reasoning": True, **_MEDIA},
    },
    {"id": "echo-1", "name": "Echo 1", "capabilities": {"tools": True, "reasoning": False}},
)
DEFAULT_MODEL = "echo-reasoner"

#: The answer to an empty prompt.
HELP = (
    "I answer with what you write. A line may also say /think TEXT, /call NAME {json}, "
    "/repeat N TEXT, /refuse TEXT, /end WORD or /fail KIND MESSAGE."
)

#: Characters of a call's payload per chunk: so few that every payload arrives in pieces.
_FRAGMENT = 4

_PAYLOAD_KEYS = {"function": "arguments", "custom": "input"}

_FAILURES: dict[str, tuple[type[ProviderError], int | None]] = {
    "rate_limit": (RateLimitError, 429),
    "overloaded": (OverloadedError, 503),
    "auth": (AuthenticationError, 401),
    "server": (ServerError, 500),
    "cut": (StreamCutError, None),
}


@dataclass(frozen=True, slots=True)
class _Answer:
    reasoning: str
    text: str
    calls: list[dict[str, Any]]
    refusal: str
    #: The finish reason that the prompt asks for; "" for the one that the answer has by itself.
    end: str
    failure: Fail | None
    usage: dict[str, Any]

    @property
    def finish_reason(self) -> str:
        return self.end or ("tool_calls" if self.calls else "stop")


def answer_in_chunks(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answer word by word; the last chunk has the finish reason and the usage.

    A failure is raised after what precedes it; a cut answer just ends, without a finish reason.
    """
    answer = _answer(payload)
    role = {"role": "assistant"}
    for delta in _deltas(answer):
        yield {"choices": [{"index": 0, "delta": {**role, **delta}, "finish_reason": None}]}
        role = {}
    if answer.failure is None:
        choice = {"index": 0, "delta": role, "finish_reason": answer.finish_reason}
        yield {"choices": [choice], "usage": answer.usage}
    elif answer.failure.kind != "cut":
        raise _error(answer.failure)


def answer_at_once(payload: dict[str, Any]) -> dict[str, Any]:
    """The whole answer as one body; any failure, a cut one too, is raised."""
    answer = _answer(payload)
    if answer.failure is not None:
        raise _error(answer.failure)
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning"] = answer.reasoning
    if answer.refusal:
        message["refusal"] = answer.refusal
    if answer.calls:
        message["tool_calls"] = answer.calls
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return {"choices": [choice], "usage": answer.usage}


def _answer(payload: dict[str, Any]) -> _Answer:
    messages: list[dict[str, Any]] = payload["messages"]
    reasoning: list[str] = []
    text: list[str] = []
    calls: list[dict[str, Any]] = []
    refusal: list[str] = []
    end = ""
    failure: Fail | None = None
    if messages and messages[-1].get("role") == "tool":
        text = _results(messages)
    else:
        prompt = _prompt(messages)
        kinds = _offered(payload)
        used = taken_call_ids(messages)
        ids = (name for number in count(1) if (name := f"call_{number}") not in used)
        for line in parse(prompt) if prompt.strip() else [Text(HELP)]:
            if isinstance(line, Text):
                text.append(line.text)
            elif isinstance(line, Think):
                reasoning += [line.text] if payload.get("reasoning") is True else []
            elif isinstance(line, Refuse):
                refusal.append(line.text)
            elif isinstance(line, End):
                # What was paused comes to its end when it goes on.
                end = line.word if messages[-1].get("role") != "assistant" else ""
            elif isinstance(line, Fail):
                failure = line
            elif line.name in kinds:
                calls.append(_call(next(ids), kinds[line.name], line))
            else:
                text.append(_refusal(line.name, list(kinds)))
    thought, said = "\n".join(reasoning), "\n".join(text).strip()
    usage = _usage(messages, thought, said, calls)
    return _Answer(thought, said, calls, "\n".join(refusal), end, failure, usage)


def _prompt(messages: list[dict[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return _text(message)
    return ""


def _offered(payload: dict[str, Any]) -> dict[str, str]:
    """The tools that may be called: name, and whether calls are of kind function or custom.

    Only names matter here, so schemas of every format that has one will do.
    """
    tools = payload.get("tools")
    if not isinstance(tools, list) or payload.get("tool_choice") == "none":
        return {}
    return {
        name: "custom" if tool.get("type") == "custom" else "function"
        for tool in tools
        if isinstance(tool, dict) and (name := _name(tool))
    }


def _name(entry: dict[str, Any]) -> str:
    """The name in a tool schema or call, whether nested in its kind or not."""
    for place in (entry.get("function"), entry.get("custom"), entry):
        name = place.get("name") if isinstance(place, dict) else None
        if isinstance(name, str) and name:
            return name
    return ""


def _call(call_id: str, kind: str, line: Call) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": kind,
        kind: {"name": line.name, _PAYLOAD_KEYS[kind]: line.payload},
    }


def _refusal(name: str, offered: list[str]) -> str:
    there_are = f"the tools on offer are {', '.join(offered)}" if offered else "no tool is on offer"
    return f"Cannot call {name}: {there_are}."


def _text(message: dict[str, Any]) -> str:
    """The text of a message, whose content may come in parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(_part_text(part) for part in content if isinstance(part, dict))


def _part_text(part: dict[str, Any]) -> str:
    """The text of a part, or a word for a medium: what it is, its name, and its size as data."""
    if part.get("type") == "text":
        return str(part.get("text") or "")
    content, metadata = part.get("content") or {}, part.get("metadata") or {}
    head, _, data = str(content.get("url") or "").partition(";base64,")
    what = metadata.get("media_type") or part.get("type")
    size = f"{len(b64decode(data))} bytes" if data else head
    return f"[{', '.join(filter(None, (what, content.get('name'), size)))}]"


def _results(messages: list[dict[str, Any]]) -> list[str]:
    """One line for each of the tool results that the history ends with."""
    names = {
        tool_call_id(call): _name(call)
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    results = list(takewhile(lambda message: message.get("role") == "tool", reversed(messages)))
    return [
        f"{names.get(str(result.get('tool_call_id'))) or 'tool'} returned: "
        + " ".join(_text(result).splitlines())
        for result in reversed(results)
    ]


def _usage(
    messages: list[dict[str, Any]], reasoning: str, text: str, calls: list[dict[str, Any]]
) -> dict[str, Any]:
    payloads = [call[call["type"]][_PAYLOAD_KEYS[call["type"]]] for call in calls]
    asked = sum(len(_text(message).split()) for message in messages)
    answered = sum(len(part.split()) for part in (reasoning, text, *payloads))
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "completion_tokens_details": {"reasoning_tokens": len(reasoning.split())},
    }


def _deltas(answer: _Answer) -> Iterator[dict[str, Any]]:
    for word in _words(answer.reasoning):
        yield {"reasoning": word}
    for word in _words(answer.text):
        yield {"content": word}
    for word in _words(answer.refusal):
        yield {"refusal": word}
    for index, call in enumerate(answer.calls):
        kind = call["type"]
        key = _PAYLOAD_KEYS[kind]
        payload = call[kind][key]
        yield {"tool_calls": [{**call, "index": index, kind: {**call[kind], key: ""}}]}
        for start in range(0, len(payload), _FRAGMENT):
            fragment = payload[start : start + _FRAGMENT]
            yield {"tool_calls": [{"index": index, kind: {key: fragment}}]}


def _words(text: str) -> Iterator[str]:
    """The words, each with the white space before it; ``text`` must not end with white space."""
    return (found[0] for found in re.finditer(r"\s*\S+", text))


def _error(failure: Fail) -> ProviderError:
    kind, status = _FAILURES[failure.kind]
    return kind(
        failure.message or f"the prompt asked the echo model for a failure: {failure.kind}",
        provider="echo",
        status=status,
        hint="take the /fail line out of the prompt",
    )
