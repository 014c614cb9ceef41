"""What Ollama's lines become: text, thinking, calls, and a native message that loses nothing."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    NativeMessage,
    OverloadedError,
    ProtocolError,
    ServerError,
)
from agent_hookspecs.authoring import (
    AccumulatorStreamingMixin,
    Partial,
    accumulate_tool_calls,
    first_choice,
)
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY
from agent_host_ollama.functions import CONTRIBUTION
from agent_host_ollama.provider import OllamaProvider
from agent_host_ollama.reasoning import OllamaThinking
from agent_host_ollama.tools import OllamaTools

PROVIDER, TOOLS, THINKING = OllamaProvider(), OllamaTools(), OllamaThinking()
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
CONTEXT: dict[str, Any] = {"tool_interop": {"registry": REGISTRY}}
COUNTS = {
    "total_duration": 4000,
    "load_duration": 10,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 30,
    "eval_count": 7,
    "eval_duration": 300,
}


def line(**message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "", **message}
    return {
        "model": "qwen3:4b",
        "created_at": "2026-01-01T00:00:00Z",
        "message": said,
        "done": False,
    }


def last(reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    ended = {} if reason is None else {"done_reason": reason}
    return {**line(**message), "done": True, **ended, **COUNTS}


def called(name: str = "f", arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


class Heard:
    """An answer after its lines: what was shown, the native message and the core's."""

    def __init__(self, *lines: Any, natives: list[NativeMessage] | None = None) -> None:
        self.state = PROVIDER.init({"model": "qwen3:4b"})
        self.shown: list[dict[str, Any]] = []
        history = natives or []
        PROVIDER.initialize_request(history, self.state, CONTEXT)
        for each in lines:
            taken = PROVIDER.process_chunk(copy.deepcopy(each), history, self.state)
            taken = TOOLS.process_chunk(each, *taken)
            taken = THINKING.process_chunk(each, *taken)
            self.shown += taken[0]
        self.complete = PROVIDER.stream_complete(self.state)
        [self.native], self.natives, _ = PROVIDER.finalize(history, self.state, CONTEXT)
        [self.core] = PROVIDER.from_native_messages([self.native], self.state)
        self.metadata = self.core["metadata"]


#: The bytes of a recorded kind of stream: a call in a line that is not the last.
STREAM = b"""\
{"model":"qwen3:4b","created_at":"t","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}
{"model":"qwen3:4b","created_at":"t","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},"done":false}
{"model":"qwen3:4b","created_at":"t","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":5,"eval_count":6}
"""
CHUNKS = [json.loads(each) for each in STREAM.splitlines()]


def test_history_has_arguments_as_objects_also_where_they_came_as_text() -> None:
    heard = Heard(*CHUNKS)
    assert heard.native["tool_calls"] == [
        {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    ]
    broken = Heard(last(tool_calls=[called(arguments='{"a": 1}'), called(arguments="{bro")]))
    stored = [call["function"]["arguments"] for call in broken.native["tool_calls"]]
    assert stored == [{"a": 1}, {}]
    # The host judges a call by what the model wrote.
    written = [call["function"]["arguments"] for call in broken.state["partial"]["tool_calls"]]
    assert written == ['{"a": 1}', "{bro"]


def test_the_parser_of_openai_streams_finds_nothing_in_these_chunks_and_is_not_used() -> None:
    state: dict[str, Any] = {"partial": None}
    calls = Partial()
    for chunk in [*CHUNKS, last(content="Hi")]:
        AccumulatorStreamingMixin().process_chunk(chunk, [], state)
        accumulate_tool_calls(first_choice(chunk), calls)
    assert "content" not in (state["partial"] or {})
    assert "tool_calls" not in calls
    assert AccumulatorStreamingMixin not in OllamaProvider.__mro__
    [ours] = Heard(*CHUNKS).metadata["tool_calls"]
    assert json.loads(ours["function"]["arguments"]) == {"city": "Oslo"}


def test_thinking_is_shown_and_kept_for_the_history() -> None:
    heard = Heard(line(thinking="Let "), line(thinking="me"), line(content="Yes"), last())
    assert heard.native["thinking"] == "Let me"
    assert heard.metadata["reasoning"] == "Let me"
    assert [shown.get("reasoning") for shown in heard.shown] == ["Let ", "me", None]
    assert heard.core["content"] == "Yes"


def test_streamed_and_whole_answers_are_the_same() -> None:
    calls = [called("f", {"a": 1}, id="c1"), called("g", {})]
    streamed = Heard(
        line(thinking="Hm"),
        line(content="O"),
        line(content="k"),
        line(tool_calls=calls[:1]),
        line(tool_calls=calls[1:]),
        last(),
    )
    whole = Heard(last(content="Ok", thinking="Hm", tool_calls=calls))
    assert streamed.native == whole.native
    assert list(streamed.native) == list(whole.native)


def test_ids_are_the_wires_or_made_up_and_unique_over_the_conversation() -> None:
    first = Heard(last(tool_calls=[called(), called(), called(id="given")]))
    second = Heard(last(tool_calls=[called(), called(id="given")]), natives=first.natives)
    ids = [call["id"] for heard in (first, second) for call in heard.metadata["tool_calls"]]
    assert len(set(ids)) == 5
    assert ids[2] == "given"
    assert ["id" in call for call in first.native["tool_calls"]] == [False, False, True]
    assert second.native["tool_calls"][1]["id"] == "given"


def test_nullish_arguments_are_an_empty_object() -> None:
    heard = Heard(last(tool_calls=[called(arguments=None), {"function": {"name": "g"}}]))
    assert [each["function"]["arguments"] for each in heard.metadata["tool_calls"]] == ["{}", "{}"]
    assert [each["function"]["arguments"] for each in heard.native["tool_calls"]] == [{}, {}]


def test_calls_without_a_name_are_not_run() -> None:
    odd = [{"function": {"name": None}}, {"function": {"arguments": {}}}, {"function": None}, "x"]
    heard = Heard(last(content="Hi", tool_calls=[*odd, called("f")]))
    assert [call["function"]["name"] for call in heard.metadata["tool_calls"]] == ["f"]


def test_counts_and_durations_are_usage() -> None:
    usage = Heard(line(content="Hi"), last()).metadata["usage"]
    assert usage == {"input": 26, "output": 7, "raw": COUNTS}
    assert "usage" not in Heard({"message": {"content": "Hi"}, "done": True}).metadata


def test_what_else_a_message_has_is_kept() -> None:
    heard = Heard(line(content="Hi", images=["iVBORw=="], new={"a": 1}), last())
    assert heard.native["images"] == ["iVBORw=="]
    assert heard.native["new"] == {"a": 1}
    pictures = heard.core["multipartContent"]
    assert pictures[1]["content"] == {"url": "data:image/png;base64,iVBORw=="}


@pytest.mark.parametrize(
    ("sentence", "kind", "hint"),
    [
        ("model 'nope:1b' not found", ModelNotFoundError, "ollama pull nope:1b"),
        ('model "nope" not found, try pulling it first', ModelNotFoundError, "ollama pull nope"),
        ("pull model manifest: file does not exist", ModelNotFoundError, "ollama pull"),
        ("registry/llama3 does not support tools", InvalidRequestError, "supports_tools"),
        ('"llama3" does not support thinking', InvalidRequestError, "supports_reasoning"),
        ("prompt too long; exceeded max context length by 4 tokens", ContextLengthError, "num_ctx"),
        ("server busy, please try again. maximum pending requests", OverloadedError, "later"),
        ("llama runner process has terminated", ServerError, "log"),
    ],
)
def test_an_error_in_the_middle_is_typed(sentence: str, kind: type[Exception], hint: str) -> None:
    with pytest.raises(kind) as caught:
        Heard(line(content="Par"), {"error": sentence})
    assert sentence in str(caught.value)
    assert hint in caught.value.hint  # type: ignore[attr-defined]


def test_an_error_object_is_an_error_too_and_none_is_not() -> None:
    with pytest.raises(ServerError, match="boom"):
        Heard({"error": {"message": "boom"}})
    assert Heard({**last(content="Hi"), "error": None}).core["content"] == "Hi"


def test_lines_of_progress_are_passed_over() -> None:
    heard = Heard({"status": "pulling manifest"}, {"status": "success"}, last(content="Hi"))
    assert heard.core["content"] == "Hi"


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"message": None}, {"message": {"content": 5}}]
)
def test_lines_of_no_known_shape_are_passed_over(junk: Any) -> None:
    assert Heard(junk, last(content="Hi")).core["content"] == "Hi"


def test_an_answer_without_a_message_is_none() -> None:
    with pytest.raises(ProtocolError):
        Heard({"status": "success"})


@given(st.lists(st.tuples(st.sampled_from(["content", "thinking"]), st.text(max_size=3))))
def test_no_text_is_lost_or_moved_between_fields(said: list[tuple[str, str]]) -> None:
    heard = Heard(*(line(**{field: text}) for field, text in said), last())
    for field in ("content", "thinking"):
        whole = "".join(text for name, text in said if name == field)
        assert heard.native.get(field, "") == whole
    shown = "".join(each["content"] for each in heard.shown)
    assert shown == heard.core["content"]
