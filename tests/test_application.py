"""`AgentApplication`: sessions, contexts, broadcasts, keys, and living beside others."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import agent_host
from agent_hookspecs import ConfigError, FeaturePlugin, ProviderPlugin, ToolPlugin
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication
from making import full, run_python, write_package
from scripted import (
    WAYS,
    Way,
    app_with,
    call,
    calling,
    check_history,
    done,
    events_of,
    kinds,
    saying,
    scripted,
)

ways = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ways
def test_a_session_is_gone_on_with(way: Way) -> None:
    sent: list[Any] = []
    app = app_with(scripted([saying("One."), saying("Two.")], sent))
    first = app.run("first", system="Be brief.")
    second = app.run("second", session=first.session)
    assert [message["content"] for message in sent[1]] == ["Be brief.", "first", "One.", "second"]
    assert second.session.id == first.session.id
    assert len(first.session.messages) == 3
    assert second.messages == list(second.session.messages[-1:])


def test_the_system_prompt_of_an_agent_begins_a_new_session_only() -> None:
    config = {"agents": {"default": {"provider": "scripted", "system": "Be kind."}}}
    sent: list[Any] = []
    app = app_with(scripted([saying("One."), saying("Two.")], sent), config=config)
    answer = app.run("first")
    app.run("second", session=answer.session)
    assert [message["role"] for message in sent[1]].count("system") == 1


def test_tools_can_be_chosen_by_pattern() -> None:
    app = app_with(scripted([saying("x")]), add)
    for tools, names in (
        (None, ["add"]),
        (["a*"], ["add"]),
        ("a*", ["add"]),
        ((), []),
        (["b"], []),
    ):
        config = app.request_config(use_tools=tools)
        assert [d.tool_name for d in app.core.get_tool_schemas(config)] == names


# --- contexts ---


class Watching(FeaturePlugin):
    """Keeps the contexts it is given."""

    name = "watching"
    seen: list[dict[str, Any]]

    def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Any:
        self.seen.append(context)
        return native_messages, state

    def get_actions(self, state: Any) -> list[Any]:
        return [{"id": "note", "trigger": ["session_save_prepare"]}]

    def execute_action(self, action_id: str, session: Any, params: Any, context: Any) -> Any:
        self.seen.append(context)
        return {"session_metadata": {"noted": True}}


@ways
def test_plugins_get_the_applications_layer_of_the_context(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    feature = type("Watching", (Watching,), {"seen": []})
    app = app_with(scripted([saying("x")]))
    app.core.register_feature(feature)
    events_of(app, way=way, context={"mine": 1, "app": "not mine", "config": "not mine"})
    session, _ = app.execute_session_action(app.create_session(), "note")
    saved = app.run_session_lifecycle(session, "session_save_prepare")
    assert saved.metadata["noted"] is True
    request, action, lifecycle = feature.seen  # type: ignore[attr-defined]
    for context in (request, action, lifecycle):
        assert context["app"] is context["application"] is app
        assert context["base_config"] == app.config.values
        assert context["trigger_source"] == "application"
        assert context["config"]["provider"] == "scripted"
    assert request["mine"] == 1
    assert lifecycle["lifecycle"] == "session_save_prepare"
    assert "reserved_context_keys_ignored" in caplog.text


SECRET = "sk-a-secret-of-the-provider"


@ways
def test_tools_see_no_secrets_of_the_provider(way: Way) -> None:
    seen: list[Any] = []

    class Curious(ToolPlugin):
        name = "curious"
        effects = {"look": "read"}  # noqa: RUF012

        def init(self, config: Any) -> Any:
            seen.append(config)
            return {}

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"name": "look", "parameters": {"type": "object"}}]

        def execute_tool(self, tool_name: str, payload: Any, state: Any, context: Any) -> str:
            seen.append(
                {k: v for k, v in context.items() if k not in ("tool_interop", "cancelled")}
            )
            return "looked"

        def observe_event(self, event: Any, context: Any) -> None:
            seen.append(context)

    config = {
        "providers": {"main": {"provider": "scripted", "api_key": SECRET, "base_url": "shown"}},
        "agents": {"default": {"provider": "main"}},
    }
    app = app_with(scripted([calling(call("look")), saying("x")]), Curious, config=config)
    events = events_of(app, way=way)
    assert SECRET not in repr(seen)
    assert "shown" in repr(seen[0])
    assert not any("app" in context for context in seen)
    assert SECRET not in json.dumps(events, default=lambda session: session.to_dict())


# --- broadcasts ---


class Listening(FeaturePlugin):
    name = "listening"
    heard: list[Any]
    broken = False

    def init(self, config: Any, state: Any) -> Any:
        return state

    def host_started(self, host: Any) -> None:
        self._hear(("started", host))

    def host_closing(self, host: Any) -> None:
        self._hear(("closing", host))

    def observe_event(self, event: Any, context: Any) -> None:
        self._hear(event["type"])

    def _hear(self, what: Any) -> None:
        self.heard.append(what)
        if self.broken:
            raise RuntimeError("deaf")


@ways
@pytest.mark.parametrize("broken", [False, True])
def test_plugins_hear_of_the_start_every_event_and_the_end(
    way: Way, broken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    feature = type("Listening", (Listening,), {"heard": [], "broken": broken})
    app = app_with(scripted([calling(call("add", '{"a": 1, "b": 2}')), saying("x")]), add)
    app.core.register_feature(feature)
    events = events_of(app, way=way)
    app.close()
    app.close()
    heard = feature.heard  # type: ignore[attr-defined]
    assert heard == [("started", app), *kinds(events), ("closing", app)]
    assert events[-1] == done()
    assert ("broadcast_failed" in caplog.text) is broken


def test_what_a_plugin_does_to_an_event_that_it_observes_is_seen_by_nobody() -> None:
    class Meddling(FeaturePlugin):
        name = "meddling"

        def init(self, config: Any, state: Any) -> Any:
            return state

        def observe_event(self, event: Any) -> None:
            for inner in [value for value in event.values() if isinstance(value, (dict, list))]:
                inner.clear()
            event.clear()

    script = [calling(call("add", '{"a": 1, "b": 2}')), saying("x")]
    plain = events_of(app_with(scripted(script), add))
    app = app_with(scripted(script), add)
    app.core.register_feature(Meddling)
    events = events_of(app)
    assert kinds(events) == kinds(plain)
    assert [event for event in events if event["type"] != "final"] == [
        event for event in plain if event["type"] != "final"
    ]


def test_an_application_can_be_closed_twice_and_async() -> None:
    async def go() -> None:
        async with app_with(scripted([saying("x")])) as app:
            assert (await app.arun("go")).text == "x"
            await app.aclose()
        app.close()

    asyncio.run(go())


# --- beside others ---


def test_two_applications_live_in_one_process() -> None:
    one = app_with(scripted([saying("one")]), config={"tools": {"max_turns": 1}})
    two = app_with(scripted([saying("two")]), add)
    assert (one.limits.turns, two.limits.turns) == (1, 20)
    assert [app.run("go").text for app in (one, two)] == ["one", "two"]
    one.close()
    assert [d.tool_name for d in two.core.get_tool_schemas(two.request_config())] == ["add"]


def test_one_application_serves_many_threads() -> None:
    def model(history: list[Any]) -> Any:
        if history[-1]["role"] == "tool":
            return saying(f"got {history[-1]['content']}")
        number = history[-1]["content"]
        return calling(call("add", f'{{"a": {number}, "b": 1}}'))

    app = app_with(scripted(model), add)
    texts: dict[int, str] = {}

    def ask(number: int) -> None:
        answer = app.run(str(number))
        check_history(answer.session.messages)
        texts[number] = answer.text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert texts == {number: f"got {number + 1}" for number in range(8)}


def test_sync_methods_work_inside_a_running_event_loop() -> None:
    @tool(effect="read")
    async def later(n: int) -> int:
        """Answer later."""
        await asyncio.sleep(0)
        return n

    turns = [calling(call("later", '{"n": 4}')), saying("x")]
    app = app_with(scripted([*turns, *turns]), later)

    async def go() -> None:
        answer = app.run("go")
        assert answer.messages[1]["content"] == "4"
        with app.stream("go") as stream:
            assert kinds(stream)[-1] == "done"

    asyncio.run(go())


# --- keys ---

NEEDY = """
from agent_hookspecs import ProviderPlugin


class Plugin(ProviderPlugin):
    name = "needy"
    requires_api_key = True

    def init(self, config):
        return {"config": config}

    def call_api(self, native_messages, state):
        final = {"role": "assistant", "content": "key of " + str(len(state["config"]["api_key"]))}
        return [], [final], [*native_messages, final], state
"""


@pytest.fixture
def needy(tmp_path: Path) -> dict[str, Any]:
    """The config of an application whose provider needs a key."""
    # A name of its own, because two folders with one package would shadow one another.
    package = f"needy_{abs(hash(tmp_path))}"
    descriptor = full(
        package, "provider", "needy", requires_api_key=True, key_variable="NEEDY_TEST_KEY"
    )
    write_package(tmp_path, package, descriptor=descriptor, source=NEEDY)
    return {"plugins": [f"path:{tmp_path}"], "agents": {"default": {"provider": "needy"}}}


def test_a_missing_key_is_named_with_its_customary_variable(
    needy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEEDY_TEST_KEY", raising=False)
    with AgentApplication(needy) as app, pytest.raises(ConfigError) as caught:
        app.run("go")
    assert caught.value.message == "provider 'needy' needs the setting 'api_key'"
    assert caught.value.hint == (
        "run: agent-host keys set needy; or set api_key, api_key_command, api_key_file or "
        "api_key_name in the config, or NEEDY_TEST_KEY in the environment"
    )


def test_the_customary_variable_is_used_unless_a_key_is_configured(
    needy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDY_TEST_KEY", "0123456789")
    with AgentApplication(needy) as app:
        assert app.run("go").text == "key of 10"
        assert app.run("go", settings={"api_key": "01234"}).text == "key of 5"
    configured = {**needy, "request_defaults": {"api_key": "0123456"}}
    with AgentApplication(configured) as app:
        assert app.run("go").text == "key of 7"


def test_the_customary_variable_may_stand_in_the_configs_environment(
    needy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDY_TEST_KEY", "")
    with AgentApplication({**needy, "env": {"NEEDY_TEST_KEY": "0123"}}) as app:
        assert app.run("go").text == "key of 4"


def test_a_feature_may_bring_the_key(needy: dict[str, Any]) -> None:
    class Bridge(FeaturePlugin):
        name = "bridge"

        def init(self, config: Any, state: Any) -> Any:
            state["config"]["api_key"] = "bridged"
            return state

    with AgentApplication(needy) as app:
        app.core.register_feature(Bridge)
        assert app.run("go").text == "key of 7"


def test_a_provider_that_fails_to_load_is_told_by_name(tmp_path: Path) -> None:
    write_package(tmp_path, "broken_pkg", descriptor=full("broken_pkg", "provider", "broken"))
    config = {"plugins": [f"path:{tmp_path}"], "agents": {"default": {"provider": "broken"}}}
    with AgentApplication(config) as app, pytest.raises(Exception, match="'broken' cannot be used"):
        app.run("go")


def test_a_provider_class_may_be_registered_by_hand() -> None:
    class Hello(ProviderPlugin):
        name = "hello"

        def call_api(self, native_messages: Any, state: Any) -> Any:
            final = {"role": "assistant", "content": f"Hello, {native_messages[-1]['content']}!"}
            return [], [final], [*native_messages, final], state

    with AgentApplication({}) as app:
        app.core.register_provider(Hello)
        assert app.run("you", provider="hello").text == "Hello, you!"


def test_a_program_that_only_waits_imports_no_event_loop(tmp_path: Path) -> None:
    done = run_python(
        """
from agent_host import AgentApplication
with AgentApplication({"allowed_plugins": ["echo"]}) as app:
    print(app.run("hello", provider="echo").text)
print("asyncio" in sys.modules)
""",
        cwd=tmp_path,
        AGENT_HOST_HOME=str(tmp_path),
    )
    assert done.code == 0, done.err
    assert done.out.endswith("False\n")


def test_an_option_that_a_run_does_not_have_is_named_with_the_nearest() -> None:
    options: Any = {"modle": "echo-1"}
    with AgentApplication({}) as app, pytest.raises(TypeError, match=r"'modle': .*'model'"):
        app.run("Hello", **options)


def test_type_checkers_see_every_public_name() -> None:
    source = Path(str(agent_host.__file__)).read_text("utf-8")
    typed = re.findall(r"\b(\w+) as \1\b", source)
    assert sorted(typed) == agent_host.__all__


@pytest.mark.parametrize("option", ["approve", "ask"])
def test_who_cannot_be_asked_is_refused_at_once(option: str) -> None:
    options: Any = {option: "yes"}
    with AgentApplication({}) as app, pytest.raises(ConfigError, match=f"{option} is str, and not"):
        app.run("Hello", **options)
