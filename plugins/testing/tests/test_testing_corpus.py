"""Recordings: loading and translating them, replaying a small one, and finding what differs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testing_subject import ChatSubject

from agent_hookspecs.errors import ContentBlockedError
from agent_host_testing.corpus import (
    EVERY_WAY,
    HARMLESS,
    Recording,
    Way,
    differences,
    group_sessions,
    history_differences,
    in_scope,
    load_recordings,
    play_session,
    replay,
    request_differences,
    session_differences,
    signature_digest,
    translate_recording,
)
from agent_host_testing.corpus.entries import core_messages

REAL = Path(__file__).resolve().parents[4] / "shared" / "corpus"
IN_SCOPE = [each for each in load_recordings(REAL) if in_scope(each)]

ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Rome?"},
]
ARGUMENTS = '{"city": "Rome"}'
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": ARGUMENTS},
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def events(*deltas: dict[str, Any], reason: str) -> str:
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    end = {"index": 0, "delta": {}, "finish_reason": reason}
    chunks.append({"id": "c1", "model": "m", "choices": [end], "usage": usage})
    said = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return said + "data: [DONE]\n\n"


EXPECTED: dict[str, Any] = {
    "id": "c1",
    "model": "m",
    "text": "",
    "reasoning": "",
    "tool_calls": [],
    "finish_reason": "stop",
    "refusal": None,
    "usage": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12, "cache_read_tokens": None},
    "server_tools": [],
    "error": None,
    "signature_count": 0,
    "signature_sha256_16": [],
}


def recorded(number: int, messages: list[Any], answer: str, **expected: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": messages, "tools": [TOOL], "stream": True, "temperature": 0}
    return {
        "source": f"a/project:cassette.yaml#{number}",
        "group": "a/project:cassette.yaml",
        "provider": "somebody",
        "protocol": "openai.chat",
        "request": {"method": "POST", "url": "https://x/v1/chat/completions", "body": body},
        "response": {
            "status": 200,
            "headers": {"content-type": "text/event-stream", "transfer-encoding": "chunked"},
            "body": answer,
        },
        "stream": True,
        "framing": "sse",
        "fidelity": "wire",
        "expected": {**EXPECTED, **expected},
    }


@pytest.fixture
def session(tmp_path: Path) -> list[Recording]:
    """Two turns of one conversation; the first calls a tool."""
    calling = events(
        {"role": "assistant", "reasoning": "hm"},
        {"tool_calls": [{"index": 0, **CALL}]},
        reason="tool_calls",
    )
    call = {"id": "call_1", "name": "weather", "arguments": {"city": "Rome"}}
    first = recorded(
        0, ASKED, calling, tool_calls=[call], finish_reason="tool_calls", reasoning="hm"
    )
    said = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    told = {"role": "tool", "tool_call_id": "call_1", "content": "40 °C"}
    hot = events({"content": "It is "}, {"content": "hot: 40 °C"}, reason="stop")
    second = recorded(1, [*ASKED, said, told], hot, text="It is hot: 40 °C")
    folder = tmp_path / "somebody"
    folder.mkdir()
    # The order of the files is not that of the session.
    (folder / "b.json").write_text(json.dumps(first), "utf-8")
    (folder / "a.json").write_text(json.dumps(second), "utf-8")
    return load_recordings(tmp_path)


def chat_subject(recording: Recording) -> ChatSubject:
    return ChatSubject()


def test_recordings_are_loaded_in_the_order_of_their_sessions(session: list[Recording]) -> None:
    assert [each.name for each in session] == ["b", "a"]
    assert [each.number for each in session] == [0, 1]
    assert group_sessions(reversed(session)) == [session]
    assert "°C".encode() in session[1].body or b"\\u00b0C" in session[1].body


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"request": {}}'])
def test_a_file_that_is_no_recording_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(ValueError, match=r"broken\.json is no recording"):
        load_recordings(tmp_path)


def test_a_request_becomes_what_its_user_would_have_done(session: list[Recording]) -> None:
    turn = translate_recording(session[1])
    system, user, assistant, tool = core_messages(turn.entries, turn.family)
    assert (system["content"], user["content"]) == ("Be brief.", "Weather in Rome?")
    [call] = assistant["metadata"]["tool_calls"]
    assert call["id"] == "call_1"
    assert json.loads(call["function"]["arguments"]) == {"city": "Rome"}
    assert tool["metadata"] == {"tool_call_id": "call_1", "tool_name": "weather"}
    assert call["function"]["arguments"] == ARGUMENTS
    assert turn.settings == {"model": "m", "temperature": 0}
    assert [schema["name"] for schema in turn.tools] == ["weather"]


@pytest.mark.parametrize("way", EVERY_WAY, ids=str)
def test_a_session_that_is_played_right_has_no_differences(
    session: list[Recording], way: Way
) -> None:
    played = play_session(session, chat_subject, way)
    assert [each.continued for each in played.turns] == [False, True]
    assert played.further is not None
    assert session_differences(played) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": "It is cold"}, "the text is"),
        ({"reasoning": "well"}, "the reasoning is"),
        ({"finish_reason": "stop"}, "finish_reason is"),
        ({"refusal": "no"}, "refusal is"),
        ({"tool_calls": []}, "the calls are"),
        (
            {"tool_calls": [{"id": "call_2", "name": "weather", "arguments": {"city": "Rome"}}]},
            "the id of weather",
        ),
        (
            {"tool_calls": [{"id": "call_1", "name": "weather", "arguments": {"city": "Oslo"}}]},
            "the arguments of weather",
        ),
        (
            {"tool_calls": [{"id": None, "name": "weather", "arguments": None}]},
            "not marked as broken",
        ),
        ({"usage": None}, "nothing was reported"),
        ({"usage": {"input_tokens": 6}}, "usage.raw input_tokens is 5 instead of 6"),
        ({"usage": {"reasoning_tokens": 2}}, "usage.raw reasoning_tokens is None instead of 2"),
        ({"id": "c2"}, "response_id is 'c1' instead of 'c2'"),
        ({"model": "m-2"}, "model is 'm' instead of 'm-2'"),
        ({"signature_sha256_16": ["0123456789abcdef"]}, "signatures [] instead of"),
        ({"server_tools": ["web_search_call"]}, "no web_search_call"),
        ({"error": {"message": "no luck"}}, "instead of an error of the provider"),
    ],
)
def test_an_outcome_that_is_not_the_expected_one_is_told(
    session: list[Recording], changed: dict[str, Any], said: str
) -> None:
    wrong = replace(session[0], expected={**session[0].expected, **changed})  # type: ignore[typeddict-item]
    assert said in "\n".join(differences(wrong, replay(session[0], ChatSubject())))


NOTE = {"type": "url_citation", "url_citation": {"url": "https://example.org"}}
#: What an answer had said besides, so that what was made of the recorded one lacks it.
LOST: list[tuple[str, dict[str, Any]]] = [
    ("the metadata has no citation", {"annotations": [NOTE]}),
    ("the text of the arguments", {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}),
]


@pytest.mark.parametrize(("said", "more"), LOST)
def test_what_an_answer_says_beside_the_expected_is_compared(
    session: list[Recording], said: str, more: dict[str, Any]
) -> None:
    first = session[0]
    result = replay(first, ChatSubject())
    assert differences(first, result) == []
    chunk = {"choices": [{"index": 0, "delta": more}]}
    longer = first.body + f"data: {json.dumps(chunk)}\n\n".encode()
    assert said in "\n".join(differences(replace(first, body=longer), result))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("reasoning", "the streamed reasoning is '' instead of 'hm'"),
        ("usage", "what was reported of usage is []"),
    ],
)
def test_what_is_not_shown_while_it_comes_is_told(
    session: list[Recording], kind: str, said: str
) -> None:
    result = replay(session[0], ChatSubject())
    shown = [event for event in result.seen.events if event["type"] != kind]
    silent = replace(result, seen=replace(result.seen, events=shown))
    assert said in "\n".join(differences(session[0], silent))


@pytest.mark.parametrize(("status", "said"), [(401, ""), (429, "instead of"), (400, "instead of")])
def test_the_class_and_the_words_of_an_error_are_compared(
    session: list[Recording], status: int, said: str
) -> None:
    body = b'{"error": {"message": "no such key", "type": "authentication_error"}}'
    wanted: Any = {**EXPECTED, "error": {"message": "no such key"}}
    refused = replace(session[0], status=401, body=body, stream=False, headers={}, expected=wanted)
    found = differences(replace(refused, status=status), replay(refused, ChatSubject()))
    assert said in "\n".join(found)
    assert bool(found) is bool(said)


Change = Callable[[list[dict[str, Any]]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda messages: messages.pop(), "the roles are"),
        (lambda messages: messages[3].update(tool_call_id="call_2"), "result"),
        (lambda messages: messages[3].update(content="41 °C"), "41 °C"),
        (lambda messages: messages[2]["tool_calls"][0].update(id="call_2"), "call_2"),
        (lambda messages: messages[2].update(content="Let me see."), "assistant message 2 has"),
        (lambda messages: messages[0].update(content="Be long."), "Be long."),
        (lambda messages: messages.append(messages.pop(0)), "the roles are"),
        (lambda messages: messages.append({"role": "user", "content": "and?"}), "the roles are"),
    ],
)
def test_a_request_that_is_not_the_recorded_one_is_told(
    session: list[Recording], change: Change, said: str
) -> None:
    body = copy.deepcopy(dict(session[1].request))
    change(body["messages"])
    assert said in "\n".join(request_differences(session[1], body, session[:1]))


@pytest.mark.parametrize(
    "change",
    [
        lambda messages: messages[2].update(content=""),
        lambda messages: messages[2].pop("content"),
        lambda messages: messages[0].update(role="developer"),
        lambda messages: messages.insert(0, {"role": "system", "content": ""}),
        lambda messages: messages[1].update(
            content=[
                {
                    "type": "text",
                    "text": "Weather in Rome?",
                    "cache_control": {"type": "ephemeral"},
                }
            ]
        ),
        lambda messages: messages[2].update(reasoning_content="hm"),
        lambda messages: messages[2]["tool_calls"][0]["function"].update(
            arguments='{"city":"Rome"}'
        ),
    ],
)
def test_harmless_differences_are_none(session: list[Recording], change: Change) -> None:
    body = copy.deepcopy(dict(session[1].request))
    change(body["messages"])
    assert request_differences(session[1], body, session[:1]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda messages: messages[0].update(content="Be long."), "is not sent again as it was"),
        (lambda messages: messages.pop(2), "comes back as [] instead of ['call']"),
        (
            lambda messages: messages[2]["tool_calls"][0]["function"].update(
                arguments='{"city":"Rome"}'
            ),
            "of the answer comes back call",
        ),
        (lambda messages: messages[2]["tool_calls"][0].update(id="call_2"), "call_2"),
    ],
)
def test_a_history_that_is_not_the_answered_one_is_told(
    session: list[Recording], change: Change, said: str
) -> None:
    before, turn = play_session(session, chat_subject).turns
    assert history_differences(before, turn.body) == []
    body = copy.deepcopy(dict(turn.body))
    change(body["messages"])
    assert said in "\n".join(history_differences(before, body))


def test_a_history_may_go_on_in_its_last_message(session: list[Recording]) -> None:
    """Where an answer said nothing, what stands around it is joined if roles have to alternate."""
    before, _ = play_session(session, chat_subject).turns
    silent = replace(before.recording, body=b"")
    messages = copy.deepcopy(before.body["messages"])
    parts = [{"type": "text", "text": text} for text in ("Weather in Rome?", "And then?")]
    messages[-1]["content"] = parts
    assert history_differences(replace(before, recording=silent), {"messages": messages}) == []
    messages[-1]["content"] = parts[1:]
    assert history_differences(before, {"messages": messages}) == [
        "what was sent before is not sent again as it was"
    ]


def test_what_was_made_from_scratch_lacks_what_answers_bring(session: list[Recording]) -> None:
    second = session[1]
    theirs = copy.deepcopy(dict(second.request))
    details = [{"type": "reasoning.text", "text": "hm", "signature": "c2ln"}]
    theirs["messages"][2]["reasoning_details"] = details
    signed = replace(second, request=theirs)
    ours = copy.deepcopy(dict(second.request))
    ours["messages"][2]["tool_calls"][0]["id"] = ours["messages"][3]["tool_call_id"] = "other"
    assert request_differences(signed, ours)
    assert request_differences(signed, ours, from_scratch=True) == []
    ours["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"city": "Oslo"}'
    assert request_differences(signed, ours, from_scratch=True)


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        ({"finish_reason": "SAFETY"}, True),
        ({"finish_reason": None}, True),
        ({"finish_reason": "SAFETY", "text": "It"}, False),
        ({"finish_reason": "stop"}, False),
        ({"finish_reason": "length"}, False),
    ],
)
def test_an_answer_that_is_none_may_be_an_error(
    session: list[Recording], expected: dict[str, Any], right: bool
) -> None:
    result = replay(session[0], ChatSubject())
    blocked = replace(result, seen=replace(result.seen, error=ContentBlockedError("withheld")))
    changed: Any = {**EXPECTED, **expected}
    found = differences(replace(session[0], expected=changed), blocked)
    assert (found == []) is right


@pytest.mark.parametrize(("player", "found"), [("custom", False), ("deepseek", True)])
def test_reasoning_goes_back_to_those_who_ask_for_it(
    session: list[Recording], player: str, found: bool
) -> None:
    before, turn = play_session(session, chat_subject).turns
    said = history_differences(replace(before, player=player), turn.body)
    assert (said == ["the answer comes back as ['call'] instead of ['reasoning', 'call']"]) is found


def test_a_stored_session_must_send_the_same(session: list[Recording]) -> None:
    played = play_session(session, chat_subject)
    further = played.further
    assert further is not None
    assert further.loaded is not None
    other = replace(further, loaded=replace(further.loaded, raw=b"{}"))
    told = session_differences(replace(played, further=other))
    assert ["stored and loaded" in each for each in told] == [True]


def test_every_harmless_difference_has_a_name_and_a_reason() -> None:
    names = [harmless.name for harmless in HARMLESS]
    assert len(set(names)) == len(names)
    assert all(harmless.reason for harmless in HARMLESS)


def test_a_recording_that_does_not_go_on_begins_anew(session: list[Recording]) -> None:
    messages = copy.deepcopy(session[1].request["messages"])
    messages[2] = {"role": "assistant", "content": "I do not know."}
    del messages[3]
    other = replace(session[1], request={**session[1].request, "messages": messages})
    played = play_session([session[0], other], chat_subject)
    assert [each.continued for each in played.turns] == [False, False]


def test_signatures_of_either_alphabet_have_one_digest() -> None:
    assert signature_digest("ab-_cd==") == signature_digest("ab+/cd")
    assert signature_digest("") is None


def of(
    protocol: str, body: dict[str, Any], url: str = "https://x/models/m-1:generate"
) -> Recording:
    return Recording(
        "r", "g", 0, "p", protocol, url, body, 200, {}, b"", False, "json", {"text": ""}
    )


@pytest.mark.parametrize(
    ("protocol", "body", "settings"),
    [
        (
            "anthropic.messages",
            {
                "max_tokens": 9,
                "system": "Be brief.",
                "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
                "messages": [{"role": "user", "content": "hi"}],
                "tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "web"}],
                "thinking": {"type": "enabled"},
            },
            {
                "model": "m-1",
                "max_output_tokens": 9,
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "builtin_tools": [{"type": "web"}],
                "extra_body": {"thinking": {"type": "enabled"}},
            },
        ),
        (
            "google.generate",
            {
                "system_instruction": {"parts": [{"text": "Be brief."}]},
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                "generationConfig": {
                    "maxOutputTokens": 9,
                    "response_mime_type": "application/json",
                    "response_schema": {"type": "object"},
                    "thinkingConfig": {"thinkingBudget": 1},
                },
                "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
                "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
            },
            {
                "model": "m-1",
                "max_output_tokens": 9,
                "response_schema": {"type": "object"},
                "tool_choice": "none",
                "builtin_tools": [{"googleSearch": {}}],
                "extra_body": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1}}},
            },
        ),
        (
            "openai.responses",
            {
                "model": "m",
                "instructions": "Be brief.",
                "input": "hi",
                "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
                "reasoning": {"effort": "low", "summary": "auto"},
                "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
                "store": False,
            },
            {
                "model": "m",
                "effort": "low",
                "response_schema": {"type": "object"},
                "builtin_tools": [{"type": "web_search"}],
                "extra_body": {"store": False, "reasoning": {"summary": "auto"}},
            },
        ),
        (
            "ollama.chat",
            {
                "model": "m",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "hi"},
                ],
                "options": {"num_predict": 9, "stop": "x", "top_k": 1},
                "format": {"type": "object"},
                "think": True,
                "tools": [{"type": "function", "function": {"name": "f"}}],
            },
            {
                "model": "m",
                "max_output_tokens": 9,
                "stop": ["x"],
                "response_schema": {"type": "object"},
                "extra_body": {"think": True, "options": {"top_k": 1}},
            },
        ),
    ],
)
def test_every_protocol_is_read(
    protocol: str, body: dict[str, Any], settings: dict[str, Any]
) -> None:
    turn = translate_recording(of(protocol, body))
    messages = core_messages(turn.entries, turn.family)
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]
    assert turn.settings == settings
    assert [tool["name"] for tool in turn.tools] == ["f"]


@pytest.mark.parametrize("recording", IN_SCOPE, ids=str)
def test_a_real_recording_translates_and_equals_itself(recording: Recording) -> None:
    turn = translate_recording(recording)
    messages = core_messages(turn.entries, turn.family)
    assert messages
    assert turn.settings["model"]
    json.dumps(messages)
    assert request_differences(recording, recording.request) == []


@pytest.mark.parametrize("recording", [each for each in IN_SCOPE if each.status == 200], ids=str)
def test_a_real_request_without_its_last_message_differs(recording: Recording) -> None:
    key = next(key for key in ("messages", "contents", "input") if key in recording.request)
    body = {**recording.request, key: recording.request[key][:-1]}
    assert request_differences(recording, body)


def unsigned(value: Any) -> Any:
    """A body without anything that was signed or encrypted."""
    if isinstance(value, dict):
        signed = ("signature", "thoughtSignature", "encrypted_content", "data")
        return {key: unsigned(item) for key, item in value.items() if key not in signed}
    return [unsigned(item) for item in value] if isinstance(value, list) else value


def is_signed(recording: Recording) -> bool:
    blocks = [block for entry in translate_recording(recording).entries for block in entry.blocks]
    return recording.status == 200 and any(block.value.get("signature") for block in blocks)


@pytest.mark.parametrize("recording", [r for r in IN_SCOPE if is_signed(r)], ids=str)
def test_a_real_request_without_its_signatures_differs(recording: Recording) -> None:
    body = unsigned(dict(recording.request))
    for message in body.get("messages", ()):
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "redacted_thinking":
                block["data"] = "made up"
    assert request_differences(recording, body)
