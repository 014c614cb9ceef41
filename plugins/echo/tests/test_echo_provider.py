"""Requests to the echo model, driven through the hooks in the order in which a host calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import (
    AuthenticationError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamCutError,
)
from agent_hookspecs.roles import Plugin
from agent_hookspecs.specs import hooks_of
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.manager import RoleManager
from agent_host_echo.extension import EchoReasoning
from agent_host_echo.feature import EchoTranscript
from agent_host_echo.model import DEFAULT_MODEL, HELP
from agent_host_echo.provider import EchoProvider, sent

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
SEARCH = {"type": "function", "name": "search", "parameters": {"type": "object"}}
LOOK = {"name": "look", "description": "Look around.", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "patch", "format": {"type": "text"}}
TOOLS = [ADD, SEARCH, LOOK, PATCH]

# As in a host, one instance serves all requests.
PROVIDER, REASONING, TRANSCRIPT = EchoProvider(), EchoReasoning(), EchoTranscript()

Message = dict[str, Any]


@dataclass
class Turn:
    """Everything that one request gave."""

    partials: list[Message]
    finals: list[Message]
    natives: list[Message]
    messages: list[Message]
    state: dict[str, Any]
    complete: bool | None

    @property
    def message(self) -> Message:
        assert len(self.messages) == 1
        return self.messages[0]


def user(content: Any) -> Message:
    return {"role": "user", "content": content, "metadata": {}}


def result(call_id: str, content: str, name: str) -> Message:
    metadata = {"tool_call_id": call_id, "tool_name": name}
    return {"role": "tool", "content": content, "metadata": metadata}


@cache
def hook(plugin: Plugin, name: str) -> Callable[..., Any]:
    """The hook as the host calls it, with its arguments by position."""
    found = find_implementations(plugin, plugin.role, plugin.name)
    manager = RoleManager(plugin.role, [(plugin.name, found)])
    arguments = hooks_of(plugin.role)[name].args

    def call(*given: Any) -> Any:
        return getattr(manager.hook, name)(**dict(zip(arguments, given, strict=True)))

    return call


def active(config: dict[str, Any], transcript: bool) -> list[Plugin]:
    """The plugins beside the provider whose required tags it gives."""
    tags = hook(PROVIDER, "get_tags")(config, hook(PROVIDER, "get_models")(config))
    candidates: list[Plugin] = [REASONING, *([TRANSCRIPT] if transcript else [])]
    return [p for p in candidates if {*hook(p, "required_tags")()[0]} <= {*tags}]


def send(
    new: str | Sequence[Message],
    *,
    history: Sequence[Message] = (),
    stream: bool = True,
    transcript: bool = False,
    override: list[Any] | None = None,
    context: dict[str, Any] | None = None,
    payload: dict[str, Any] | None = None,
    **config: Any,
) -> Turn:
    """One request: ``history`` is native and retained, ``new`` is core and converted first."""
    context = context or {}
    others = active(config, transcript)
    extensions = [plugin for plugin in others if plugin.role == "extension"]
    state = hook(PROVIDER, "init")(config)
    for plugin in others:
        state = hook(plugin, "init")(config, state)
    if payload is not None:
        state["request"]["payload"] = payload
    messages = [user(new)] if isinstance(new, str) else list(new)
    tail = hook(PROVIDER, "to_native_messages")(messages, state)
    for plugin in extensions:
        tail = hook(plugin, "to_native_messages")(messages, tail)
    natives = [*history, *tail]
    natives, state = hook(PROVIDER, "initialize_request")(natives, state, context)
    for plugin in others:
        natives, state = hook(plugin, "initialize_request")(natives, state, context)
    if override is not None:
        state["request"]["messages"] = override
    partials: list[Message] = []
    complete = None
    if stream:
        for chunk in hook(PROVIDER, "stream_api")(natives, state, context):
            json.dumps(chunk)
            news, finals, natives, state = hook(PROVIDER, "process_chunk")(
                chunk, natives, state, None
            )
            for plugin in extensions:
                news, finals, natives, state = hook(plugin, "process_chunk")(
                    chunk, news, finals, natives, state
                )
            assert finals == []
            partials += news
        complete = hook(PROVIDER, "stream_complete")(state)
        finals, natives, state = hook(PROVIDER, "finalize")(natives, state, context)
    else:
        partials, finals, natives, state = hook(PROVIDER, "call_api")(natives, state, context)
        for plugin in extensions:
            partials, finals, natives, state = hook(plugin, "process_chunk")(
                None, partials, finals, natives, state
            )
    for plugin in others:
        finals, natives, state = hook(plugin, "finalize")(finals, natives, state, context)
    core = hook(PROVIDER, "from_native_messages")(finals, state)
    for plugin in extensions:
        core = hook(plugin, "from_native_messages")(finals, core)
    return Turn(partials, finals, natives, core, state, complete)


def calls_of(turn: Turn) -> list[tuple[str, str, str]]:
    """Id, name and payload of each call in the core message."""
    return [
        (call["id"], *call[call["type"]].values())
        for call in turn.message["metadata"]["tool_calls"]
    ]


# Text.


def test_text_streams_word_by_word_and_the_final_is_its_sum() -> None:
    turn = send("Hello, dear  world!\nHow are you?")
    assert [partial["content"] for partial in turn.partials] == [
        "Hello,",
        " dear",
        "  world!",
        "\nHow",
        " are",
        " you?",
    ]
    assert turn.message["content"] == "Hello, dear  world!\nHow are you?"
    assert turn.message["metadata"]["finish_reason"] == "stop"
    assert turn.complete is True


def test_usage_counts_words() -> None:
    turn = send("/think a b c\nfour five\n/call add six", tools=TOOLS)
    usage = turn.message["metadata"]["usage"]
    assert (usage["input"], usage["output"], usage["reasoning"]) == (9, 6, 3)
    assert usage["raw"]["total_tokens"] == 15


@pytest.mark.parametrize("prompt", ["", "  \n "])
def test_an_empty_prompt_gets_help(prompt: str) -> None:
    assert send(prompt).message["content"] == HELP


def test_a_conversation_without_a_user_message_gets_help() -> None:
    assert send([]).message["content"] == HELP


def test_unknown_directives_are_echoed() -> None:
    assert send("/dance now\n/fail\nok").message["content"] == "/dance now\n/fail\nok"


def test_the_parts_of_a_prompt_are_read_and_media_are_named() -> None:
    picture = {
        "type": "image",
        "content": {"url": "data:image/png;base64,AAAA", "name": "cat.png"},
        "metadata": {"media_type": "image/png"},
    }
    sound = {"type": "audio", "content": {"url": "https://x.test/a.wav"}, "metadata": {}}
    text = {"type": "text", "content": {"text": "and this?"}, "metadata": {}}
    prompt = {"role": "user", "content": "What is this", "metadata": {}}
    turn = send([{**prompt, "multipartContent": [picture, text, sound]}])
    assert turn.message["content"] == (
        "What is this\n[image/png, cat.png, 3 bytes]\nand this?\n[audio, https://x.test/a.wav]"
    )


def test_repeat_makes_long_answers() -> None:
    turn = send("/repeat 5000 word")
    assert len(turn.partials) == 5000
    assert turn.message["content"] == " ".join(["word"] * 5000)


def test_tools_change_nothing_for_a_prompt_without_directives() -> None:
    with_tools, without = send("add these: 1 2", tools=TOOLS), send("add these: 1 2")
    assert with_tools.partials == without.partials
    assert with_tools.finals == without.finals


# Tool calls.


def test_parallel_calls_are_accumulated_from_fragments() -> None:
    turn = send(
        'Wait.\n/call add {"a": 1, "b": 22}\n/call search {"q": "ä"}\n/call add', tools=TOOLS
    )
    assert calls_of(turn) == [
        ("call_1", "add", '{"a": 1, "b": 22}'),
        ("call_2", "search", '{"q": "ä"}'),
        ("call_3", "add", "{}"),
    ]
    assert turn.message["content"] == "Wait."
    assert turn.message["metadata"]["finish_reason"] == "tool_calls"
    fragments = [f for partial in turn.partials for f in partial.get("tool_calls", [])]
    assert max(len(fragment["arguments"]) for fragment in fragments) == 4
    assert "".join(f["arguments"] for f in fragments if f["index"] == 0) == '{"a": 1, "b": 22}'
    assert {f["id"] for f in fragments if f["index"] == 1} == {"call_2"}


def test_order_in_the_stream_is_reasoning_then_text_then_calls() -> None:
    turn = send('/call add {"a":1}\ntext\n/think thought', tools=TOOLS)
    kinds = [
        "call" if "tool_calls" in partial else "reasoning" if "reasoning" in partial else "text"
        for partial in turn.partials
    ]
    assert list(dict.fromkeys(kinds)) == ["reasoning", "text", "call"]
    assert kinds == sorted(kinds, key=["reasoning", "text", "call"].index)


def test_broken_arguments_are_passed_on_as_they_are() -> None:
    assert calls_of(send('/call add {"a": [1, }', tools=TOOLS)) == [
        ("call_1", "add", '{"a": [1, }')
    ]


@pytest.mark.parametrize("stream", [True, False])
def test_calls_are_sanitised_with_the_registry_of_the_request(stream: bool) -> None:
    def sanitize_tool_call(call: Message) -> Message:
        return {**call, "function": {**call["function"], "arguments": "{}"}}

    registry = SimpleNamespace(sanitize_tool_call=sanitize_tool_call)
    context = {"tool_interop": {"registry": registry}}
    turn = send("/call add {broken", tools=TOOLS, stream=stream, context=context)
    assert calls_of(turn) == [("call_1", "add", "{}")]
    assert turn.natives[-1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_freeform_tool_gets_its_payload_as_text() -> None:
    turn = send("/call patch *** Begin  Patch", tools=TOOLS)
    assert turn.message["metadata"]["tool_calls"] == [
        {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin  Patch"}}
    ]


@pytest.mark.parametrize(
    "schema", [ADD, SEARCH, LOOK, PATCH, {"type": "custom", "custom": {"name": "run"}}]
)
def test_tools_of_every_accepted_format_can_be_called(schema: Message) -> None:
    name = (schema.get("function") or schema.get("custom") or schema)["name"]
    kind = "custom" if schema.get("type") == "custom" else "function"
    (call,) = send(f"/call {name} x", tools=[schema]).message["metadata"]["tool_calls"]
    assert (call["type"], call[kind]["name"]) == (kind, name)


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    turn = send('before\n/call fly {"to": "moon"}\nafter', tools=TOOLS)
    assert turn.message["content"] == (
        "before\nCannot call fly: the tools on offer are add, search, look, patch.\nafter"
    )
    assert "tool_calls" not in turn.message["metadata"]
    assert send("/call add {}").message["content"] == "Cannot call add: no tool is on offer."


def test_tools_are_injected_as_authored_with_a_choice() -> None:
    payload = send("hi", tools=[ADD, "noise", PATCH]).state["request"]["payload"]
    assert payload["tools"] == [ADD, PATCH]
    assert payload["tool_choice"] == "auto"
    assert payload["model"] == DEFAULT_MODEL


def test_an_existing_choice_and_existing_tools_are_kept() -> None:
    chosen = send("hi", tools=TOOLS, tool_choice="required").state["request"]["payload"]
    assert chosen["tool_choice"] == "required"
    kept = send("hi", tools=TOOLS, payload={"tool_choice": "none"}).state["request"]["payload"]
    assert (kept["tools"], kept["tool_choice"]) == (TOOLS, "none")
    injected = send("hi", tools=TOOLS, payload={"tools": [ADD]}).state["request"]["payload"]
    assert injected["tools"] == [ADD]
    assert "tool_choice" not in injected


def test_no_tool_is_called_when_the_choice_is_none() -> None:
    turn = send("/call add {}", tools=TOOLS, tool_choice="none")
    assert turn.message["content"] == "Cannot call add: no tool is on offer."


# Several turns.


@pytest.mark.parametrize("stream", [True, False])
def test_tool_results_are_answered_one_line_each(stream: bool) -> None:
    prompt = '/call add {"a": 1}\n/call search {"q": "x"}'
    first = send(prompt, tools=TOOLS, stream=stream)
    results = [result("call_1", "2", "add"), result("call_2", "two\nlines", "search")]
    second = send(results, history=first.natives, tools=TOOLS, stream=stream)
    assert second.message["content"] == "add returned: 2\nsearch returned: two lines"
    assert [native["role"] for native in second.natives] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    third = send("/call add {}", history=second.natives, tools=TOOLS, stream=stream)
    assert calls_of(third) == [("call_3", "add", "{}")]


def test_a_history_rebuilt_from_core_messages_gives_the_same_answer() -> None:
    first = send("/think hm\nok\n/call add {}\n/call patch x", tools=TOOLS)
    results = [result("call_1", "0", "add"), result("call_2", "done", "patch")]
    retained = send(results, history=first.natives, tools=TOOLS)
    prompt = user("/think hm\nok\n/call add {}\n/call patch x")
    rebuilt = send([prompt, *first.messages, *results], tools=TOOLS)
    assert rebuilt.natives == retained.natives
    assert rebuilt.messages == retained.messages


def test_results_of_calls_that_another_provider_shaped_keep_their_names() -> None:
    call = {"type": "custom_tool_call", "call_id": "x1", "name": "patch", "input": "…"}
    assistant = {"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}}
    turn = send([user("go"), assistant, result("x1", "done", "patch")])
    assert turn.message["content"] == "patch returned: done"


@pytest.mark.parametrize("override", [None, [{"role": "user", "content": "x", "_metadata": {}}]])
def test_metadata_is_kept_in_the_history_and_never_sent(override: list[Any] | None) -> None:
    turn = send([user("go"), result("lost", "7", "add")], override=override)
    assert turn.natives[1]["_metadata"] == {"tool_name": "add"}
    assert "_metadata" in turn.natives[-1]
    assert "_metadata" not in json.dumps(sent(turn.natives, turn.state))


def test_a_result_of_an_unknown_call_is_still_answered() -> None:
    assert send([result("lost", "7", "add")]).message["content"] == "tool returned: 7"


def test_a_request_starts_with_an_empty_accumulator() -> None:
    state = {**PROVIDER.init({}), "partial": {"content": "left over"}}
    assert hook(PROVIDER, "initialize_request")([], state, {})[1]["partial"] is None


def test_a_list_of_messages_in_the_request_replaces_the_history() -> None:
    turn = send("mine", override=["noise", None, {"role": "user", "content": "theirs"}])
    assert turn.message["content"] == "theirs"
    assert [native["content"] for native in turn.natives] == ["mine", "theirs"]


def test_entries_of_the_history_that_are_no_messages_are_skipped() -> None:
    history: list[Any] = [None, "noise"]
    assert send("hello", history=history).message["content"] == "hello"


def test_tool_messages_survive_the_way_there_and_back() -> None:
    message = result("call_1", "2", "add")
    natives = hook(PROVIDER, "to_native_messages")([message], {})
    assert natives == [
        {
            "role": "tool",
            "content": "2",
            "tool_call_id": "call_1",
            "_metadata": {"tool_name": "add"},
        }
    ]
    assert hook(PROVIDER, "from_native_messages")(natives, {}) == [message]


def test_positions_in_the_native_history_are_not_carried_over() -> None:
    message = {"role": "user", "content": "x", "metadata": {"native_indices": [0]}}
    natives = hook(PROVIDER, "to_native_messages")([message], {})
    assert natives == [{"role": "user", "content": "x"}]


# Reasoning.


@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_reaches_native_message_and_metadata(stream: bool) -> None:
    turn = send("/think one two\nanswer\n/think three", stream=stream, model="echo-reasoner")
    assert turn.message["metadata"]["reasoning"] == "one two\nthree"
    assert turn.natives[-1]["reasoning"] == "one two\nthree"
    assert turn.message["content"] == "answer"
    fragments = [partial["reasoning"] for partial in turn.partials if "reasoning" in partial]
    assert fragments == (["one", " two", "\nthree"] if stream else [])


@pytest.mark.parametrize("off", [{"model": "echo-1"}, {"reasoning": False}])
@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_that_is_off_is_silent(off: dict[str, Any], stream: bool) -> None:
    turn = send("/think one two\nanswer", stream=stream, **off)
    assert "reasoning" not in turn.message["metadata"]
    assert "reasoning" not in turn.natives[-1]
    assert turn.message["content"] == "answer"


def test_reasoning_goes_back_into_native_messages_once() -> None:
    message = {"role": "assistant", "content": "a", "metadata": {"reasoning": "r", "mark": 1}}
    natives = hook(PROVIDER, "to_native_messages")([message], {})
    extended = hook(REASONING, "to_native_messages")([message], natives)
    assert extended == [
        {"role": "assistant", "content": "a", "reasoning": "r", "_metadata": {"mark": 1}}
    ]


# Failures.


@pytest.mark.parametrize(
    ("kind", "error", "status", "retryable"),
    [
        ("rate_limit", RateLimitError, 429, True),
        ("overloaded", OverloadedError, 503, True),
        ("auth", AuthenticationError, 401, False),
        ("server", ServerError, 500, True),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_failure_is_the_typed_error(
    kind: str, error: type[ProviderError], status: int, retryable: bool, stream: bool
) -> None:
    with pytest.raises(error, match="no way, José") as caught:
        send(f"/fail {kind} no way, José", stream=stream)
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.retryable) == (status, retryable)
    assert caught.value.provider == "echo"


def test_a_failure_without_words_names_its_kind() -> None:
    with pytest.raises(ServerError, match="server"):
        send("/fail server")


def test_text_above_a_failure_is_streamed_first() -> None:
    natives = [{"role": "user", "content": "two words\n/fail overloaded busy\nnever"}]
    chunks = PROVIDER.stream_api(natives, PROVIDER.init({}))
    seen = [next(chunks)["choices"][0]["delta"]["content"] for _ in range(2)]
    assert seen == ["two", " words"]
    with pytest.raises(OverloadedError, match="busy"):
        next(chunks)


def test_a_cut_stream_is_not_complete() -> None:
    turn = send("some text\n/call add {}\n/fail cut", tools=TOOLS)
    assert turn.complete is False
    assert turn.message["content"] == "some text"
    assert "finish_reason" not in turn.message["metadata"]
    empty = send("/fail cut")
    assert (empty.complete, empty.finals) == (False, [])


def test_a_cut_answer_that_is_not_streamed_is_an_error() -> None:
    with pytest.raises(StreamCutError):
        send("text\n/fail cut", stream=False)


# Streamed and not streamed.

_NAMES = st.sampled_from(["add", "search", "look", "patch", "fly"])
_LINES = st.one_of(
    st.text(max_size=30),
    st.builds("/think {}".format, st.text(max_size=30)),
    st.builds("/call {} {}".format, _NAMES, st.text(max_size=30)),
    st.builds(
        "/call {} {}".format,
        _NAMES,
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=3).map(json.dumps),
    ),
    st.sampled_from(["/repeat 3 again", "/nothing", "/fail server oops", "/fail auth"]),
)


def outcome(prompt: str, *, stream: bool, **config: Any) -> object:
    try:
        turn = send(prompt, stream=stream, **config)
    except ProviderError as error:
        return error.to_dict()
    return turn.finals, turn.natives, turn.messages


@settings(deadline=None)
@given(
    st.lists(_LINES, max_size=6).map("\n".join),
    st.sampled_from(["echo-1", "echo-reasoner", "echo-unheard-of"]),
    st.booleans(),
)
def test_streamed_equals_not_streamed(prompt: str, model: str, transcript: bool) -> None:
    config: dict[str, Any] = {"model": model, "tools": TOOLS, "transcript": transcript}
    assert outcome(prompt, stream=True, **config) == outcome(prompt, stream=False, **config)


@settings(deadline=None)
@given(st.lists(_LINES, max_size=6).map("\n".join))
def test_the_final_is_the_sum_of_the_partials(prompt: str) -> None:
    try:
        turn = send(prompt, tools=TOOLS)
    except ProviderError:
        return
    (final,) = turn.finals
    assert "".join(partial["content"] for partial in turn.partials) == final["content"]
    reasoning = "".join(partial.get("reasoning", "") for partial in turn.partials)
    assert reasoning == final.get("reasoning", "")
    fragments = [f for partial in turn.partials for f in partial.get("tool_calls", [])]
    for index, call in enumerate(final.get("tool_calls", [])):
        payload = "".join(f["arguments"] for f in fragments if f["index"] == index)
        assert [*call[call["type"]].values()][-1] in (payload, "{}")
    json.dumps(turn.natives)


# The examples of the README.

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(
    r"```prompt\n(.*?)\n```\n\n```answer\n(.*?)\n```", README.read_text("utf-8"), re.DOTALL
)


def shown(prompt: str) -> str:
    """The stream as the README writes it: one line per line of reasoning or text, call or error."""
    state: dict[str, Any] = PROVIDER.init({"tools": TOOLS})
    natives, state = PROVIDER.initialize_request([{"role": "user", "content": prompt}], state)
    natives, state = REASONING.initialize_request(natives, state)
    lines: list[str] = []
    try:
        for chunk in PROVIDER.stream_api(natives, state):
            _, _, natives, state = PROVIDER.process_chunk(chunk, natives, state)
            _, _, natives, state = REASONING.process_chunk(chunk, [], [], natives, state)
    except ProviderError as error:
        lines = [f"error: {type(error).__name__}: {error.message}"]
    ((final,), _, _) = PROVIDER.finalize(natives, state)
    calls = [call["function"] for call in final.get("tool_calls", [])]
    return "\n".join(
        [
            *(f"reasoning: {line}" for line in final.get("reasoning", "").splitlines()),
            *(f"text: {line}" for line in final["content"].splitlines()),
            *(f"call: {call['name']} {call['arguments']}" for call in calls),
            *lines,
        ]
    )


@pytest.mark.parametrize(("prompt", "answer"), EXAMPLES)
def test_an_example_of_the_readme_is_true(prompt: str, answer: str) -> None:
    assert shown(prompt) == answer


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) == 3


# Models, tags and settings.


MEDIA = ("images", "documents", "audio", "video", "image_urls", "file_urls")


@pytest.mark.parametrize(
    ("config", "supports"),
    [
        ({}, {"tools", "reasoning", *MEDIA}),
        ({"model": "echo-reasoner"}, {"tools", "reasoning", *MEDIA}),
        ({"model": "echo-1"}, {"tools"}),
        ({"model": "echo-unheard-of"}, set()),
    ],
)
def test_tags_follow_the_selected_model(config: dict[str, Any], supports: set[str]) -> None:
    tags = hook(PROVIDER, "get_tags")(config, hook(PROVIDER, "get_models")(config))
    wanted = {"provider:echo", "supports_streaming", *(f"supports_{what}" for what in supports)}
    assert set(tags) == wanted
    assert len(tags) == len(wanted)


def test_an_unknown_model_answers_but_is_offered_no_tools() -> None:
    turn = send("/call add {}\nhi", model="echo-unheard-of", tools=TOOLS)
    assert turn.message["content"] == "Cannot call add: no tool is on offer.\nhi"
    assert "tools" not in turn.state["request"]["payload"]


def test_models_may_be_changed_by_those_who_get_them() -> None:
    for model in hook(PROVIDER, "get_models")({}):
        model["capabilities"].clear()
    assert all(model["capabilities"] for model in hook(PROVIDER, "get_models")({}))


def test_the_model_is_chosen_from_a_list_if_there_is_one() -> None:
    elements = hook(PROVIDER, "get_ui_elements")
    models = [*hook(PROVIDER, "get_models")({}), {"id": "bare"}, {"name": "no id"}]
    (select,) = elements({}, [], models, {})
    assert (select["type"], select["key"]) == ("select", "model")
    assert select["options"] == [
        {"value": "echo-reasoner", "label": "Echo Reasoner"},
        {"value": "echo-1", "label": "Echo 1"},
        {"value": "bare", "label": "bare"},
    ]
    assert elements({}, [], [], {}) == [{"type": "text", "key": "model", "label": "Model id"}]


def test_reasoning_is_a_checkbox() -> None:
    (elements,) = hook(REASONING, "get_ui_elements")({}, [], [], {})
    assert elements == [{"type": "checkbox", "key": "reasoning", "label": "Reasoning"}]


# The transcript.


@pytest.mark.parametrize("stream", [True, False])
def test_the_transcript_counts_lines_and_words(stream: bool) -> None:
    turn = send("one two\nthree", transcript=True, stream=stream)
    counts = {"lines": 2, "words": 3}
    assert turn.message["metadata"]["transcript"] == counts
    assert turn.natives[-1]["_metadata"]["transcript"] == counts
    assert turn.message["metadata"]["finish_reason"] == "stop"


def test_the_transcript_action_writes_the_session_as_text() -> None:
    (actions,) = hook(TRANSCRIPT, "get_actions")({})
    session = SimpleNamespace(messages=[user("hello"), *send("hello").messages])
    run = hook(TRANSCRIPT, "execute_action")
    done = run(actions[0]["id"], session, {}, {}, {})
    assert done == {"session_metadata": {"echo_transcript": "user: hello\nassistant: hello"}}
    assert run("other", session, {}, {}, {})["error"]["type"] == "unknown_action"
