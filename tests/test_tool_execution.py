"""Running tool calls: which run, which do not, and what becomes of what tools give back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from agent_hookspecs import ProviderPlugin, ToolPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin, accumulate_tool_calls
from agent_host import AgentCore
from talking import WAYS, Way, ask, core_with, said, talker


def call(
    name: str = "look", arguments: Any = "{}", call_id: str | None = "c1", **more: Any
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **more}


def tool(result: Any = None, **methods: Any) -> type[ToolPlugin]:
    """A plugin with the function tool ``look`` and the freeform tool ``write``."""

    class Tool(ToolPlugin):
        name = "tool"

        def get_tool_schemas(self, state: Any) -> Any:
            parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
            return [
                {"name": "look", "description": "", "parameters": parameters},
                {"type": "custom", "name": "write", "description": ""},
            ]

        def execute_tool(self, tool_name: str, payload: Any, state: Any, context: Any) -> Any:
            return result(payload) if callable(result) else result

    return type("Tool", (Tool,), methods)


def run(plugin: type[ToolPlugin], *calls: Any, **options: Any) -> list[Any]:
    return core_with(talker(), plugin).execute_tool_calls(calls or [call()], {}, **options)


# --- shapes of results ----------------------------------------------------------------------------

NATIVE = {
    "type": "provider_native_tool_result",
    "format": "openai.chat_completions",
    "content": [
        {"type": "text", "text": "<image>"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "text", "text": "</image>"},
    ],
}


@pytest.mark.parametrize(
    ("given", "content", "envelope"),
    [
        ("plain", "plain", None),
        ("", "", None),
        (None, "", None),
        (3, "3", None),
        (True, "true", None),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}', None),
        ([{"b": None}], '[{"b":null}]', None),
        ({"type": "other", "text": "x"}, '{"type":"other","text":"x"}', None),
        ({"type": "tool_result", "text": "x"}, "x", {"type": "tool_result", "text": "x"}),
        (NATIVE, "<image>\n</image>", NATIVE),
        ({"role": "tool", "content": "said"}, "said", None),
        ({"role": "tool", "content": {"a": 1}}, '{"a":1}', None),
        ({"role": "tool", "content": "said", "toolResult": NATIVE}, "said", NATIVE),
        ({"role": "user", "content": "x"}, '{"role":"user","content":"x"}', None),
    ],
)
@pytest.mark.parametrize("formatted", [False, True])
def test_what_a_tool_or_its_formatter_gives_becomes_a_message(
    given: Any, content: str, envelope: Any, formatted: bool
) -> None:
    if formatted:
        plugin = tool("raw", format_tool_result=lambda self, tool_name, result: given)
    else:
        plugin = tool(lambda payload: given)
    (message,) = run(plugin)
    assert message == {
        "role": "tool",
        "content": content,
        "metadata": {"tool_call_id": "c1", "tool_name": "look"},
        "toolResult": envelope or {"type": "tool_result", "text": content},
    }
    assert json.loads(json.dumps(message)) == message


def test_a_whole_message_keeps_its_display_but_not_a_false_name() -> None:
    given = {
        "role": "tool",
        "content": "x",
        "metadata": {"display": {"rows": 2}, "tool_name": "other", "tool_call_id": "other"},
    }
    (message,) = run(tool(given))
    assert message["metadata"] == {
        "display": {"rows": 2},
        "tool_name": "look",
        "tool_call_id": "c1",
    }


def test_a_formatter_is_given_the_result_and_the_payload() -> None:
    def shown(
        self: Any, tool_name: str, result: Any, payload: Any, state: Any, context: Any
    ) -> str:
        return f"{tool_name} {payload} -> {result} ({sorted(context)})"

    (message,) = run(tool(7, format_tool_result=shown), call(arguments='{"path":"a"}'))
    keys = ["call_id", "cancelled", "config", "tool_interop", "tools"]
    assert message["content"] == f"look {{'path': 'a'}} -> 7 ({keys})"


# --- calls that are run ---------------------------------------------------------------------------


def test_results_keep_the_order_of_the_calls() -> None:
    calls = [call(arguments=json.dumps({"path": p}), call_id=p) for p in ("b", "a", "c")]
    messages = run(tool(lambda payload: payload["path"]), *calls)
    assert [(m["content"], m["metadata"]["tool_call_id"]) for m in messages] == [
        ("b", "b"),
        ("a", "a"),
        ("c", "c"),
    ]


@pytest.mark.parametrize(
    "made",
    [
        call(arguments='{"path": "a"}'),
        call(arguments='```json\n{"path": "a"}\n```'),
        call(arguments=json.dumps('{"path": "a"}')),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"path":"a"}'},
    ],
)
def test_a_call_is_understood_in_every_shape(made: dict[str, Any]) -> None:
    (message,) = run(tool(lambda payload: payload["path"]), made)
    assert message["content"] == "a"
    assert message["metadata"]["tool_call_id"] == "c1"


@pytest.mark.parametrize(
    "made",
    [
        call("write", '{"input": "text"}'),
        {"type": "custom_tool_call", "call_id": "c1", "name": "write", "input": "text"},
    ],
)
def test_a_freeform_tool_gets_text_however_it_was_called(made: dict[str, Any]) -> None:
    assert run(tool(lambda payload: payload), made)[0]["content"] == "text"


def test_calls_can_be_taken_from_a_session_as_they_stand_there() -> None:
    def change(payload: Any) -> Any:
        payload["mine"] = True
        return payload

    given = call(arguments={"path": "a"})
    session = said("x").with_added({"role": "assistant", "metadata": {"tool_calls": [given]}})
    calls = session.messages[-1]["metadata"]["tool_calls"]
    (message,) = run(tool(change), *calls)
    assert message["content"] == '{"path":"a","mine":true}'
    assert calls == [given]


async def coroutine(payload: Any) -> str:
    await asyncio.sleep(0)
    return "awaited"


def generator(payload: Any) -> Generator[str, None, str]:
    yield "half way"
    return "returned"


def yielding(payload: Any) -> Iterator[str]:
    yield "half way"
    yield "last"


async def agenerator(payload: Any) -> AsyncIterator[str]:
    yield "half way"
    await asyncio.sleep(0)
    yield "last"


def empty(payload: Any) -> Iterator[str]:
    yield from ()


@pytest.mark.parametrize("within", ["sync", "async", "loop"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (coroutine, "awaited"),
        (generator, "returned"),
        (yielding, "last"),
        (agenerator, "last"),
        (empty, ""),
    ],
)
def test_tools_may_be_async_or_report_progress(body: Any, expected: str, within: str) -> None:
    core = core_with(talker(), tool(body))
    if within == "sync":
        (message,) = core.execute_tool_calls([call()], {})
    elif within == "async":
        (message,) = asyncio.run(core.aexecute_tool_calls([call()], {}))
    else:

        async def inside() -> list[Any]:
            return [*core.execute_tool_calls([call()], {})]

        (message,) = asyncio.run(inside())
    assert message["content"] == expected


def test_the_state_of_a_tool_is_its_own_and_kept() -> None:
    def count(self: Any, tool_name: str, payload: Any, state: Any) -> int:
        state["count"] += 1
        return int(state["count"])

    plugin = tool(init=lambda self, config: {"count": 0}, execute_tool=count)
    core = core_with(talker(), plugin)
    contents = [core.execute_tool_calls([call()], {})[0]["content"] for _ in range(2)]
    assert contents == ["1", "2"]


def test_a_slow_preparation_may_be_async_and_replaces_the_state() -> None:
    async def prepare(self: Any, config: Any, state: Any) -> Any:
        await asyncio.sleep(0)
        return {**state, "ready": True}

    def execute(self: Any, tool_name: str, payload: Any, state: Any) -> Any:
        return state

    plugin = tool(init=lambda self, config: {"n": 1}, prepare=prepare, execute_tool=execute)
    assert run(plugin)[0]["content"] == '{"n":1,"ready":true}'


def test_callers_may_add_to_the_context() -> None:
    def execute(self: Any, tool_name: str, payload: Any, state: Any, context: Any) -> Any:
        return [context["note"], context["cancelled"]()]

    assert run(tool(execute_tool=execute), context={"note": 1})[0]["content"] == "[1,false]"


# --- calls that are not run -----------------------------------------------------------------------


def never(payload: Any) -> Any:
    raise AssertionError("this call must not be run")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (call("lok"), "Tool not found: lok. Available: look, write."),
        (call(arguments='{"path":'), "Invalid JSON"),
        (call(arguments="[1]"), "not a JSON object"),
        (call(arguments="NaN"), "Invalid JSON"),
        (call(arguments=json.dumps({"path": "x" * 200_001})), "too large"),
        (call("write", '{"other": 1}'), "'input'"),
        (call(arguments='{"path": 3}'), "Invalid arguments for tool 'look'"),
        ({"strange": True}, "not understood"),
        ("text", "not understood"),
        (None, "not understood"),
    ],
)
def test_a_call_that_cannot_be_run_becomes_a_readable_result(made: Any, words: str) -> None:
    (message,) = run(tool(never), made)
    assert words in message["content"]
    assert message["metadata"]["error"] is True
    assert message["role"] == "tool"


def test_a_call_that_was_broken_is_not_run_although_history_has_mended_it() -> None:
    messages = run(
        tool(lambda payload: "ran"), call(), call(call_id="c2"), errors={"c2": "invalid_json"}
    )
    assert messages[0]["content"] == "ran"
    assert "Invalid JSON" in messages[1]["content"]


def failing(payload: Any) -> Any:
    raise ValueError("out of order")


async def afailing(payload: Any) -> Any:
    raise ValueError("out of order")


def halfway(payload: Any) -> Iterator[str]:
    yield "half way"
    raise ValueError("out of order")


def unwritable(payload: Any) -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("body", [failing, afailing, halfway])
def test_a_tool_that_raises_gives_an_error_result(
    body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = run(tool(body), call(), call("lok"))
    assert first["content"] == "Tool 'look' failed: ValueError: out of order"
    assert first["metadata"] == {"tool_call_id": "c1", "tool_name": "look", "error": True}
    assert "Tool not found" in second["content"]
    assert "tool_failed tool=look plugin=tool" in caplog.text


def test_a_formatter_that_raises_gives_an_error_result() -> None:
    def bad(self: Any, tool_name: str, result: Any) -> Any:
        raise ValueError("out of order")

    (message,) = run(tool("x", format_tool_result=bad))
    assert message["metadata"]["error"] is True


def test_a_result_that_cannot_be_written_gives_an_error_result() -> None:
    (message,) = run(tool(unwritable))
    assert message["metadata"]["error"] is True
    assert "ValueError" in message["content"]


# --- from the stream to the tool ------------------------------------------------------------------


class Broken(AccumulatorStreamingMixin, ProviderPlugin):
    """Streams one good call and one that was cut, and mends neither."""

    name = "broken"

    def init(self, config: Any) -> Any:
        return {"config": config, "partial": None}

    def process_delta(self, delta: Any, accumulated: Any) -> Any:
        fragment, message = super().process_delta(delta, accumulated)
        patch, message = accumulate_tool_calls(delta, message)
        return ({**(fragment or {}), **patch} if patch else fragment), message

    def stream_api(self, native_messages: Any, state: Any) -> Any:
        for index, pieces in enumerate((['{"pa', 'th":"a"}'], ['{"path": "b'])):
            for number, piece in enumerate(pieces):
                function = {"arguments": piece, **({"name": "look"} if number == 0 else {})}
                start = {"id": f"c{index}", "type": "function"} if number == 0 else {}
                calls = [{"index": index, "function": function, **start}]
                yield {"choices": [{"delta": {"tool_calls": calls}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}

    def from_native_messages(self, native_messages: Any) -> Any:
        return [
            {
                "role": n["role"],
                "content": n["content"],
                "metadata": {"tool_calls": n["tool_calls"]},
            }
            for n in native_messages
        ]


@pytest.mark.parametrize("way", WAYS)
def test_a_broken_call_is_mended_in_history_and_not_executed(way: Way) -> None:
    core: AgentCore = core_with(Broken, tool(lambda payload: payload["path"]))
    session, finals = ask(core, said("Look"), {}, way)
    metadata = finals[-1]["metadata"]
    assert [c["function"]["arguments"] for c in metadata["tool_calls"]] == ['{"path":"a"}', "{}"]
    assert metadata["tool_call_errors"] == {"c1": "invalid_json"}
    stored = session.messages[-1]["metadata"]
    results = core.execute_tool_calls(stored["tool_calls"], {}, errors=stored["tool_call_errors"])
    assert results[0]["content"] == "a"
    assert "Invalid JSON in tool call arguments" in results[1]["content"]
    assert session.with_added(*results).to_dict()["messages"][-1]["metadata"]["error"] is True


def test_a_broken_call_without_an_id_gets_one_so_that_nobody_runs_it() -> None:
    class Nameless(Broken):
        def stream_api(self, native_messages: Any, state: Any) -> Any:
            yield {}

        def finalize(self, native_messages: Any, state: Any) -> Any:
            calls = [call(arguments="{", call_id=None)]
            final = {"role": "assistant", "content": "", "tool_calls": calls}
            return [final], [*native_messages, final], state

    core = core_with(Nameless, tool(never))
    _, finals = ask(core, said("Look"))
    metadata = finals[-1]["metadata"]
    assert metadata["tool_call_errors"] == {"tc_1": "invalid_json"}
    (result,) = core.execute_tool_calls(
        metadata["tool_calls"], {}, errors=metadata["tool_call_errors"]
    )
    assert "Invalid JSON" in result["content"]
    assert result["metadata"]["tool_call_id"] == "tc_1"


def test_ids_that_the_conversation_has_used_do_not_hide_a_broken_call() -> None:
    class Blank(Broken):
        """Gives calls no ids; in the first turn it makes only the good one."""

        def stream_api(self, native_messages: Any, state: Any) -> Any:
            for chunk in super().stream_api(native_messages, state):
                calls = chunk["choices"][0]["delta"].get("tool_calls") or []
                for each in calls:
                    each.pop("id", None)
                if len(native_messages) > 1 or not any(each["index"] for each in calls):
                    yield chunk

    core = core_with(Blank, tool())
    session, _ = ask(core, said("Look"), {}, "stream")
    _, finals = ask(core, session.with_added({"role": "user", "content": "Again"}), {}, "stream")
    metadata = finals[-1]["metadata"]
    assert [c["id"] for c in metadata["tool_calls"]] == ["tc_2", "tc_3"]
    assert metadata["tool_call_errors"] == {"tc_3": "invalid_json"}


def test_calls_of_two_finals_are_told_apart_by_their_ids() -> None:
    class Twice(Broken):
        def finalize(self, native_messages: Any, state: Any) -> Any:
            (final,), _, state = super().finalize(native_messages, state)
            two = final["tool_calls"][1]
            finals = [
                {**final, "tool_calls": [two]},
                {**final, "tool_calls": [call(call_id="new")]},
            ]
            return finals, [*native_messages, *finals], state

    _, finals = ask(core_with(Twice, tool()), said("Look"), {}, "stream")
    errors = [final["metadata"].get("tool_call_errors") for final in finals]
    assert errors == [{"c1": "invalid_json"}, None]
