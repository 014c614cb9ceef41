"""The provider's hooks by hand: what is sent, and what becomes of single lines."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hookspecs import OverloadedError

from {{ cookiecutter.package }}.provider import {{ cookiecutter.__class }}Provider

CONFIG = {"model": "small", "base_url": "http://api.example/"}


def read(*lines: dict[str, Any]) -> tuple[str, list[dict[str, Any]], Any]:
    """What is shown of these lines, the message they make, and whether the stream has ended."""
    provider = {{ cookiecutter.__class }}Provider()
    state, shown = provider.init({**CONFIG}), ""
    for line in lines:
        partials, _, _, state = provider.process_chunk(line, [], state)
        shown += "".join(partial["content"] for partial in partials)
    complete = provider.stream_complete(state)
    finals, _, state = provider.finalize([], state, {})
    return shown, [*map(dict, provider.from_native_messages(finals, state))], complete


def test_a_request_has_the_model_the_messages_and_the_knobs() -> None:
    provider = {{ cookiecutter.__class }}Provider()
    state = provider.init({**CONFIG, "api_key": "k", "max_output_tokens": 5})
    natives = provider.to_native_messages(
        [{"role": "user", "content": "Hello", "metadata": {}}],
        state,
    )
    natives, state = provider.initialize_request(natives, state, {})
    request = provider.build_request(natives, state, True, {})
    assert request["url"] == "http://api.example/chat"
    assert request["headers"] == {"authorization": "Bearer k"}
    assert request["body"] == {
        "model": "small",
        "limit": 5,
        "messages": [{"role": "user", "text": "Hello"}],
        "stream": True,
    }


def test_the_final_is_the_sum_of_what_was_shown() -> None:
    shown, [message], complete = read({"text": "Hel"}, {"text": "lo"}, {"end": {"reason": "stop"}})
    assert shown == message["content"] == "Hello"
    assert message["metadata"] == {"finish_reason": "stop"}
    assert complete is True


def test_a_stream_without_its_end_is_not_complete() -> None:
    assert read({"text": "Hel"})[2] is False


def test_pieces_of_calls_are_merged_by_index() -> None:
    _, [message], _ = read(
        {"call": {"index": 0, "id": "a", "name": "f"}},
        {"call": {"index": 1, "id": "b", "name": "g"}},
        {"call": {"index": 0, "arguments": '{"x":'}},
        {"call": {"index": 1, "arguments": "{}"}},
        {"call": {"index": 0, "arguments": "1}"}},
        {"end": {"reason": "tool_calls"}},
    )
    calls = [call["function"] for call in message["metadata"]["tool_calls"]]
    assert calls == [
        {"name": "f", "arguments": '{"x":1}'},
        {"name": "g", "arguments": "{}"},
    ]


def test_thoughts_stand_beside_the_text_and_keep_their_seal() -> None:
    provider = {{ cookiecutter.__class }}Provider()
    state = provider.init({**CONFIG})
    for line in ({"thought": "Hm."}, {"seal": "s1"}, {"text": "Yes."}, {"end": {"reason": "stop"}}):
        *_, state = provider.process_chunk(line, [], state)
    [native], _, state = provider.finalize([], state, {})
    assert native["thought"] == {"text": "Hm.", "seal": "s1"}
    [message] = provider.from_native_messages([native], state)
    assert message["metadata"]["reasoning"] == "Hm."
    assert "s1" not in str(message)


def test_an_error_in_a_stream_is_typed() -> None:
    with pytest.raises(OverloadedError, match="too much"):
        read({"text": "Hel"}, {"error": {"code": "overloaded", "message": "too much"}})


def test_tags_tell_what_the_model_can_do() -> None:
    provider = {{ cookiecutter.__class }}Provider()
    models = provider.parse_models({"models": [{"id": "small", "abilities": ["thought"]}]})
    assert provider.get_tags({"model": "small"}, models)[2:] == ["supports_reasoning"]
    assert provider.get_tags({"model": "other"}, models)[2:] == ["supports_tools"]
