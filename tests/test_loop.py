"""The tool loop: turns, events and their order, parallel tools, cancellation, malformed calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from agent_hookspecs import (
    ConfigError,
    HookError,
    MalformedCallError,
    StreamCutError,
    ToolArgumentsError,
    ToolPlugin,
    get_warn_from_context,
)
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication, Limits, Session
from scripted import (
    WAYS,
    Way,
    answering,
    app_with,
    call,
    call_delta,
    calling,
    check_history,
    delta,
    done,
    end,
    events_of,
    kinds,
    of_kind,
    saying,
    scripted,
    session_of,
)

ways = pytest.mark.parametrize("way", WAYS)


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="read")
def fail(message: str = "out of order") -> str:
    """Fail."""
    raise RuntimeError(message)


@ways
def test_a_run_with_a_tool_has_its_events_in_order(way: Way) -> None:
    turns = [calling(call("add", '{"a": 1, "b": 2}'), text="Wait."), saying("Three.")]
    sent: list[Any] = []
    app = app_with(scripted(turns, sent), add)
    events = events_of(app, way=way)
    assert kinds(events) == [
        "request_started",
        "partial",
        "partial",
        "tool_call_started",
        "tool_call_delta",
        "tool_call",
        "final",
        "tool_started",
        "tool_result",
        "turn_end",
        "request_started",
        "partial",
        "final",
        "turn_end",
        "done",
    ]
    (result,) = of_kind(events, "tool_result")
    assert (result["id"], result["name"], result["message"]["content"]) == ("c1", "add", "3")
    assert [event["turn"] for event in of_kind(events, "turn_end")] == [1, 2]
    assert events[-1] == done()
    assert [message["role"] for message in sent[1]] == ["user", "assistant", "tool"]
    check_history(sent[1])


def test_sync_and_async_runs_give_the_same_events() -> None:
    def run(way: Way) -> list[Any]:
        turns = [calling(call("add", '{"a": 1, "b": 2}'), call("fail", id="c2")), saying("Done.")]
        events = events_of(app_with(scripted(turns), add, fail), way=way)
        return [{k: v for k, v in event.items() if k != "session"} for event in events]

    assert run("sync") == run("async")


@ways
def test_the_assistant_message_is_stored_before_its_tools_run(way: Way) -> None:
    seen: list[list[str]] = []
    streams: list[Any] = []

    @tool(effect="read")
    def look() -> str:
        """Look at the session so far."""
        seen.append([message["role"] for message in streams[0].session.messages])
        return "looked"

    app = app_with(scripted([calling(call("look")), saying("Done.")]), look)

    async def go() -> None:
        streams.append(app.astream("go"))
        async for _ in streams[0]:
            continue

    if way == "sync":
        streams.append(app.stream("go"))
        list(streams[0])
    else:
        asyncio.run(go())
    assert seen == [["user", "assistant"]]


@ways
def test_an_answer_is_what_run_gives(way: Way) -> None:
    turns = [calling(call("add", '{"a": 1, "b": 2}')), saying("Three.")]
    app = app_with(scripted(turns), add)
    answer = app.run("go") if way == "sync" else asyncio.run(app.arun("go"))
    assert (answer.text, answer.finish, answer.finish_reason) == ("Three.", "stop", "stop")
    assert [message["role"] for message in answer.messages] == ["assistant", "tool", "assistant"]
    check_history(answer.session.messages)


@ways
def test_results_keep_the_order_of_calls_though_tools_end_in_another(way: Way) -> None:
    second_done = threading.Event()

    @tool(effect="read")
    def first() -> str:
        """Wait for the second."""
        assert second_done.wait(10)
        return "one"

    @tool(effect="read")
    def second() -> str:
        """Be done at once."""
        second_done.set()
        return "two"

    turns = [calling(call("first", id="a"), call("second", id="b")), saying("Both.")]
    app = app_with(scripted(turns), first, second, config={"tools": {"parallel": True}})
    events = events_of(app, way=way)
    assert [(e["id"], e["message"]["content"]) for e in of_kind(events, "tool_result")] == [
        ("a", "one"),
        ("b", "two"),
    ]


@ways
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_parallel_tools_really_run_at_once(way: Way, kind: str) -> None:
    barrier = threading.Barrier(3, timeout=10)
    arrived: list[int] = []

    @tool(effect="read")
    def meet(number: int) -> int:
        """Wait until all are there."""
        barrier.wait()
        return number

    @tool(effect="read", name="meet")
    async def meet_async(number: int) -> int:
        """Wait until all are there."""
        arrived.append(number)
        await asyncio.to_thread(barrier.wait)
        return number

    turns = [
        calling(*(call("meet", f'{{"number": {n}}}', id=f"c{n}") for n in range(3))),
        saying("x"),
    ]
    used = meet if kind == "plain" else meet_async
    app = app_with(scripted(turns), used, config={"tools": {"parallel": True}})
    results = of_kind(events_of(app, way=way), "tool_result")
    assert [result["message"]["content"] for result in results] == ["0", "1", "2"]


@ways
@pytest.mark.parametrize("parallel", [False, True])
def test_the_model_is_asked_for_parallel_calls_only_when_they_are_wanted(
    way: Way, parallel: bool
) -> None:
    seen: list[Any] = []

    def init(self: object, config: dict[str, Any]) -> dict[str, Any]:
        seen.append(config["parallel_tool_calls"])
        return {"config": config, "request": {}, "partial": None}

    config = {"tools": {"parallel": parallel}}
    events_of(app_with(scripted([saying("x")], init=init), config=config), way=way)
    events_of(
        app_with(scripted([saying("x")], init=init), config=config),
        way=way,
        settings={"parallel_tool_calls": "as set"},
    )
    assert seen == [parallel, "as set"]


@ways
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_progress_becomes_events_and_the_last_word_is_the_result(
    way: Way, parallel: bool, kind: str
) -> None:
    @tool(effect="read", name="work")
    def work(n: int) -> Iterator[Any]:
        """Report progress, then return."""
        yield {"n": n, "done": 1}
        yield {"n": n, "done": 2}
        return f"result {n}"  # type: ignore[return-value]

    @tool(effect="read", name="work")
    async def work_async(n: int) -> AsyncIterator[Any]:
        """Report progress; the last item is the result."""
        yield {"n": n, "done": 1}
        yield {"n": n, "done": 2}
        yield f"result {n}"

    turns = [
        calling(call("work", '{"n": 1}', id="a"), call("work", '{"n": 2}', id="b")),
        saying("x"),
    ]
    used = work if kind == "plain" else work_async
    app = app_with(scripted(turns), used, config={"tools": {"parallel": parallel}})
    events = events_of(app, way=way)
    for identity, n in (("a", 1), ("b", 2)):
        updates = [e["update"] for e in of_kind(events, "tool_update") if e["id"] == identity]
        assert updates[:2] == [{"n": n, "done": 1}, {"n": n, "done": 2}]
    results = [event["message"]["content"] for event in of_kind(events, "tool_result")]
    assert results == ["result 1", "result 2"]


@ways
def test_a_tool_that_raises_gives_a_result_and_the_run_goes_on(way: Way) -> None:
    app = app_with(scripted([calling(call("fail")), saying("Sorry.")]), fail)
    events = events_of(app, way=way)
    (result,) = of_kind(events, "tool_result")
    assert result["message"]["content"] == "Tool 'fail' failed: RuntimeError: out of order"
    assert result["message"]["metadata"]["error"] is True
    assert events[-1] == done()


@ways
def test_a_tool_that_is_not_there_is_named_in_a_result(way: Way) -> None:
    app = app_with(scripted([calling(call("subtract")), saying("Sorry.")]), add)
    events = events_of(app, way=way)
    (result,) = of_kind(events, "tool_result")
    assert result["message"]["content"] == "Tool not found: subtract. Available: add."
    assert not of_kind(events, "tool_started")


@ways
def test_an_empty_answer_after_tools_is_asked_for_once_more(way: Way) -> None:
    sent: list[Any] = []
    turns = [calling(call("add", '{"a": 1, "b": 2}')), saying(" "), saying(""), saying("never")]
    events = events_of(app_with(scripted(turns, sent), add), way=way)
    assert len(sent) == 3
    assert sent[2][-1] == {"role": "user", "content": "Please provide your final answer."}
    assert events[-1] == done()


@ways
@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ({}, ["auto", "auto", "auto"]),
        ({"empty_final": "retry"}, ["auto", "auto", "auto"]),
        ({"empty_final": "retry_without_tools"}, ["auto", "auto", "none"]),
        ({"empty_final": "keep"}, ["auto", "auto"]),
    ],
)
def test_an_empty_answer_after_tools_can_be_kept_or_asked_for_without_tools(
    way: Way, choice: dict[str, str], wanted: list[str]
) -> None:
    choices: list[str] = []

    def initialize_request(self: object, native_messages: Any, state: Any) -> Any:
        choices.append(state["config"].get("tool_choice", "auto"))
        return native_messages, state

    turns = [calling(call("add", '{"a": 1, "b": 2}')), saying(""), saying("Three.")]
    provider = scripted(turns, initialize_request=initialize_request)
    events = events_of(app_with(provider, add, config={"tools": choice}), way=way)
    assert choices == wanted
    assert (events[-1]["type"], events[-1]["finish"]) == ("done", "stop")


@ways
def test_an_empty_answer_without_tools_is_an_answer(way: Way) -> None:
    sent: list[Any] = []
    events_of(app_with(scripted([saying("")], sent)), way=way)
    assert len(sent) == 1


@ways
def test_ids_are_unique_over_the_conversation(way: Way) -> None:
    same, blank = call("add", '{"a": 1, "b": 2}'), call("add", '{"a": 1, "b": 2}', id="")
    turns = [calling(same, same), calling(blank), calling(same, blank), saying("Done.")]
    sent: list[Any] = []
    app = app_with(scripted(turns, sent), add)
    events = events_of(app, way=way)
    check_history(sent[-1])
    first = of_kind(events, "final")[-1]["session"]
    assert [e["id"] for e in of_kind(events, "tool_result")][:2] == ["c1", "c1__2"]
    check_history(first.messages)


@ways
def test_the_way_out_of_a_tools_error_reaches_the_model(way: Way) -> None:
    @tool(effect="read")
    def cut(length: int) -> str:
        """Cut a piece."""
        raise ToolArgumentsError("too short", hint="at least 5")

    app = app_with(scripted([calling(call("cut", '{"length": 1}')), saying("x")]), cut)
    (result,) = of_kind(events_of(app, way=way), "tool_result")
    words = "Tool 'cut' failed: ToolArgumentsError: too short (at least 5)"
    assert result["message"]["content"] == words


@ways
def test_a_warning_is_said_once_a_run_with_the_name_of_its_plugin(way: Way) -> None:
    class Broken(ToolPlugin):
        name = "broken"

        def prepare(self, config: Any, state: Any) -> Any:
            raise ValueError("no water")

        def get_tool_schemas(self, state: Any) -> Any:
            return []

        def execute_tool(self, tool_name: Any, payload: Any) -> Any:
            return None

    add_up = calling(call("add", '{"a": 1, "b": 2}'))
    app = app_with(scripted([add_up, add_up, saying("x")]), add, Broken)
    said = of_kind(events_of(app, way=way), "warning")
    words = "tool plugin 'broken' could not be prepared: ValueError: no water"
    assert said == [{"type": "warning", "message": words, "plugin": "broken"}]
    app = app_with(scripted([add_up, add_up, saying("x")]), add, Broken)
    answer = app.run("go") if way == "sync" else asyncio.run(app.arun("go"))
    assert answer.warnings == said


def test_limits_are_given_as_such_or_by_their_keys_and_checked() -> None:
    app = app_with(scripted([calling(call("none"))] * 9))
    assert app.run("go", limits={"max_turns": 2}).limit == "max_turns"
    assert app.run("go", limits=Limits(turns=1)).limit == "max_turns"
    wrong: list[tuple[Any, str]] = [
        ({"max_turn": 1}, "there is no limit 'max_turn'"),
        ({"max_turns": 0}, r"limits\.max_turns"),
        (3, "limits is int"),
    ]
    for limits, words in wrong:
        with pytest.raises(ConfigError, match=words):
            app.run("go", limits=limits)


@ways
def test_a_run_that_fails_ends_with_one_error_event_and_raises_it(way: Way) -> None:
    def stream_api(self: object) -> Iterator[Any]:
        yield delta(content="So far")
        raise StreamCutError("gone")

    app = app_with(scripted([], stream_api=stream_api))
    events: list[Any] = []
    with pytest.raises(StreamCutError, match="gone"):
        events_of(app, way=way, into=events)
    assert kinds(events) == ["request_started", "partial", "error"]
    assert events[-1]["error"]["type"] == "StreamCutError"


def test_what_was_said_before_a_failure_is_in_the_session() -> None:
    def stream_api(self: object) -> Iterator[Any]:
        yield delta(content="So far")
        raise StreamCutError("gone")

    stream = app_with(scripted([], stream_api=stream_api)).stream("go")
    with pytest.raises(StreamCutError):
        list(stream)
    last = stream.session.messages[-1]
    assert (last["content"], last["metadata"]["partial"]) == ("So far", True)


@ways
def test_a_run_that_cannot_begin_ends_with_an_error_event_too(way: Way) -> None:
    app = app_with(scripted([]))
    events: list[Any] = []
    with pytest.raises(ConfigError, match="enabled_plugins is not a list of names"):
        events_of(app, way=way, into=events, settings={"enabled_plugins": 5})
    assert kinds(events) == ["error"]


def test_a_plugin_that_breaks_while_reading_is_named_once() -> None:
    def process_delta(self: object, delta: Any, accumulated: Any) -> Any:
        raise KeyError("choices")

    app = app_with(scripted([saying("x")], process_delta=process_delta))
    events: list[Any] = []
    with pytest.raises(HookError, match="scripted"):
        events_of(app, into=events)
    assert kinds(events) == ["request_started", "error"]


# --- cancelling ---


class Waiting(ToolPlugin):
    """A tool that works until somebody says that nobody waits for it."""

    name = "waiting"
    effects = {"wait": "read"}  # noqa: RUF012
    begun: threading.Event
    noticed: threading.Event

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"name": "wait", "parameters": {"type": "object"}}]

    def execute_tool(self, tool_name: str, payload: Any, state: Any, context: Any) -> Any:
        self.begun.set()
        pause = threading.Event()
        while not context["cancelled"]():
            pause.wait(0.01)
        self.noticed.set()
        return "too late"


def waiting() -> type[Waiting]:
    events = {"begun": threading.Event(), "noticed": threading.Event()}
    return type("Waiting", (Waiting,), events)


@pytest.mark.parametrize("parallel", [False, True])
def test_closing_from_another_thread_reaches_the_tool_that_runs(parallel: bool) -> None:
    plugin = waiting()
    turns = [calling(call("wait", id="a"), call("wait", id="b")), saying("never")]
    app = app_with(scripted(turns), plugin, config={"tools": {"parallel": parallel}})
    stream = app.stream("go")
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    assert plugin.begun.wait(10)
    stream.close()
    assert plugin.noticed.wait(10)
    reader.join(10)
    assert not reader.is_alive()
    check_history(stream.session.messages)
    assert "interrupted" in stream.session.messages[-1]["content"]


@pytest.mark.parametrize("parallel", [False, True])
def test_cancelling_the_task_reaches_the_tool_that_runs(parallel: bool) -> None:
    plugin = waiting()
    turns = [calling(call("wait", id="a"), call("wait", id="b")), saying("never")]
    app = app_with(scripted(turns), plugin, config={"tools": {"parallel": parallel}})

    async def go() -> Session:
        stream = app.astream("go")

        async def read() -> None:
            async for _ in stream:
                continue

        task = asyncio.create_task(read())
        assert await asyncio.to_thread(plugin.begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(plugin.noticed.wait, 10)
        return stream.session

    check_history(asyncio.run(go()).messages)


@pytest.mark.parametrize("how", ["cancel", "aclose"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_coroutine_tool_is_stopped_where_it_waits(how: str, parallel: bool) -> None:
    at_once = 2 if parallel else 1
    started: list[str] = []
    stopped: list[str] = []

    async def go() -> None:
        begun = asyncio.Event()

        @tool(effect="read")
        async def sleep() -> str:
            """Sleep for ever."""
            started.append("here")
            if len(started) == at_once:
                begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append("here")
            return "never"

        turns = [calling(call("sleep", id="a"), call("sleep", id="b")), saying("never")]
        app = app_with(scripted(turns), sleep, config={"tools": {"parallel": parallel}})
        stream = app.astream("go")

        async def read() -> None:
            async for _ in stream:
                continue

        task = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), 10)
        if how == "cancel":
            task.cancel()
        else:
            await stream.aclose()
        await asyncio.wait([task], timeout=10)
        assert task.done()
        check_history(stream.session.messages)

    asyncio.run(go())
    assert stopped == ["here"] * at_once


@ways
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_generator_tool_is_closed_when_nobody_reads_on(way: Way, kind: str) -> None:
    closed = threading.Event()

    @tool(effect="read", name="count")
    def count() -> Iterator[int]:
        """Count for ever."""
        try:
            n = 0
            while True:
                yield (n := n + 1)
        finally:
            closed.set()

    @tool(effect="read", name="count")
    async def count_async() -> AsyncIterator[int]:
        """Count for ever."""
        try:
            n = 0
            while True:
                yield (n := n + 1)
        finally:
            closed.set()

    app = app_with(scripted([calling(call("count"))]), count if kind == "plain" else count_async)

    async def go() -> Session:
        async with app.astream("go") as stream:
            async for event in stream:
                if event["type"] == "tool_update" and event["update"] == 3:
                    break
        return stream.session

    if way == "sync":
        with app.stream("go") as stream:
            for event in stream:
                if event["type"] == "tool_update" and event["update"] == 3:
                    break
        session = stream.session
    else:
        session = asyncio.run(go())
    assert closed.is_set()
    check_history(session.messages)
    assert [message["role"] for message in session.messages][:2] == ["user", "assistant"]


def test_a_session_that_was_left_in_the_middle_of_a_call_can_be_gone_on_with() -> None:
    sent: list[Any] = []
    left = Session(
        [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": "",
                "metadata": {"tool_calls": [call("add", id="a"), call("add", id="b")]},
            },
            {"role": "tool", "content": "3", "metadata": {"tool_call_id": "a"}},
        ]
    )
    answer = app_with(scripted([saying("Fine.")], sent), add).run("And now?", session=left)
    check_history(sent[0])
    assert "interrupted" in sent[0][3]["content"]
    assert answer.text == "Fine."


# --- what models get wrong ---

ARGS = '{"a": 1, "b": 2}'


def f(name: str | None = "add", arguments: Any = ARGS, **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {"function": {**named, "arguments": arguments}, **more}


#: Chunks as they were seen in the wild, by the number of the shape; how many calls really run.
SHAPES: dict[str, tuple[list[Any], int]] = {
    "1 no index": ([[f(arguments='{"a": 1', id="x")], [f(None, ', "b": 2}')]], 1),
    "2 index 0 for all": ([[f(index=0, id="x")], [f(index=0, id="y")]], 2),
    "3 first at index 1": ([[f(index=1, id="x")]], 1),
    "4 interleaved": (
        [
            [f(arguments="", index=0, id="x"), f(arguments="", index=1, id="y")],
            [f(None, '{"a": 1,', index=0)],
            [f(None, '{"a": 5,', index=1)],
            [f(None, '"b": 2}', index=0)],
            [f(None, '"b": 6}', index=1)],
        ],
        2,
    ),
    "5 arguments before the name": (
        [
            [f(None, ARGS, index=0, id="x")],
            [{"index": 0, "type": "function", "function": {"name": "add"}}],
        ],
        1,
    ),
    "6 id empty": ([[f(index=0, id="")], [f(index=1, id=None)], [f(index=2)]], 3),
    "7 name repeated": (
        [
            [f(arguments='{"a": 1', index=0, id="x")],
            [f("add", ', "b"', index=0, id="")],
            [f("", ": 2}", index=0, id=None)],
        ],
        1,
    ),
    "8 no arguments": ([[f("now", "", index=0, id="x")], [f("now", None, index=1, id="y")]], 2),
    "9 parses early": ([[f(arguments="{}", index=0, id="x")], [f(None, "more", index=0)]], 0),
    "10 malformed": ([[f(arguments='{"a": 1, "b":', index=0, id="x")]], 0),
    "11 object": ([[f(arguments={"a": 1, "b": 2}, index=0, id="x")]], 1),
    "12 a single object": ([f(index=0, id="x")], 1),
    "12 legacy": ([{"function_call": {"name": "add", "arguments": ARGS}}], 1),
    "13 huge index": ([[f(index=10**9, id="x")], [f(index=True, id="y")]], 2),
    "14 stop": ([[f(index=0, id="x")]], 1),
    "an array": ([[f(arguments="[1, 2]", index=0, id="x")]], 0),
}  # fmt: skip

NO_CALLS: list[Any] = [["add", None, 7, {}, {"function": None}, {"function": {"name": 5}}]]


def shape_chunks(chunks: Sequence[Any], reason: str) -> list[Any]:
    made = [
        delta(**c) if isinstance(c, dict) and "function_call" in c else delta(tool_calls=c)
        for c in chunks
    ]
    return [delta(role="assistant"), *made, end(reason)]


def shape_app(provider: type, ran: list[Any]) -> AgentApplication:
    @tool(effect="write", name="add")
    def add_and_tell(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    @tool(effect="write", name="now")
    def now_and_tell() -> str:
        """Tell the time."""
        ran.append("now")
        return "noon"

    return app_with(provider, add_and_tell, now_and_tell, approve=lambda approval: "once")


@ways
@pytest.mark.parametrize("shape", SHAPES)
def test_a_malformed_call_never_breaks_a_run_or_its_history(shape: str, way: Way) -> None:
    chunks, runs = SHAPES[shape]
    reason = "stop" if shape.startswith("14") else "tool_calls"
    ran: list[Any] = []
    sent: list[Any] = []
    provider = scripted([shape_chunks(chunks, reason), saying("Done."), saying("Done.")], sent)
    events = events_of(shape_app(provider, ran), way=way)
    assert len(ran) == runs
    assert kinds(events).count("done") == 1
    check_history(sent[-1])
    check_history(session_of(events).messages)
    assert len(of_kind(events, "tool_started")) == runs


@ways
def test_a_call_that_its_provider_calls_broken_is_answered_and_not_run(way: Way) -> None:
    ran: list[Any] = []
    broken = {"tool_call_errors": {"c1": "the server did not expect it"}}
    answers: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call("now")], "_metadata": broken},
        {"role": "assistant", "content": "Done."},
    ]
    events = events_of(shape_app(answering(answers, []), ran), way=way)
    assert ran == []
    [result] = of_kind(events, "tool_result")
    assert "the server did not expect it" in result["message"]["content"]
    check_history(session_of(events).messages)


@ways
def test_an_answer_of_calls_that_are_none_is_an_error(way: Way) -> None:
    provider = scripted([shape_chunks(NO_CALLS, "tool_calls"), saying("never")])
    with pytest.raises(MalformedCallError):
        events_of(shape_app(provider, []), way=way)


@ways
@pytest.mark.parametrize("shape", [*SHAPES, "not a call"])
def test_a_malformed_call_in_a_whole_answer_never_breaks_a_run_or_its_history(
    shape: str, way: Way
) -> None:
    """The provider hands on what it was sent, without looking at it."""
    chunks = SHAPES[shape][0] if shape in SHAPES else NO_CALLS
    raw = chunks[0] if isinstance(chunks[0], dict) else {"tool_calls": chunks[0]}
    raw = raw if "function_call" in raw or "tool_calls" in raw else {"tool_calls": raw}
    ran: list[Any] = []
    sent: list[Any] = []
    done = {"role": "assistant", "content": "Done."}
    answers = [{"role": "assistant", "content": "", **raw}, done, done]
    events = events_of(shape_app(answering(answers, sent), ran), way=way)
    assert kinds(events).count("done") == 1
    assert len(ran) == len(of_kind(events, "tool_started"))
    check_history(session_of(events).messages)
    check_history(sent[-1])


@ways
def test_an_answer_that_ends_inside_a_call_is_an_error_and_nothing_runs(way: Way) -> None:
    ran: list[Any] = []
    provider = scripted([[delta(content="I will"), call_delta(f(index=0, id="x"))]])
    app = shape_app(provider, ran)
    with pytest.raises(StreamCutError):
        events_of(app, way=way)
    assert ran == []


def test_an_unknown_provider_is_named_before_anything_happens() -> None:
    app = app_with(scripted([]))
    with pytest.raises(ConfigError, match="there is no provider 'scriptde'") as caught:
        app.run("go", provider="scriptde")
    assert caught.value.hint == "did you mean 'scripted'? there are: scripted"


@ways
def test_a_warning_is_not_repeated_in_every_turn(way: Way) -> None:
    @tool(effect="read")
    def look(n: int) -> str:
        """Look."""
        return str(n)

    def initialize_request(self: object, native_messages: Any, state: Any, context: Any) -> Any:
        get_warn_from_context(context, "nagging")("this model is old")
        return native_messages, state

    provider = scripted(
        [calling(call("look", '{"n": 1}')), saying("x")], initialize_request=initialize_request
    )
    warnings = of_kind(events_of(app_with(provider, look), way=way), "warning")
    assert [warning["message"] for warning in warnings] == ["this model is old"]
