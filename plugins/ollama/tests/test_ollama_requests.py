"""What is sent to Ollama: addresses, messages, tools, options and hardly any headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import CoreMessage, ModelNotFoundError, NativeMessage
from agent_hookspecs.authoring import attachment
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, ToolInteropTarget
from agent_host_ollama.functions import CONTRIBUTION, OLLAMA_FUNCTION
from agent_host_ollama.provider import OllamaProvider
from agent_host_ollama.reasoning import OllamaThinking
from agent_host_ollama.structured import OllamaStructuredOutput
from agent_host_ollama.tools import OllamaTools

PROVIDER = OllamaProvider()
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
PNG = "data:image/png;base64,iVBORw=="
TOOL: dict[str, Any] = {"name": "f", "description": "F.", "parameters": {"type": "object"}}


def message(role: str, content: str = "", **more: Any) -> CoreMessage:
    made: Any = {"role": role, "content": content, "metadata": {}, **more}
    return made  # type: ignore[no-any-return]


def call(identity: str, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def result(identity: str, text: str, name: str = "f", **more: Any) -> CoreMessage:
    return message("tool", text, metadata={"tool_call_id": identity, "tool_name": name}, **more)


class Sent:
    """A request as it would be sent, with the warnings and the knobs nobody took."""

    def __init__(
        self,
        *messages: CoreMessage,
        natives: list[NativeMessage] | None = None,
        extended: bool = True,
        stream: bool = True,
        **config: Any,
    ) -> None:
        self.warnings: list[str] = []
        config = {"model": "qwen3:4b", **config}
        context = {
            "tags": PROVIDER.get_tags(config, []),
            "tool_interop": {"registry": REGISTRY, "schema_target_formats": [OLLAMA_FUNCTION]},
            "warn": lambda message, plugin: self.warnings.append(message),
        }
        state = PROVIDER.init(config)
        before = [*(natives or []), *PROVIDER.to_native_messages(messages, state)]
        self.natives, state = PROVIDER.initialize_request(before, state, context)
        if extended:
            OllamaTools().initialize_request(self.natives, state, context)
            OllamaThinking().initialize_request(self.natives, state, context)
            OllamaStructuredOutput().initialize_request(self.natives, state)
        spec = PROVIDER.build_request(self.natives, state, stream, context)
        self.url, self.headers, self.body = spec["url"], spec["headers"], spec["body"]
        self.messages = self.body["messages"]
        self.unused = set(state["knobs"])


HELLO = message("user", "Hello")


@pytest.mark.parametrize(
    "base",
    ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/api/", "h:1", "http://h:1/api/chat"],
)
def test_the_address_is_made_of_whatever_base_is_given(base: str) -> None:
    assert Sent(HELLO, base_url=base).url == "http://h:1/api/chat"


def test_without_an_address_it_is_this_machine_and_without_a_key_there_is_none() -> None:
    sent = Sent(HELLO)
    assert sent.url == "http://localhost:11434/api/chat"
    assert [name.lower() for name in sent.headers] == ["content-type"]
    keyed = Sent(HELLO, api_key="k", extra_headers={"x-a": "b"})
    assert (keyed.headers["authorization"], keyed.headers["x-a"]) == ("Bearer k", "b")


@pytest.mark.parametrize("stream", [True, False])
def test_a_plain_request_says_no_more_than_it_must(stream: bool) -> None:
    sent = Sent(message("system", "Be brief."), HELLO, stream=stream)
    assert sent.body == {
        "model": "qwen3:4b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": stream,
    }


def test_shape_17_calls_of_other_providers_are_sent_as_objects_without_their_ids() -> None:
    sent = Sent(
        HELLO,
        message(
            "assistant",
            "Wait",
            metadata={
                "tool_calls": [call("toolu_1", "f", '{"a": 1}'), call("2", "g", "{bro")],
                "reasoning": "of somebody else",
            },
        ),
        result("toolu_1", "one", "wrong name"),
        result("2", "two", "g"),
    )
    assert sent.messages[1:] == [
        {
            "role": "assistant",
            "content": "Wait",
            "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1}}},
                {"function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "one", "tool_name": "f"},
        {"role": "tool", "content": "two", "tool_name": "g"},
    ]


def test_an_id_that_the_server_gave_goes_back_and_thinking_with_it() -> None:
    native: NativeMessage = {
        "role": "assistant",
        "content": "",
        "thinking": "Hm",
        "tool_calls": [
            {"id": "given", "function": {"index": 0, "name": "f", "arguments": {}}},
            {"function": {"index": 1, "name": "f", "arguments": {}}},
        ],
        "_metadata": {"call_ids": ["given", "tc_2"], "usage": {"eval_count": 1}},
    }
    sent = Sent(result("given", "1"), result("tc_2", "2"), natives=[native])
    assert sent.messages == [
        {key: value for key, value in native.items() if key != "_metadata"},
        {"role": "tool", "content": "1", "tool_name": "f", "tool_call_id": "given"},
        {"role": "tool", "content": "2", "tool_name": "f"},
    ]


def test_tools_are_declared_with_wire_names_and_in_words_the_server_reads() -> None:
    parameters = {
        "type": "object",
        "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
        "properties": {"unit": {"$ref": "#/$defs/Unit"}, "kind": {"const": "now"}, "any": True},
        "additionalProperties": False,
    }
    sent = Sent(HELLO, tools=[{"name": "a:b", "description": "B.", "parameters": parameters}])
    assert sent.body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "a__b",
                "description": "B.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "unit": {"type": "string", "enum": ["c", "f"]},
                        "kind": {"enum": ["now"]},
                        "any": {},
                    },
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert sent.warnings == []


def test_declarations_that_need_nothing_are_sent_as_they_are() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}
    own = {"type": "function", "function": {"name": "f", "parameters": parameters, "strict": True}}
    assert Sent(HELLO, tools=[own]).body["tools"] == [own]


def test_the_provider_declares_tools_itself_if_the_model_has_them() -> None:
    assert Sent(HELLO, tools=[TOOL], extended=False).body["tools"]
    assert "tools" not in Sent(HELLO, tools=[TOOL], extended=False, model="llama3:8b").body


def test_the_choice_is_to_offer_tools_or_not() -> None:
    assert "tools" not in Sent(HELLO, tools=[TOOL], tool_choice="none").body
    assert Sent(HELLO, tools=[TOOL], tool_choice="auto").unused == set()
    forced = Sent(HELLO, tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    assert forced.unused == {"tool_choice", "parallel_tool_calls"}
    assert Sent(HELLO, tool_choice="required", parallel_tool_calls=False).unused == set()


def test_knobs_and_settings_are_options() -> None:
    sent = Sent(
        HELLO,
        max_output_tokens=10,
        temperature=0.5,
        seed=3,
        stop="END",
        num_ctx=8192,
        options={"top_k": 5},
        keep_alive="10m",
    )
    assert sent.body["options"] == {
        "num_predict": 10,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["END"],
        "num_ctx": 8192,
        "top_k": 5,
    }
    assert sent.body["keep_alive"] == "10m"
    assert sent.unused == set()


@pytest.mark.parametrize(("given", "sent"), [("-1", -1), ("30", 30), (0, 0), ("1h30m", "1h30m")])
def test_a_bare_number_keeps_a_model_alive_for_seconds(given: Any, sent: Any) -> None:
    assert Sent(HELLO, keep_alive=given).body["keep_alive"] == sent


@pytest.mark.parametrize(
    ("model", "effort", "think"),
    [
        ("qwen3:4b", "none", False),
        ("qwen3:4b", "minimal", True),
        ("qwen3:4b", "max", True),
        ("gpt-oss:20b", "low", "low"),
        ("gpt-oss:20b", "high", "high"),
        ("gpt-oss:20b", "max", "high"),
    ],
)
def test_effort_is_a_switch_or_a_level(model: str, effort: str, think: Any) -> None:
    sent = Sent(HELLO, model=model, effort=effort)
    assert sent.body["think"] is think or sent.body["think"] == think
    assert sent.unused == set()
    # One that the model does not have is told as what it is sent.
    assert bool(sent.warnings) is (effort in ("minimal", "max"))


def test_thinking_that_cannot_be_turned_off_is_not_said_to_be() -> None:
    sent = Sent(HELLO, model="gpt-oss:20b", effort="none")
    assert "think" not in sent.body
    assert sent.unused == {"effort"}


def test_an_answer_schema_is_the_format() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}
    assert Sent(HELLO, response_schema=schema).body["format"] == schema


def test_pictures_are_sent_as_bare_data_and_nothing_else_is() -> None:
    parts = [
        {"type": "text", "content": {"text": "Look"}},
        {"type": "image", "content": {"url": PNG}},
        {"type": "image", "content": {"url": "https://e.org/a.png"}},
        {"type": "audio", "content": {"url": "data:audio/wav;base64,aGk="}},
    ]
    sent = Sent(message("user", "Look", multipartContent=parts))
    [asked] = sent.messages
    assert asked["images"] == ["iVBORw=="]
    assert asked["content"].startswith("Look\n\n[image not sent: ")
    assert "[audio not sent: " in asked["content"]
    assert len(sent.warnings) == 2


def test_files_are_references_in_history_and_data_in_the_request(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"hi")
    asked = message("user", "See", multipartContent=[attachment(picture)])
    sent = Sent(asked, attachments_root=str(tmp_path))
    assert sent.messages == [{"role": "user", "content": "See", "images": ["aGk="]}]
    assert "aGk=" not in str(sent.natives)
    refused = Sent(asked)
    assert "[image not attached: " in refused.messages[0]["content"]
    assert len(refused.warnings) == 1


def test_pictures_of_results_go_with_the_result() -> None:
    shown = {
        "type": "tool_result",
        "text": "a chart",
        "content": [
            {"type": "text", "content": {"text": "a chart"}},
            {"type": "image", "content": {"url": PNG}},
        ],
    }
    [told] = Sent(result("1", "a chart", toolResult=shown)).messages
    assert told == {"role": "tool", "content": "a chart", "tool_name": "f", "images": ["iVBORw=="]}


def test_calls_and_results_convert_both_ways() -> None:
    chat, ollama = (
        ToolInteropTarget("openai.chat_completions.function"),
        ToolInteropTarget(OLLAMA_FUNCTION),
    )
    own = {"id": "1", "function": {"name": "f", "arguments": {"a": [1, None]}}}
    [there] = REGISTRY.convert_tool_calls([own], target=chat)
    assert there == call("1", "f", '{"a":[1,null]}')
    assert REGISTRY.convert_tool_calls([there], target=ollama) == [own]
    told = {"role": "tool", "tool_name": "f", "tool_call_id": "1", "content": "ok"}
    [there] = REGISTRY.convert_tool_results([told], target=chat)
    assert there == {"role": "tool", "tool_call_id": "1", "content": "ok"}
    [back] = REGISTRY.convert_tool_results([there], target=ollama)
    assert back == {"role": "tool", "tool_call_id": "1", "content": "ok"}


def test_a_body_of_ones_own_is_put_in_last() -> None:
    sent = Sent(HELLO, extra_body={"raw": True, "think": "low"}, effort="high")
    assert (sent.body["raw"], sent.body["think"]) == (True, "low")


def test_shape_49_a_model_that_is_not_there_can_be_pulled() -> None:
    body = b'{"error":"model \'nope\' not found"}'
    error = PROVIDER.map_error(404, {}, body)
    assert isinstance(error, ModelNotFoundError)
    assert (error.hint, error.status) == ("run ollama pull nope", 404)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"error":"model not found"}'),
        (400, b"<html>"),
        (404, b"404 page not found"),
        (400, b"[]"),
    ],
)
def test_shape_49_other_refusals_are_left_to_the_host(status: int, body: bytes) -> None:
    assert PROVIDER.map_error(status, {}, body) is None
