"""Core messages as they are sent to servers of the chat format, media included."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from openai_compatible_bench import END, call_chunk, function_call, message, read, sent

from agent_hookspecs.authoring.attachments import attachment
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_openai_compatible.outgoing import outgoing_messages


def bodies(messages: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    provider = ChatCompletionsProvider(name="s", **options)
    request, *_ = sent(provider, messages)
    found: list[dict[str, Any]] = request["body"]["messages"]
    return found


def test_a_conversation_with_tools_is_written_as_the_format_has_it() -> None:
    calls = [function_call("a", "f", '{"x": 1}'), function_call("b", "g")]
    found = bodies(
        [
            message("system", "be brief"),
            message("user", "hi"),
            message("assistant", tool_calls=calls),
            message("tool", "1", tool_call_id="a", tool_name="f"),
            message("tool", '{"y":2}', tool_call_id="b", toolResult={"type": "tool_result",
                                                                  "text": '{"y":2}'}),
            message("assistant", "cut", partial=True),
        ]
    )  # fmt: skip
    assert found == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None,
         "tool_calls": [function_call("a", "f", '{"x": 1}'), function_call("b", "g")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": '{"y":2}'},
        {"role": "assistant", "content": "cut"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
        {"id": "a", "name": "f", "arguments": {"x": 1}},
    ],
)
def test_calls_of_other_formats_are_rewritten(foreign: dict[str, Any]) -> None:
    found = bodies(
        [message("assistant", tool_calls=[foreign]), message("tool", "1", tool_call_id="a")]
    )
    assert found[0]["tool_calls"] == [function_call("a", "f", '{"x":1}')]


def test_reasoning_of_another_origin_is_not_sent() -> None:
    found = bodies([message("assistant", "a", reasoning="why", reasoning_details=[{"type": "x"}])])
    assert found == [{"role": "assistant", "content": "a"}]


def test_ids_of_calls_made_elsewhere_are_made_legal_with_their_results() -> None:
    messages = [
        message(
            "assistant",
            tool_calls=[function_call("functions.f:0", "f"), function_call("fine", "f")],
        ),
        message("tool", "1", tool_call_id="functions.f:0"),
        message("tool", "2", tool_call_id="fine"),
    ]
    found = bodies(messages)
    ids = [each["id"] for each in found[0]["tool_calls"]]
    assert ids[1] == "fine"
    assert ids[0].startswith("call_")
    assert [each["tool_call_id"] for each in found[1:]] == ids
    short = bodies(messages, quirks=["short_call_ids"])
    assert all(each["id"].isalnum() and len(each["id"]) == 9 for each in short[0]["tool_calls"])


def test_ids_that_the_server_itself_made_are_kept() -> None:
    native, *_ = read([call_chunk("f", "functions.f:0"), END])
    sent_back = outgoing_messages(
        [native, {"role": "tool", "tool_call_id": "functions.f:0", "content": "1"}]
    )
    assert sent_back[0]["tool_calls"][0]["id"] == sent_back[1]["tool_call_id"] == "functions.f:0"


def test_a_call_that_was_never_answered_gets_a_result_that_says_so() -> None:
    found = bodies(
        [
            message("assistant", tool_calls=[function_call("a", "f"), function_call("b", "f")]),
            message("tool", "1", tool_call_id="a"),
            message("user", "go on"),
        ]
    )
    assert [each["role"] for each in found] == ["assistant", "tool", "tool", "user"]
    assert found[2]["tool_call_id"] == "b"
    assert "interrupted" in found[2]["content"]


def test_an_assistant_message_that_says_nothing_is_left_out() -> None:
    assert bodies([message("user", "a"), message("assistant")]) == [
        {"role": "user", "content": "a"}
    ]


def test_roles_alternate_where_the_server_insists() -> None:
    image = {"type": "image", "content": {"url": "http://i"}}
    messages = [
        message("user", "a"),
        message("user", "b"),
        message("user", "c", multipartContent=[image]),
    ]
    assert len(bodies(messages)) == 3
    (only,) = bodies(messages, quirks=["alternating_roles"])
    assert [part.get("text") for part in only["content"]] == ["a\n\nb", "c", None]


def test_metadata_is_never_sent_and_an_exact_list_of_messages_is() -> None:
    provider = ChatCompletionsProvider()
    state = provider.init({"model": "m", "base_url": "http://h"})
    natives: list[Any] = [{"role": "user", "content": "a", "_metadata": {"x": 1}}, "junk"]
    provider.initialize_request(natives, state, {})
    state["request"]["messages"] = [{"role": "user", "content": "b", "_metadata": {}, "own": 1}]
    spec = provider.build_request(natives, state, False, {})
    assert spec["body"]["messages"] == [{"role": "user", "content": "b", "own": 1}]
    assert outgoing_messages(natives) == [{"role": "user", "content": "a"}]
    assert natives[0] == {"role": "user", "content": "a", "_metadata": {"x": 1}}


# Media.


def test_media_become_parts_and_what_cannot_be_sent_a_note() -> None:
    parts = [
        {"type": "image", "content": {"url": "http://i"}, "metadata": {"detail": "low"}},
        {"type": "file", "content": {"data": "data:application/pdf;base64,AA", "name": "a.pdf"}},
        {"type": "file", "content": {"file_id": "f1"}},
        {"type": "video", "content": {"url": "data:video/mp4;base64,AA"}},
        {"type": "file", "content": {"url": "http://f", "name": "b.pdf"}},
    ]
    request, _, warnings = sent(messages=[message("user", "see", multipartContent=parts)])
    assert request["body"]["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "http://i", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA",
                                  "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "text", "text": "[video not sent: inline data]"},
        {"type": "text", "text": "[file not sent: b.pdf]"},
    ]  # fmt: skip
    assert warnings == [
        "a part of type 'video' is not sent: this API takes none",
        "a part of type 'file' is not sent: it has no address that this API reads",
    ]
    provider = ChatCompletionsProvider(name="s", quirks=["file_urls"])
    request, *_ = sent(provider, [message("user", multipartContent=parts[-1:])])
    assert request["body"]["messages"][0]["content"][0]["file"]["file_data"] == "http://f"


@pytest.mark.parametrize(
    ("content", "metadata", "held"),
    [
        ({"url": "data:audio/wav;base64,AA"}, {}, {"data": "AA", "format": "wav"}),
        ({"url": "data:audio/mpeg;base64,AA"}, {}, {"data": "AA", "format": "mp3"}),
        ({"data": "AA", "name": "a.mp3"}, {}, {"data": "AA", "format": "mp3"}),
        ({"data": "AA"}, {"media_type": "audio/x-wav"}, {"data": "AA", "format": "wav"}),
    ],
)
def test_sounds_are_sent(content: Any, metadata: Any, held: Any) -> None:
    asked = [
        message(
            "user",
            "hear",
            multipartContent=[{"type": "audio", "content": content, "metadata": metadata}],
        )
    ]
    request, _, warnings = sent(messages=asked)
    [_, part] = request["body"]["messages"][0]["content"]
    assert (part, warnings) == ({"type": "input_audio", "input_audio": held}, [])
    bare = ChatCompletionsProvider(name="s", quirks=["bare_audio"])
    request, *_ = sent(bare, asked)
    [_, part] = request["body"]["messages"][0]["content"]
    assert part == {"type": "input_audio", "input_audio": held["data"]}


def test_a_sound_on_the_web_is_sent_to_those_who_fetch_it() -> None:
    asked = [message("user", multipartContent=[{"type": "audio", "content": {"url": "http://a"}}])]
    request, _, warnings = sent(messages=asked)
    assert request["body"]["messages"][0]["content"][0]["text"] == "[audio not sent: http://a]"
    assert warnings == ["a part of type 'audio' is not sent: it has no address that this API reads"]
    request, _, warnings = sent(ChatCompletionsProvider(name="s", quirks=["bare_audio"]), asked)
    part = request["body"]["messages"][0]["content"][0]
    assert (part, warnings) == ({"type": "input_audio", "input_audio": "http://a"}, [])


def test_the_file_of_a_sound_is_put_in_when_the_request_is_made(tmp_path: Path) -> None:
    sound = tmp_path / "a.mp3"
    sound.write_bytes(b"mp3")
    heard = message("user", "hear", multipartContent=[attachment(sound)])
    request, *_ = sent(messages=[heard], attachments_root=str(tmp_path))
    data = base64.b64encode(b"mp3").decode()
    (_, part) = request["body"]["messages"][0]["content"]
    assert part == {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}
    request, *_ = sent(messages=[heard])
    assert "not attached" in request["body"]["messages"][0]["content"][1]["text"]


def test_pictures_in_tool_results_follow_all_results() -> None:
    image = {"type": "image", "content": {"url": "http://i"}, "metadata": {}}
    result = {"type": "tool_result", "text": "done", "content": [
        {"type": "text", "content": {"text": "done"}}, image]}  # fmt: skip
    found = bodies(
        [
            message("assistant", tool_calls=[function_call("a", "f"), function_call("b", "f")]),
            message("tool", "done", tool_call_id="a", toolResult=result),
            message("tool", "2", tool_call_id="b"),
        ]
    )
    assert [each["role"] for each in found] == ["assistant", "tool", "tool", "user"]
    assert found[1]["content"] == "done"
    assert found[3]["content"] == [{"type": "image_url", "image_url": {"url": "http://i"}}]


def test_a_result_marked_as_of_this_format_is_sent_unchanged() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]
    envelope = {"type": "provider_native_tool_result", "format": "openai.chat_completions",
                "content": content}  # fmt: skip
    messages = [
        message("assistant", tool_calls=[function_call("a", "f")]),
        message("tool", "fallback", tool_call_id="a", toolResult=envelope),
    ]
    assert bodies(messages)[1]["content"] == content


def test_files_are_put_in_when_the_request_is_made(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"png")
    shown = message("user", "see", multipartContent=[attachment(picture)])
    request, *_ = sent(messages=[shown], attachments_root=str(tmp_path))
    data = base64.b64encode(b"png").decode()
    (_, part) = request["body"]["messages"][0]["content"]
    assert part == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    request, *_ = sent(messages=[shown])
    assert "not attached" in request["body"]["messages"][0]["content"][1]["text"]
