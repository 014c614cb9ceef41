"""Session actions: when they run, what they are given, and what they leave behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, ServerError
from agent_hookspecs.errors import ConfigError, HookError, HookResultError, UnknownPluginError
from agent_hookspecs.roles import Plugin
from agent_host import Session
from agent_host.turn.actions import TRIGGERS
from talking import WAYS, Way, ask, core_with, said, talker

Natives = list[dict[str, Any]]


def acting(
    base: type[Plugin] = ProviderExtensionPlugin,
    result: Any = None,
    *,
    name: str = "acting",
    seen: list[dict[str, Any]] | None = None,
    **action: Any,
) -> type[Plugin]:
    """A plugin with one action that notes what it is given; ``result`` may be a function of it."""

    def execute(given: dict[str, Any]) -> Any:
        if seen is not None:
            seen.append(given)
        answer = result(given) if callable(result) else result
        return {} if answer is None else answer

    class OnNatives:
        def execute_action(
            self,
            action_id: str,
            session: Session,
            native_messages: Natives,
            params: dict[str, Any],
            context: dict[str, Any],
            state: dict[str, Any],
        ) -> Any:
            return execute({**locals()})

    class OnSessions:
        def execute_action(
            self,
            action_id: str,
            session: Session,
            params: dict[str, Any],
            context: dict[str, Any],
            state: dict[str, Any],
        ) -> Any:
            return execute({**locals()})

    shape = OnSessions if base is FeaturePlugin else OnNatives
    offered = [{"id": "act", **action}]
    return type(name, (shape, base), {"name": name, "get_actions": lambda self, state: offered})


# --- triggers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_an_action_runs_at_its_trigger_and_at_no_other(trigger: str) -> None:
    seen: list[dict[str, Any]] = []
    core = core_with(talker(), acting(seen=seen, trigger=[trigger]))
    for each in TRIGGERS:
        core.run_session_lifecycle(said("x"), each, {})
    assert [given["context"]["lifecycle"] for given in seen] == [trigger]
    assert seen[0]["params"] == {}


def test_there_are_six_triggers() -> None:
    assert TRIGGERS == (
        "session_save_prepare",
        "session_load",
        "request_start",
        "request_end",
        "context_refused",
        "session_close",
    )


def test_an_unknown_trigger_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no lifecycle trigger 'sesion_save'") as caught:
        core_with(talker()).run_session_lifecycle(said("x"), "sesion_save", {})
    assert "session_close" in caught.value.hint


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("base", [ProviderExtensionPlugin, FeaturePlugin])
def test_a_request_fires_its_own_triggers(way: Way, base: type[Plugin]) -> None:
    seen: list[dict[str, Any]] = []
    patch = {"session_metadata": {"acted": True}}
    both = acting(base, patch, seen=seen, trigger=["request_start", "request_end"])
    session, _ = ask(core_with(talker(), both), said("x"), {}, way)
    assert [given["context"]["lifecycle"] for given in seen] == ["request_start", "request_end"]
    assert [len(given["session"].messages) for given in seen] == [1, 2]
    assert session.metadata["acted"] is True


def test_a_trigger_may_be_a_plain_string() -> None:
    seen: list[dict[str, Any]] = []
    core = core_with(talker(), acting(seen=seen, trigger="session_load"))
    core.run_session_lifecycle(said("x"), "session_load", {})
    core.run_session_lifecycle(said("x"), "session_close", {})
    assert len(seen) == 1


def test_what_an_action_is_given_of_a_session_is_no_copy() -> None:
    seen: list[dict[str, Any]] = []
    core, session = core_with(talker(), acting(seen=seen, trigger="session_load")), said("x")
    core.run_session_lifecycle(session, "session_load", {})
    given = seen[0]["context"]["session"]
    # It may be long, and this happens at every request.
    assert given["messages"][0] is session.messages[0]
    assert json.loads(json.dumps(given)) == session.to_dict()


def test_a_repeated_attempt_starts_no_second_request() -> None:
    seen: list[dict[str, Any]] = []
    refusals = iter([True, False])

    def answer(natives: Natives) -> str:
        if next(refusals):
            raise ServerError("busy", retry_after=0.0)
        return "at last"

    both = acting(seen=seen, trigger=["request_start", "request_end"])
    _, finals = ask(core_with(talker(answer=answer), both), said("x"))
    assert finals[-1]["content"] == "at last"
    assert [given["context"]["lifecycle"] for given in seen] == ["request_start", "request_end"]


def test_what_an_action_does_at_the_start_is_what_the_request_sends() -> None:
    sent: list[Natives] = []
    memo = {"role": "system", "content": "memo"}

    def shorten(given: dict[str, Any]) -> Any:
        return {"native_messages": [memo, given["native_messages"][-1]]}

    core = core_with(talker(sent), acting(result=shorten, trigger=["request_start"]))
    session, _ = ask(core, said("one", "two"))
    assert sent == [[memo, {"role": "user", "content": "two"}]]
    assert [m["content"] for m in session.messages] == ["one", "two", "Hi"]


def test_a_failed_request_keeps_what_its_start_has_done() -> None:
    def refuse(natives: Natives) -> str:
        raise OSError("no line")

    patch = {"session_metadata": {"started": 1}}
    core = core_with(talker(answer=refuse), acting(result=patch, trigger=["request_start"]))
    stream = core.send_request_stream(said("x"), {})
    with pytest.raises(HookError):
        list(stream)
    assert stream.session.metadata["started"] == 1


def test_actions_of_one_trigger_run_in_order_and_see_each_others_work() -> None:
    def count(given: dict[str, Any]) -> Any:
        before = given["session"].metadata.get("count", [])
        return {"session_metadata": {"count": [*before, len(before)]}}

    plugins = [
        acting(FeaturePlugin, count, name="feature", trigger=["session_load"]),
        acting(result=count, name="b", trigger=["session_load"]),
        acting(result=count, name="a", trigger=["session_load"]),
    ]
    session = core_with(talker(), *plugins).run_session_lifecycle(said("x"), "session_load", {})
    assert session.metadata["count"] == [0, 1, 2]


# --- what an action is given ----------------------------------------------------------------------


def test_the_context_of_an_action_has_the_layer_of_the_core() -> None:
    seen: list[dict[str, Any]] = []
    quiet = type("quiet", (FeaturePlugin,), {"name": "quiet"})
    core = core_with(talker(), acting(seen=seen, trigger=["session_load"]), quiet)
    session = said("x").with_metadata({"topic": "t"})
    core.execute_session_action(session, "act", {"model": "m"}, {"n": 1})
    core.run_session_lifecycle(session, "session_load", {"model": "m"})
    called, triggered = (given["context"] for given in seen)
    for context in (called, triggered):
        assert context["core"] is core
        assert context["config"]["model"] == "m"
        assert context["trigger_source"] == "core"
        assert context["session"] == session.to_dict()
        assert json.dumps(context["session"])
        assert context["request_context"]["tool_interop"]["registry"]
        assert type(context["request_runtime"]["provider"]).__name__ == "Talker"
        assert [type(f) for f in context["request_runtime"]["features"]] == [quiet]
        assert not {"app", "application", "base_config"} & set(context)
    assert "lifecycle" not in called
    assert triggered["lifecycle"] == "session_load"
    assert seen[0]["params"] == {"n": 1}
    assert seen[0]["action_id"] == "act"
    assert seen[0]["state"]["config"]["model"] == "m"


def test_an_application_adds_a_layer_that_callers_cannot_replace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[dict[str, Any]] = []
    core = core_with(talker(), acting(seen=seen, trigger=["session_load"]))
    layer = {"app": "A", "application": "A", "base_config": {"x": 1}}
    layer["trigger_source"] = "application"
    added = {"app": "mine", "note": "kept"}
    core.execute_session_action(said("x"), "act", {}, context=added, layer=layer)
    core.run_session_lifecycle(said("x"), "session_load", {}, context=added, layer=layer)
    for given in seen:
        context = given["context"]
        assert {k: context[k] for k in layer} == layer
        assert context["note"] == "kept"
        assert context["core"] is core
    assert caplog.text.count("reserved_context_keys_ignored names=app") == 2


RESERVED = (
    *("core", "config", "tool_interop", "trigger_source", "session", "lifecycle"),
    *("request_context", "request_runtime", "app", "application", "base_config"),
)


@pytest.mark.parametrize("way", ["call", "acall"])
def test_callers_add_to_a_context_but_reserved_keys_are_kept(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[dict[str, Any]] = []

    class Looking(FeaturePlugin):
        name = "looking"

        def initialize_request(self, native_messages: Natives, state: Any, context: Any) -> Any:
            seen.append(context)
            return native_messages, state

        def finalize(self, finals: Natives, natives: Natives, state: Any, context: Any) -> Any:
            seen.append(context)
            return finals, natives, state

    core = core_with(talker(), Looking)
    added = {**dict.fromkeys(RESERVED, "mine"), "note": "kept"}
    if way == "call":
        core.send_request(said("x"), {}, context=added)
    else:
        asyncio.run(core.asend_request(said("x"), {}, context=added))
    assert len(seen) == 2
    for context in seen:
        assert context["note"] == "kept"
        assert "mine" not in context.values()
        assert context["core"] is core
    (record,) = [r for r in caplog.records if "reserved_context_keys_ignored" in r.getMessage()]
    assert record.levelname == "WARNING"
    assert all(key in record.getMessage() for key in RESERVED)
    assert "note" not in record.getMessage()


def test_a_feature_gets_no_native_history_and_cannot_replace_it() -> None:
    seen: list[dict[str, Any]] = []
    replacing = acting(FeaturePlugin, {"native_messages": []}, seen=seen)
    core = core_with(talker(), replacing)
    session, _ = ask(core, said("x"))
    changed, _ = core.execute_session_action(session, "act", {})
    assert "native_messages" not in seen[0]
    assert changed == session


def test_required_inputs_are_checked() -> None:
    inputs = {"depth": {"type": "integer", "required": True}, "note": {"type": "string"}}
    core = core_with(talker(), acting(inputs=inputs))
    with pytest.raises(ConfigError, match="'act' of 'acting' needs 'depth'") as caught:
        core.execute_session_action(said("x"), "act", {})
    assert caught.value.key == "depth"
    core.execute_session_action(said("x"), "act", {}, {"depth": 0})


def test_actions_are_listed_with_their_plugins() -> None:
    core = core_with(talker(), acting(label="Act"), acting(FeaturePlugin, name="other"))
    assert core.get_actions({}) == [
        {"id": "act", "label": "Act", "plugin": "acting", "role": "extension"},
        {"id": "act", "plugin": "other", "role": "feature"},
    ]
    assert core_with(talker()).get_actions({}) == []


# --- what an action leaves behind -----------------------------------------------------------------


def test_a_replacement_is_what_the_next_request_sends() -> None:
    sent: list[Natives] = []
    memo = {"role": "system", "content": "memo"}
    core = core_with(talker(sent), acting(result={"native_messages": [memo]}))
    session, _ = ask(core, said("one"))
    compacted, result = core.execute_session_action(session, "act", {})
    assert result == {"native_messages": [memo]}
    assert compacted.messages == session.messages
    again = Session.from_dict(json.loads(json.dumps(compacted.to_dict())))
    again, _ = ask(core, again.with_added({"role": "user", "content": "two"}))
    assert sent[-1] == [memo, {"role": "user", "content": "two"}]
    # The session before it still has its own history.
    ask(core, session.with_added({"role": "user", "content": "two"}))
    assert len(sent[-1]) == 3
    # An edit behind the compaction leaves it in place.
    edited = again.with_messages([*again.messages[:2], {"role": "user", "content": "other"}])
    ask(core, edited)
    assert sent[-1] == [memo, {"role": "user", "content": "other"}]


def test_natives_may_be_put_before_the_first_message() -> None:
    sent: list[Natives] = []
    memo = {"role": "system", "content": "memo"}
    core = core_with(talker(sent), acting(result={"native_messages": [memo]}))
    session, _ = core.execute_session_action(core.create_session(), "act", {})
    ask(core, core.add_message(session, "user", "one"))
    assert sent == [[memo, {"role": "user", "content": "one"}]]


def test_an_action_that_reports_an_error_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    error = {"type": "disabled", "message": "not today"}
    result = {"native_messages": [], "session_metadata": {"a": 1}, "error": error}
    core = core_with(talker(), acting(result=result, trigger=["session_load"]))
    session, _ = ask(core, said("x"))
    same, given = core.execute_session_action(session, "act", {})
    assert same == session
    assert given["error"] == error
    assert core.run_session_lifecycle(session, "session_load", {}) == session
    assert "action_failed plugin=acting action=act" in caplog.text
    assert "not today" in caplog.text


def failing(given: dict[str, Any]) -> Any:
    raise ValueError("out of order")


def test_an_action_that_raises_names_its_plugin_and_leaves_the_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = acting(result={"session_metadata": {"good": 1}}, name="z", trigger=["session_load"])
    core = core_with(talker(), acting(result=failing, trigger=["session_load"]), good)
    with pytest.raises(HookError, match=r"'acting'.*'execute_action'.*out of order"):
        core.execute_session_action(said("x"), "act", {})
    session = core.run_session_lifecycle(said("x"), "session_load", {})
    assert session.metadata["good"] == 1
    assert "action_failed plugin=acting" in caplog.text


def test_an_action_that_changes_the_session_in_place_is_told_so() -> None:
    def change(given: dict[str, Any]) -> Any:
        given["session"].messages[0]["content"] = "changed"

    with pytest.raises(HookError, match="cannot be changed in place"):
        core_with(talker(), acting(result=change)).execute_session_action(said("x"), "act", {})


def test_an_action_must_return_a_dict() -> None:
    core = core_with(talker(), acting(result=lambda given: [1]))
    with pytest.raises(HookResultError, match="must return a dict, not list"):
        core.execute_session_action(said("x"), "act", {})


def test_an_unknown_action_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownPluginError, match="action 'atc'") as caught:
        core_with(talker(), acting()).execute_session_action(said("x"), "atc", {})
    assert "act" in caught.value.hint
    with pytest.raises(UnknownPluginError) as caught:
        core_with(talker()).execute_session_action(said("x"), "act", {})
    assert "none" in caught.value.hint


def test_actions_that_cannot_be_listed_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def broken(self: Any, state: Any) -> Any:
        raise ValueError("out of order")

    bad = type("bad", (acting(name="bad"),), {"name": "bad", "get_actions": broken})
    odd = type("odd", (acting(name="odd"),), {"name": "odd", "get_actions": lambda s: [1, {}]})
    core = core_with(talker(), bad, odd, acting())
    assert [action["plugin"] for action in core.get_actions({})] == ["acting"]
    assert "actions_unavailable plugin=bad" in caplog.text


def test_actions_need_no_key() -> None:
    needing = talker(get_config_schema=lambda self: {"key": {"required": True}})
    core = core_with(needing, acting())
    core.execute_session_action(said("x"), "act", {})
    with pytest.raises(ConfigError, match="'key'"):
        ask(core, said("x"))


# --- sync and async -------------------------------------------------------------------------------


class Slow(ProviderExtensionPlugin):
    name = "slow"

    def get_actions(self) -> Any:
        return [{"id": "act", "trigger": ["request_end", "session_close"]}]

    async def execute_action(self, action_id: str, native_messages: Natives) -> Any:
        await asyncio.sleep(0)
        return {"session_metadata": {"awaited": len(native_messages)}}


def test_an_async_action_runs_for_sync_callers() -> None:
    core = core_with(talker(), Slow)
    session, _ = core.execute_session_action(said("x"), "act", {})
    assert session.metadata["awaited"] == 1
    closed = core.run_session_lifecycle(said("x"), "session_close", {})
    assert closed.metadata["awaited"] == 1


def test_an_async_action_runs_for_async_callers() -> None:
    core = core_with(talker(), Slow)

    async def run() -> tuple[Session, Session]:
        acted, _ = await core.aexecute_session_action(said("x"), "act", {})
        return acted, await core.arun_session_lifecycle(said("x"), "session_close", {})

    assert [s.metadata["awaited"] for s in asyncio.run(run())] == [1, 1]


def test_a_sync_call_from_within_an_event_loop_runs_an_async_action() -> None:
    core = core_with(talker(), Slow)

    async def run() -> Session:
        session, _ = core.execute_session_action(said("x"), "act", {})
        return session

    assert asyncio.run(run()).metadata["awaited"] == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_async_action_runs_within_a_request(way: Way) -> None:
    session, _ = ask(core_with(talker(), Slow), said("x"), {}, way)
    assert session.metadata["awaited"] == 2
