"""What becomes of the chunks and bodies that servers of the chat format send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from openai_compatible_bench import END, call, chunk, delta, function_call, read

from agent_hookspecs.errors import (
    ContentBlockedError,
    InvalidRequestError,
    MalformedCallError,
    ProtocolError,
    RateLimitError,
    ServerError,
)
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.usage import normalised_usage

# Reasoning.


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning": "why"},
        {"reasoning_content": "why"},
        {"reasoning": "why", "reasoning_content": "why"},
    ],
)
def test_shape_36_reasoning_under_either_name_is_shown_once(fields: dict[str, str]) -> None:
    native, core, shown = read([delta(**fields), delta(content="so"), END])
    assert core["metadata"]["reasoning"] == "why"
    assert [each.get("reasoning") for each in shown] == ["why", None]
    assert native["_metadata"]["unsent"] == fields
    assert not {"reasoning", "reasoning_content"} & native.keys()


def test_shape_36_tool_turns_carry_reasoning_content_where_the_server_demands_it() -> None:
    provider = ChatCompletionsProvider(name="s", quirks=["reasoning_content_required"])
    start = [delta(reasoning="why")]
    with_call, *_ = read([*start, call(index=0, id="a", function={"name": "f"}), END], provider)
    assert with_call["reasoning_content"] == "why"
    plain, *_ = read([*start, delta(content="so"), END], provider)
    assert "reasoning_content" not in plain
    history = [{"role": "tool", "tool_call_id": "a", "content": "1"}]
    after, *_ = read([*start, delta(content="so"), END], provider, history=history)
    assert after["reasoning_content"] == "why"


def test_text_and_reasoning_may_share_a_chunk() -> None:
    both = delta(content="b", reasoning_content="why")
    _, core, shown = read([delta(content="a"), both, END])
    assert (core["content"], core["metadata"]["reasoning"]) == ("ab", "why")
    assert shown[1] == {"role": "assistant", "content": "b", "reasoning": "why"}


def test_typed_chunks_of_content_keep_their_order_and_text() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Let "}]}
    more = {"type": "thinking", "thinking": [{"type": "text", "text": "me."}], "closed": True}
    first = {"type": "text", "text": "1"}
    opening = [delta(role="assistant", content=""), delta(content=[thinking])]
    native, core, shown = read([*opening, delta(content=[more, first]), delta(content="44"), END])
    assert native["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me."}], "closed": True},
        {"type": "text", "text": "144"},
    ]
    assert core["content"] == "144"
    assert core["metadata"]["reasoning"] == "Let me."
    assert "".join(each["content"] for each in shown) == "144"
    assert "".join(each.get("reasoning", "") for each in shown) == "Let me."


# Odd chunks, ends and counts.


def test_shape_45_empty_and_null_fields_say_nothing() -> None:
    odd: list[Any] = [
        chunk(),
        chunk(choices=None),
        chunk(choices=[None]),
        chunk({"index": 0, "delta": None}),
        delta(content=None),
        [],
        "text",
        None,
    ]
    _, core, shown = read([delta(content="a"), *odd, delta(content="b"), END])
    assert core["content"] == "ab"
    assert [each["content"] for each in shown] == ["a", "b"]


@pytest.mark.parametrize("nothing", [{}, None, {"role": "assistant", "content": ""}])
def test_a_message_beside_deltas_is_not_read_twice(nothing: Any) -> None:
    whole = {"role": "assistant", "content": "12"}
    last = {"index": 0, "delta": nothing, "message": whole, "finish_reason": "stop"}
    _, core, _ = read([delta(content="1"), delta(content="2"), chunk(last)])
    assert core["content"] == "12"


@pytest.mark.parametrize("nothing", [{}, None, {"role": "assistant", "content": ""}])
def test_a_whole_message_beside_an_empty_delta_is_read(nothing: Any) -> None:
    whole = {"role": "assistant", "content": "12", "tool_calls": [function_call("a", "f")]}
    body = {"index": 0, "delta": nothing, "message": whole, "finish_reason": "stop"}
    native, core, _ = read([chunk(body)])
    assert core["content"] == native["content"] == "12"
    assert [call["id"] for call in core["metadata"]["tool_calls"]] == ["a"]


def test_a_message_after_deltas_that_said_nothing_is_read() -> None:
    whole = {"role": "assistant", "content": "12"}
    last = {"index": 0, "delta": {"content": ""}, "message": whole, "finish_reason": "stop"}
    _, core, shown = read([delta(role="assistant", content=""), chunk(last)])
    assert core["content"] == "12"
    assert "".join(each["content"] for each in shown) == "12"


def test_the_finish_reason_may_come_with_the_last_text() -> None:
    last = chunk({"index": 0, "delta": {"content": "b"}, "finish_reason": "length"})
    _, core, _ = read([delta(content="a"), last])
    assert (core["content"], core["metadata"]["finish_reason"]) == ("ab", "length")


def test_only_the_first_choice_counts() -> None:
    other = chunk({"index": 1, "delta": {"content": "other"}})
    _, core, _ = read([delta(content="a"), other, delta(content="b"), END])
    assert core["content"] == "ab"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 4}}, {"cached_input": 4}),
        ({"prompt_cache_hit_tokens": 4}, {"cached_input": 4}),
        ({"cached_tokens": 4}, {"cached_input": 4}),
        ({"completion_tokens_details": {"reasoning_tokens": 5}}, {"reasoning": 5}),
        ({"prompt_tokens_details": None, "completion_tokens_details": None}, {}),
        ({"cost": 0.25}, {"cost": 0.25}),
        ({"cost": {"total_cost": 0.5}}, {"cost": 0.5}),
        ({"cost_in_usd_ticks": 739000}, {"cost": 7.39e-05}),
        ({"prompt_tokens": "3", "completion_tokens": -1}, {}),
    ],
)
def test_usage_is_read_under_all_of_its_names(raw: Any, expected: Any) -> None:
    assert normalised_usage(raw) == {**expected, "raw": raw}


def test_reasoning_that_completion_tokens_leave_out_is_added() -> None:
    raw = {
        "prompt_tokens": 165,
        "completion_tokens": 2,
        "total_tokens": 296,
        "completion_tokens_details": {"reasoning_tokens": 129},
    }
    assert normalised_usage(raw)["output"] == 131
    assert normalised_usage({**raw, "total_tokens": 167})["output"] == 2


def test_usage_beside_the_chunk_is_found_too() -> None:
    usage = {"prompt_tokens": 1}
    _, core, _ = read([delta(content="a"), END | {"x_groq": {"id": "r", "usage": usage}}])
    assert core["metadata"]["usage"]["raw"] == usage


def test_an_answer_may_begin_after_a_chunk_without_choices() -> None:
    head = chunk(id="", prompt_filter_results=[{"prompt_index": 0}])
    _, core, _ = read([head, delta(content="a"), delta(content="b")])
    assert (core["content"], core["metadata"]["response_id"]) == ("ab", "c1")


# Errors in answers that began as a success.


@pytest.mark.parametrize(
    ("broken", "kind", "code"),
    [
        ({"error": {"code": 429, "message": "slow"}, "choices": None}, RateLimitError, "429"),
        ({"error": {"code": 400, "message": "no"}, **END}, InvalidRequestError, "400"),
        ({"error": {"type": "server_error", "message": "x"}}, ServerError, "server_error"),
        ({"error": {"code": "tool_use_failed", "status_code": 400}}, MalformedCallError,
         "tool_use_failed"),
        ({"error": {"code": "content_filter", "message": "x"}}, ContentBlockedError,
         "content_filter"),
        ({"error": "out of memory"}, ServerError, None),
        (delta(content="more") | {"error": {"code": 500}}, ServerError, "500"),
        ({"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
         InvalidRequestError, "BadRequestError"),
        ({"detail": "Not today"}, ServerError, None),
    ],
)  # fmt: skip
def test_shape_38_an_error_in_the_stream_is_typed(broken: Any, kind: Any, code: Any) -> None:
    with pytest.raises(kind) as caught:
        read([delta(content="some text"), broken])
    assert caught.value.code == code
    assert caught.value.provider == "custom"


def test_an_event_named_error_is_an_error() -> None:
    provider = ChatCompletionsProvider()
    state = provider.init({"model": "m"})
    with pytest.raises(ServerError, match="broken pipe"):
        provider.process_chunk({"message": "broken pipe"}, [], state, "error")


def test_the_finish_reason_error_is_an_error() -> None:
    ended = {"index": 0, "delta": {}, "finish_reason": "error"}
    with pytest.raises(ServerError):
        read([delta(content="a"), chunk(ended)])
    with pytest.raises(RateLimitError):
        read([chunk({**ended, "error": {"code": 429, "message": "slow"}})])


def test_a_content_filter_keeps_the_text_and_says_so() -> None:
    _, core, _ = read([delta(content="a"), chunk({"delta": {}, "finish_reason": "content_filter"})])
    assert (core["content"], core["metadata"]["finish_reason"]) == ("a", "content_filter")


def test_a_body_without_choices_is_no_answer() -> None:
    with pytest.raises(ProtocolError, match="without any choice"):
        read([chunk()])


# Whole bodies.


def whole(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], **fields}


def test_a_whole_answer_leaves_the_same_native_as_a_streamed_one() -> None:
    function = {"name": "f", "arguments": '{"x":1}'}
    message = {
        "role": "assistant",
        "content": "ab",
        "reasoning_content": "why",
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}],
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    streamed = [
        delta(role="assistant", content=None, reasoning_content="wh"),
        delta(reasoning_content="y"),
        delta(content="a"),
        delta(content="b"),
        call(index=0, id="a", type="function", function={**function, "arguments": '{"x"'}),
        call(index=0, function={"arguments": ":1}"}),
        END,
        chunk(usage=usage),
    ]
    one, two = read([whole(message, usage=usage)]), read(streamed)
    assert json.dumps(one[0]) == json.dumps(two[0])
    assert one[1] == two[1]


def test_refusal_audio_annotations_and_unknown_keys_are_kept() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "No.",
        "audio": {"id": "au1", "data": "AAAA", "transcript": "no"},
        "annotations": [{"type": "url_citation"}],
        "novelty": {"deep": [1]},
    }
    native, core, _ = read([whole(message, citations=["u"])])
    assert native["refusal"] == "No."
    assert native["_metadata"]["unsent"] == {
        key: message[key] for key in ("audio", "annotations", "novelty")
    }
    assert core["metadata"]["refusal"] == "No."
    assert core["metadata"]["annotations"] == [{"type": "url_citation"}]
    assert core["metadata"]["citations"] == ["u"]


def test_spoken_answers_grow_and_are_sent_back_by_id() -> None:
    provider = ChatCompletionsProvider(name="s", replayed=["audio"])
    pieces = [{"id": "au1", "transcript": "he"}, {"transcript": "llo", "data": "AA"}]
    native, *_ = read([*(delta(audio=piece) for piece in pieces), END], provider)
    assert native["audio"] == {"id": "au1"}
    spoken = {"id": "au1", "transcript": "hello", "data": "AA"}
    assert native["_metadata"]["unsent"]["audio"] == spoken


def test_pictures_in_an_answer_become_parts_of_the_message() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    _, core, _ = read([whole({"role": "assistant", "content": "look", "images": [picture]})])
    (part,) = core["multipartContent"]
    assert part["content"] == {"url": "data:image/png;base64,AA"}


# In general.

_TEXT = st.text(max_size=12)


@given(st.lists(_TEXT, min_size=1, max_size=20), st.lists(_TEXT, max_size=6))
def test_however_text_is_cut_it_is_shown_and_kept_whole(
    texts: list[str], thoughts: list[str]
) -> None:
    chunks = [delta(reasoning=each) for each in thoughts] + [delta(content=each) for each in texts]
    _, core, shown = read([*chunks, END])
    assert core["content"] == "".join(texts) == "".join(each["content"] for each in shown)
    assert core["metadata"].get("reasoning", "") == "".join(thoughts)


_NAMES = (
    "content type text thinking tool_calls function name arguments id index audio data refusal "
    "reasoning reasoning_content reasoning_details summary function_call role x"
)
_KEYS = st.sampled_from(_NAMES.split())
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "text", "thinking", "f"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(_KEYS, _JSON, max_size=4), max_size=4), st.booleans())
def test_no_delta_however_odd_breaks_the_reader(odd: list[dict[str, Any]], whole: bool) -> None:
    key = "message" if whole else "delta"
    chunks = [chunk({"index": 0, key: each}) for each in odd]
    native, core, _ = read([delta(content="a"), *chunks, END])
    assert core["content"].startswith("a")
    assert json.loads(json.dumps(native)) == native


# Signed reasoning.

SIGNED = {"type": "reasoning.text", "text": "why", "signature": "c2ln", "index": 0}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "ZW5j", "index": 0}
UNSIGNED = {"type": "reasoning.text", "text": "why", "index": 0}
GOOGLE = {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize(
    ("fields", "config", "is_sent"),
    [
        ({"reasoning_details": [SIGNED]}, {}, True),
        ({"reasoning_details": [ENCRYPTED]}, {}, True),
        ({"reasoning_details": [UNSIGNED]}, {}, False),
        ({"reasoning_details": [UNSIGNED]}, {"replay_reasoning": True}, True),
        ({"reasoning_details": [SIGNED]}, {"replay_reasoning": False}, False),
        ({"reasoning_details": [UNSIGNED]}, {"add_tags": ["quirk:replays_reasoning"]}, True),
        ({"reasoning_details": [SIGNED]}, {"remove_tags": ["quirk:replays_reasoning"]}, False),
        ({"extra_content": GOOGLE}, {}, True),
        ({"extra_content": {"other": 1}}, {}, False),
    ],
)
def test_reasoning_is_sent_back_where_it_was_signed_or_as_the_config_says(
    fields: dict[str, Any], config: dict[str, Any], is_sent: bool
) -> None:
    native, core, _ = read([delta(content="so", **fields), END], config=config)
    [key] = fields
    assert (native.get(key) == fields[key]) is is_sent
    assert (key in native) is is_sent
    if key == "reasoning_details":
        assert core["metadata"][key] == fields[key]


def test_the_signature_of_a_call_stays_with_it() -> None:
    function = {"name": "f", "arguments": "{}"}
    signed = call(index=0, id="a", type="function", function=function, extra_content=GOOGLE)
    native, core, _ = read([signed, END])
    assert native["tool_calls"][0]["extra_content"] == GOOGLE
    assert core["metadata"]["tool_calls"][0]["extra_content"] == GOOGLE
