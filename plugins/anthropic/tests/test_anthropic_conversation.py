"""Histories as the API accepts them: roles, results, ids, media."""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

from anthropic_built import TOOL, Built, assistant, result, said, system, user
from hypothesis import given, strategies as st

from agent_hookspecs.authoring import attachment, render_history
from agent_host_anthropic.outgoing import Conversation


def test_system_messages_are_hoisted_in_order_and_keep_their_cache_markers() -> None:
    marked = system("Two.")
    marked["metadata"]["cache_control"] = {"type": "ephemeral"}
    body = Built(system("One."), user("hi"), marked, system("  ")).body
    assert body["system"] == [
        said("One."),
        {**said("Two."), "cache_control": {"type": "ephemeral"}},
    ]
    assert [turn["role"] for turn in body["messages"]] == ["user"]


def test_results_of_parallel_calls_stand_first_in_one_turn_and_in_order() -> None:
    body = Built(
        user("hi"),
        assistant("", ("toolu_1", "weather", '{"x":1}'), ("toolu_2", "weather", "{}")),
        result("toolu_2", "two", metadata={"error": True}),
        result("toolu_1", "one"),
        user("and?"),
    ).body
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"x": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "two",
                    "is_error": True,
                },
                said("and?"),
            ],
        },
    ]


def test_calls_without_results_and_results_without_calls_are_made_acceptable() -> None:
    body = Built(
        result("gone", "late news"), user("hi"), assistant("", ("toolu_1", "weather", "{}"))
    ).body
    first, _, last = body["messages"]
    assert first["content"] == [said("[result of an earlier tool call] late news"), said("hi")]
    (answer,) = last["content"]
    assert (answer["type"], answer["tool_use_id"], answer["is_error"]) == (
        "tool_result",
        "toolu_1",
        True,
    )


def test_a_conversation_begins_with_a_user_and_an_unfinished_answer_ends_without_blanks() -> None:
    messages = Built(assistant("Once upon \n")).body["messages"]
    assert [turn["role"] for turn in messages] == ["user", "assistant"]
    assert messages[-1]["content"] == [said("Once upon")]


def test_ids_and_names_of_other_providers_are_made_legal_alike_in_calls_and_results() -> None:
    body = Built(
        user("hi"),
        assistant("", ("functions.f:0", "kit:weather.now", "{}")),
        result("functions.f:0", "rain"),
        tools=[{**TOOL, "name": "kit:weather.now"}],
    ).body
    call, answer = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    assert call["id"] == answer["tool_use_id"]
    assert call["id"].replace("_", "").isalnum()
    assert call["name"] == body["tools"][0]["name"] == "kit__weather--now"


def test_reasoning_of_core_messages_is_never_sent() -> None:
    spoken = assistant("hello")
    spoken["metadata"] |= {
        "reasoning": "secret thought",
        "reasoning_details": [{"type": "thinking", "thinking": "x", "signature": "sig-x"}],
    }
    assert "sig-x" not in json.dumps(Built(user("hi"), spoken, user("go on")).body)
    assert "secret thought" not in json.dumps(Built(user("hi"), spoken, user("go on")).body)


def test_images_and_documents_become_blocks_and_what_cannot_be_sent_is_said() -> None:
    png = "data:image/png;base64,iVBORw0="
    pdf = f"data:application/pdf;base64,{base64.b64encode(b'%PDF').decode()}"
    text = "data:text/plain;base64,aGVsbG8="
    parts = [
        {"type": "image", "content": {"url": png}},
        {"type": "image", "content": {"url": "https://example.org/a.png"}},
        {"type": "file", "content": {"url": pdf, "name": "a.pdf"}},
        {"type": "file", "content": {"data": text, "name": "a.txt"}},
        {"type": "image", "content": {"url": "data:image/tiff;base64,AAAA"}},
        {"type": "audio", "content": {"url": "https://example.org/a.mp3"}},
    ]
    built = Built(user("look", multipartContent=parts))
    blocks = built.body["messages"][0]["content"]
    assert blocks[1:5] == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hello"},
            "title": "a.txt",
        },
    ]
    assert [block["type"] for block in blocks[5:]] == ["text", "text"]
    assert "[audio not sent" in blocks[6]["text"]
    assert any("'audio'" in warning for warning in built.warnings)


def test_text_that_stands_among_the_parts_too_is_sent_once() -> None:
    parts = [
        {"type": "text", "content": {"text": "look"}},
        {"type": "image", "content": {"url": "https://example.org/a.png"}},
    ]
    (turn,) = Built(user("look", multipartContent=parts)).body["messages"]
    assert [block["type"] for block in turn["content"]] == ["text", "image"]


def test_pictures_that_another_model_made_are_told_and_not_sent_as_the_assistants() -> None:
    drawn = assistant("Here:")
    drawn["multipartContent"] = [{"type": "image", "content": {"url": "https://example.org/a"}}]
    built = Built(user("draw"), drawn, user("thanks"))
    spoken = built.body["messages"][1]["content"]
    assert spoken == [said("Here:"), said("[image not sent again]")]
    assert any("'image'" in warning for warning in built.warnings)


def test_files_are_read_when_the_request_is_made_and_only_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png!")
    message = user("", multipartContent=[attachment(tmp_path / "a.png")])
    (block,) = Built(message, attachments_root=str(tmp_path)).body["messages"][0]["content"]
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": "cG5nIQ=="}
    (refused,) = Built(message).body["messages"][0]["content"]
    assert refused["type"] == "text"
    assert "not attached" in refused["text"]


def test_a_file_is_what_its_attachment_says_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"hello")
    part = attachment(tmp_path / "notes", media_type="text/markdown")
    built = Built(user("", multipartContent=[part]), attachments_root=str(tmp_path))
    (block,) = built.body["messages"][0]["content"]
    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": "hello"}
    assert "metadata" not in block


def test_blank_text_in_a_result_is_not_sent() -> None:
    parts = [{"type": "text", "content": {"text": " "}}, {"type": "text", "content": {"text": "a"}}]
    image = {"type": "image", "content": {"data": "iVBORw0="}}
    shown = {"type": "tool_result", "text": "a", "content": [*parts, image]}
    call = assistant("", ("toolu_1", "weather", "{}"))
    body = Built(user("hi"), call, result("toolu_1", "a", toolResult=shown)).body
    contents = body["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in contents] == ["text", "image"]
    assert contents[1]["source"]["media_type"] == "image/png"


def test_tool_results_carry_images() -> None:
    shown = {
        "type": "tool_result",
        "text": "see",
        "content": [
            {"type": "text", "content": {"text": "see"}},
            {"type": "image", "content": {"url": "data:image/gif;base64,R0lG"}},
        ],
    }
    body = Built(
        user("hi"),
        assistant("", ("toolu_1", "weather", "{}")),
        result("toolu_1", "see", toolResult=shown),
    ).body
    (block,) = body["messages"][2]["content"]
    assert block["content"] == [
        said("see"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}},
    ]


BLOCKS = st.one_of(
    st.builds(said, st.text(max_size=3)),
    st.builds(
        lambda n: {"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}}, st.integers(0, 3)
    ),
    st.builds(
        lambda n: {"type": "tool_result", "tool_use_id": f"c{n}", "content": "r"},
        st.integers(0, 3),
    ),
)


def history() -> st.SearchStrategy[list[dict[str, Any]]]:
    def message(role: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        wrong = "tool_use" if role == "user" else "tool_result"
        ids = [block.get("id") for block in blocks]
        kept = [
            block
            for place, block in enumerate(blocks)
            if block["type"] != wrong
            and (block["type"] != "tool_use" or block["id"] not in ids[:place])
        ]
        return {"role": role, "content": kept}

    roles = st.sampled_from(["user", "assistant"])
    return st.lists(st.builds(message, roles, st.lists(BLOCKS, max_size=4)), max_size=6)


@given(history())
def test_any_history_becomes_turns_that_alternate_with_every_call_answered(
    natives: list[dict[str, Any]],
) -> None:
    before = json.dumps(natives)
    turns = render_history(Conversation, natives).end(None)
    roles = [turn["role"] for turn in turns]
    assert roles[0] == "user"
    assert all(a != b for a, b in itertools.pairwise(roles))
    waiting: list[str] = []
    for turn in turns:
        assert turn["content"]
        kinds = [block["type"] for block in turn["content"]]
        if turn["role"] == "user":
            answered = [b["tool_use_id"] for b in turn["content"] if b["type"] == "tool_result"]
            assert list(dict.fromkeys(waiting)) == answered
            assert "tool_result" not in kinds[len(answered) :]
        waiting = [b["id"] for b in turn["content"] if b["type"] == "tool_use"]
    assert not waiting
    assert json.dumps(natives) == before
