"""Headers that plugins add to requests, and what observers are told of the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_hookspecs import Context, FeaturePlugin, ToolPlugin
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication
from both_ways import sse, texts
from loopback import Peer, Request, serve
from openai_like import OpenAiLike
from scripted import app_with, call, calling, delta, end, saying, scripted


class Stamp(FeaturePlugin):
    """Adds headers of its own."""

    name = "stamp"
    gives: Any = None
    asked: list[Any]

    def outgoing_headers(self, request: dict[str, str], context: Any) -> Any:
        self.asked.append((request, context["run_path"], context["agent"]))
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def send(gives: Any, **options: Any) -> tuple[dict[str, str], list[str], Any]:
    """What a server was sent, what the run has warned of, and the plugin."""
    received: list[Request] = []

    def answer(peer: Peer, request: Request) -> None:
        received.append(request)
        peer.answer(sse(*texts("Yes.")), headers="content-type: text/event-stream\r\n")

    made: Any = type("Made", (Stamp,), {"gives": gives, "asked": []})
    with serve(answer) as server:
        url = server.url.replace("://", "://me:secret@")
        config = {
            "allowed_plugins": [],
            "agents": {"default": {"provider": "openai_like", "base_url": f"{url}/v1"}},
        }
        with AgentApplication(config) as app:
            app.core.register_provider(OpenAiLike)
            app.core.register_feature(made)
            warnings = [each["message"] for each in app.run("go", **options).warnings]
    return received[0].headers, warnings, made


def test_a_plugin_adds_headers_to_a_request() -> None:
    headers, warnings, plugin = send({"traceparent": "00-1-2-01"})
    assert headers["traceparent"] == "00-1-2-01"
    assert not warnings
    ((request, path, agent),) = plugin.asked
    assert (request["method"], agent, len(path)) == ("POST", None, 1)
    assert request["url"].endswith("/v1/chat/completions")
    assert "secret" not in request["url"]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("Authorization", "Bearer mine", "it is not for plugins to set"),
        ("Cookie", "a=b", "it is not for plugins to set"),
        ("Host", "elsewhere", "it is not for plugins to set"),
        ("x-line", "a\r\nb: c", "HTTP allows no such header"),
        ("x y", "a", "HTTP allows no such header"),
        ("x-number", 5, "HTTP allows no such header"),
    ],
)
def test_what_a_plugin_may_not_set_is_left_out_and_told(name: str, value: Any, why: str) -> None:
    headers, warnings, _ = send({name: value, "x-fine": "yes"})
    assert (headers["x-fine"], headers["authorization"]) == ("yes", "Bearer none")
    assert str(value) not in headers.values()
    assert warnings == [f"plugin 'stamp': the header {name!r} was not added: {why}"]


@pytest.mark.parametrize("gives", [RuntimeError("no ink"), 5, None, {}])
def test_a_plugin_without_headers_holds_nobody_up(gives: Any) -> None:
    headers, warnings, _ = send(gives)
    assert headers["authorization"] == "Bearer none"
    assert bool(warnings) is (gives is not None and gives != {})
    assert all("plugin 'stamp' adds no headers: " in each for each in warnings)


# The trace of a caller ----------------------------------------------------------------------------

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
STATE = {**TRACE, "tracestate": "vendor=1"}


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (STATE, STATE),
        ({**STATE, "authorization": "Bearer mine"}, STATE),
        ({"tracestate": "vendor=1"}, {}),
        ({"traceparent": "a\r\nb: c"}, {}),
        ({"traceparent": 5}, {}),
        ("nonsense", {}),
        (None, {}),
    ],
)
def test_the_trace_of_a_caller_goes_on_to_the_provider(given: Any, passed_on: Any) -> None:
    headers, warnings, _ = send(None, context={"trace_context": given})
    found = {name: headers[name] for name in STATE if name in headers}
    assert found == passed_on
    assert headers["authorization"] == "Bearer none"
    assert not warnings


def test_a_span_of_a_plugin_stands_in_place_of_the_callers() -> None:
    headers, _, _ = send({"traceparent": "00-1-2-01"}, context={"trace_context": STATE})
    assert headers["traceparent"] == "00-1-2-01"
    assert "tracestate" not in headers


@pytest.mark.parametrize("given", [None, {"TraceParent": "00-1-2-01", "x-other": "no"}, 5])
def test_a_tool_is_told_of_the_trace_that_its_call_is_in(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    @tool(effect="read")
    def look(context: Context) -> str:
        """Look around."""
        told.append(context.get("trace_context"))
        return "a tree"

    made: Any = type("Made", (Stamp,), {"gives": given, "asked": []})
    with app_with(scripted([calling(call("look")), saying("x")] * 2), look) as app:
        app.core.register_feature(made)
        app.run("go", context={"trace_context": TRACE})
        app.run("go")
    own = {"traceparent": "00-1-2-01"} if isinstance(given, dict) else None
    assert told == [own or TRACE, own]
    # A provider that does its own I/O sends nothing that could be added to.
    assert [request for request, _, _ in made.asked] == [
        {"method": "CALL", "url": "tool:look"},
        {"method": "CALL", "url": "tool:look"},
    ]
    assert ("header_not_added" in caplog.text) is (given == 5)


# Observers ----------------------------------------------------------------------------------------


class Watcher(FeaturePlugin):
    """Sees what happens, but of answers only how they begin."""

    name = "watcher"
    observes_fragments = False
    seen: list[Any]

    def observe_event(self, event: Any, context: Any) -> None:
        path = context["run_path"]
        while event["type"] == "child":
            path, event = (*path, event["id"]), event["event"]
        self.seen.append((event["type"], path, context["agent"]))


def watch(app: AgentApplication, *prompts: str, **options: Any) -> list[Any]:
    made: Any = type("Made", (Watcher,), {"seen": []})
    app.core.register_feature(made)
    with app:
        for prompt in prompts:
            app.run(prompt, **options)
    seen: list[Any] = made.seen
    return seen


def test_an_observer_sees_the_first_piece_of_each_answer_if_that_is_enough() -> None:
    pieces = [*(delta(content=word) for word in "abc"), end()]
    app = app_with(scripted([pieces, pieces]))
    seen = watch(app, "one", "two")
    kinds = [kind for kind, _, _ in seen]
    assert kinds == ["request_started", "partial", "final", "turn_end", "done"] * 2
    assert len({path for _, path, _ in seen}) == 2


def test_an_observer_that_does_not_care_is_asked_again_at_the_next_request() -> None:
    seen: list[str] = []

    class Picky(FeaturePlugin):
        name = "picky"

        def observe_event(self, event: Any, context: Any) -> bool | None:
            seen.append(event["type"])
            return False if len(seen) == 1 else None

    with app_with(scripted([calling(call("look")), saying("x")])) as app:
        app.core.register_feature(Picky)
        app.run("go", tools=[tool(effect="read")(look)])
    began, *rest = seen
    assert began == rest[0] == "request_started"
    assert rest[1:] == ["partial", "final", "turn_end", "done"]


def look() -> str:
    """Look around."""
    return "a tree"


def test_the_path_of_a_run_leads_from_the_first_to_those_that_it_makes() -> None:
    turns = iter([calling(call("chef", '{"prompt": "Soup"}')), saying("Soup."), saying("Served.")])
    agents = {"default": {"provider": "scripted"}, "chef": {"provider": "scripted"}}
    app = app_with(scripted(lambda history: next(turns)), config={"agents": agents})
    seen = watch(app, "go", agent="chef", tools=[app.agent("chef").as_tool()])
    (root,) = {path for _, path, _ in seen if len(path) == 1}
    assert {path for _, path, _ in seen} == {root, (*root, "c1")}
    assert {agent for _, _, agent in seen} == {"chef"}


def test_an_observer_is_told_what_the_caller_adds_and_nothing_in_the_place_of_the_host() -> None:
    seen: list[Any] = []

    class Curious(FeaturePlugin):
        name = "curious"

        def observe_event(self, event: Any, context: Any) -> None:
            seen.append((context["ticket"], context["run_path"], "deps" in context))

    with app_with(scripted([saying("x")])) as app:
        app.core.register_feature(Curious)
        app.run("go", context={"ticket": 7, "run_path": "mine", "deps": "mine"})
    assert seen
    assert all(each[0] == 7 and each[1] != "mine" and not each[2] for each in seen)


@pytest.mark.parametrize("kind", ["run", "request"])
def test_an_observer_is_told_that_nobody_reads_on(kind: str) -> None:
    pieces = [*(delta(content=word) for word in "abc"), end()]
    app = app_with(scripted([pieces]))
    made: Any = type("Made", (Watcher,), {"seen": []})
    app.core.register_feature(made)

    async def read_a_piece() -> None:
        if kind == "run":
            stream: Any = app.astream("go")
        else:
            session = app.create_session().with_added({"role": "user", "content": "go"})
            stream = app.asend_request_stream(session, app.request_config())
        async with stream as events:
            async for event in events:
                if event["type"] == "partial":
                    break
        await app.aclose()

    asyncio.run(read_a_piece())
    kinds = [kind for kind, _, _ in made.seen]
    assert kinds == ["request_started", "partial", "error"]


def test_a_request_without_a_loop_is_observed_like_a_run() -> None:
    app = app_with(scripted([saying("x")]))
    made: Any = type("Made", (Watcher,), {"seen": []})
    app.core.register_feature(made)

    async def read_all() -> list[Any]:
        session = app.create_session().with_added({"role": "user", "content": "go"})
        async with app.asend_request_stream(session, app.request_config()) as events:
            kinds: list[Any] = [event["type"] async for event in events]
        await app.aclose()
        return kinds

    kinds = asyncio.run(read_all())
    assert [kind for kind, _, _ in made.seen] == kinds
    assert kinds[-1] == "done"


def test_a_tool_that_observes_is_not_given_the_application() -> None:
    seen: list[Any] = []

    class Spy(ToolPlugin):
        name = "spy"
        effects = {"peek": "read"}  # noqa: RUF012 - as plugins write it

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"name": "peek", "description": "Peek.", "parameters": {"type": "object"}}]

        def execute_tool(self, tool_name: str) -> str:
            return ""

        def observe_event(self, event: Any, context: Any) -> None:
            seen.append(set(context))

    with app_with(scripted([saying("x")]), Spy) as app:
        app.run("go")
    assert seen
    assert all(keys == {"trigger_source", "run_path", "agent"} for keys in seen)
