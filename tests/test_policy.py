"""Whether a call may run: the truth table, the memory, and that nothing runs undecided."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import Effect, ToolPlugin
from agent_hookspecs.authoring import tool
from agent_host.agent.policy import Approval, Memory, Policy, ToolUse, digest_of, owner_of
from agent_host.plugins.discover import discover
from making import full, run_host, write_metadata, write_package
from scripted import WAYS, Way, app_with, call, calling, events_of, of_kind, saying, scripted

ways = pytest.mark.parametrize("way", WAYS)
EFFECTS: tuple[Effect, ...] = get_args(Effect)
#: How a descriptor announces a tool that says that it only reads.
READS = {"peek": "read"}


def use(
    effect: Effect = "write", *, name: str = "f", owner: str = "dist-x", own: bool = False
) -> ToolUse:
    return ToolUse("c1", name, effect, owner, {"a": 1}, own)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (use("read", owner="agent-host-echo"), "allow"),
        (use("read", owner="agent-host-files"), "allow"),
        (use("read", owner="Agent_Host.Files"), "allow"),
        (use("read", owner="approved-dist"), "allow"),
        (use("read", owner="Approved_Dist"), "allow"),
        (use("read", owner="registered:x", own=True), "allow"),
        (use("read", owner="dist-x"), "ask"),
        (use("read", owner="path:agent-host-files"), "ask"),
        (use("read", owner="path:/x/approved-dist/agent_plugin.json"), "ask"),
        *((use(effect, owner=owner), "ask")
          for effect in EFFECTS[1:] for owner in ("agent-host-files", "approved-dist", "dist-x")),
        *((use(effect, owner="registered:x", own=True), "ask") for effect in EFFECTS[1:]),
    ],
    ids=str,
)  # fmt: skip
def test_without_rules_only_reading_that_is_believed_is_allowed(
    made: ToolUse, verdict: str
) -> None:
    policy = Policy.of({"approved_distributions": ["approved-dist"]})
    assert policy.verdict(made)[0] == verdict


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("decision", ["allow", "ask", "deny"])
def test_effects_can_be_decided_one_by_one(effect: Effect, decision: str) -> None:
    policy = Policy.of({"effects": {effect: decision}})
    assert policy.verdict(use(effect, own=True))[0] == decision
    unbelieved = "ask" if (effect, decision) == ("read", "allow") else decision
    assert policy.verdict(use(effect))[0] == unbelieved


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([{"tool": "f", "decision": "allow"}, {"tool": "f", "decision": "deny"}], "allow"),
        ([{"tool": "f", "decision": "deny"}, {"tool": "f", "decision": "allow"}], "deny"),
        ([{"tool": "g*", "decision": "deny"}, {"tool": "?", "decision": "allow"}], "allow"),
        ([{"tool": "F", "decision": "deny"}], "ask"),
        ([{"effect": "write", "decision": "deny"}], "deny"),
        ([{"effect": "network", "decision": "deny"}], "ask"),
        ([{"tool": "f", "effect": "network", "decision": "deny"}], "ask"),
        ([{"tool": "f", "effect": "write", "decision": "allow"}], "allow"),
        ([{"decision": "deny"}], "deny"),
    ],
)
def test_the_first_rule_that_fits_counts(rules: list[dict[str, str]], verdict: str) -> None:
    assert Policy.of({"rules": rules}).verdict(use())[0] == verdict


@pytest.mark.parametrize(
    "name",
    [
        *("wipe_all", "Wipe_all", "WIPE_ALL", "wipe-all", " wipe_all", "wipe_all ", "wipe_all\n"),
        *("wipe_all\0", "wipe\u200b_all", "\uff57ipe_all", "functions.wipe_all", "tool:wipe_all"),
    ],
)
def test_no_other_spelling_of_a_denied_tool_runs(name: str) -> None:
    ran: list[str] = []

    @tool(effect="write")
    def wipe_all() -> str:
        """Wipe everything."""
        ran.append(name)
        return "wiped"

    rules = {"tools": {"rules": [{"tool": "wipe_all", "decision": "deny"}]}}
    provider = scripted([calling(call(name)), saying("x")])
    with app_with(provider, wipe_all, config=rules, approve=lambda approval: "once") as app:
        app.run("go")
    assert not ran


def test_a_rule_for_reading_does_not_believe_who_only_says_so() -> None:
    policy = Policy.of({"rules": [{"effect": "read", "decision": "allow"}]})
    assert policy.verdict(use("read"))[0] == "ask"
    assert policy.verdict(use("read", owner="agent-host-files"))[0] == "allow"
    named = Policy.of({"rules": [{"tool": "f", "decision": "allow"}]})
    assert named.verdict(use("read"))[0] == "allow"
    denied = Policy.of({"rules": [{"effect": "read", "decision": "deny"}]})
    assert denied.verdict(use("read"))[0] == "deny"


def test_a_rule_outweighs_what_was_allowed_for_good() -> None:
    policy = Policy.of({"rules": [{"tool": "f", "decision": "deny"}]})
    policy.memory.remember(use())
    assert policy.verdict(use())[0] == "deny"


# --- memory ---


def test_always_is_kept_privately_by_distribution_and_tool(tmp_path: Path) -> None:
    file = tmp_path / "home" / "allowed.json"
    policy = Policy(memory=Memory(file))
    assert policy.record_answer(use(), "always", "").allowed
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700
    assert json.loads(file.read_text("utf-8")) == [["dist-x", "f"]]
    later = Policy(memory=Memory(file))
    assert later.verdict(use("network"))[0] == "allow"
    assert later.verdict(use(name="g"))[0] == "ask"
    assert later.verdict(use(owner="dist-y"))[0] == "ask"


def test_once_is_not_remembered(tmp_path: Path) -> None:
    policy = Policy(memory=Memory(tmp_path / "allowed.json"))
    assert policy.record_answer(use(), "once", "").allowed
    assert policy.verdict(use())[0] == "ask"
    assert not (tmp_path / "allowed.json").exists()


def test_tools_of_a_program_are_remembered_while_it_runs_only(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "allowed.json")
    memory.remember(use(owner="registered:__main__:f", own=True))
    assert memory.scope_of(use(owner="registered:__main__:f", own=True))
    assert not (tmp_path / "allowed.json").exists()


def test_what_is_allowed_in_a_folder_is_asked_about_in_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "allowed.json"
    one, two = tmp_path / "one", tmp_path / "two"
    below = one / "below"
    for folder in (one, two, below):
        folder.mkdir()
    monkeypatch.chdir(one)
    policy = Policy(memory=Memory(file))
    assert policy.record_answer(use(), "folder", "").allowed
    assert json.loads(file.read_text("utf-8")) == [["dist-x", "f", str(one.resolve())]]
    assert Policy(memory=Memory(file)).verdict(use()) == ("allow", "allowed in this folder")
    for elsewhere in (two, below):
        monkeypatch.chdir(elsewhere)
        assert Policy(memory=Memory(file)).verdict(use())[0] == "ask"


def test_what_is_allowed_for_a_session_is_forgotten_with_it(tmp_path: Path) -> None:
    file = tmp_path / "allowed.json"
    policy = Policy(memory=Memory(file))
    assert policy.record_answer(use(), "session", "").allowed
    assert policy.verdict(use()) == ("allow", "allowed for this session")
    assert not file.exists()
    assert Policy(memory=Memory(file)).verdict(use())[0] == "ask"


def test_what_was_allowed_can_be_forgotten(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "allowed.json")
    memory.remember(use(), "folder")
    memory.remember(use(name="g"))
    everywhere, here = memory.allowed_tools()[::-1]
    assert (everywhere.name, everywhere.folder) == ("g", "")
    memory.forget([here])
    assert memory.scope_of(use()) is None
    assert Memory(tmp_path / "allowed.json").allowed_tools() == [everywhere]


def test_two_processes_do_not_forget_what_the_other_remembered(tmp_path: Path) -> None:
    one, two = (Memory(tmp_path / "allowed.json") for _ in range(2))
    one.remember(use(name="f"))
    two.remember(use(name="g"))
    assert Memory(tmp_path / "allowed.json").scope_of(use(name="f"))
    assert Memory(tmp_path / "allowed.json").scope_of(use(name="g"))


@pytest.mark.parametrize(
    "content", ["", "{", "{}", "5", '["dist-x", "f"]', '[["dist-x"], 5, ["dist-x", 7]]']
)
def test_a_damaged_memory_allows_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "allowed.json"
    file.write_text(content, encoding="utf-8")
    file.chmod(0o600)
    assert not Memory(file).scope_of(use())


def test_a_memory_that_others_can_write_allows_nothing(tmp_path: Path) -> None:
    file = tmp_path / "allowed.json"
    file.write_text('[["dist-x", "f"]]', encoding="utf-8")
    file.chmod(0o622)
    assert not Memory(file).scope_of(use())
    file.chmod(0o600)
    assert Memory(file).scope_of(use())


# --- approvals in a run ---


def writing(ran: list[Any]) -> Any:
    @tool(effect="write")
    def save(text: str) -> str:
        """Save a text."""
        ran.append(text)
        return "saved"

    return save


def turns() -> list[Any]:
    return [calling(call("save", '{"text": "x"}')), saying("Done.")]


@ways
@pytest.mark.parametrize(
    ("answer", "allowed"),
    [("once", True), ("always", True), ("session", True), ("folder", True), (True, True),
     ("deny", False), (False, False),
     (None, False), ("yes", False), (1, False), ([], False), ({}, False)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_only_a_clear_yes_lets_a_call_run(way: Way, answer: Any, allowed: bool, kind: str) -> None:
    ran: list[Any] = []
    seen: list[Approval] = []

    def approve(approval: Approval) -> Any:
        seen.append(approval)
        return answer

    async def approve_later(approval: Approval) -> Any:
        return approve(approval)

    asked = approve if kind == "plain" else approve_later
    app = app_with(scripted(turns()), writing(ran), approve=asked)
    events = events_of(app, way=way)
    (shown,) = of_kind(events, "approval_required")
    assert shown["payload"] == {"text": "x"}
    assert shown["digest"] == seen[0].digest == seen[0].use.digest
    assert bool(ran) is allowed
    assert [decision.allowed for decision in app.decisions] == [allowed]


@ways
def test_where_nobody_can_answer_the_answer_is_no_and_the_model_can_read_why(way: Way) -> None:
    ran: list[Any] = []
    app = app_with(scripted(turns()), writing(ran))
    events = events_of(app, way=way)
    (result,) = of_kind(events, "tool_result")
    assert result["message"]["content"] == (
        "Tool call denied: effect write, and nobody can be asked."
    )
    assert ran == []
    assert not of_kind(events, "approval_required")


@ways
def test_arguments_that_change_while_they_are_shown_are_denied(way: Way) -> None:
    ran: list[Any] = []

    def approve(approval: Approval) -> str:
        approval.use.payload["text"] = "something else"
        return "once"

    app = app_with(scripted(turns()), writing(ran), approve=approve)
    events_of(app, way=way)
    assert ran == []
    assert "changed while" in app.decisions[0].reason


@ways
def test_whoever_keeps_what_was_shown_cannot_change_what_runs(way: Way) -> None:
    ran: list[Any] = []
    app = app_with(scripted(turns()), writing(ran), approve=lambda approval: "once")
    kept: list[Any] = []

    def spoil(event: Any) -> None:
        if event["type"] in ("approval_required", "tool_started"):
            kept.append(event["payload"])
        if event["type"] == "tool_started":
            event["payload"]["text"] = "something else"

    async def go() -> None:
        async for event in app.astream("go"):
            spoil(event)

    if way == "sync":
        for event in app.stream("go"):
            spoil(event)
    else:
        asyncio.run(go())
    assert ran == ["x"]


@ways
def test_an_approver_that_fails_is_a_no(way: Way) -> None:
    def approve(approval: Approval) -> str:
        raise OSError("no terminal")

    ran: list[Any] = []
    app = app_with(scripted(turns()), writing(ran), approve=approve)
    events_of(app, way=way)
    assert ran == []
    assert app.decisions[0].reason == "asking failed: OSError: no terminal"


def test_nothing_of_a_turn_runs_while_one_of_its_calls_is_still_asked_about() -> None:
    ran: list[Any] = []

    def approve(approval: Approval) -> str:
        assert ran == []
        return "once"

    both = calling(call("save", '{"text": "x"}', id="a"), call("save", '{"text": "y"}', id="b"))
    events_of(app_with(scripted([both, saying("Done.")]), writing(ran), approve=approve))
    assert ran == ["x", "y"]


def test_a_tool_that_says_nothing_about_itself_is_one_that_could_do_anything() -> None:
    class Silent(ToolPlugin):
        name = "silent"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"name": "act", "parameters": {"type": "object"}}]

        def execute_tool(self, tool_name: str) -> str:
            raise AssertionError("nobody allowed it")

    app = app_with(scripted([calling(call("act")), saying("Done.")]), Silent)
    events_of(app)
    assert [(d.use.effect, d.allowed) for d in app.decisions] == [("execute", False)]


def test_every_decision_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        events_of(app_with(scripted(turns()), writing([])))
    assert "tool_decision tool=save effect=write" in caplog.text
    assert "allowed=False" in caplog.text


def test_the_digest_is_of_tool_owner_and_arguments() -> None:
    one = digest_of("dist", "f", {"a": 1, "b": 2})
    assert digest_of("dist", "f", {"b": 2, "a": 1}) == one
    others = [
        ("dist", "f", {"a": 1}),
        ("dist", "g", {"a": 1, "b": 2}),
        ("d", "f", {"a": 1, "b": 2}),
    ]
    assert one not in [digest_of(*other) for other in others]


DECISIONS = st.sampled_from(["allow", "ask", "deny"])
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "effects": st.dictionaries(st.sampled_from(EFFECTS), DECISIONS),
        "rules": st.lists(
            st.fixed_dictionaries(
                {"decision": DECISIONS},
                optional={
                    "tool": st.sampled_from(["*", "read", "w*", "?etwork", "execute"]),
                    "effect": st.sampled_from(EFFECTS),
                },
            ),
            max_size=4,
        ),
        "parallel": st.booleans(),
        "max_tool_calls_per_turn": st.integers(1, 3),
    },
)
CALLS = st.lists(
    st.tuples(
        st.sampled_from([*EFFECTS, "nothing"]),
        st.sampled_from(['{"n": 1}', '{"n": 2}', "{}", "", "{", '{"n": "x"}']),
    ),
    min_size=1,
    max_size=5,
)


@given(POLICIES, CALLS, st.sampled_from(["once", "always", "deny", None]))
@settings(max_examples=60, deadline=None)
def test_no_tool_runs_without_a_recorded_decision_that_allows_it(
    policy: dict[str, Any], calls: list[tuple[str, str]], answer: str | None
) -> None:
    ran: list[tuple[str, str]] = []
    app: Any = None

    class Everything(ToolPlugin):
        name = "everything"
        effects = {effect: effect for effect in EFFECTS}  # noqa: RUF012

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            numbers = {"type": "object", "properties": {"n": {"type": "integer"}}}
            return [{"name": effect, "parameters": numbers} for effect in EFFECTS]

        def execute_tool(self, tool_name: str, payload: Any) -> str:
            digests = [d.use.digest for d in app.decisions if d.allowed and d.use.name == tool_name]
            owner = app.decisions[0].use.owner
            assert digest_of(owner, tool_name, payload) in digests
            ran.append((tool_name, json.dumps(payload)))
            return "ran"

    script = [
        calling(*(call(name, text, id=f"c{n}") for n, (name, text) in enumerate(calls))),
        saying("Done."),
        saying("Done."),
    ]
    approve = None if answer is None else lambda approval: answer
    app = app_with(scripted(script), Everything, config={"tools": policy}, approve=approve)
    results = of_kind(events_of(app), "tool_result")
    assert len(results) == len(calls)
    assert not [r for r in results if "AssertionError" in r["message"]["content"]]
    allowed = [d for d in app.decisions if d.allowed]
    assert len(ran) == len(allowed)


# --- whose tools are believed without being approved ---


@pytest.mark.parametrize("package", ["agent_host_files", "pkg_own"])
def test_the_name_of_a_bundled_distribution_is_not_believed_in_any_folder(
    package: str, tmp_path: Path
) -> None:
    write_package(tmp_path, package, descriptor=full(package, "tool", "files", tools=READS))
    write_metadata(tmp_path, "agent-host-files", {"files": package})
    said = run_host("tools", "list", "--json", first=[tmp_path], home=tmp_path / "home")
    (found,) = [each for each in said.json["tools"] if each["tool"] == "peek"]
    assert found["verdict"] == "ask", found
    assert found["owner"].startswith(f"installed:{tmp_path}")


def test_plugins_that_announce_no_tools_are_named_beside_those_that_do(tmp_path: Path) -> None:
    write_package(tmp_path, "pkg_quiet", descriptor=full("pkg_quiet", "tool", "quiet"))
    write_metadata(tmp_path, "dist-quiet", {"quiet": "pkg_quiet"})
    said = run_host("tools", "list", "--json", first=[tmp_path], home=tmp_path / "home")
    assert "quiet" in said.json["unannounced"]
    shown = run_host("tools", "list", first=[tmp_path], home=tmp_path / "home").out
    assert "quiet" in shown.partition("Announcing none: ")[2]


def test_what_was_allowed_to_a_bundled_distribution_is_not_allowed_to_one_called_so(
    tmp_path: Path,
) -> None:
    write_package(tmp_path, "pkg", descriptor=full("pkg", "tool", "files", tools=READS))
    write_metadata(tmp_path, "Agent_Host.Files", {"files": "pkg", "more": "pkg.plugin:Plugin"})
    memory = Memory()
    memory.remember(use("read", name="peek", owner="agent-host-files"))
    policy = Policy.of({"approved_distributions": ["agent-host-files"]}, memory)
    for bundle in discover([str(tmp_path)]):
        made = use("read", name="peek", owner=owner_of(bundle))
        assert policy.verdict(made)[0] == "ask"
        approved = Policy.of({"approved_distributions": [owner_of(bundle)]})
        assert approved.verdict(made)[0] == "allow"


def test_a_distribution_that_is_installed_with_the_host_has_its_name() -> None:
    (echo,) = [each for each in discover() if each.distribution == "agent-host-echo"]
    assert owner_of(echo) == "agent-host-echo"
