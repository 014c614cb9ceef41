"""What is sent to Gemini: addresses, headers, contents, tools and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import CoreMessage, NativeMessage, ProviderExtensionPlugin, RateLimitError
from agent_hookspecs.authoring import attachment
from agent_hookspecs.tool_interop import DEFAULT_TOOL_INTEROP_REGISTRY, ToolInteropTarget
from agent_host_google.functions import CONTRIBUTION, GOOGLE_FUNCTION
from agent_host_google.provider import GoogleProvider
from agent_host_google.reasoning import GoogleThinking
from agent_host_google.structured import GoogleStructuredOutput
from agent_host_google.tools import GoogleTools

PROVIDER = GoogleProvider()
REGISTRY = DEFAULT_TOOL_INTEROP_REGISTRY.with_contributions(CONTRIBUTION)
ALL = (GoogleTools(), GoogleThinking(), GoogleStructuredOutput())
PNG = "data:image/png;base64,aGk="


def message(role: str, content: str = "", **more: Any) -> CoreMessage:
    made: Any = {"role": role, "content": content, "metadata": {}, **more}
    return made  # type: ignore[no-any-return]


def call(identity: str, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def result(identity: str, text: str, name: str = "f", **more: Any) -> CoreMessage:
    metadata = {"tool_call_id": identity, "tool_name": name, **more.pop("metadata", {})}
    return message("tool", text, metadata=metadata, **more)


class Sent:
    """A request as it would be sent, with the warnings and the knobs nobody took."""

    def __init__(
        self,
        *messages: CoreMessage,
        extensions: tuple[ProviderExtensionPlugin, ...] = ALL,
        stream: bool = False,
        natives: list[NativeMessage] | None = None,
        **config: Any,
    ) -> None:
        config = {"model": "gemini-3-flash", "api_key": "AIza-key", **config}
        self.warnings: list[str] = []
        context = {
            "tags": PROVIDER.get_tags(config, []),
            "tool_interop": {"registry": REGISTRY, "schema_target_formats": [GOOGLE_FUNCTION]},
            "warn": lambda message, plugin: self.warnings.append(message),
        }
        state = PROVIDER.init(config)
        before = [*(natives or []), *PROVIDER.to_native_messages(messages, state)]
        self.natives, state = PROVIDER.initialize_request(before, state, context)
        for extension in extensions:
            arguments = (self.natives, state, context)
            if isinstance(extension, GoogleStructuredOutput):
                extension.initialize_request(*arguments[:2])
            elif isinstance(extension, GoogleTools | GoogleThinking):
                extension.initialize_request(*arguments)
        spec = PROVIDER.build_request(self.natives, state, stream, context)
        self.url, self.headers, self.body = spec["url"], spec["headers"], spec["body"]
        self.contents = self.body["contents"]
        self.unused = set(state["knobs"])

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.body.get("generationConfig", {})
        return settings


HELLO = message("user", "Hello")
PLACEHOLDER = {"thoughtSignature": "skip_thought_signature_validator"}


@pytest.mark.parametrize(
    ("base", "model", "path"),
    [
        (None, "m", "https://generativelanguage.googleapis.com/v1beta/models/m"),
        ("http://h/", "m", "http://h/v1beta/models/m"),
        ("http://h/v1", "m", "http://h/v1/models/m"),
        ("http://h/v1beta/", "models/m", "http://h/v1beta/models/m"),
        ("http://h/v1beta/models", "m", "http://h/v1beta/models/m"),
        ("http://h/proxy", "tunedModels/m", "http://h/proxy/v1beta/tunedModels/m"),
        ("http://h", "a b?c", "http://h/v1beta/models/a%20b%3Fc"),
        (
            "https://h/v1beta1/projects/p/locations/l/publishers/google",
            "m",
            "https://h/v1beta1/projects/p/locations/l/publishers/google/models/m",
        ),
        (
            "https://h/v1/projects/p/locations/l/publishers/google",
            "projects/p/locations/l/endpoints/7",
            "https://h/v1/projects/p/locations/l/endpoints/7",
        ),
    ],
)
def test_the_address_is_made_of_whatever_base_is_given(
    base: str | None, model: str, path: str
) -> None:
    given: dict[str, Any] = {"base_url": base} if base else {}
    assert Sent(HELLO, model=model, **given).url == f"{path}:generateContent"
    streamed = Sent(HELLO, model=model, stream=True, **given).url
    assert streamed == f"{path}:streamGenerateContent?alt=sse"


def test_the_key_is_in_its_header_and_nowhere_else() -> None:
    sent = Sent(HELLO, stream=True)
    assert sent.headers["x-goog-api-key"] == "AIza-key"
    assert "AIza" not in sent.url
    assert "AIza" not in str(sent.body)
    listing = PROVIDER.models_request({"api_key": "AIza-key"})
    assert listing is not None
    assert listing["headers"] == {"x-goog-api-key": "AIza-key"}
    assert listing["url"].endswith("/v1beta/models?pageSize=1000")


def test_google_is_asked_about_a_model_only_if_nothing_is_known_of_it() -> None:
    assert PROVIDER.models_request({"model": "gemini-2.5-pro"}) is None
    about = PROVIDER.models_request({"model": "models/stranger", "base_url": "http://h"})
    assert about is not None
    assert about["url"] == "http://h/v1beta/models/stranger"


def test_a_token_of_ones_own_replaces_the_key() -> None:
    headers = Sent(HELLO, extra_headers={"Authorization": "Bearer t"}).headers
    assert headers["Authorization"] == "Bearer t"
    assert "x-goog-api-key" not in headers


def test_system_messages_are_hoisted_and_roles_are_googles() -> None:
    sent = Sent(
        message("system", "Be brief."),
        HELLO,
        message("assistant", "Hi", metadata={"partial": True}),
        message("system", "Be kind."),
        message("assistant", ""),
        message("user", "And?"),
    )
    assert sent.body["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "Be kind."}]
    }
    assert sent.contents == [
        {"role": "user", "parts": [{"text": "Hello"}]},
        {"role": "model", "parts": [{"text": "Hi"}]},
        {"role": "user", "parts": [{"text": "And?"}]},
    ]


def test_models_without_instructions_are_told_by_the_user() -> None:
    sent = Sent(message("system", "Be brief."), HELLO, model="gemma-3-27b-it", extensions=())
    assert "systemInstruction" not in sent.body
    assert sent.contents == [{"role": "user", "parts": [{"text": "Be brief."}, {"text": "Hello"}]}]


def test_results_stand_together_in_the_order_of_the_calls_and_ids_are_not_made_up() -> None:
    sent = Sent(
        HELLO,
        message(
            "assistant",
            "Wait",
            metadata={"tool_calls": [call("tc_1", "f", '{"a":1}'), call("toolu_2", "g")]},
        ),
        result("tc_1", "one"),
        result("toolu_2", "two", "g", metadata={"error": True}),
    )
    assert sent.contents[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Wait"},
                {"functionCall": {"name": "f", "args": {"a": 1}}, **PLACEHOLDER},
                {"functionCall": {"name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "one"}}},
                {"functionResponse": {"name": "g", "response": {"error": "two"}}},
            ],
        },
    ]


def test_shape_29_a_result_bears_the_name_and_id_of_its_own_call() -> None:
    natives: list[NativeMessage] = [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "w1", "name": "f", "args": {}}, "thoughtSignature": "s"},
                {"functionCall": {"name": "f", "args": {}}},
            ],
            "_metadata": {"call_ids": ["w1", "tc_2"]},
        },
    ]
    later: NativeMessage = {
        "role": "model",
        "parts": [{"functionCall": {"id": "w1", "name": "other", "args": {}}}],
        "_metadata": {"call_ids": ["w1__2"]},
    }
    first = Sent(result("w1", "1", "wrong"), result("tc_2", "2"), natives=natives)
    assert first.contents[1]["parts"] == [
        {"functionResponse": {"id": "w1", "name": "f", "response": {"result": "1"}}},
        {"functionResponse": {"name": "f", "response": {"result": "2"}}},
    ]
    second = Sent(result("w1__2", "3"), natives=[*first.natives, later])
    assert second.contents[-1]["parts"] == [
        {"functionResponse": {"id": "w1", "name": "other", "response": {"result": "3"}}}
    ]
    assert second.contents[:-2] == first.contents
    assert all("_metadata" not in content for content in second.contents)


def test_a_result_whose_call_is_gone_keeps_the_name_it_has() -> None:
    [content] = Sent(result("lost", "1", "my:tool")).contents
    assert content["parts"] == [
        {"functionResponse": {"name": "my__tool", "response": {"result": "1"}}}
    ]


def test_names_are_encoded_in_declarations_choices_and_history() -> None:
    tool = {"name": "shop:buy.now", "description": "Buys.", "parameters": {}}
    sent = Sent(
        HELLO,
        message("assistant", metadata={"tool_calls": [call("1", "shop:buy.now")]}),
        result("1", "ok", "shop:buy.now"),
        tools=[tool],
        tool_choice="shop:buy.now",
    )
    wire = "shop__buy--now"
    assert sent.body["tools"] == [
        {"functionDeclarations": [{"name": wire, "description": "Buys."}]}
    ]
    assert sent.body["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [wire]}
    }
    assert sent.contents[1]["parts"][0]["functionCall"]["name"] == wire
    assert sent.contents[2]["parts"][0]["functionResponse"]["name"] == wire


@pytest.mark.parametrize(
    ("choice", "mode"), [("auto", "AUTO"), ("none", "NONE"), ("required", "ANY")]
)
def test_tool_choice_is_a_mode(choice: str, mode: str) -> None:
    sent = Sent(HELLO, tools=[{"name": "f", "parameters": {}}], tool_choice=choice)
    assert sent.body["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


def test_a_wish_for_one_call_at_a_time_is_left_for_the_host_to_tell() -> None:
    tools = [{"name": "f", "parameters": {}}]
    assert Sent(HELLO, tools=tools, parallel_tool_calls=False).unused == {"parallel_tool_calls"}
    assert Sent(HELLO, tools=tools, parallel_tool_calls=True).unused == set()
    assert Sent(HELLO, parallel_tool_calls=False, tool_choice="auto").unused == set()


def test_the_provider_declares_tools_itself_when_no_extension_has() -> None:
    tools = [{"name": "f", "parameters": {}}]
    assert (
        Sent(HELLO, tools=tools, extensions=()).body["tools"]
        == Sent(HELLO, tools=tools).body["tools"]
    )
    assert "tools" not in Sent(HELLO, tools=tools, model="gemma-3-4b-it", extensions=()).body


def test_tools_that_google_runs_are_passed_on() -> None:
    sent = Sent(
        HELLO,
        tools=[{"codeExecution": {}}, {"name": "f", "parameters": {}}],
        builtin_tools=["googleSearch", {"fileSearch": {"fileSearchStoreNames": ["s"]}}],
        extra_body={"toolConfig": {"includeServerSideToolInvocations": True}},
        tool_choice="auto",
    )
    assert sent.body["tools"] == [
        {"functionDeclarations": [{"name": "f", "description": ""}]},
        {"codeExecution": {}},
        {"googleSearch": {}},
        {"fileSearch": {"fileSearchStoreNames": ["s"]}},
    ]
    assert sent.body["toolConfig"] == {
        "functionCallingConfig": {"mode": "AUTO"},
        "includeServerSideToolInvocations": True,
    }
    assert sent.warnings == []


def declared(parameters: dict[str, Any]) -> dict[str, Any]:
    sent = Sent(HELLO, tools=[{"name": "f", "parameters": parameters}])
    declaration: dict[str, Any] = sent.body["tools"][0]["functionDeclarations"][0]
    assert sent.warnings == []
    return declaration


def test_a_schema_of_the_subset_is_sent_in_the_field_that_every_model_reads() -> None:
    parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
        "type": "object",
        "properties": {
            "place": {"type": ["string", "null"], "title": "Place"},
            "unit": {"$ref": "#/$defs/Unit"},
            "kind": {"const": "now"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["place"],
    }
    assert declared(parameters)["parameters"] == {
        "type": "object",
        "properties": {
            "place": {"type": "string", "title": "Place", "nullable": True},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "kind": {"enum": ["now"]},
            "days": {"nullable": True, "type": "integer"},
        },
        "required": ["place"],
    }


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "integer", "enum": [1, 2]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object"},
        {"type": "string", "x-vendor": 1},
        {"$ref": "#"},
        {"type": "string", "format": "email"},
    ],
)
def test_a_schema_beyond_the_subset_is_sent_as_json_schema_and_loses_nothing(inner: Any) -> None:
    parameters = {"type": "object", "properties": {"a": inner}}
    declaration = declared(parameters)
    assert declaration["parametersJsonSchema"] == parameters
    assert "parameters" not in declaration


def test_declarations_of_googles_own_are_kept_and_understood_elsewhere() -> None:
    own = {
        "functionDeclarations": [
            {
                "name": "f",
                "description": "F.",
                "parameters": {
                    "type": "OBJECT",
                    "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}}},
                },
            }
        ]
    }
    sent = Sent(HELLO, tools=[own])
    assert sent.body["tools"] == [own]
    target = ToolInteropTarget("openai.chat_completions.function")
    [there] = REGISTRY.convert_schemas([own], target=target)
    assert there["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
    }


def test_calls_and_results_convert_both_ways() -> None:
    chat = ToolInteropTarget("openai.chat_completions.function")
    google = ToolInteropTarget(GOOGLE_FUNCTION)
    part = {"functionCall": {"id": "1", "name": "f", "args": {"a": [1, None]}}}
    [there] = REGISTRY.convert_tool_calls([part], target=chat)
    assert there == call("1", "f", '{"a":[1,null]}')
    assert REGISTRY.convert_tool_calls([there], target=google) == [part]
    response = {"functionResponse": {"id": "1", "name": "f", "response": {"result": "ok"}}}
    [told] = REGISTRY.convert_tool_results([response], target=chat)
    assert told == {"role": "tool", "tool_call_id": "1", "content": "ok"}
    [back] = REGISTRY.convert_tool_results([told], target=google)
    assert back == {"functionResponse": {"id": "1", "response": {"result": "ok"}}}


def test_media_go_as_data_or_by_address() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "image", "content": {"url": PNG}},
        {"type": "video", "content": {"url": "https://youtu.be/x"}, "metadata": {}},
        {"type": "file", "content": {"url": "https://e.org/a.pdf"}},
        {"type": "audio", "content": {"data": "aGk="}, "metadata": {"media_type": "audio/wav"}},
        {"type": "file", "content": {"url": "data:text/plain,a%20b"}},
        {"type": "text", "content": {"text": "Look"}},
    ]
    [content] = Sent(message("user", "Look", multipartContent=parts)).contents
    assert content["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"fileData": {"fileUri": "https://youtu.be/x"}},
        {"fileData": {"fileUri": "https://e.org/a.pdf", "mimeType": "application/pdf"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
        {"inlineData": {"mimeType": "text/plain", "data": "YSBi"}},
        {"text": "Look"},
    ]


def test_what_cannot_be_sent_is_a_note_and_a_warning() -> None:
    sent = Sent(
        message("user", "See", multipartContent=[{"type": "file", "content": {"file_id": "f-1"}}])
    )
    assert sent.contents[0]["parts"][0] == {"text": "See"}
    assert sent.contents[0]["parts"][1]["text"].startswith("[file not sent: ")
    assert len(sent.warnings) == 1


def test_files_are_references_in_history_and_data_in_the_request(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"hi")
    asked = message("user", "See", multipartContent=[attachment(picture)])
    sent = Sent(asked, attachments_root=str(tmp_path))
    assert sent.contents[0]["parts"][1] == {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    assert "aGk=" not in str(sent.natives)
    refused = Sent(asked)
    assert refused.contents[0]["parts"][1]["text"].startswith("[image not attached: ")
    assert len(refused.warnings) == 1


def test_media_of_results_stand_after_all_responses() -> None:
    shown = {
        "type": "tool_result",
        "text": "a chart",
        "content": [
            {"type": "text", "content": {"text": "a chart"}},
            {"type": "image", "content": {"url": PNG}},
        ],
    }
    sent = Sent(
        HELLO,
        message("assistant", metadata={"tool_calls": [call("1"), call("2")]}),
        result("1", "a chart", toolResult=shown),
        result("2", "two"),
    )
    assert sent.contents[-1]["parts"] == [
        {"functionResponse": {"name": "f", "response": {"result": "a chart"}}},
        {"functionResponse": {"name": "f", "response": {"result": "two"}}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ]


def test_knobs_are_settings_of_generation() -> None:
    sent = Sent(
        HELLO,
        max_output_tokens=100,
        temperature=0.5,
        stop="END",
        seed=7,
        generation_config={"topP": 0.9},
        safety_settings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        extensions=(),
    )
    assert sent.settings == {
        "maxOutputTokens": 100,
        "temperature": 0.5,
        "stopSequences": ["END"],
        "seed": 7,
        "topP": 0.9,
    }
    assert sent.body["safetySettings"][0]["threshold"] == "BLOCK_NONE"
    assert sent.unused == set()


def test_a_knob_that_nobody_set_is_not_sent() -> None:
    assert Sent(HELLO, extensions=()).body == {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]
    }


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-pro", "max", {"thinkingBudget": 32768, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", None, {}),
        ("gemini-2.5-flash", None, {"includeThoughts": True}),
        (
            "gemini-3-flash-preview",
            "minimal",
            {"thinkingLevel": "minimal", "includeThoughts": True},
        ),
        ("gemini-3-pro-preview", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-9-ultra", "low", {"thinkingLevel": "low", "includeThoughts": True}),
    ],
)
def test_effort_is_a_budget_or_a_level(model: str, effort: str | None, sent: Any) -> None:
    made = Sent(HELLO, model=model, **dict[str, Any](effort=effort) if effort else {})
    assert made.settings.get("thinkingConfig", {}) == sent
    assert made.unused == set()
    assert made.warnings == []


def test_an_effort_that_is_not_on_offer_is_rounded_and_told() -> None:
    sent = Sent(HELLO, model="gemini-3-pro-preview", effort="max")
    assert sent.settings["thinkingConfig"]["thinkingLevel"] == "high"
    assert len(sent.warnings) == 1


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro-preview"])
def test_thinking_that_cannot_be_turned_off_is_not_said_to_be(model: str) -> None:
    sent = Sent(HELLO, model=model, effort="none")
    assert sent.unused == {"effort"}
    assert sent.settings["thinkingConfig"] == {"includeThoughts": True}


def test_thoughts_can_be_left_out() -> None:
    assert "thinkingConfig" not in Sent(HELLO, include_thoughts=False).settings


def test_what_the_user_says_of_thinking_counts_for_more() -> None:
    given: dict[str, Any] = {"thinkingConfig": {"thinkingBudget": 5}}
    sent = Sent(HELLO, model="gemini-2.5-pro", effort="high", generation_config=given)
    assert sent.settings["thinkingConfig"] == {"thinkingBudget": 5, "includeThoughts": True}
    level = Sent(HELLO, model="gemini-3-pro", effort="high", generation_config=given)
    assert level.settings["thinkingConfig"] == {"thinkingBudget": 5, "includeThoughts": True}


def test_an_answer_schema_asks_for_json() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    sent = Sent(HELLO, response_schema=schema, include_thoughts=False)
    assert sent.settings == {"responseMimeType": "application/json", "responseSchema": schema}
    closed = {**schema, "additionalProperties": False}
    assert Sent(HELLO, response_schema=closed).settings["responseJsonSchema"] == closed


def test_models_that_cannot_do_both_keep_their_tools() -> None:
    both: dict[str, Any] = {
        "response_schema": {"type": "object"},
        "tools": [{"name": "f", "parameters": {}}],
    }
    old = Sent(HELLO, model="gemini-2.5-pro", **both)
    assert "responseMimeType" not in old.settings
    assert old.unused == {"response_schema"}
    assert Sent(HELLO, model="gemini-3-pro", **both).settings["responseMimeType"]


def test_a_body_of_ones_own_is_merged_last_and_deep() -> None:
    sent = Sent(
        HELLO,
        temperature=1,
        extra_body={"generationConfig": {"topK": 3}, "labels": {"a": "b"}, "contents": []},
        extensions=(),
    )
    assert sent.body == {
        "contents": [],
        "generationConfig": {"temperature": 1, "topK": 3},
        "labels": {"a": "b"},
    }


def test_shape_50_a_quota_tells_in_its_details_when_to_come_back() -> None:
    body = b"""{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED",
      "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}}"""
    error = PROVIDER.map_error(429, {}, body)
    assert isinstance(error, RateLimitError)
    assert (error.retry_after, error.retryable) == (34.5, True)
    # A header tells as well, and the host knows all its forms.
    assert PROVIDER.map_error(429, {"Retry-After": "7"}, body) is None
    daily = b"""[{"error": {"code": 429, "message": "Quota", "details": [
      {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
       "violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}}]"""
    error = PROVIDER.map_error(429, {}, daily)
    assert isinstance(error, RateLimitError)
    assert error.retryable is False


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"null", b'{"error": "x"}', b'{"error": {}}']
)
def test_shape_49_other_bodies_are_left_to_the_host(body: bytes) -> None:
    assert PROVIDER.map_error(429, {}, body) is None
    assert PROVIDER.map_error(500, {}, body) is None


@pytest.mark.parametrize(
    ("model", "signed"),
    [("gemini-3-pro-preview", True), ("gemini-3.5-flash", True), ("gemini-2.5-flash", False)],
)
def test_calls_of_another_model_get_a_placeholder_where_signatures_are_wanted(
    model: str, signed: bool
) -> None:
    calls = {"tool_calls": [call("c1", "f"), call("c2", "g")]}
    answered = result("c1", "1"), result("c2", "2", "g")
    sent = Sent(HELLO, message("assistant", metadata=calls), *answered, model=model)
    first, second = sent.contents[1]["parts"]
    assert first == {"functionCall": {"name": "f", "args": {}}, **(PLACEHOLDER if signed else {})}
    assert second == {"functionCall": {"name": "g", "args": {}}}
