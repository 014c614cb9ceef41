from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.authoring.mixins import (
    AccumulatorExtensionMixin,
    AccumulatorStreamingMixin,
    accumulate_reasoning,
    accumulate_tool_calls,
)
from agent_hookspecs.authoring.partial import Partial
from agent_hookspecs.errors import ContractError

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


class Provider(AccumulatorStreamingMixin):
    """A provider that takes every default."""


class PlainDictProvider(AccumulatorStreamingMixin):
    """A provider whose author builds plain dicts, without regard to nulls in the fragment."""

    def extract_delta(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return (chunk.get("choices") or [{}])[0]  # type: ignore[no-any-return]

    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        base = accumulated or {}
        body = delta.get("delta") or {}
        fragment = {"role": body.get("role", "assistant"), "content": body.get("content")}
        return fragment, {
            **base,
            "role": base.get("role", fragment["role"]),
            "content": base.get("content", "") + (fragment["content"] or ""),
        }


class Tools(AccumulatorExtensionMixin):
    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_tool_calls(delta, accumulated)


class Reasoning(AccumulatorExtensionMixin):
    def process_delta(
        self, delta: dict[str, Any], accumulated: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return accumulate_reasoning(delta, accumulated)


def chunk(delta: object = None, **more: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


def text(content: object, **more: object) -> dict[str, Any]:
    return chunk({"content": content, **more})


class Run:
    """What the host does with a provider, its extensions and a list of chunks."""

    def __init__(
        self,
        chunks: list[Any],
        provider: AccumulatorStreamingMixin | None = None,
        natives: list[dict[str, Any]] | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.provider = provider or Provider()
        self.state: dict[str, Any] = {"partial": None} if state is None else state
        self.natives = natives if natives is not None else [{"role": "user", "content": "hi"}]
        self.partials: list[dict[str, Any]] = []
        for item in chunks:
            partials, finals, natives_out, state_out = self.provider.process_chunk(
                item, self.natives, self.state
            )
            for extension in (Tools(), Reasoning()):
                partials, finals, natives_out, state_out = extension.process_chunk(
                    item, partials, finals, natives_out, state_out
                )
            assert finals == []
            assert natives_out is self.natives
            assert state_out is self.state
            # As the host does: what says nothing, though it could be patched, is not shown.
            self.partials += [message for message in partials if any(_said(message))]
        self.finals, self.history, _ = self.provider.finalize(self.natives, self.state)

    @property
    def final(self) -> dict[str, Any]:
        [message] = self.finals
        return message


def _said(message: dict[str, Any]) -> list[Any]:
    return [value for key, value in message.items() if key != "role"]


@pytest.mark.parametrize("provider", [Provider(), PlainDictProvider()])
def test_final_is_the_concatenation_of_the_partials(provider: AccumulatorStreamingMixin) -> None:
    run = Run([text("", role="assistant"), text("He"), text("llo"), text(None)], provider)
    assert [message["content"] for message in run.partials] == ["He", "llo"]
    assert run.final == {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize("provider", [Provider(), PlainDictProvider()])
def test_keys_written_by_extensions_survive_the_provider(
    provider: AccumulatorStreamingMixin,
) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}
    more = {"index": 0, "function": {"arguments": "}"}}
    run = Run(
        [
            chunk({"role": "assistant", "content": None, "reasoning": "hm"}),
            chunk({"content": "x", "tool_calls": [call]}),
            chunk({"content": "y", "reasoning": "m", "tool_calls": [more]}),
        ],
        provider,
        state={"partial": {"mine": {"kept": True}}},
    )
    assert run.final == {
        "role": "assistant",
        "content": "xy",
        "reasoning": "hmm",
        "mine": {"kept": True},
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }


@pytest.mark.parametrize("provider", [Provider(), PlainDictProvider()])
@pytest.mark.parametrize(
    "delta", [{"role": "assistant"}, {"content": ""}, {"content": None}, {"reasoning": "r"}]
)
def test_a_delta_without_content_gives_an_empty_partial_to_patch(
    delta: dict[str, Any], provider: AccumulatorStreamingMixin
) -> None:
    partials, *_ = provider.process_chunk(chunk(delta), [], {})
    assert partials == [{"role": "assistant", "content": ""}]


def test_a_chunk_without_a_delta_gives_no_partial() -> None:
    empties: list[dict[str, Any]] = [chunk({}), {"choices": []}, {"usage": {"total_tokens": 1}}]
    for empty in empties:
        assert Provider().process_chunk(empty, [], {})[0] == []


@pytest.mark.parametrize(
    "provider", [Provider(), PlainDictProvider()], ids=["default", "plain dicts"]
)
def test_hazard_4_null_content_reaches_neither_partial_nor_final(
    provider: AccumulatorStreamingMixin,
) -> None:
    run = Run([chunk({"role": "assistant", "content": None}), text("x"), text(None)], provider)
    assert "".join(message["content"] for message in run.partials) == "x"
    assert run.final["content"] == "x"


def test_hazard_4_null_content_beside_other_keys_is_empty_text() -> None:
    class WithKey(PlainDictProvider):
        def process_delta(
            self, delta: dict[str, Any], accumulated: dict[str, Any] | None
        ) -> tuple[dict[str, Any], dict[str, Any]]:
            fragment, merged = super().process_delta(delta, accumulated)
            return {**fragment, "citations": ["c"]}, merged

    assert Run([text(None)], WithKey()).partials == [
        {"role": "assistant", "content": "", "citations": ["c"]}
    ]


def test_the_first_role_wins_and_is_assistant_by_default() -> None:
    assert Run([text("a", role="model"), text("b", role="other")]).final["role"] == "model"
    assert Run([text("a"), text("b", role="other")]).final["role"] == "assistant"
    assert Run([text("a", role=None)]).final["role"] == "assistant"


@pytest.mark.parametrize("garbage", [None, "x", 3, [], b"", [{"choices": []}]])
def test_a_chunk_that_is_no_object_is_ignored(garbage: object) -> None:
    run = Run([text("a"), garbage, text("b")])
    assert run.final["content"] == "ab"
    assert len(run.partials) == 2


@pytest.mark.parametrize(
    "empty",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {}}]},
        {"choices": [{"delta": {"content": None}}]},
    ],
)
@pytest.mark.parametrize("provider", [Provider(), PlainDictProvider()])
def test_shape_45_hazard_7_chunks_without_content_change_nothing(
    empty: dict[str, Any], provider: AccumulatorStreamingMixin
) -> None:
    run = Run([empty, text("a"), empty, text("b"), empty], provider)
    assert run.final == {"role": "assistant", "content": "ab"}
    assert len(run.partials) == 2


def test_nothing_accumulated_gives_no_final() -> None:
    natives: list[dict[str, Any]] = []
    run = Run([{}, {"choices": []}], natives=natives)
    assert run.finals == []
    assert run.history is natives
    assert Provider().finalize(natives, {}) == ([], [], {})
    assert Provider().finalize(natives, {"partial": "garbage"})[0] == []


def test_shape_48_usage_is_kept_once_wherever_it_stands() -> None:
    first, last = {"total_tokens": 1}, {"total_tokens": 9}
    run = Run(
        [
            {**text("a"), "usage": first},
            {**text("b"), "usage": None},
            chunk({}, finish_reason="stop"),
            {"choices": [], "usage": last},
        ]
    )
    assert run.final == {
        "role": "assistant",
        "content": "ab",
        "_metadata": {"usage": last, "finish_reason": "stop"},
    }
    assert Run([chunk({"content": "a"}, usage=last)]).final["_metadata"] == {"usage": last}


def test_usage_before_the_first_delta_does_not_disturb_a_plain_provider() -> None:
    run = Run([{"choices": [], "usage": {"n": 1}}, text("a")], PlainDictProvider())
    assert run.final["content"] == "a"
    assert run.final["_metadata"] == {"usage": {"n": 1}}


def test_empty_or_null_finish_reason_does_not_erase_one() -> None:
    run = Run(
        [
            chunk({"content": "a"}, finish_reason="length"),
            chunk({}, finish_reason=None),
            chunk({}, finish_reason=""),
        ]
    )
    assert run.final["_metadata"] == {"finish_reason": "length"}


def test_metadata_of_the_accumulator_is_kept() -> None:
    run = Run(
        [chunk({"content": "a"}, finish_reason="stop")], state={"partial": {"_metadata": {"k": 1}}}
    )
    assert run.final["_metadata"] == {"k": 1, "finish_reason": "stop"}


def test_shape_14_calls_count_although_the_reason_is_stop() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    run = Run([chunk({"tool_calls": [call]}, finish_reason="stop")])
    assert [entry["id"] for entry in run.final["tool_calls"]] == ["a"]
    assert run.final["content"] == ""


def test_refusals_are_accumulated_apart_from_content() -> None:
    run = Run([chunk({"refusal": "I "}), chunk({"refusal": "won't"}), chunk({"refusal": None})])
    assert run.final == {"role": "assistant", "content": "", "refusal": "I won't"}
    assert [message["refusal"] for message in run.partials] == ["I ", "won't"]


def test_a_whole_message_is_read_like_one_chunk() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}
    body = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"total_tokens": 3},
    }
    assert Run([body]).final == {
        "role": "assistant",
        "content": "",
        "tool_calls": [call],
        "_metadata": {"usage": {"total_tokens": 3}, "finish_reason": "tool_calls"},
    }


def deep_types(value: object) -> set[type]:
    if isinstance(value, dict):
        return {type(value)}.union(*(deep_types(item) for item in value.values()))
    if isinstance(value, list):
        return {type(value)}.union(*(deep_types(item) for item in value))
    return set()


def test_hazard_5_final_is_one_plain_object_everywhere() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{broken"}}
    detail = {"type": "reasoning.text", "text": "x", "index": 0}
    run = Run([chunk({"content": "a", "tool_calls": [call], "reasoning_details": [detail]})])
    assert run.final is run.history[-1] is run.state["partial"]
    assert deep_types(run.final) == {dict, list}
    run.state["partial"]["tool_calls"][0]["function"]["arguments"] = "{}"
    assert run.history[-1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_history_is_passed_on_while_streaming_and_extended_once() -> None:
    natives = [{"role": "user", "content": "hi"}]
    run = Run([text("a"), text("b")], natives=natives)
    assert natives == [{"role": "user", "content": "hi"}]
    assert run.history == [*natives, run.final]
    assert run.history[0] is natives[0]


def test_call_ids_are_unique_over_the_conversation() -> None:
    earlier: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [{"id": "tc_1"}, {"id": "a"}]},
        {"role": "tool", "tool_call_id": "tc_1", "content": ""},
    ]
    calls = [
        {"index": 0, "id": "", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "a", "function": {"name": "f", "arguments": ""}},
    ]
    run = Run([chunk({"tool_calls": calls})], natives=earlier)
    assert [call["id"] for call in run.final["tool_calls"]] == ["tc_2", "a__2"]


def test_nameless_calls_and_empty_blocks_leave_no_key() -> None:
    run = Run([chunk({"content": "a", "tool_calls": [{"index": 3}], "reasoning_details": [None]})])
    assert run.final == {"role": "assistant", "content": "a"}


def test_state_is_updated_in_place_with_a_shared_partial() -> None:
    provider = Provider()
    state: dict[str, Any] = {"partial": None, "request": {}}
    provider.process_chunk(text("a"), [], state)
    first = state["partial"]
    provider.process_chunk(text("b"), [], state)
    assert type(first) is Partial
    assert state["partial"] is first
    assert first["content"] == "ab"


# Extensions.


def test_patch_goes_on_the_last_partial_only() -> None:
    partials = [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}]
    first, last = partials
    finals: list[dict[str, Any]] = []
    natives: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    result = Reasoning().process_chunk(chunk({"reasoning": "r"}), partials, finals, natives, state)
    assert [id(value) for value in result] == [id(v) for v in (partials, finals, natives, state)]
    assert partials == [first, {**last, "reasoning": "r"}]
    assert partials[0] is first
    assert last == {"role": "assistant", "content": "y"}


def test_patch_without_a_partial_becomes_one() -> None:
    partials = Reasoning().process_chunk(chunk({"reasoning": "r"}), [], [], [], {})[0]
    assert partials == [{"role": "assistant", "content": "", "reasoning": "r"}]


def test_patch_of_a_chunk_without_content_is_shown() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}
    run = Run([chunk({"role": "assistant", "content": None}), chunk({"tool_calls": [call]})])
    assert run.partials == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"index": 0, "id": "a", "name": "f", "arguments": "{"}],
        }
    ]
    assert Run([chunk({"reasoning": "r"})]).partials == [
        {"role": "assistant", "content": "", "reasoning": "r"}
    ]


def test_call_patches_carry_the_fragment_not_the_calls_so_far() -> None:
    def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
        return {
            "index": index,
            **more,
            "function": {"name": more.get("name"), "arguments": arguments},
        }

    run = Run(
        [
            chunk({"tool_calls": [call(1, "{", id="a", name="f")]}),
            chunk({"tool_calls": [call(1, '"x"')]}),
            chunk({"tool_calls": [call(4, "{", id="b", name="g"), call(1, ":1}")]}),
        ]
    )
    assert [message["tool_calls"] for message in run.partials] == [
        [{"index": 0, "id": "a", "name": "f", "arguments": "{"}],
        [{"index": 0, "id": "a", "name": "f", "arguments": '"x"'}],
        [
            {"index": 1, "id": "b", "name": "g", "arguments": "{"},
            {"index": 0, "id": "a", "name": "f", "arguments": ":1}"},
        ],
    ]


@pytest.mark.parametrize("nothing", [None, {}, "x", chunk({}), chunk({"content": "x"}), chunk()])
@pytest.mark.parametrize("extension", [Tools(), Reasoning()])
def test_a_chunk_without_anything_for_the_extension_passes_through(
    nothing: object, extension: Tools | Reasoning
) -> None:
    state: dict[str, Any] = {"partial": None}
    partials = [{"role": "assistant", "content": "x"}]
    result = extension.process_chunk(nothing, partials, [], [], state)
    assert result == ([{"role": "assistant", "content": "x"}], [], [], {"partial": None})


@pytest.mark.parametrize("partial", ["garbage", 3, None, []])
def test_a_partial_that_is_no_dict_is_started_afresh(partial: object) -> None:
    state: dict[str, Any] = {"partial": partial}
    Reasoning().process_chunk(chunk({"reasoning": "r"}), [], [], [], state)
    assert type(state["partial"]) is Partial
    assert state["partial"] == {"reasoning": "r"}


def test_an_extension_may_return_plain_dicts() -> None:
    class Counting(AccumulatorExtensionMixin):
        def process_delta(
            self, delta: dict[str, Any], accumulated: dict[str, Any]
        ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
            return None, {**accumulated, "chunks": accumulated.get("chunks", 0) + 1}

    state: dict[str, Any] = {"partial": Partial(content="x")}
    for _ in range(3):
        Counting().process_chunk(text("y"), [], [], [], state)
    assert state["partial"] == {"content": "x", "chunks": 3}


def test_an_extension_without_process_delta_is_refused_by_name() -> None:
    with pytest.raises(ContractError, match="Forgetful") as caught:

        class Forgetful(AccumulatorExtensionMixin):
            name = "forgetful"

    assert caught.value.hook == "process_delta"
    assert caught.value.plugin == "forgetful"
    assert caught.value.hint


def test_process_delta_may_come_from_another_base() -> None:
    class Reducer:
        def process_delta(
            self, delta: dict[str, Any], accumulated: dict[str, Any]
        ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
            return {"seen": True}, accumulated

    class Combined(AccumulatorExtensionMixin, Reducer):
        pass

    partials, *_ = Combined().process_chunk(text("x"), [], [], [], {})
    assert partials == [{"role": "assistant", "content": "", "seen": True}]


def test_reducers_accept_a_choice_a_message_or_a_bare_delta() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    body = {"tool_calls": [call], "reasoning": "r"}
    for form in (body, {"delta": body}, {"message": body}, {"delta": None, "message": body}):
        patch, merged = accumulate_tool_calls(form, None)
        assert patch == {"tool_calls": [{"index": 0, "id": "a", "name": "f", "arguments": "{}"}]}
        patch, merged = accumulate_reasoning(form, merged)
        assert patch == {"reasoning": "r"}
        assert merged["reasoning"] == "r"
        assert merged["tool_calls"][0]["id"] == "a"


def test_no_tool_deltas_leave_the_accumulator_alone() -> None:
    accumulated = Partial(content="x")
    assert accumulate_tool_calls({"delta": {"content": "y"}}, accumulated) == (
        None,
        {"content": "x"},
    )
    assert accumulate_reasoning({"delta": {"reasoning": ""}}, accumulated) == (
        None,
        {"content": "x"},
    )


def test_shape_35_details_are_merged_without_reasoning_text() -> None:
    detail = {"type": "reasoning.encrypted", "data": "e", "id": "r", "index": 0}
    run = Run([chunk({"reasoning_details": [detail]}), text("a")])
    assert run.final["reasoning_details"] == [detail]
    assert "reasoning" not in run.final


def test_shape_36_both_reasoning_fields_with_one_text_are_not_doubled() -> None:
    run = Run([chunk({"reasoning": w, "reasoning_content": w}) for w in ("a", "b")])
    assert run.final["reasoning"] == "ab"


# Recorded traffic.


def recordings() -> list[Path]:
    """The recorded answers of chat APIs; none, and the test is skipped, where they are absent."""
    found = []
    for path in sorted(CORPUS.glob("*/*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        is_chat = record["protocol"] in ("openai.chat", "mistral.chat")
        if is_chat and record["response"]["status"] == 200:
            found.append(path)
    return found


def chat_chunks(record: dict[str, Any]) -> list[Any]:
    body: str = record["response"]["body"]
    if not record["stream"]:
        return [json.loads(body)]
    lines = (line[5:].strip() for line in body.split("\n") if line.startswith("data:"))
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.stem)
def test_recorded_chat_traffic_gives_what_the_vendors_clients_give(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    expected = record["expected"]
    run = Run(chat_chunks(record))
    final: dict[str, Any] = run.finals[0] if run.finals else {"content": ""}
    about = final.get("_metadata", {})
    assert final["content"] == (expected["text"] or "")
    assert final.get("reasoning", "") == (expected["reasoning"] or "")
    assert final.get("refusal") == expected["refusal"]
    assert about.get("finish_reason") == expected["finish_reason"]
    counted = (expected["usage"] or {}).get("output_tokens")
    assert about.get("usage", {}).get("completion_tokens") == counted
    assert [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in final.get("tool_calls", [])
    ] == [
        (call["id"] or f"tc_{number}", call["name"], call["arguments"])
        for number, call in enumerate(expected["tool_calls"] or [], 1)
    ]
    if record["stream"]:
        assert "".join(message["content"] for message in run.partials) == final["content"]
