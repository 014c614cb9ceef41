"""What a provider sends of a conversation, whether it made the beginning anew or had it kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs.authoring import attachment
from agent_host.sessions.natives import NativeHistory, RetainedHistory
from agent_host_anthropic.provider import AnthropicProvider
from agent_host_cohere.provider import CohereProvider
from agent_host_google.provider import GoogleProvider
from agent_host_ollama.provider import OllamaProvider
from agent_host_openai.provider import OpenAIProvider
from agent_host_openai_compatible.chat import ChatCompletionsProvider

PICTURE = {"type": "image", "content": {"url": "data:image/png;base64,AAAA"}, "metadata": {}}
CONFIG = {"base_url": "http://localhost", "attachments_root": "/nowhere"}

PROVIDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "anthropic": (AnthropicProvider, {"model": "claude-sonnet-4-5"}),
    "cohere": (CohereProvider, {"model": "command-a-03-2025"}),
    "google": (GoogleProvider, {"model": "gemini-2.5-flash"}),
    "ollama": (OllamaProvider, {"model": "qwen3:4b"}),
    "openai-chat": (OpenAIProvider, {"model": "gpt-4o", "api": "chat"}),
    "openai-responses": (OpenAIProvider, {"model": "gpt-5", "api": "responses"}),
    "short-ids": (
        lambda: ChatCompletionsProvider(name="s", quirks=["short_call_ids"]),
        {"model": "m"},
    ),
    "alternating": (
        lambda: ChatCompletionsProvider(name="a", quirks=["alternating_roles"]),
        {"model": "m"},
    ),
}


def message(role: str, text: str, number: int, extra: str) -> dict[str, Any]:
    """Calls, answers and files by the few ids and names that make them meet, or miss each other."""
    metadata: dict[str, Any] = {}
    made: dict[str, Any] = {"role": role, "content": text, "metadata": metadata}
    if role == "assistant" and extra == "calls":
        function = {"name": "f", "arguments": "{}"}
        ids = (f"call {number}", f"c{number}")
        metadata["tool_calls"] = [{"id": i, "type": "function", "function": function} for i in ids]
    if role == "tool":
        metadata["tool_call_id"] = f"call {number}" if extra == "calls" else f"c{number}"
        metadata["tool_name"] = "f"
    if role == "user" and extra == "media":
        made["multipartContent"] = [PICTURE, attachment("/nowhere/picture.png")]
    return made


MESSAGES = st.builds(
    message,
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.sampled_from(["", " ", "a", "b "]),
    st.integers(0, 2),
    st.sampled_from(["", "calls", "media"]),
)


class Talk:
    """A provider that is asked again and again."""

    def __init__(self, name: str) -> None:
        make, config = PROVIDERS[name]
        self.provider = make()
        self.config = {**CONFIG, **config}

    def ask(
        self, earlier: list[Any], messages: list[Any], retained: RetainedHistory | None
    ) -> tuple[list[Any], Any, list[str]]:
        """The natives and the body of a request, and what was warned of."""
        told: list[str] = []
        context: dict[str, Any] = {"warn": lambda text, plugin: told.append(text), "tags": ()}
        if retained is not None:
            context["retained"] = retained
        state = {"partial": None, **self.provider.init(dict(self.config))}
        converted = _called(self.provider.to_native_messages, messages, state)
        natives = [*earlier, *converted]
        natives, state = _called(self.provider.initialize_request, natives, state, context)
        spec = self.provider.build_request(natives, state, False, context)
        return natives, spec["body"], told


def _called(hook: Any, *arguments: Any) -> Any:
    return hook(*arguments[: hook.__code__.co_argcount - 1])


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(MESSAGES, max_size=4), min_size=2, max_size=4))
def test_a_conversation_is_sent_alike_however_often_its_beginning_was(
    name: str, turns: list[list[dict[str, Any]]]
) -> None:
    talk = Talk(name)
    natives: list[Any] = []
    history = NativeHistory()
    for turn in turns:
        # There are other ways to go on from the same place, and none may be felt by another.
        for messages in (turn, [], turn):
            anew, body, warned = talk.ask(natives, messages, None)
            written = json.dumps(body)
            going_on, again, told = talk.ask(natives, messages, RetainedHistory(history))
            assert json.dumps(again) == written
            assert (going_on, told) == (anew, warned)
        history = history.with_natives(anew[len(history) :])
        natives = history[:]
