"""What is read of recordings: documents, answers of every protocol, declarations and addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_host_testing.corpus import PROTOCOLS, Recording, Way, recorded_answer
from agent_host_testing.corpus.comparing import has_again
from agent_host_testing.corpus.declarations import declaration_differences
from agent_host_testing.corpus.documents import documents_of
from agent_host_testing.corpus.entries import core_messages
from agent_host_testing.corpus.playback import Playback, address_differences
from agent_host_testing.corpus.protocols import spoken_blocks
from agent_host_testing.wire import Request


def recording(
    protocol: str,
    body: str,
    framing: str = "json",
    url: str = "https://x/v1/chat/completions",
    request: dict[str, Any] | None = None,
) -> Recording:
    given = {"model": "m", "messages": [], "contents": [], "input": [], **(request or {})}
    stream = framing != "json"
    return Recording(
        "r", "g", 0, "p", protocol, url, given, 200, {}, body.encode(), stream, framing, {}
    )


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("sse", 'event: x\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: said\n\ndata: {"b": 2}\n\n'),
        ("sse", 'data: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n'),
        ("sse", 'data: {"a": 1}\n\ndata:{"b": 2}'),
        ("ndjson", '{"a": 1}\n{"b": 2}\n'),
        ("json-array", '[{"a": 1},\n{"b": 2}]'),
        ("json", '[{"a": 1}, {"b": 2}, 3]'),
    ],
)
def test_documents_are_cut_apart_as_the_framing_says(framing: str, body: str) -> None:
    assert documents_of(recording("openai.chat", body, framing)) == [{"a": 1}, {"b": 2}]


def sse(*documents: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents)


def deltas(*said: dict[str, Any]) -> str:
    return sse(*({"choices": [{"index": 0, "delta": delta}]} for delta in said))


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{ "a":1 }'},
]
CALL = ("call", {"id": "c1", "name": "f", "arguments": {"a": 1}, "text": '{ "a":1 }'})


@pytest.mark.parametrize(
    ("protocol", "framing", "body", "blocks"),
    [
        (
            "openai.chat",
            "sse",
            deltas(
                {"role": "assistant", "reasoning_details": [{"type": "t", "text": "h"}]},
                {"reasoning_details": [{"type": "t", "text": "m", "signature": "c2ln"}]},
                {"content": "A"},
                {
                    "content": "b",
                    "tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f"}}],
                },
                {"tool_calls": [{"index": 0, "function": {"arguments": '{ "a"'}}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": ":1 }"}}]},
            ),
            [("reasoning", {"text": "hm", "signature": "c2ln"}), ("text", {"text": "Ab"}), CALL],
        ),
        (
            "mistral.chat",
            "sse",
            deltas(
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
                {"content": "Ab"},
            ),
            [("reasoning", {"text": "hm", "signature": None}), ("text", {"text": "Ab"})],
        ),
        (
            "openai.responses",
            "json",
            json.dumps({"output": [*ITEMS, {"type": "reasoning", "encrypted_content": "x"}]}),
            [("reasoning", {"text": "", "signature": "c2ln"}), CALL],
        ),
        (
            "openai.responses",
            "sse",
            sse(
                {"type": "response.output_item.done", "output_index": 1, "item": ITEMS[1]},
                {"type": "response.output_item.done", "output_index": 0, "item": ITEMS[0]},
                {"type": "response.completed", "response": {"output": []}},
            ),
            [("reasoning", {"text": "", "signature": "c2ln"}), CALL],
        ),
        (
            "anthropic.messages",
            "sse",
            sse(
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {**SIGNED, "signature": ""},
                },
                {"type": "content_block_delta", "index": 0, "delta": {"signature": "c2ln"}},
                {
                    "type": "content_block_start",
                    "index": 1,
                    "content_block": {**SEARCH, "input": {}},
                },
                {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"query":'}},
                {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"x"}'}},
            ),
            [("reasoning", {"text": "hm", "signature": "c2ln"}), ("native", {"part": SEARCH})],
        ),
        (
            "google.generate",
            "json-array",
            json.dumps(
                [
                    {
                        "candidates": [
                            {"content": {"parts": [{"text": "A", "thoughtSignature": "c2ln"}]}}
                        ]
                    },
                    {
                        "candidates": [
                            {
                                "content": {
                                    "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]
                                }
                            }
                        ]
                    },
                ]
            ),
            [
                ("text", {"text": "A", "signature": "c2ln"}),
                ("call", {"id": None, "name": "f", "arguments": {"a": 1}}),
            ],
        ),
        (
            "ollama.chat",
            "ndjson",
            '{"message": {"thinking": "h"}}\n{"message": {"thinking": "m", "content": "A"}}\n'
            '{"message": {"content": "b", "tool_calls": '
            '[{"function": {"name": "f", "arguments": {"a": 1}}}]}}',
            [
                ("reasoning", {"text": "hm", "signature": None}),
                ("text", {"text": "Ab"}),
                ("call", {"id": None, "name": "f", "arguments": {"a": 1}}),
            ],
        ),
    ],
)
def test_an_answer_is_read_as_it_is_sent_back(
    protocol: str, framing: str, body: str, blocks: list[Any]
) -> None:
    found = spoken_blocks(recording(protocol, body, framing))
    assert [(block.kind, block.value) for block in found] == blocks


NOTE = {"type": "url_citation", "url": "https://x"}
TEXT = {"type": "output_text", "text": "A", "annotations": [NOTE]}


@pytest.mark.parametrize(
    ("protocol", "document"),
    [
        ("openai.chat", {"choices": [{"message": {"content": "A", "annotations": [NOTE]}}]}),
        ("openai.chat", {"citations": [NOTE], "choices": [{"message": {"content": "A"}}]}),
        (
            "openai.responses",
            {"output": [{"type": "message", "role": "assistant", "content": [TEXT]}]},
        ),
        (
            "anthropic.messages",
            {"type": "message", "content": [{"type": "text", "text": "A", "citations": [NOTE]}]},
        ),
        ("google.generate", {"candidates": [{"content": {}, "groundingMetadata": NOTE}]}),
    ],
)
def test_citations_are_read(protocol: str, document: dict[str, Any]) -> None:
    answer = recorded_answer(recording(protocol, json.dumps(document)))
    assert answer.citations == (NOTE,)


def test_a_stream_that_repeats_its_message_beside_the_deltas_is_heard_once() -> None:
    first = {"delta": {"content": "A"}, "message": {"content": "A"}}
    second = {"delta": {"content": "b"}, "message": {"content": "Ab"}}
    body = sse({"choices": [first]}, {"choices": [second]})
    [block] = spoken_blocks(recording("openai.chat", body, "sse"))
    assert block.value == {"text": "Ab"}


@pytest.mark.parametrize(
    ("protocol", "raw", "counts"),
    [
        (
            "openai.chat",
            {
                "prompt_tokens": 5,
                "completion_tokens": 7,
                "total_tokens": 12,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            {"input": 5, "output": 7, "cached_input": None, "reasoning": 3},
        ),
        (
            "openai.chat",
            {
                "prompt_tokens": 5,
                "completion_tokens": 7,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            {"input": 5, "output": 10, "cached_input": None, "reasoning": 3},
        ),
        (
            "anthropic.messages",
            {
                "input_tokens": 5,
                "output_tokens": 7,
                "cache_read_input_tokens": 2,
                "cache_creation_input_tokens": 1,
            },
            {"input": 8, "output": 7, "cached_input": 2},
        ),
        (
            "google.generate",
            {
                "promptTokenCount": 5,
                "toolUsePromptTokenCount": 4,
                "candidatesTokenCount": 7,
                "thoughtsTokenCount": 3,
            },
            {"input": 9, "output": 10, "cached_input": None, "reasoning": 3},
        ),
    ],
)
def test_counts_are_those_of_the_contract(
    protocol: str, raw: dict[str, Any], counts: dict[str, Any]
) -> None:
    assert PROTOCOLS[protocol].counts(raw) == counts


@pytest.mark.parametrize(
    ("response", "text", "error"),
    [
        ({"result": "40"}, "40", False),
        ({"anything": "40"}, "40", False),
        ({"error": "no"}, "no", True),
        ({"output": {"b": 1, "a": [2]}}, '{"a": [2], "b": 1}', False),
        ({"degrees": 40, "sky": "blue"}, '{"degrees": 40, "sky": "blue"}', False),
        ({"result": '{"sky":"blue", "degrees":40}'}, '{"degrees": 40, "sky": "blue"}', False),
        ({"degrees": 40}, '{"degrees": 40}', False),
    ],
)
def test_structured_results_of_gemini_are_kept(
    response: dict[str, Any], text: str, error: bool
) -> None:
    answered = {"functionResponse": {"name": "f", "response": response}}
    body = {"contents": [{"role": "user", "parts": [answered]}]}
    turn = PROTOCOLS["google.generate"].turn(body, "https://x/models/m:generate")
    [message] = core_messages(turn.entries, turn.family)
    assert message["content"] == text
    assert bool(message["metadata"].get("error")) is error
    envelope: Any = dict(message)["toolResult"]
    assert "content" not in envelope


PLACE = {"type": "string", "description": "Where."}


def declared(**properties: Any) -> dict[str, Any]:
    return {
        "name": "f",
        "description": "Does.",
        "parameters": {"type": "object", "properties": properties},
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            declared(place=PLACE),
            {
                **declared(),
                "parameters": {
                    "$defs": {"P": PLACE},
                    "type": "object",
                    "required": [],
                    "properties": {"place": {"$ref": "#/$defs/P"}},
                },
            },
        ),
        (declared(x={"enum": [1]}), declared(x={"const": 1})),
        (declared(x={"anyOf": [PLACE]}), declared(x={"oneOf": [PLACE]})),
        (
            declared(x={**PLACE, "nullable": True}),
            declared(x={"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Where."}),
        ),
        (
            declared(x={"type": ["string", "null"]}),
            declared(x={"type": "string", "nullable": True}),
        ),
    ],
)
def test_schemas_that_say_the_same_are_one(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert [*declaration_differences([ours], [theirs])] == []


@pytest.mark.parametrize(
    "theirs",
    [
        declared(),
        declared(place={"type": "string"}),
        declared(place={**PLACE, "type": "integer"}),
        {**declared(place=PLACE), "description": ""},
        {**declared(place=PLACE), "strict": True},
        {**declared(place=PLACE), "name": "g"},
    ],
)
def test_another_declaration_is_told(theirs: dict[str, Any]) -> None:
    assert [*declaration_differences([declared(place=PLACE)], [theirs])]


@pytest.mark.parametrize(
    ("protocol", "url", "base", "goes_to"),
    [
        ("openai.chat", "https://x/api/v2/y/v1/chat/completions", "/api/v2/y/v1", ""),
        ("openai.chat", "https://x/chat/completions", "/chat/completions", ""),
        (
            "openai.chat",
            "https://x/models/chat/completions?api-version=1",
            "/models/chat/completions?api-version=1",
            "",
        ),
        ("openai.chat", "https://x/chat/completions", "/chat/completions", "/v1/chat/completions"),
        ("anthropic.messages", "https://x/v1/messages?beta=true", "", ""),
        ("anthropic.messages", "https://x/v1/p/models/c@1:rawPredict", "/v1/p", ""),
        ("google.generate", "https://x/v1beta/models/g:generateContent", "/v1beta", ""),
        ("ollama.chat", "https://x/api/chat", "", ""),
    ],
)
def test_requests_go_where_the_recorded_one_went(
    protocol: str, url: str, base: str, goes_to: str
) -> None:
    recorded = recording(protocol, "{}", url=url)
    playback = Playback([recorded], Way())
    assert playback.base_url(recorded) == playback.server.url + base
    path, _, query = url.removeprefix("https://x").partition("?")
    named = dict([query.split("=")]) if query else {}
    request = Request("POST", goes_to or path, named, {}, b"", {})
    assert bool(address_differences(recorded, request)) is bool(goes_to)


@pytest.mark.parametrize(
    ("ours", "theirs", "again"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "c": None}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ("a", {"a": 1}, False),
        (None, "a", False),
    ],
)
def test_what_is_kept_has_all_that_was_said(ours: Any, theirs: Any, again: bool) -> None:
    assert has_again(ours, theirs) is again
