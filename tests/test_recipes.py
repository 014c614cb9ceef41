"""The recipes that plugin authors start from, each in the loose style they are written in."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs import (
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
    get_logger,
)
from agent_hookspecs.authoring import (
    AccumulatorExtensionMixin,
    AccumulatorStreamingMixin,
    accumulate_reasoning,
)
from agent_hookspecs.authoring.merging import ToolCalls
from agent_hookspecs.tool_interop import (
    ToolInteropTarget,
    get_registry_from_context,
    get_schema_target_formats_from_context,
)
from agent_host import AgentCore
from talking import WAYS, Way, ask, core_with, events_of, said, talker

log = get_logger("recipes")


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields}]}


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **more.pop("function", {})}
    return delta(tool_calls=[{"index": index, "function": function, **more}])


# --- a provider of two methods --------------------------------------------------------------------


class Minimal(ProviderPlugin):
    name = "minimal"

    def init(self, config):  # type: ignore[no-untyped-def]
        return {"config": config}

    def call_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        answer = {"choices": [{"message": {"role": "assistant", "content": "good day"}}]}
        log.info("answer", body=str(answer)[:2000])
        message = answer["choices"][0]["message"]
        return [], [message], [*native_messages, message], state


@pytest.mark.parametrize("way", WAYS)
def test_a_provider_needs_only_init_and_call_api(way: Way) -> None:
    core = AgentCore()
    core.register_provider(Minimal)
    session = core.add_message(core.create_session(), "user", "Hello")
    answered, finals = ask(core, session, {"model": "m"}, way)
    metadata = {"finish": "stop"}
    assert finals == [{"role": "assistant", "content": "good day", "metadata": metadata}]
    assert [m["role"] for m in answered.messages] == ["user", "assistant"]
    assert len(session.messages) == 1


def test_an_answer_in_one_piece_is_streamed_as_one_partial() -> None:
    kinds = [(e["type"], e.get("message")) for e in events_of(core_with(Minimal), said("Hello"))]
    whole = {"role": "assistant", "content": "good day"}
    assert ("partial", whole) in kinds
    assert [kind for kind, _ in kinds] == ["request_started", "partial", "final", "done"]


def test_what_a_provider_logs_is_visible(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        core_with(Minimal).send_request(said("Hello"), {"model": "m"})
    assert "answer body=" in caplog.text
    assert "good day" in caplog.text


# --- the accumulator path -------------------------------------------------------------------------


class Accumulating(AccumulatorStreamingMixin, ProviderPlugin):
    """Reduces by hand, as providers do that were written before the mixin could do it for them."""

    name = "accumulating"
    chunks: list[Any] = [  # noqa: RUF012
        delta(role="assistant", content="Good"),
        'data: {"choices": [{"delta": {"content": " mor"}}]}',
        b'data: {"choices": [{"delta": {"content": null}}]}',
        "data: no json",
        "",
        None,
        {"choices": []},
        delta(content="ning"),
        "data: [DONE]",
        delta(content=", never read"),
    ]

    def get_tags(self, config, models):  # type: ignore[no-untyped-def]
        return ["provider:openai_compatible", "supports_tools", "supports_reasoning"]

    def init(self, config):  # type: ignore[no-untyped-def]
        return {"config": config, "request": {}, "partial": None}

    def initialize_request(self, native_messages, state):  # type: ignore[no-untyped-def]
        request = {"url": "https://models.test/v1/chat", "payload": {"model": "m"}}
        return list(native_messages), {**state, "request": request, "partial": None}

    def stream_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        yield from self.chunks

    def extract_delta(self, chunk):  # type: ignore[no-untyped-def]
        return (chunk.get("choices") or [{}])[0]

    def process_delta(self, delta, accumulated):  # type: ignore[no-untyped-def]
        base = accumulated or {}
        body = delta.get("delta") or {}
        fragment = {"role": body.get("role", "assistant"), "content": body.get("content") or ""}
        merged = {
            **base,
            "role": base.get("role", fragment["role"]),
            "content": base.get("content", "") + fragment["content"],
        }
        return fragment, merged


@pytest.mark.parametrize("way", WAYS)
def test_the_accumulator_path_joins_dicts_and_lines(way: Way) -> None:
    _, finals = ask(core_with(Accumulating), said("Hello"), {"model": "m"}, way)
    assert [final["content"] for final in finals] == ["Good morning"]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_the_final_is_the_sum_of_the_partials(way: Way) -> None:
    partial, final = "", None
    for event in events_of(core_with(Accumulating), said("Hello"), {"model": "m"}, way):
        if event["type"] == "partial":
            partial += event["message"].get("content", "")
        elif event["type"] == "final":
            final = event
    assert final is not None
    assert final["messages"][-1]["content"] == partial == "Good morning"


# --- a protocol of its own ------------------------------------------------------------------------


class Blocks(ProviderPlugin):
    """Answers in typed events and ends with two messages."""

    name = "blocks"

    def init(self, config):  # type: ignore[no-untyped-def]
        return {"config": config}

    def stream_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        yield {"type": "text", "delta": {"text": "one"}}
        yield {"type": "note", "delta": {"colour": "red"}}
        yield {"type": "ping"}
        yield {"type": "text", "delta": {"text": " two"}}
        yield {"type": "note", "delta": {"size": 3}}

    def process_chunk(self, native_chunk, native_messages, state):  # type: ignore[no-untyped-def]
        kind = native_chunk.get("type")
        if kind == "text":
            text = (native_chunk.get("delta") or {}).get("text", "")
            partials = [{"role": "assistant", "content": text}] if text else []
            acc = (state.get("acc") or "") + text
            return partials, [], list(native_messages), {**state, "acc": acc}
        if kind == "note":
            note = {**(state.get("note") or {}), **(native_chunk.get("delta") or {})}
            return [], [], list(native_messages), {**state, "note": note}
        return [], [], list(native_messages), state

    def finalize(self, native_messages, state):  # type: ignore[no-untyped-def]
        finals = []
        if state.get("acc"):
            finals.append({"role": "assistant", "content": state["acc"]})
        if state.get("note"):
            finals.append({"role": "assistant", "content": f"noted: {state['note']}"})
        return finals, [*native_messages, *finals], state


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_may_end_with_two_messages(way: Way) -> None:
    session, finals = ask(core_with(Blocks), said("Hello"), {}, way)
    expected = ["one two", "noted: {'colour': 'red', 'size': 3}"]
    assert [final["content"] for final in finals] == expected
    assert [m["content"] for m in session.messages] == ["Hello", *expected]
    assert [m["content"] for m in session.metadata["native_messages"]] == ["Hello", *expected]


def test_text_that_only_the_partials_show_survives_an_interruption() -> None:
    class Idle(AccumulatorExtensionMixin, ProviderExtensionPlugin):
        name = "idle"

        def process_chunk(self, chunk, partials, finals, natives, state):  # type: ignore[no-untyped-def]
            return partials, finals, list(natives), {**state, "partial": {}}

        def process_delta(self, delta, accumulated):  # type: ignore[no-untyped-def]
            return None, accumulated

    stream = core_with(Blocks, Idle).send_request_stream(said("Hello"), {})
    for event in stream:
        if event["type"] == "partial":
            break
    stream.close()
    assert stream.session.messages[-1] == {
        "role": "assistant",
        "content": "one",
        "metadata": {"partial": True},
    }


# --- tools ----------------------------------------------------------------------------------------


class Tools(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    """Patches the whole list of calls into the last partial, and merges with a helper."""

    name = "tools"
    required_tags = ("provider:openai_compatible", "supports_tools")

    def init(self, config, state):  # type: ignore[no-untyped-def]
        tools = config.get("tools")
        return {**state, "_tools": tools if isinstance(tools, list) else []}

    def initialize_request(self, native_messages, state, *, context=None):  # type: ignore[no-untyped-def]
        request = state.get("request") or {}
        payload = dict(request.get("payload") or {})
        if state.get("_tools") and "tools" not in payload:
            payload["tools"] = get_registry_from_context(context).convert_schemas(
                state["_tools"],
                target=ToolInteropTarget("openai.chat_completions"),
                target_formats=get_schema_target_formats_from_context(context),
            )
            payload["tool_choice"] = payload.get("tool_choice", "auto")
        return native_messages, {**state, "request": {**request, "payload": payload}}

    def process_delta(self, delta, accumulated):  # type: ignore[no-untyped-def]
        base = accumulated or {}
        body = delta.get("delta") or delta.get("message") or {}
        deltas = body.get("tool_calls")
        if not deltas:
            return None, base
        merged = ToolCalls.of(base.get("tool_calls"))
        merged.merge(deltas)
        return {"tool_calls": merged}, {**base, "tool_calls": merged}

    def finalize(self, finals, natives, state, *, context=None):  # type: ignore[no-untyped-def]
        partial = state.get("partial")
        if isinstance(partial, dict) and isinstance(partial.get("tool_calls"), list):
            registry = get_registry_from_context(context)
            partial["tool_calls"] = [
                registry.sanitize_tool_call(call) for call in partial["tool_calls"]
            ]
        return finals, natives, state

    def to_native_messages(self, messages, native_messages):  # type: ignore[no-untyped-def]
        if len(messages) != len(native_messages):
            return native_messages
        out = []
        for message, native in zip(messages, native_messages, strict=True):
            native = dict(native)
            metadata = message.get("metadata") or {}
            if message.get("role") == "assistant" and isinstance(metadata.get("tool_calls"), list):
                native["tool_calls"] = metadata["tool_calls"]
            if message.get("role") == "tool" and isinstance(metadata.get("tool_call_id"), str):
                native["tool_call_id"] = metadata["tool_call_id"]
            out.append(native)
        return out

    def from_native_messages(self, native_messages, messages):  # type: ignore[no-untyped-def]
        if len(messages) != len(native_messages):
            return messages
        return [
            {**message, "metadata": {**message["metadata"], "tool_calls": native["tool_calls"]}}
            if native.get("tool_calls")
            else message
            for native, message in zip(native_messages, messages, strict=True)
        ]


class Reader(ToolPlugin):
    name = "reader"
    effects = {"read": "read", "patch": "write"}  # noqa: RUF012

    def get_tool_schemas(self, state):  # type: ignore[no-untyped-def]
        function = {"name": "read", "description": "Read.", "parameters": {"type": "object"}}
        freeform = {"type": "custom", "name": "patch", "description": "Patch.", "format": None}
        return [{"type": "function", "function": function}, freeform]

    def execute_tool(self, tool_name, payload, state, context=None):  # type: ignore[no-untyped-def]
        return payload if tool_name == "patch" else {"path": payload["path"], "content": "# T"}


class Calling(Accumulating):
    seen: dict[str, Any] = {}  # noqa: RUF012
    chunks: list[Any] = [  # noqa: RUF012
        delta(role="assistant", content="Reading."),
        call(0, "", id="c1", type="function", function={"name": "read"}),
        call(0, '{"path":'),
        call(1, '{"path": "B"', id="c2", type="function", function={"name": "read"}),
        call(0, '"A"}', id=None, function={"name": None}),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]

    def accepted_tool_schema_formats(self, config, models):  # type: ignore[no-untyped-def]
        return ["openai.chat_completions.function"]

    def stream_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        self.seen.clear()
        self.seen.update(state["request"]["payload"])
        return super().stream_api(native_messages, state)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("way", WAYS)
def test_a_tools_extension_injects_merges_and_sanitises(way: Way) -> None:
    core = core_with(Calling, Tools, Reader)
    session, finals = ask(core, said("Read A and B"), {}, way)
    assert [tool["function"]["name"] for tool in Calling.seen["tools"]] == ["read", "patch"]
    assert Calling.seen["tools"][1]["function"]["parameters"]["required"] == ["input"]
    assert Calling.seen["tool_choice"] == "auto"
    metadata = finals[-1]["metadata"]
    assert [c["function"]["arguments"] for c in metadata["tool_calls"]] == ['{"path":"A"}', "{}"]
    assert metadata["tool_call_errors"] == {"c2": "invalid_json"}
    retained = session.metadata["native_messages"][-1]
    assert [c["function"]["arguments"] for c in retained["tool_calls"]] == ['{"path":"A"}', "{}"]
    results = core.execute_tool_calls(
        metadata["tool_calls"], {}, errors=metadata["tool_call_errors"]
    )
    assert results[0]["content"] == '{"path":"A","content":"# T"}'
    assert "Invalid JSON" in results[1]["content"]


def test_a_patch_of_the_whole_list_gives_each_fragment_once() -> None:
    events = events_of(core_with(Calling, Tools), said("Read"))
    deltas = [(e["index"], e["arguments"]) for e in events if e["type"] == "tool_call_delta"]
    assert deltas == [(0, '{"path":'), (1, '{"path": "B"'), (0, '"A"}')]
    started = [(e["index"], e["id"]) for e in events if e["type"] == "tool_call_started"]
    assert started == [(0, "c1"), (1, "c2")]


def test_a_freeform_tool_gets_its_text_from_a_function_call() -> None:
    arguments = json.dumps({"input": "*** Begin"})
    wrapped = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": arguments}}
    (result,) = core_with(Calling, Reader).execute_tool_calls([wrapped], {})
    assert result["content"] == "*** Begin"


# --- reasoning ------------------------------------------------------------------------------------


class Thinking(AccumulatorExtensionMixin, ProviderExtensionPlugin):
    name = "thinking"

    def required_tags(self):  # type: ignore[no-untyped-def]
        return ["provider:openai_compatible", "supports_thinking"]

    def get_config_schema(self):  # type: ignore[no-untyped-def]
        return {"think": {"type": "boolean", "required": False, "default": False}}

    def initialize_request(self, native_messages, state):  # type: ignore[no-untyped-def]
        if not state.get("config", {}).get("think"):
            return native_messages, state
        request = state.get("request") or {}
        payload = {**(request.get("payload") or {}), "think": True}
        return native_messages, {**state, "request": {**request, "payload": payload}}

    def process_delta(self, delta, accumulated):  # type: ignore[no-untyped-def]
        return accumulate_reasoning(delta, accumulated)

    def from_native_messages(self, native_messages, messages):  # type: ignore[no-untyped-def]
        for native, message in zip(native_messages, messages, strict=True):
            if native.get("reasoning"):
                message["metadata"]["reasoning"] = native["reasoning"]
        return messages


class Pondering(Calling):
    chunks: list[Any] = [delta(reasoning="Hm, "), delta(reasoning="yes.", content="Yes.")]  # noqa: RUF012


@pytest.mark.parametrize("way", WAYS)
def test_a_reasoning_extension_keeps_what_the_provider_does_not_know(way: Way) -> None:
    session, finals = ask(core_with(Pondering, Thinking), said("Well?"), {"think": True}, way)
    assert Pondering.seen["think"] is True
    assert (finals[-1]["content"], finals[-1]["metadata"]["reasoning"]) == ("Yes.", "Hm, yes.")
    assert session.metadata["native_messages"][-1]["reasoning"] == "Hm, yes."


def test_a_knob_that_is_off_adds_nothing() -> None:
    ask(core_with(Pondering, Thinking), said("Well?"))
    assert "think" not in Pondering.seen


def test_reasoning_is_an_event_of_its_own() -> None:
    events = events_of(core_with(Pondering, Thinking), said("Well?"))
    assert [e["text"] for e in events if e["type"] == "reasoning"] == ["Hm, ", "yes."]


# --- patching by hand -----------------------------------------------------------------------------


class Patching(ProviderExtensionPlugin):
    """Without our mixin: patches the last partial message of a chunk, if the provider made one."""

    name = "patching"

    def process_chunk(self, native_chunk, partial_messages, final_messages, native_messages, state):  # type: ignore[no-untyped-def]
        (choice,) = (native_chunk or {}).get("choices") or [{}]
        body, base = choice.get("delta") or {}, state.get("partial") or {}
        patch = {}
        if body.get("reasoning"):
            patch["reasoning"] = body["reasoning"]
            base = {**base, "reasoning": base.get("reasoning", "") + body["reasoning"]}
        if body.get("tool_calls"):
            patch["tool_calls"] = ToolCalls.of(base.get("tool_calls"))
            patch["tool_calls"].merge(body["tool_calls"])
            base = {**base, "tool_calls": patch["tool_calls"]}
        if patch and partial_messages:
            partial_messages = [*partial_messages[:-1], {**partial_messages[-1], **patch}]
        return partial_messages, final_messages, list(native_messages), {**state, "partial": base}


class Quiet(Calling):
    """Most of its chunks have nothing that a provider alone would show."""

    chunks: list[Any] = [  # noqa: RUF012
        delta(role="assistant", content=None),
        delta(reasoning="Hm, "),
        delta(content=""),
        delta(reasoning="yes."),
        call(0, "", id="c1", type="function", function={"name": "read"}),
        call(0, '{"path":"A"}'),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]


def test_a_patch_is_shown_though_the_provider_has_nothing_to_show() -> None:
    events = events_of(core_with(Quiet, Patching), said("Read"))
    shown = [event for event in events if event["type"] not in ("request_started", "final")]
    assert [event["type"] for event in shown] == [
        *("partial", "reasoning") * 2,
        *("partial", "tool_call_started", "partial", "tool_call_delta"),
        *("tool_call", "done"),
    ]
    assert [event["text"] for event in shown if event["type"] == "reasoning"] == ["Hm, ", "yes."]
    assert shown[5] == {"type": "tool_call_started", "index": 0, "id": "c1", "name": "read"}
    assert shown[7] == {"type": "tool_call_delta", "index": 0, "arguments": '{"path":"A"}'}


def test_nothing_is_shown_of_a_message_that_nobody_has_patched() -> None:
    with core_with(Quiet).send_request_stream(said("Read"), {"retries": 0}) as stream:
        events: list[Any] = list(stream)
    kinds = [event["type"] for event in events]
    assert kinds == ["request_started", "warning", "final", "done"]
    assert "no plugin reads its calls" in events[1]["message"]


# --- native retention -----------------------------------------------------------------------------


class Marker(ProviderExtensionPlugin):
    def finalize(self, finals, native):  # type: ignore[no-untyped-def]
        return finals, [{**m, "_native_only": True} for m in native], {}

    def init(self, config, state):  # type: ignore[no-untyped-def]
        return state


@pytest.mark.parametrize("way", WAYS)
def test_a_native_only_mark_is_there_in_the_next_turn_on_another_core(way: Way) -> None:
    seen: list[Any] = []
    session = said("one")
    for text in ("two", ""):
        core = core_with(talker(seen))
        core.register_extension(Marker)
        session, _ = ask(core, session, {"model": "m"}, way)
        session = core.add_message(session, "user", text)
    assert [["_native_only" in m for m in request] for request in seen] == [
        [False],
        [True, True, False],
    ]


# --- actions --------------------------------------------------------------------------------------


class Compacting(ProviderExtensionPlugin):
    name = "compacting"

    def get_actions(self, state):  # type: ignore[no-untyped-def]
        inputs = {"keep": {"type": "integer", "required": False}}
        return [{"id": "compact", "inputs": inputs, "trigger": ["session_save_prepare"]}]

    def execute_action(self, action_id, session, native_messages, params, context, state):  # type: ignore[no-untyped-def]
        app = context.get("app")
        base_config = context.get("base_config", context.get("config", {}))
        kept = native_messages[-params.get("keep", 1) :]
        patch = {"compacted": [app is None, base_config is context["config"]]}
        return {"native_messages": kept, "session_metadata": patch}


def test_an_action_replaces_the_native_history() -> None:
    sent: list[Any] = []
    core = core_with(talker(sent), Compacting)
    session, _ = ask(core, said("one", "two"))
    session, result = core.execute_session_action(session, "compact", {}, {"keep": 2})
    assert [m["content"] for m in result["native_messages"]] == ["two", "Hi"]
    assert session.metadata["compacted"] == [True, True]
    ask(core, session.with_added({"role": "user", "content": "three"}))
    assert [m["content"] for m in sent[-1]] == ["two", "Hi", "three"]
    assert len(session.messages) == 3


def test_an_action_runs_at_the_trigger_it_names() -> None:
    core = core_with(talker(), Compacting)
    session, _ = ask(core, said("one"))
    assert core.run_session_lifecycle(session, "session_load", {}) == session
    saved = core.run_session_lifecycle(session, "session_save_prepare", {})
    assert [m["content"] for m in saved.metadata["native_messages"]] == ["Hi"]


# --- features -------------------------------------------------------------------------------------


class Bridge(FeaturePlugin):
    """Takes credentials from a file that another program keeps up to date."""

    name = "bridge"

    def init(self, config, state):  # type: ignore[no-untyped-def]
        path = os.path.join(os.environ["CONFIG_DIR"], "auth.json")
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        mode = config.get("auth_mode", "auto")
        if mode == "auto":
            mode = "token" if found.get("token") else "api"
        if mode == "token":
            state["config"]["api_key"] = found["token"]
            state["config"]["base_url"] = found["url"]
            state["client"] = None
        return state


class Authorised(ProviderPlugin):
    name = "authorised"

    def get_config_schema(self):  # type: ignore[no-untyped-def]
        return {"api_key": {"type": "string", "required": True, "secret": True}}

    def init(self, config):  # type: ignore[no-untyped-def]
        return {"config": config, "client": "made for another key"}

    def call_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        client = state["client"] or (state["config"]["base_url"], state["config"]["api_key"])
        final = {"role": "assistant", "content": client[0], "_metadata": {"n": len(client[1])}}
        return [], [final], [*native_messages, final], state


@pytest.mark.parametrize("way", WAYS)
def test_a_feature_brings_the_key_and_the_address(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"token": "t-0123456789", "url": "https://other.test"}
    (tmp_path / "auth.json").write_text(json.dumps(found), encoding="utf-8")
    monkeypatch.setenv("CONFIG_DIR", str(tmp_path))
    core = core_with(Authorised, Bridge)
    config: dict[str, Any] = {"base_url": "https://first.test"}
    session, finals = ask(core, said("Hello"), config, way)
    assert finals[-1]["content"] == "https://other.test"
    assert finals[-1]["metadata"]["n"] == len("t-0123456789")
    assert config == {"base_url": "https://first.test"}
    assert session.metadata["native_origin"] == ["authorised", "https://other.test"]


class Rendering(FeaturePlugin):
    name = "rendering"

    def initialize_request(self, native_messages, state):  # type: ignore[no-untyped-def]
        rendered = [{"role": "user", "content": " / ".join(m["content"] for m in native_messages)}]
        request = {**(state.get("request") or {}), "messages": rendered}
        return native_messages, {**state, "request": request}


@pytest.mark.parametrize("way", WAYS)
def test_a_feature_may_say_exactly_what_is_sent(way: Way) -> None:
    sent: list[Any] = []
    session, _ = ask(core_with(talker(sent), Rendering), said("one", "two"), {}, way)
    assert sent == [[{"role": "user", "content": "one / two"}]]
    assert [m["content"] for m in session.metadata["native_messages"]] == ["one", "two", "Hi"]


# --- looking at chunks ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_debug_stream_logs_the_chunks(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        events_of(core_with(Blocks), said("Hello"), {"debug_stream": True, "model": "m"}, way)
    logged = [r.getMessage() for r in caplog.records if r.getMessage().startswith("chunk ")]
    assert len(logged) == 5
    assert "'colour': 'red'" in logged[1]


def test_without_debug_stream_no_chunk_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        events_of(core_with(Blocks), said("Hello"))
    assert "chunk" not in caplog.text


# --- async forms ----------------------------------------------------------------------------------


class Awaiting(ProviderPlugin):
    """Has only async I/O, which sync callers can use all the same."""

    name = "awaiting"

    def init(self, config):  # type: ignore[no-untyped-def]
        return {"config": config}

    def call_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        raise AssertionError("the async form is there for async callers")

    async def acall_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        await asyncio.sleep(0)
        final = {"role": "assistant", "content": "awaited"}
        return [], [final], [*native_messages, final], state

    async def astream_api(self, native_messages, state):  # type: ignore[no-untyped-def]
        for text in ("a", "b", "c"):
            await asyncio.sleep(0)
            yield {"text": text}

    def process_chunk(self, native_chunk, native_messages, state):  # type: ignore[no-untyped-def]
        text = native_chunk["text"]
        state["acc"] = state.get("acc", "") + text
        return [{"role": "assistant", "content": text}], [], native_messages, state

    def finalize(self, native_messages, state):  # type: ignore[no-untyped-def]
        final = {"role": "assistant", "content": state["acc"]}
        return [final], [*native_messages, final], state


def test_async_callers_get_the_async_forms() -> None:
    core = core_with(Awaiting)
    assert ask(core, said("x"), {}, "acall")[1][-1]["content"] == "awaited"
    assert ask(core, said("x"), {}, "astream")[1][-1]["content"] == "abc"


def test_sync_callers_may_stream_from_an_async_generator() -> None:
    assert ask(core_with(Awaiting), said("x"), {}, "stream")[1][-1]["content"] == "abc"


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_may_be_any_iterable(way: Way) -> None:
    class Listed(Blocks):
        def stream_api(self, native_messages, state):  # type: ignore[no-untyped-def]
            return [{"type": "text", "delta": {"text": "listed"}}]

    assert ask(core_with(Listed), said("x"), {}, way)[1][-1]["content"] == "listed"


def test_a_stream_that_cannot_be_opened_names_plugin_and_hook() -> None:
    from agent_hookspecs.errors import HookError

    class Closed(Blocks):
        def stream_api(self, native_messages: Any, state: Any) -> Iterator[Any]:
            raise OSError("no line")

    stream = core_with(Closed).send_request_stream(said("x"), {})
    with pytest.raises(HookError, match=r"'blocks'.*'stream_api'.*OSError: no line"):
        list(stream)
