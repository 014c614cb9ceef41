"""The data and the small steps by which a provider says what its server does otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from agent_hookspecs.authoring import AccumulatorStreamingMixin, Partial
from agent_hookspecs.errors import ServerError


def chunk(delta: object = None, **more: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


def call(arguments: str, **more: object) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments}, **more}]})


class Whole(AccumulatorStreamingMixin):
    """A provider that merges calls and reasoning itself, and shows them."""

    accumulates: ClassVar[Collection[str]] = ("tool_calls", "reasoning")


class Waiting(Whole):
    """One whose extensions show them."""

    waiting_keys: ClassVar[Mapping[str, str]] = {"tool_calls": "calls", "reasoning": "thought"}


class Steps(Whole):
    """One that takes every step, and writes down what it was asked about."""

    answer_role: ClassVar[str] = "assistant"

    def __init__(self) -> None:
        self.noted: list[dict[str, Any]] = []

    def check_chunk(self, chunk: dict[str, Any], choice: dict[str, Any], event: str | None) -> None:
        if chunk.get("error") or event == "error":
            raise ServerError("it broke off")

    def read_content(self, content: object, accumulated: Partial) -> str:
        parts = accumulated.setdefault("parts", [])
        parts += content if isinstance(content, list) else [content]
        return content if isinstance(content, str) else f"<{len(parts)}>"

    def merge_more(
        self, delta: dict[str, Any], accumulated: Partial, fragment: dict[str, Any]
    ) -> None:
        if "citations" in delta:
            accumulated["citations"] = fragment["citations"] = delta["citations"]

    def note_chunk(
        self, chunk: dict[str, Any], choice: dict[str, Any], accumulated: Partial
    ) -> None:
        self.noted.append(chunk)


def run(
    provider: AccumulatorStreamingMixin, *chunks: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """What was shown, the final message, and the state at the end."""
    shown: list[dict[str, Any]] = []
    state: dict[str, Any] = {"partial": None}
    for each in chunks:
        partials, finals, _, state = provider.process_chunk(each, [], state)
        assert finals == []
        shown += partials
    finals, _, state = provider.finalize([], state)
    return shown, finals[0], state


START = chunk({"role": "assistant", "content": ""})
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_a_provider_that_accumulates_calls_and_reasoning_shows_and_keeps_them() -> None:
    opening = call("", id="a", type="function", function={"name": "f", "arguments": "{"})
    shown, final, _ = run(Whole(), START, chunk({"reasoning": "hm"}), opening, call("}"))
    assert [message.get("reasoning") for message in shown] == [None, "hm", None, None]
    assert [call["arguments"] for m in shown for call in m.get("tool_calls", ())] == ["{", "}"]
    assert (final["reasoning"], final["tool_calls"]) == ("hm", [CALL])


def test_what_extensions_show_waits_in_the_state_and_makes_no_partial() -> None:
    opening = call("", id="a", function={"name": "f", "arguments": "{"})
    shown, final, state = run(Waiting(), START, chunk({"reasoning": "hm"}), opening, call("}"))
    assert shown == []
    assert state["thought"] == "hm"
    assert state["calls"] == [{"index": 0, "id": "a", "name": "f", "arguments": "}"}]
    assert (final["reasoning"], final["tool_calls"]) == ("hm", [CALL])


def test_text_that_comes_with_what_waits_is_shown_without_it() -> None:
    shown, _, state = run(Waiting(), START, chunk({"content": "x", "reasoning": "hm"}))
    assert shown == [{"role": "assistant", "content": "x"}]
    assert state["thought"] == "hm"


@pytest.mark.parametrize(
    ("broken", "event"), [({"error": "x"}, None), (chunk({"content": "x"}), "error")]
)
def test_an_error_in_a_chunk_is_raised_and_nothing_of_it_merged(
    broken: dict[str, Any], event: str | None
) -> None:
    provider, state = Steps(), {"partial": None}
    provider.process_chunk(chunk({"content": "a"}), [], state)
    with pytest.raises(ServerError, match="broke off"):
        provider.process_chunk(broken, [], state, event)
    assert Partial.of(state["partial"])["content"] == "a"


def test_further_keys_of_a_delta_are_merged_and_shown() -> None:
    shown, final, _ = run(Steps(), START, chunk({"content": "x", "citations": ["c"]}))
    assert shown[-1] == {"role": "assistant", "content": "x", "citations": ["c"]}
    assert final["citations"] == ["c"]


def test_once_there_are_parts_every_content_is_read_as_one() -> None:
    _, final, _ = run(Steps(), START, chunk({"content": ["p"]}), chunk({"content": "text"}))
    assert final["parts"] == ["p", "text"]
    assert final["content"] == "<1>text"


def test_chunks_are_noted_that_begin_or_end_an_answer_or_say_more_than_a_delta() -> None:
    provider = Steps()
    opening = call("", id="a", function={"name": "f", "arguments": ""})
    likely = chunk({"content": "x"}, logprobs={"content": []})
    last = chunk({}, finish_reason="stop")
    run(provider, START, chunk({"content": "x"}), likely, opening, call("{}"), last)
    assert provider.noted == [START, likely, last]


def test_the_role_of_an_answer_may_be_fixed() -> None:
    shown, final, _ = run(Steps(), chunk({"role": "user", "content": "a"}), chunk({"content": "b"}))
    assert {message["role"] for message in shown} == {final["role"]} == {"assistant"}


@pytest.mark.parametrize("nothing", [{}, None])
def test_a_message_after_deltas_is_not_read_twice(nothing: object) -> None:
    whole = {"role": "assistant", "content": "ab"}
    last = chunk(nothing, message=whole, finish_reason="stop")
    _, final, _ = run(AccumulatorStreamingMixin(), *(chunk({"content": c}) for c in "ab"), last)
    assert final["content"] == "ab"


@pytest.mark.parametrize("where", ["chunk", "choice"])
def test_usage_that_comes_with_text_is_not_lost(where: str) -> None:
    usage = {"total_tokens": 3}
    told = {**chunk({"content": "b"}), "usage": usage}
    if where == "choice":
        told = chunk({"content": "b"}, usage=usage)
    _, final, _ = run(AccumulatorStreamingMixin(), chunk({"content": "a"}), told)
    assert (final["content"], final["_metadata"]) == ("ab", {"usage": usage})
