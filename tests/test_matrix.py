"""Every hook times every way to misbehave, by blocking and by awaiting: nothing gets past the seam.

The cells are made from the specifications: a new hook is in the matrix once one of the scenarios
calls it, and a test says so if none does. In each cell one hook of one plugin misbehaves. The run
then ends well, or with an error of our tree that blames nobody else. With AGENT_HOST_MATRIX=whole
every cell is tried in all four ways of asking; else every other cell, in sync and async by turns.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import pytest

from agent_hookspecs import (
    AgentError,
    FeaturePlugin,
    ProviderExtensionPlugin,
    ProviderPlugin,
    ToolPlugin,
    hookimpl,
)
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_hookspecs.specs import SPECS, SpecRole, hooks_of
from agent_host import AgentApplication
from loopback import Peer, Request, Server, serve
from recording import Calls, recording
from talking import WAYS, Way

BASES: Mapping[str, type] = {
    "provider": ProviderPlugin,
    "extension": ProviderExtensionPlugin,
    "feature": FeaturePlugin,
    "tool": ToolPlugin,
}
#: Who has the hooks that any plugin may have.
HOSTED_BY = "feature"

#: Hooks that no run calls, and the tests of what calls them.
ELSEWHERE = {
    ("host", "open_session_store"): "tests/test_stores.py",
    ("host", "open_batch_engine"): "tests/test_batch_engine.py",
    ("provider", "get_batch_endpoint"): "tests/test_batch_engine.py",
    ("host", "cli_command"): "tests/test_cli_plugins.py",
    ("host", "model_prices"): "tests/test_costs.py",
}

Method = Callable[..., Any]
#: From the hook as it should be to one that misbehaves.
Behaviour = Callable[[Method], Method]


def raising(make: Callable[[], BaseException]) -> Behaviour:
    def behave(normal: Method) -> Method:
        def method(self: Any, **given: Any) -> Any:
            raise make()

        return method

    return behave


def returning(make: Callable[[], Any]) -> Behaviour:
    def behave(normal: Method) -> Method:
        return lambda self, **given: make()

    return behave


def awaited(normal: Method) -> Method:
    async def method(self: Any, **given: Any) -> Any:
        await asyncio.sleep(0)
        return normal(self, **given)

    return method


def awaited_exit(normal: Method) -> Method:
    async def method(self: Any, **given: Any) -> Any:
        raise SystemExit(3)

    return method


def generating(normal: Method) -> Method:
    def method(self: Any, **given: Any) -> Any:
        yield normal(self, **given)

    return method


def mutating(normal: Method) -> Method:
    """Empties or spoils whatever it is given, and then answers as it should."""

    def method(self: Any, **given: Any) -> Any:
        result = normal(self, **given)
        for name, value in given.items():
            if name == "config" and "state" in given:
                # The config of the state, which features may change.
                continue
            try:
                if isinstance(value, dict):
                    value.clear()
                    value["spoilt"] = object()
                elif isinstance(value, list):
                    value[:] = [None]
            except TypeError:
                # It cannot be changed, which is as good.
                pass
        return result

    return method


def nested() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


class Touchy:
    """An object that cannot be looked at: every attribute raises, its class and text included."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"nobody looks at {name}")

    def __repr__(self) -> str:
        raise RuntimeError("nobody prints it")


BEHAVIOURS: Mapping[str, Behaviour] = {
    "raises": raising(lambda: ValueError("it is broken")),
    "exits": raising(lambda: SystemExit(0)),
    "interrupts": raising(KeyboardInterrupt),
    "stops": raising(lambda: StopIteration("a stray one")),
    "recurses": raising(lambda: RecursionError("too deep")),
    "says nothing": returning(lambda: None),
    "says a number": returning(lambda: 42),
    "says text": returning(lambda: "x" * 10_000),
    "says lists": returning(lambda: [[], {}, None, object()]),
    "says a tuple": returning(lambda: ({}, [], 3, None)),
    "says a dict": returning(lambda: {"spoilt": {1: object()}}),
    "says what is nested": returning(nested),
    "says an object": returning(object),
    "says what cannot be looked at": returning(Touchy),
    "says lists of what cannot be looked at": returning(lambda: [Touchy()]),
    "says a dict of what cannot be looked at": returning(lambda: {"spoilt": Touchy()}),
    "is async": awaited,
    "is async and exits": awaited_exit,
    "is a generator": generating,
    "changes what it is given": mutating,
}


class Owner(AccumulatorStreamingMixin, ProviderPlugin):
    """A provider that talks to its server by itself."""

    name = "provider"

    def init(self, config: Any) -> Any:
        return {"config": config, "request": {}, "partial": None}

    def get_models(self, config: Any) -> Any:
        return [{"id": "m"}]

    def call_api(self, native_messages: Any, state: Any, context: Any) -> Any:
        final = {"role": "assistant", "content": "Hi"}
        return [], [final], [*native_messages, final], state

    async def acall_api(self, native_messages: Any, state: Any, context: Any) -> Any:
        return self.call_api(native_messages, state, context)

    def stream_api(self, native_messages: Any, state: Any, context: Any) -> Any:
        for text in ("H", "i"):
            yield {"choices": [{"delta": {"content": text}}]}

    async def astream_api(self, native_messages: Any, state: Any, context: Any) -> Any:
        for chunk in self.stream_api(native_messages, state, context):
            yield chunk

    def extract_delta(self, chunk: Any) -> Any:
        return super().extract_delta(chunk)

    def process_delta(self, delta: Any, accumulated: Any) -> Any:
        return super().process_delta(delta, accumulated)

    def get_ui_elements(self, config: Any, tags: Any, models: Any, context: Any) -> Any:
        return []


class Whole(ProviderPlugin):
    """A provider that talks to its server by itself, and gives whole answers."""

    name = "provider"
    init = Owner.init
    call_api = Owner.call_api
    acall_api = Owner.acall_api


def make_plugin(role: str, calls: Calls, **changed: Method) -> type:
    """A plugin with every hook of its role, and of any role, some of them changed."""
    own: dict[str, Method] = {}
    if role == "tool":
        own = {
            "preview_tool": lambda self, **given: None,
            "get_prompts": lambda self, **given: [{"name": "greet"}],
            "read_prompt": lambda self, **given: ["Good morning"],
            "read_attachment": lambda self, **given: ["a note"],
        }
    if role == "provider":
        own = {"map_error": lambda self, **given: None, "usage_so_far": lambda self, **given: None}
    elements: dict[str, Any] = {"get_ui_elements": lambda self, **given: []}
    hosted = {}
    if role == HOSTED_BY:
        hosted = {
            name: hookimpl(changed.pop(name, lambda self, **given: None))
            for name in hooks_of("host")
            if ("host", name) not in ELSEWHERE
        }
    attributes: dict[str, Any] = {"framing": "sse"} if role == "provider" else {}
    if role == "tool":
        attributes = {"effects": {"look": "write"}}
    return recording(
        BASES[role], role, calls, **{**elements, **own, **hosted, **attributes, **changed}
    )


class Cell:
    """One hook of one plugin that misbehaves, and the four plugins of a run."""

    def __init__(self, role: SpecRole, hook: str, behaviour: Behaviour) -> None:
        self.role, self.hook = role, hook
        self.plugin = HOSTED_BY if role == "host" else role
        self.calls = Calls()
        self._coroutines: list[Any] = []
        self._behaviour = behaviour

    def close(self) -> None:
        """End the coroutines that nobody has awaited, which would be told elsewhere."""
        for coroutine in self._coroutines:
            coroutine.close()

    def _change(self, normal: Method) -> Method:
        bad = self._behaviour(normal)

        names = hooks_of(self.role)[self.hook].args

        def method(self_: Any, *args: Any, **given: Any) -> Any:
            return self._keep(bad(self_, **dict(zip(names, args, strict=False)), **given))

        return method

    def _keep(self, result: Any) -> Any:
        if inspect.iscoroutine(result):
            self._coroutines.append(result)
        return result

    def change_plugin(self, role: str, plugin: type) -> type:
        if role != self.plugin:
            return plugin
        return type(plugin.__name__, (plugin,), self.changed_hooks(plugin))

    def changed_hooks(self, plugin: type) -> dict[str, Method]:
        """The hook in its changed form, if the plugin has it."""
        normal = getattr(plugin, self.hook, None)
        if normal is None:
            return {}
        bad = self._change(lambda self_, **given: self._keep(_call(normal, self_, given)))
        if self.role == "host":
            bad = hookimpl(bad)
        return {self.hook: bad}


class Watch:
    """Plugins of which nobody misbehaves, and the hooks of them that were called."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.called: set[tuple[str, str]] = set()

    def change_plugin(self, role: str, plugin: type) -> type:
        changed: dict[str, Method] = {}
        for each in (role, "host") if role == HOSTED_BY else (role,):
            for hook in hooks_of(cast(SpecRole, each)):
                cell = Cell(cast(SpecRole, each), hook, partial(self._noting, (each, hook)))
                changed |= cell.changed_hooks(plugin)
        return type(plugin.__name__, (plugin,), changed)

    def _noting(self, place: tuple[str, str], normal: Method) -> Method:
        def method(self_: Any, **given: Any) -> Any:
            self.called.add(place)
            return normal(self_, **given)

        return method

    def close(self) -> None:
        """Nothing is left over where all behave."""


def plugins_of(cell: Cell | Watch, provider: type | None) -> list[tuple[str, type]]:
    """One of each role; ``provider`` in place of the one that uses the wire."""
    made = [(role, make_plugin(role, cell.calls)) for role in BASES]
    if provider is not None:
        made[0] = ("provider", provider)
    return [(role, cell.change_plugin(role, plugin)) for role, plugin in made]


def _call(normal: Method, self: Any, given: Mapping[str, Any]) -> Any:
    code = getattr(normal, "__code__", None)
    if code is None or code.co_flags & 0x08:
        return normal(self, **given)
    return normal(self, **{k: v for k, v in given.items() if k in code.co_varnames})


def run_in(way: Way, app: AgentApplication) -> None:
    if way == "call":
        app.run("call")
    elif way == "stream":
        for _ in app.stream("call"):
            continue
    else:
        asyncio.run(_run_async(way, app))


async def _run_async(way: Way, app: AgentApplication) -> None:
    try:
        if way == "acall":
            await app.arun("call")
        else:
            async for _ in app.astream("call"):
                continue
    finally:
        await app.core.aclose()


def ask_core(way: Way, app: AgentApplication) -> None:
    """A request without a loop, whose answer comes as a whole."""
    session, config = app.create_session(), app.request_config()
    session = app.core.add_message(session, "user", "call")
    if way in ("call", "stream"):
        app.core.send_request(session, config)
    else:
        asyncio.run(_ask_core(app, session, config))


async def _ask_core(app: AgentApplication, session: Any, config: Any) -> None:
    try:
        await app.core.asend_request(session, config)
    finally:
        await app.core.aclose()


def run_cell(cell: Cell | Watch, server: Server, way: Way, scenario: str) -> None:
    settings = {"base_url": f"{server.url}/{scenario}", "model": "m", "retries": 0}
    if scenario == "keyed":
        settings["api_key_name"] = "provider"
    config = {
        "allowed_plugins": [],
        "agents": {"default": {"provider": "provider"}},
        "request_defaults": settings,
    }
    app = AgentApplication(config, approve=lambda approval: "once")
    for role, plugin in plugins_of(cell, {"owned": Owner, "whole": Whole}.get(scenario)):
        getattr(app.core, f"register_{role}")(plugin)
    try:
        if scenario == "shown":
            app.core.get_ui_elements(app.request_config())
        elif scenario == "offered":
            app.list_prompts()
            app.read_prompt("greet")
            app.read_attachment("desk:note")
        elif scenario == "core":
            ask_core(way, app)
        else:
            run_in(way, app)
    finally:
        app.close()


SCENARIOS = ("wire", "core", "owned", "whole", "refused", "broken", "shown", "offered", "keyed")
#: Those in which a run fails although every plugin behaves.
FAILING = ("refused", "broken", "keyed")


def play(peer: Peer, request: Request) -> None:
    chunk = b'data: {"n": 1}\n\n'
    if "/models" in request.line:
        peer.answer(json.dumps([{"id": "m"}]).encode())
    elif "/refused" in request.line:
        peer.answer(b"{}", status="500 Oops")
    elif "/broken" in request.line:
        peer.begin("content-type: text/event-stream\r\n")
        peer.chunk(chunk)
        peer.reset()
    elif json.loads(request.body)["stream"]:
        peer.answer(chunk * 2)
    else:
        peer.answer(b'{"n": 1}')


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(play) as made:
        yield made


HOOKS = [(role, hook) for role in SPECS for hook in hooks_of(role) if (role, hook) not in ELSEWHERE]
IS_WHOLE = os.environ.get("AGENT_HOST_MATRIX") == "whole"
#: By turns, unless the whole matrix is wanted.
TRIED: tuple[Way, Way] = ("stream", "acall")


def outcome_of(cell: Cell | Watch, server: Server, way: Way, scenario: str) -> BaseException | None:
    """What a run ends with; it has to end."""
    ended: list[BaseException | None] = []

    def work() -> None:
        try:
            run_cell(cell, server, way, scenario)
            ended.append(None)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert ended, "it hangs"
    cell.close()
    return ended[0]


def complaint(cell: Cell, error: BaseException | None) -> str:
    """What is wrong with how a run has ended."""
    # A plugin that is interrupted by a person cannot be told from one that raises the same.
    if error is None or isinstance(error, KeyboardInterrupt):
        return ""
    if not isinstance(error, AgentError):
        return f"an error that is none of ours: {type(error).__name__}: {error}"
    blamed = getattr(error, "plugin", None)
    if blamed is not None and blamed != cell.plugin:
        return f"{blamed!r} is blamed: {error}"
    return ""


@pytest.mark.parametrize(("role", "hook"), HOOKS)
def test_nothing_gets_past_the_seam(
    role: SpecRole, hook: str, server: Server, scenarios: Mapping[tuple[str, str], str]
) -> None:
    scenario = scenarios.get((role, hook))
    assert scenario, "no scenario calls it: add one that does, or name its tests in ELSEWHERE"
    complaints = []
    for number, (name, behaviour) in enumerate(BEHAVIOURS.items()):
        place = number + HOOKS.index((role, hook))
        if place % 2 and not IS_WHOLE:
            continue
        for way in WAYS if IS_WHOLE else (TRIED[place // 2 % 2],):
            cell = Cell(role, hook, behaviour)
            said = complaint(cell, outcome_of(cell, server, way, scenario))
            if said:
                complaints.append(f"{name}, {scenario}, {way}: {said}")
    assert complaints == []


@pytest.fixture(scope="module")
def scenarios(server: Server) -> Mapping[tuple[str, str], str]:
    """The scenario that calls a hook; of several that do, the first."""
    found: dict[tuple[str, str], str] = {}
    for scenario in SCENARIOS:
        for way in WAYS:
            watch = Watch()
            error = outcome_of(watch, server, way, scenario)
            assert (error is not None) is (scenario in FAILING), (scenario, way, error)
            for place in watch.called:
                found.setdefault(place, scenario)
    return found


def test_what_is_not_in_the_matrix_is_tested_elsewhere() -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for (role, hook), file in ELSEWHERE.items():
        assert hook in hooks_of(role)
        with open(os.path.join(root, file), encoding="utf-8") as tests:
            assert hook in tests.read()
