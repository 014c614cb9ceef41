"""What is sent to Cohere: addresses, settings, messages, tools, thoughts and schemas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cohere_api import WIRE

from agent_hookspecs.tool_interop import WireNames
from agent_host import AgentCore, Session
from agent_host.plugins.load import load_catalog
from agent_host_cohere.messages import native_messages_of
from agent_host_cohere.models import tags_of
from agent_host_cohere.provider import CohereProvider
from agent_host_cohere.requests import endpoint
from agent_host_testing import FakeServer, call, say

TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
OTHER = {"name": "bare.name"}
PLUS = "command-a-plus-05-2026"
PIXEL = "data:image/png;base64,iVBORw0KGgo="


class Talk:
    """A session with the provider, whose server refuses what the API would."""

    def __init__(self, server: FakeServer, core: AgentCore) -> None:
        self.server, self.core = server, core
        self.session = Session()
        self.warnings: list[str] = []

    def ask(self, *messages: Any, answer: Any = None, **config: Any) -> dict[str, Any]:
        """The body that was sent."""
        self.server.queue(answer or say("Yes."))
        self.session = self.session.with_added(*messages)
        settings = {
            "provider": "cohere", "model": PLUS, "api_key": "k", "retries": 0, "use_tools": [],
            "base_url": self.server.base_url, **config,
        }  # fmt: skip
        stream = self.core.send_request_stream(self.session, settings)
        events = list(stream)
        self.warnings = [e["message"] for e in events if e["type"] == "warning"]
        self.session = stream.session
        assert self.server.problems == []
        body: dict[str, Any] = self.server.requests[-1].body
        return body


@pytest.fixture
def talk() -> Iterator[Talk]:
    with FakeServer(WIRE) as server, AgentCore(catalog=load_catalog()) as core:
        yield Talk(server, core)


def user(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "metadata": {}, **more}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (None, "https://api.cohere.com/v2/chat"),
        ("http://h/", "http://h/v2/chat"),
        ("http://h/v2", "http://h/v2/chat"),
        ("http://h/v1/", "http://h/v2/chat"),
        ("http://h/v2/chat", "http://h/v2/chat"),
        ("http://h/proxy", "http://h/proxy/v2/chat"),
    ],
)
def test_the_address_is_below_a_base_url_with_or_without_a_version(
    base: str | None, expected: str
) -> None:
    assert endpoint({"base_url": base}, "v2/chat") == expected


def test_settings_and_knobs_are_where_the_api_has_them(talk: Talk) -> None:
    body = talk.ask(
        user(),
        max_output_tokens=9, temperature=0, stop=["end"], seed=3, documents=["a", {"data": {}}],
        citation_mode="fast", safety_mode="STRICT", strict_tools=True, extra_body={"k": 5},
    )  # fmt: skip
    assert body == {
        "model": PLUS, "max_tokens": 9, "temperature": 0, "stop_sequences": ["end"], "seed": 3,
        "documents": ["a", {"data": {}}], "citation_options": {"mode": "fast"},
        "safety_mode": "STRICT", "strict_tools": True, "k": 5, "stream": True,
        "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    assert talk.server.requests[-1].bearer() == "k"
    assert talk.warnings == []


def test_instructions_come_first_wherever_they_were_given(talk: Talk) -> None:
    later = {"role": "system", "content": "two", "metadata": {}}
    body = talk.ask({**later, "content": "one"}, user("a"), later, user("b"))
    assert [m["content"] for m in body["messages"]] == ["one", "two", "a", "b"]


def test_tools_have_legal_names_and_always_parameters(talk: Talk) -> None:
    body = talk.ask(user(), tools=[TOOL, OTHER], tool_choice="required")
    look, bare = (tool["function"] for tool in body["tools"])
    assert look == TOOL
    assert bare["parameters"] == {"type": "object", "properties": {}}
    assert body["tool_choice"] == "REQUIRED"


@pytest.mark.parametrize(
    ("choice", "tools", "sent", "warned"),
    [
        ("auto", [TOOL], None, False),
        ("none", [TOOL], "NONE", False),
        ("look", [TOOL], "REQUIRED", False),
        ("look", [TOOL, OTHER], "REQUIRED", True),
        ("required", [], None, False),
    ],
)
def test_a_choice_that_the_api_lacks_is_told(
    talk: Talk, choice: str, tools: list[Any], sent: str | None, warned: bool
) -> None:
    assert talk.ask(user(), tools=tools, tool_choice=choice).get("tool_choice") == sent
    assert ["cannot be told which tool" in w for w in talk.warnings] == [True] * warned


@pytest.mark.parametrize(
    ("effort", "thinking"),
    [
        ("none", {"type": "disabled"}),
        ("low", {"type": "enabled", "token_budget": 2048}),
        ("medium", {"type": "enabled", "token_budget": 8192}),
        ("high", {"type": "enabled"}),
        ("max", {"type": "enabled"}),
    ],
)
def test_an_effort_is_a_budget_of_thought(talk: Talk, effort: str, thinking: Any) -> None:
    assert talk.ask(user(), effort=effort)["thinking"] == thinking
    assert len(talk.warnings) == (effort == "max")


def test_a_schema_is_sent_unless_the_api_would_refuse_it_there(talk: Talk) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    described = {"type": "json_object", "json_schema": schema}
    assert talk.ask(user(), response_schema=schema)["response_format"] == described
    for beside in ({"tools": [TOOL]}, {"documents": ["a"]}):
        assert "response_format" not in talk.ask(user(), response_schema=schema, **beside)
        assert [f"together with {next(iter(beside))}" in w for w in talk.warnings] == [True]


def test_pictures_are_sent_and_other_media_told(talk: Talk, tmp_path: Path) -> None:
    picture = {"type": "image", "content": {"url": PIXEL}, "metadata": {"detail": "low"}}
    sound = {"type": "audio", "content": {"url": "data:audio/wav;base64,AA=="}, "metadata": {}}
    body = talk.ask(user("see", multipartContent=[picture, sound]))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "text", "text": "[audio not sent]"},
    ]
    assert ["'audio' is not sent" in w for w in talk.warnings] == [True]


def test_calls_and_results_go_back_as_they_came(talk: Talk) -> None:
    talk.ask(user(), tools=[TOOL], answer=call("look", '{ "a": 1}', id="look_1"))
    result = {"role": "tool", "content": "", "metadata": {"tool_call_id": "look_1"}}
    body = talk.ask(result, tools=[TOOL])
    function = {"name": "look", "arguments": '{ "a": 1}'}
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "tool_calls": [{"id": "look_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "look_1", "content": "[no output]"},
    ]


def test_a_call_without_a_result_gets_one_and_a_stray_result_is_told(talk: Talk) -> None:
    talk.ask(user(), tools=[TOOL], answer=call("look", id="look_1"))
    stray = {"role": "tool", "content": "x", "metadata": {"tool_call_id": "nobody"}}
    body = talk.ask(stray, user("on"), tools=[TOOL])
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "tool", "user"]
    assert "interrupted" in body["messages"][2]["content"]
    assert ["no call has the id 'nobody'" in w for w in talk.warnings] == [True]


def test_what_others_say_before_a_call_is_a_plan_here() -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message: Any = {
        "role": "assistant", "content": "Let me look.",
        "metadata": {"tool_calls": [made], "reasoning": "a thought of somebody else"},
    }  # fmt: skip
    [native] = native_messages_of([message], WireNames(["look"]), print)
    assert native == {"role": "assistant", "tool_plan": "Let me look.", "tool_calls": [made]}


def test_pictures_of_results_follow_all_results_of_the_turn() -> None:
    picture = {"type": "image", "content": {"url": PIXEL}, "metadata": {}}
    results: list[Any] = [
        {"role": "tool", "content": text, "metadata": {"tool_call_id": call_id}, **more}
        for text, call_id, more in (("", "a", {"multipartContent": [picture]}), ("two", "b", {}))
    ]
    natives = native_messages_of(results, WireNames(), print)
    assert [native["role"] for native in natives] == ["tool", "tool", "user"]
    assert natives[2]["content"] == [{"type": "image_url", "image_url": {"url": PIXEL}}]


# Models.


def tags(model: str, entry: dict[str, Any] | None = None) -> set[str]:
    listed = CohereProvider().parse_models({"models": [entry] if entry else []})
    found = tags_of({"model": model}, listed)
    return {tag for tag in found if tag.startswith("supports_")} - {"supports_streaming"}


def test_the_list_is_believed_before_facts_and_a_stranger_has_tools() -> None:
    assert tags("stranger") == {"supports_tools"}
    assert tags("command-a-03-2025") == {"supports_tools", "supports_structured_output"}
    assert tags("command-a-vision-07-2025") == {"supports_images", "supports_image_urls"}
    entry = {"name": "stranger", "endpoints": ["chat"], "features": ["reasoning", "vision"]}
    listed = {"supports_reasoning", "supports_images", "supports_image_urls"}
    assert tags("stranger", entry) == listed
    assert tags("stranger", {**entry, "features": None}) == {"supports_tools"}


def test_models_that_cannot_chat_are_not_listed() -> None:
    body = {
        "models": [
            {"name": "a", "endpoints": ["chat"], "context_length": 256000.0},
            {"name": "b", "endpoints": ["embed"]},
            {"name": None},
            "c",
        ]
    }
    models = CohereProvider().parse_models(body)
    assert models == [{"id": "a", "name": "a", "context_length": 256000}]
    assert CohereProvider().parse_models(None) == []


def test_the_list_is_asked_only_about_strangers() -> None:
    provider = CohereProvider()
    assert provider.models_request({"model": PLUS}) is None
    spec = provider.models_request({"model": "stranger", "api_key": "k"})
    assert spec is not None
    assert spec["url"] == "https://api.cohere.com/v1/models?endpoint=chat&page_size=1000"
