"""What a request asks for, in words of no vendor: enough for a model that makes up its answers.

Reads requests that a format has already found to be right, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_host_testing.formats.deferred import (
    callable_tools,
    loaded_functions,
    referred_tools,
)

__all__ = ["Gist", "Offer", "gist_of"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the request offers; one that is ``deferred`` the model has yet to find."""

    name: str
    schema: Mapping[str, Any]
    freeform: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class Gist:
    """The last words of the user, the results that came after them, and what is allowed."""

    said: str
    results: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    reasoning: bool = False


def gist_of(format_name: str, body: Mapping[str, Any]) -> Gist:
    """The gist of a request in the format of that name."""
    return _READERS[format_name](body)


def _openai_chat(body: Mapping[str, Any]) -> Gist:
    turns = [(message["role"], _text(message.get("content"))) for message in body["messages"]]
    offers = [
        Offer(tool[tool["type"]]["name"], _schema(tool[tool["type"]]), tool["type"] == "custom")
        for tool in body.get("tools") or ()
    ]
    asked = any(body.get(name) for name in ("reasoning_effort", "reasoning", "thinking"))
    return _gist(turns, offers, asked)


def _openai_responses(body: Mapping[str, Any]) -> Gist:
    given = body.get("input") or ""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    turns = [
        ("tool", _text(item["output"]))
        if str(item.get("type")).endswith("_call_output")
        else (item.get("role", "assistant"), _text(item.get("content")))
        for item in items
    ]
    found = {name for item in items for name, _ in loaded_functions(item)}
    offers = [
        Offer(
            tool["name"],
            _schema(tool),
            tool["type"] == "custom",
            tool.get("defer_loading") is True and tool["name"] not in found,
        )
        for tool in callable_tools(body)
    ]
    return _gist(turns, offers, bool(body.get("reasoning")))


def _anthropic(body: Mapping[str, Any]) -> Gist:
    turns: list[tuple[str, str]] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            is_result = block["type"] == "tool_result"
            words = _text(block.get("content")) if is_result else block.get("text", "")
            turns.append(("tool" if is_result else message["role"], words))
    found = referred_tools(body)
    offers = [
        Offer(
            tool["name"],
            tool["input_schema"],
            deferred=tool.get("defer_loading") is True and tool["name"] not in found,
        )
        for tool in body.get("tools") or ()
        if "input_schema" in tool
    ]
    thinking = (body.get("thinking") or {}).get("type", "disabled")
    return _gist(turns, offers, thinking != "disabled")


def _google(body: Mapping[str, Any]) -> Gist:
    turns: list[tuple[str, str]] = []
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                turns.append(("tool", str(part["functionResponse"].get("response"))))
            elif "text" in part:
                turns.append((content.get("role", "user"), part["text"]))
    offers = [
        Offer(tool["name"], _schema(tool))
        for group in body.get("tools") or ()
        for tool in group.get("functionDeclarations") or ()
    ]
    settings = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    return _gist(turns, offers, bool(settings.get("includeThoughts")))


def _ollama(body: Mapping[str, Any]) -> Gist:
    turns = [(message["role"], _text(message.get("content"))) for message in body["messages"]]
    offers = [
        Offer(tool["function"]["name"], _schema(tool["function"]))
        for tool in body.get("tools") or ()
    ]
    return _gist(turns, offers, bool(body.get("think")))


_READERS: dict[str, Callable[[Mapping[str, Any]], Gist]] = {
    "openai.chat": _openai_chat,
    "openai.responses": _openai_responses,
    "anthropic.messages": _anthropic,
    "google.generate": _google,
    "ollama.chat": _ollama,
}


def _gist(turns: list[tuple[str, str]], offers: list[Offer], reasoning: bool) -> Gist:
    said = ""
    results: list[str] = []
    for role, words in turns:
        if role == "user" and words:
            said, results = words, []
        elif role == "tool":
            results.append(words)
    return Gist(said, tuple(results), tuple(offers), reasoning)


def _schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool.get("parameters") or tool.get("parametersJsonSchema") or {}


def _text(content: Any) -> str:
    return "".join(_texts(content))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part.get("text"), str):
            yield part["text"]
