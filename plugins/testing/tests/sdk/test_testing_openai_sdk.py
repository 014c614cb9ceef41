"""The vendor's own client talks to the fake servers and understands every kind of answer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

openai = pytest.importorskip("openai")

from agent_host_testing.faults import Split, rate_limited  # noqa: E402
from agent_host_testing.formats.openai_chat import OpenAIChat  # noqa: E402
from agent_host_testing.script import (  # noqa: E402
    Answer,
    Call,
    Failure,
    Finish,
    Picture,
    Reply,
    Text,
    Thought,
    Tokens,
    say,
)
from agent_host_testing.server import FakeServer  # noqa: E402
from agent_host_testing.wire import WireFormat  # noqa: E402

TOOL = {
    "name": "weather",
    "description": "The weather somewhere",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CHAT_TOOLS: Any = [{"type": "function", "function": TOOL}]
RESPONSES_TOOLS: Any = [{"type": "function", "strict": False, **TOOL}]
TOKENS = Tokens(input=20, output=9, cached_input=8, reasoning=4)


class Api:
    """A fake server and the vendor's client, pointed at it."""

    def __init__(self, format: WireFormat | str, *answers: Answer) -> None:
        self.server = FakeServer(format, *answers, key="sk-fake", models=("m-1", "m-2")).start()
        self.client = openai.OpenAI(
            api_key="sk-fake", base_url=self.server.base_url, max_retries=0, timeout=10
        )

    def close(self) -> None:
        self.client.close()
        self.server.close()

    def chat(self, *messages: Any, **fields: Any) -> Any:
        said = list(messages) or [{"role": "user", "content": "hi"}]
        return self.client.chat.completions.create(model="m-1", messages=said, **fields)

    def respond(self, *items: Any, **fields: Any) -> Any:
        return self.client.responses.create(model="m-1", input=list(items) or "hi", **fields)


@pytest.fixture
def apis() -> Iterator[list[Api]]:
    made: list[Api] = []
    yield made
    for api in made:
        api.close()
        assert api.server.problems == []


def _api(apis: list[Api], format: WireFormat | str, *answers: Answer) -> Api:
    apis.append(Api(format, *answers))
    return apis[-1]


def _streamed_chat(api: Api, **fields: Any) -> Any:
    """The completion that the client's own helper builds from a stream."""
    messages: Any = [{"role": "user", "content": "hi"}]
    options = {"include_usage": True}
    with api.client.chat.completions.stream(
        model="m-1", messages=messages, stream_options=options, **fields
    ) as stream:
        return stream.get_final_completion()


def _streamed_response(api: Api, **fields: Any) -> Any:
    with api.client.responses.stream(model="m-1", input="hi", **fields) as stream:
        return stream.get_final_response()


def test_the_list_of_models_and_one_of_them(apis: list[Api]) -> None:
    for name in ("openai.chat", "openai.responses"):
        api = _api(apis, name)
        assert [model.id for model in api.client.models.list()] == ["m-1", "m-2"]
        assert api.client.models.retrieve("m-2").owned_by == "system"


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_text_and_usage(apis: list[Api], streamed: bool) -> None:
    api = _api(apis, "openai.chat", say("hello there", tokens=TOKENS))
    answer = _streamed_chat(api) if streamed else api.chat()
    assert answer.choices[0].message.content == "hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].logprobs is None
    assert answer.model == "m-1"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (20, 9, 29)
    assert usage.prompt_tokens_details.cached_tokens == 8
    assert usage.completion_tokens_details.reasoning_tokens == 4


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_parallel_calls_and_their_results(apis: list[Api], streamed: bool) -> None:
    calls = (Call("weather", {"city": "Bern"}), Call("weather", {"city": "Zürich"}, id="call_z"))
    api = _api(apis, "openai.chat", Reply((Text("wait"), *calls)), say("sunny"))
    answer = _streamed_chat(api, tools=CHAT_TOOLS) if streamed else api.chat(tools=CHAT_TOOLS)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert message.content == "wait"
    assert [call.function.arguments for call in message.tool_calls] == [
        '{"city":"Bern"}',
        '{"city":"Zürich"}',
    ]
    assert message.tool_calls[1].id == "call_z"
    replayed = {
        "role": "assistant",
        "content": message.content,
        "tool_calls": [
            {
                "id": c.id,
                "type": "function",
                "function": c.function.model_dump(include={"name", "arguments"}),
            }
            for c in message.tool_calls
        ],
    }
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "20"} for call in message.tool_calls
    ]
    user = {"role": "user", "content": "hi"}
    final = api.chat(user, replayed, *results, tools=CHAT_TOOLS)
    assert final.choices[0].message.content == "sunny"


def test_chat_custom_calls(apis: list[Api]) -> None:
    api = _api(apis, "openai.chat", Reply((Call("patch", "*** Begin", freeform=True),)))
    (call,) = api.chat().choices[0].message.tool_calls
    assert (call.type, call.custom.name, call.custom.input) == ("custom", "patch", "*** Begin")


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_refusals_cuts_and_filters(apis: list[Api], streamed: bool) -> None:
    api = _api(apis, "openai.chat", say("I will not", finish="refusal"))
    answer = _streamed_chat(api) if streamed else api.chat()
    assert answer.choices[0].message.refusal == "I will not"
    finishes: list[tuple[Finish, str]] = [("length", "length"), ("blocked", "content_filter")]
    for finish, told in finishes:
        api.server.queue(say("so far", finish=finish))
        if streamed:
            chunks = list(api.chat(stream=True))
            assert [c.choices[0].finish_reason for c in chunks][-1] == told
        else:
            assert api.chat().choices[0].finish_reason == told


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("streamed", [False, True])
def test_chat_dialects_show_reasoning(apis: list[Api], field: Any, streamed: bool) -> None:
    api = _api(apis, OpenAIChat(field), Reply((Thought("let me see"), Text("yes"))))
    if streamed:
        deltas = [chunk.choices[0].delta for chunk in api.chat(stream=True)]
        shown = "".join((delta.model_extra or {}).get(field) or "" for delta in deltas)
    else:
        shown = api.chat().choices[0].message.model_extra[field]
    assert shown == "let me see"


def test_chat_reasoning_details_round_trip(apis: list[Api]) -> None:
    thought = Reply((Thought("hm", "sig"), Call("weather", {"city": "Bern"})))
    api = _api(apis, OpenAIChat("reasoning_details"), thought, say("sunny"))
    message = api.chat(tools=CHAT_TOOLS).choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "20"}
    user = {"role": "user", "content": "hi"}
    final = api.chat(user, message, result, tools=CHAT_TOOLS)
    assert final.choices[0].message.content == "sunny"
    sent = api.server.requests[1].body["messages"][1]
    assert sent["reasoning_details"][0]["signature"] == "sig"


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_text_and_usage(apis: list[Api], streamed: bool) -> None:
    api = _api(apis, "openai.responses", say("hello there", tokens=TOKENS))
    answer = _streamed_response(api) if streamed else api.respond()
    assert answer.output_text == "hello there"
    assert (answer.status, answer.model, answer.object) == ("completed", "m-1", "response")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (20, 9, 29)
    assert usage.input_tokens_details.cached_tokens == 8
    assert usage.output_tokens_details.reasoning_tokens == 4


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_reasoning_calls_and_their_results(apis: list[Api], streamed: bool) -> None:
    turn = Reply(
        (
            Thought("which city", "gAAAA-sig"),
            Call("weather", {"city": "Bern"}, id="call_b"),
            Call("weather", {"city": "Uri"}),
        )
    )
    api = _api(apis, "openai.responses", turn, say("sunny"))
    asked: Any = {
        "tools": RESPONSES_TOOLS,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
    }
    answer = _streamed_response(api, **asked) if streamed else api.respond(**asked)
    thought, first, second = answer.output
    assert thought.type == "reasoning"
    assert thought.summary[0].text == "which city"
    assert thought.encrypted_content == "gAAAA-sig"
    assert (first.call_id, first.name, first.arguments) == ("call_b", "weather", '{"city":"Bern"}')
    items = [
        item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output
    ]
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "20"}
        for call in (first, second)
    ]
    final = api.respond({"role": "user", "content": "hi"}, *items, *results, **asked)
    assert final.output_text == "sunny"


def test_responses_continue_a_stored_response(apis: list[Api]) -> None:
    api = _api(apis, "openai.responses", Reply((Call("weather", id="call_b"),)), say("sunny"))
    first = api.respond(tools=RESPONSES_TOOLS)
    result = {"type": "function_call_output", "call_id": "call_b", "output": "20"}
    final = api.respond(result, previous_response_id=first.id)
    assert (final.output_text, final.previous_response_id) == ("sunny", first.id)


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_custom_calls_images_and_refusals(apis: list[Api], streamed: bool) -> None:
    api = _api(
        apis,
        "openai.responses",
        Reply((Call("patch", "*** Begin", freeform=True), Picture("iVBORw0K"))),
        say("I will not", finish="refusal"),
    )
    answer = _streamed_response(api) if streamed else api.respond()
    custom, image = answer.output
    assert (custom.type, custom.input) == ("custom_tool_call", "*** Begin")
    assert (image.type, image.result) == ("image_generation_call", "iVBORw0K")
    answer = _streamed_response(api) if streamed else api.respond()
    part = answer.output[0].content[0]
    assert (part.type, part.refusal) == ("refusal", "I will not")


def test_responses_that_are_incomplete_say_why(apis: list[Api]) -> None:
    finishes: list[tuple[Finish, str]] = [
        ("length", "max_output_tokens"),
        ("blocked", "content_filter"),
    ]
    for finish, reason in finishes:
        answers = [say("so far", finish=finish)] * 2
        api = _api(apis, "openai.responses", *answers)
        whole = api.respond()
        last = list(api.respond(stream=True))[-1]
        assert last.type == "response.incomplete"
        for answer in (whole, last.response):
            assert (answer.status, answer.output_text) == ("incomplete", "so far")
            assert answer.incomplete_details.reason == reason


def test_every_event_of_a_response_is_one_the_client_knows(apis: list[Api]) -> None:
    parts = (
        Thought("hm", "sig"),
        Text("so"),
        Call("f", {"a": 1}),
        Call("p", "x", freeform=True),
        Picture("iVBO"),
    )
    api = _api(apis, "openai.responses", Reply(parts))
    events = list(api.respond(stream=True, reasoning={"summary": "auto"}))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    for event in events:
        # A class per type: an event the client has no class for becomes one of another type.
        known = type(event).model_fields["type"].annotation
        assert known.__args__ == (event.type,), event
        # What a class does not declare stays outside its fields.
        assert set(event.model_extra or {}) <= {"obfuscation"}, event
        missing = {n for n, f in type(event).model_fields.items() if f.is_required()}
        assert missing <= event.model_fields_set, event


ERRORS: list[tuple[Any, str]] = [
    ("authentication", "AuthenticationError"),
    ("permission", "PermissionDeniedError"),
    ("invalid_request", "BadRequestError"),
    ("model_not_found", "NotFoundError"),
    ("context_length", "BadRequestError"),
    ("rate_limit", "RateLimitError"),
    ("overloaded", "InternalServerError"),
    ("server", "InternalServerError"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("kind", "error"), ERRORS)
def test_failures_are_errors_of_their_class(
    apis: list[Api], kind: Any, error: str, streamed: bool
) -> None:
    chat = _api(apis, "openai.chat", Failure(kind, "why"))
    responses = _api(apis, "openai.responses", Failure(kind, "why"))
    for ask in (chat.chat, responses.respond):
        with pytest.raises(getattr(openai, error)) as caught:
            ask(stream=streamed)
        assert caught.value.body["message"] == "why"
        assert caught.value.request_id.startswith("req_")


def test_refused_requests_name_the_parameter() -> None:
    api = Api("openai.chat", say("x"))
    with pytest.raises(openai.BadRequestError) as caught:
        api.chat(extra_body={"frobnicate": 1})
    assert caught.value.param == "frobnicate"
    with pytest.raises(openai.AuthenticationError):
        api.client.with_options(api_key="sk-wrong").models.list()
    api.close()


def test_the_client_waits_as_it_is_told_and_tries_again(apis: list[Api]) -> None:
    api = _api(apis, "openai.chat", rate_limited("milliseconds", 0.001), say("at last"))
    patient = api.client.with_options(max_retries=1)
    messages: Any = [{"role": "user", "content": "hi"}]
    answer = patient.chat.completions.create(model="m-1", messages=messages)
    assert answer.choices[0].message.content == "at last"


def _said_until_it_broke(stream: Any) -> Iterator[str]:
    """The words of a stream of either kind, then the message of the error that ended it."""
    try:
        for event in stream:
            if hasattr(event, "choices"):
                yield event.choices[0].delta.content or ""
            elif event.type == "response.output_text.delta":
                yield event.delta
    except openai.APIError as error:
        yield f" [{error.message}]"


def test_errors_in_the_middle_of_streams(apis: list[Api]) -> None:
    broken = Reply((Text("half of it"),), failure=Failure("server", "sorry"))
    chat = _api(apis, "openai.chat", broken)
    responses = _api(apis, "openai.responses", broken)
    for stream in (chat.chat(stream=True), responses.respond(stream=True)):
        assert "".join(_said_until_it_broke(stream)) == "half of it [sorry]"


def test_streams_split_at_every_byte_are_understood(apis: list[Api]) -> None:
    reply = Reply((Text("grüezi 👋"), Call("weather", {"city": "Zürich"})))
    chat, responses = (_api(apis, name) for name in ("openai.chat", "openai.responses"))
    for api in (chat, responses):
        api.server.queue(reply, fault=Split(every=1))
    assert _streamed_chat(chat).choices[0].message.content == "grüezi 👋"
    assert _streamed_response(responses).output_text == "grüezi 👋"


def test_batches_are_understood(apis: list[Api]) -> None:
    api = _api(apis, "openai.chat", say("One."), Failure("rate_limit", "no"))
    body = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}
    head = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    lines = [json.dumps({"custom_id": f"c{n}", **head}) for n in range(2)]
    batches, files = api.client.batches, api.client.files
    file = files.create(file=io.BytesIO("\n".join(lines).encode()), purpose="batch")
    made = batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    told = [batches.retrieve(made.id) for _ in range(2)]
    assert [each.status for each in told] == ["in_progress", "completed"]
    assert told[-1].request_counts.to_dict() == {"total": 2, "completed": 1, "failed": 1}
    (answer,) = files.content(told[-1].output_file_id).text.splitlines()
    assert json.loads(answer)["response"]["body"]["choices"][0]["message"]["content"] == "One."
    (error,) = files.content(told[-1].error_file_id).text.splitlines()
    assert json.loads(error)["response"]["status_code"] == 429
    assert [each.id for each in batches.list()] == [made.id]
