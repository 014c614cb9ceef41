"""Real clients, unmodified, through every door of the gateway to every fake provider.

The fakes are strict: they refuse a conversation whose signatures, ids or order are not as they have
handed them out.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

openai: Any = pytest.importorskip("openai", reason="needs the SDK of OpenAI")
anthropic: Any = pytest.importorskip("anthropic", reason="needs the SDK of Anthropic")
pytest.importorskip("agent_host_gateway", reason="needs agent-host-gateway")

from gateway_bench import MODELS, Upstreams  # noqa: E402
from gateway_process import running_gateway  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from agent_host_testing import Call, Reply, Text, Thought  # noqa: E402

FORMATS = tuple(MODELS)
#: Those that sign what their models think, and want it back.
SIGNING = ("anthropic.messages", "openai.responses", "google.generate")
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
NAMES = ("weather", "distance")
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": PARAMETERS}}
    for name in NAMES
]
RESPONSES_TOOLS = [
    {"type": "function", "name": name, "description": name, "parameters": PARAMETERS}
    for name in NAMES
]
CLAUDE_TOOLS = [{"name": name, "description": name, "input_schema": PARAMETERS} for name in NAMES]
PROMPT = "Look up weather and then distance."
PIXEL = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="


@dataclass(frozen=True)
class Bench:
    """Fake providers, the gateway in front of them, and a client of each kind."""

    upstreams: Upstreams
    url: str
    openai: Any
    claude: Any


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    store = tmp_path_factory.mktemp("gateway") / "sessions.db"
    with (
        Upstreams(store=store) as upstreams,
        running_gateway(upstreams.config) as address,
        openai.OpenAI(base_url=f"http://{address}/v1", api_key="any", max_retries=0) as client,
        anthropic.Anthropic(base_url=f"http://{address}", api_key="any", max_retries=0) as claude,
    ):
        yield Bench(upstreams, f"http://{address}", client, claude)


def thinks(name: str) -> bool:
    return name in SIGNING


def check_signatures(upstreams: Upstreams, name: str, turns: int) -> None:
    """The last request has the signatures of all turns before it, and none was refused."""
    server = upstreams.servers[name]
    assert server.problems == []
    if not thinks(name):
        return
    sent = json.dumps(server.requests[-1].body)
    assert sent.count("fake-signature-") >= turns


# --- Chat Completions ----------------------------------------------------------------------------


def ask_chat(client: Any, stream: bool, **asked: Any) -> Any:
    """The answer's message, streamed or not."""
    if not stream:
        return client.chat.completions.create(**asked).choices[0].message
    with client.chat.completions.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_completion().choices[0].message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMATS)
def test_chat_client_calls_tools_over_two_turns(bench: Bench, name: str, stream: bool) -> None:
    upstreams = bench.upstreams
    client = bench.openai
    messages: list[Any] = [
        {"role": "system", "content": f"Chat, {stream}."},
        {"role": "user", "content": PROMPT},
    ]
    asked: dict[str, Any] = {"model": upstreams.model(name), "tools": CHAT_TOOLS}
    if thinks(name):
        asked["reasoning_effort"] = "low"
    for expected in NAMES:
        message = ask_chat(client, stream, messages=messages, **asked)
        (call,) = message.tool_calls
        assert call.function.name == expected
        assert json.loads(call.function.arguments) == {"city": "text"}
        # As most clients do: what they do not know is not sent back.
        function = {"name": call.function.name, "arguments": call.function.arguments}
        said = {"id": call.id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": message.content, "tool_calls": [said]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{expected}: 7"})
    last = ask_chat(client, stream, messages=messages, **asked)
    assert "distance: 7" in last.content
    check_signatures(upstreams, name, 2)


# --- Responses -----------------------------------------------------------------------------------


def ask_responses(client: Any, stream: bool, **asked: Any) -> Any:
    if not stream:
        return client.responses.create(**asked)
    with client.responses.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_response()


def reasoning_of(name: str) -> dict[str, Any]:
    return {"reasoning": {"effort": "low"}} if thinks(name) else {}


@pytest.mark.parametrize("way", ["previous", "items", "encrypted"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMATS)
def test_responses_client_calls_tools_over_two_turns(
    bench: Bench, name: str, stream: bool, way: str
) -> None:
    upstreams = bench.upstreams
    client = bench.openai
    said: list[Any] = [{"role": "user", "content": f"{PROMPT} {stream} {way}"}]
    asked: dict[str, Any] = {
        "model": upstreams.model(name),
        "tools": RESPONSES_TOOLS,
        "instructions": "Be brief.",
        **reasoning_of(name),
    }
    if way == "encrypted":
        asked |= {"store": False, "include": ["reasoning.encrypted_content"]}
    for expected in NAMES:
        response = ask_responses(client, stream, input=said, **asked)
        assert response.status == "completed"
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert call.name == expected
        result = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": f"{expected}: 7",
        }
        if way == "previous":
            asked["previous_response_id"] = response.id
            said = [result]
        else:
            items = [item.model_dump(exclude_none=True) for item in response.output]
            said = [
                *said,
                *({k: v for k, v in each.items() if k != "parsed_arguments"} for each in items),
                result,
            ]
    last = ask_responses(client, stream, input=said, **asked)
    assert "distance: 7" in last.output_text
    check_signatures(upstreams, name, 2)


# --- Messages ------------------------------------------------------------------------------------


def ask_claude(client: Any, stream: bool, **asked: Any) -> Any:
    if not stream:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as events:
        for _ in events:
            pass
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMATS)
def test_messages_client_calls_tools_over_two_turns(bench: Bench, name: str, stream: bool) -> None:
    upstreams = bench.upstreams
    client = bench.claude
    messages: list[Any] = [{"role": "user", "content": f"{PROMPT} {stream}"}]
    asked: dict[str, Any] = {
        "model": upstreams.model(name),
        "tools": CLAUDE_TOOLS,
        "max_tokens": 8000,
        "system": "Be brief.",
    }
    if thinks(name):
        asked["thinking"] = {"type": "enabled", "budget_tokens": 4096}
    for expected in NAMES:
        message = ask_claude(client, stream, messages=messages, **asked)
        assert message.stop_reason == "tool_use"
        (use,) = [block for block in message.content if block.type == "tool_use"]
        assert (use.name, use.input) == (expected, {"city": "text"})
        result = {"type": "tool_result", "tool_use_id": use.id, "content": f"{expected}: 7"}
        messages.append({"role": "assistant", "content": message.content})
        messages.append({"role": "user", "content": [result]})
    last = ask_claude(client, stream, messages=messages, **asked)
    assert "distance: 7" in last.content[-1].text
    check_signatures(upstreams, name, 2)


# --- What all doors have -------------------------------------------------------------------------


class Reading(BaseModel):
    city: str
    degrees: int


ANSWER = Reply((Text('{"city": "Bern", "degrees": 7}'),))


@pytest.mark.parametrize("name", ["anthropic.messages", "openai.responses", "google.generate"])
def test_answers_follow_a_schema_through_every_door(bench: Bench, name: str) -> None:
    upstreams = bench.upstreams
    server, model = upstreams.servers[name], upstreams.model(name)
    server.queue(ANSWER, ANSWER, ANSWER)
    said = [{"role": "user", "content": "How warm is it?"}]
    chat = bench.openai.chat.completions.parse(model=model, messages=said, response_format=Reading)
    response = bench.openai.responses.parse(model=model, input=said, text_format=Reading)
    message = bench.claude.messages.parse(
        model=model, messages=said, max_tokens=1000, output_format=Reading
    )
    expected = Reading(city="Bern", degrees=7)
    assert chat.choices[0].message.parsed == expected
    assert response.output_parsed == expected
    assert message.parsed_output == expected
    assert server.problems == []


CALLS = Reply(
    (
        Thought("Two at once."),
        Call("weather", {"city": "Bern"}),
        Call("weather", {"city": "Ulm"}),
    )
)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", SIGNING)
def test_calls_of_one_turn_come_through_every_door(bench: Bench, name: str, stream: bool) -> None:
    upstreams = bench.upstreams
    server, model = upstreams.servers[name], upstreams.model(name)
    said = [{"role": "user", "content": f"Both, please. {stream}"}]
    server.queue(CALLS, CALLS, CALLS)
    message = ask_chat(bench.openai, stream, model=model, messages=said, tools=CHAT_TOOLS)
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    assert cities == ["Bern", "Ulm"]
    response = ask_responses(bench.openai, stream, model=model, input=said, tools=RESPONSES_TOOLS)
    calls = [item for item in response.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Bern", "Ulm"]
    answer = ask_claude(
        bench.claude, stream, model=model, messages=said, tools=CLAUDE_TOOLS, max_tokens=900
    )
    uses = [block for block in answer.content if block.type == "tool_use"]
    assert [use.input["city"] for use in uses] == ["Bern", "Ulm"]
    # Their results go back together.
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": "7"} for use in uses]
    history = [
        *said,
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": results},
    ]
    bench.claude.messages.create(model=model, messages=history, tools=CLAUDE_TOOLS, max_tokens=900)
    assert server.problems == []


@pytest.mark.parametrize("name", ["anthropic.messages", "openai.responses", "google.generate"])
def test_pictures_come_through_every_door(bench: Bench, name: str) -> None:
    upstreams = bench.upstreams
    server, model = upstreams.servers[name], upstreams.model(name)
    address = f"data:image/gif;base64,{PIXEL}"
    bench.openai.chat.completions.create(
        model=model,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": address}},
                ],
            }
        ],
    )
    bench.openai.responses.create(
        model=model,
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?"},
                    {"type": "input_image", "image_url": address, "detail": "auto"},
                ],
            }
        ],
    )
    source = {"type": "base64", "media_type": "image/gif", "data": PIXEL}
    bench.claude.messages.create(
        model=model,
        max_tokens=100,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": source},
                ],
            }
        ],
    )
    assert server.problems == []
    assert all(PIXEL in json.dumps(each.body) for each in server.requests[-3:])
    assert base64.b64decode(PIXEL).startswith(b"GIF")


@pytest.mark.parametrize("name", FORMATS)
def test_async_clients_stream_text_and_usage(bench: Bench, name: str) -> None:
    upstreams = bench.upstreams
    model, url = upstreams.model(name), bench.url
    said = [{"role": "user", "content": "Hello there"}]

    async def ask() -> tuple[str, int, str, str]:
        async with (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any") as client,
            anthropic.AsyncAnthropic(base_url=url, api_key="any") as claude,
        ):
            text, tokens = "", 0
            stream = await client.chat.completions.create(
                model=model, messages=said, stream=True, stream_options={"include_usage": True}
            )
            async for chunk in stream:
                text += "".join(choice.delta.content or "" for choice in chunk.choices)
                tokens = chunk.usage.total_tokens if chunk.usage else tokens
            response = await client.responses.create(model=model, input="Hello there")
            async with claude.messages.stream(model=model, messages=said, max_tokens=100) as events:
                spoken = "".join([piece async for piece in events.text_stream])
            return text, tokens, response.output_text, spoken

    text, tokens, output, spoken = asyncio.run(ask())
    assert text == output == spoken == "You said: Hello there"
    assert tokens > 0


def test_reasoning_is_shown_in_the_place_of_each_door(bench: Bench) -> None:
    upstreams = bench.upstreams
    model = upstreams.model("anthropic.messages")
    said = [{"role": "user", "content": "Think, please."}]
    message = ask_chat(bench.openai, False, model=model, messages=said, reasoning_effort="low")
    assert message.reasoning_content.startswith("The user said")
    response = bench.openai.responses.create(model=model, input=said, reasoning={"effort": "low"})
    (thought,) = [item for item in response.output if item.type == "reasoning"]
    assert thought.summary[0].text.startswith("The user said")
    for stream in (False, True):
        answer = ask_claude(
            bench.claude,
            stream,
            model=model,
            messages=said,
            max_tokens=8000,
            thinking={"type": "enabled", "budget_tokens": 2000},
        )
        assert answer.content[0].thinking.startswith("The user said")
        assert answer.content[0].signature
