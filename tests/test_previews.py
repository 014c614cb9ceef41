"""What a tool says a call would change: shown before the question, never done, never trusted."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_hookspecs import ToolPlugin
from agent_host.agent import preview as previews
from agent_host.agent.policy import Approval, Edited
from agent_host.agent.preview import NO_PREVIEW
from scripted import WAYS, Way, app_with, call, calling, events_of, of_kind, saying, scripted

ways = pytest.mark.parametrize("way", WAYS)

#: A machine with other work to do is no reason to fail.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Saving(ToolPlugin):
    """Saves texts, and says before what that would change."""

    name = "saving"
    effects = {"save": "write"}  # noqa: RUF012
    saved: Any = ()

    def __init__(self) -> None:
        type(self).saved = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        properties = {"text": {"type": "string"}, "path": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["text"]}
        return [{"name": "save", "description": "Save.", "parameters": parameters}]

    def preview_tool(self, payload: Any) -> Any:
        return [{"path": "a.txt", "before": "old\n", "after": payload["text"]}]

    def execute_tool(self, payload: Any) -> str:
        type(self).saved.append(payload)
        return "saved"


def turns() -> list[Any]:
    return [calling(call("save", '{"text": "new\\n"}')), saying("Done.")]


def ask(way: Way, tool: type[Saving] = Saving) -> tuple[Approval, dict[str, Any]]:
    """What an approver and a listener get to see of the question."""
    seen: list[Approval] = []

    def approve(approval: Approval) -> str:
        assert tool.saved == []
        seen.append(approval)
        return "once"

    app = app_with(scripted(turns()), tool, approve=approve)
    (event,) = of_kind(events_of(app, way=way), "approval_required")
    assert tool.saved == [{"text": "new\n"}]
    return seen[0], event


@ways
def test_a_question_has_what_the_call_would_change(way: Way) -> None:
    approval, event = ask(way)
    changes = [
        {
            "path": "a.txt",
            "change": "updated",
            "diff": "@@ -1,1 +1,1 @@\n-old\n+new",
            "added": 1,
            "removed": 1,
        }
    ]
    assert [*approval.preview.changes] == changes
    assert event["changes"] == changes
    assert approval.parameters == ("text", "path")


def raising(payload: Any) -> Any:
    raise OSError("the disk is away")


def exiting(payload: Any) -> Any:
    raise SystemExit(3)


def interrupting(payload: Any) -> Any:
    raise KeyboardInterrupt


@ways
@pytest.mark.parametrize(
    ("preview", "problem"),
    [
        (raising, "OSError: the disk is away"),
        (exiting, "SystemExit: 3"),
        (interrupting, "KeyboardInterrupt"),
        (lambda payload: "text", "must return a list"),
        (lambda payload: [5], "must return dicts"),
        (lambda payload: [{}], "KeyError: 'path'"),
        (lambda payload: [{"path": "a", "after": b"x"}], "a text of 'a' is bytes"),
    ],
)
def test_a_preview_that_fails_is_told_and_the_call_is_asked_about(
    way: Way, preview: Any, problem: str
) -> None:
    class Failing(Saving):
        def preview_tool(self, payload: Any) -> Any:
            return preview(payload)

    approval, event = ask(way, Failing)
    assert problem in approval.preview.problem
    assert event["no_preview"] == approval.preview.problem
    assert "changes" not in event


@ways
def test_a_preview_that_never_comes_is_not_waited_for(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "_SECONDS", 0.05)
    over = threading.Event()

    class Slow(Saving):
        def preview_tool(self, payload: Any) -> Any:
            over.wait(30)

    approval, _ = ask(way, Slow)
    over.set()
    assert approval.preview.problem == "it took longer than 0.05 s"


@ways
def test_a_preview_cannot_change_what_runs(way: Way) -> None:
    class Meddling(Saving):
        def preview_tool(self, payload: Any) -> Any:
            payload["text"] = "something else"
            return None

    approval, event = ask(way, Meddling)
    assert approval.preview == NO_PREVIEW
    assert "changes" not in event


def test_a_call_that_needs_no_approval_needs_no_preview() -> None:
    class Never(Saving):
        def preview_tool(self, payload: Any) -> Any:
            raise AssertionError("nobody is asked")

    rules = {"tools": {"rules": [{"tool": "save", "decision": "allow"}]}}
    events_of(app_with(scripted(turns()), Never, config=rules))
    assert Never.saved == [{"text": "new\n"}]


@ways
def test_edited_arguments_are_asked_about_again_and_the_model_is_told(way: Way) -> None:
    seen: list[Approval] = []

    def approve(approval: Approval) -> Any:
        seen.append(approval)
        return Edited({"text": "mine\n"}) if len(seen) == 1 else "once"

    app = app_with(scripted(turns()), Saving, approve=approve)
    events = events_of(app, way=way)
    first, second = of_kind(events, "approval_required")
    assert second["payload"] == {"text": "mine\n"}
    assert first["digest"] != second["digest"] == seen[1].digest
    assert "+mine" in second["changes"][0]["diff"]
    assert Saving.saved == [{"text": "mine\n"}]
    (result,) = of_kind(events, "tool_result")
    assert "The person changed the arguments" in result["message"]["content"]
    assert '{"text": "mine\\n"}' in result["message"]["content"]
    assert result["message"]["toolResult"]["text"] == result["message"]["content"]
    assert [decision.use.payload for decision in app.decisions] == [{"text": "mine\n"}]


@ways
def test_edited_arguments_that_do_not_fit_are_not_taken(way: Way) -> None:
    seen: list[Approval] = []

    def approve(approval: Approval) -> Any:
        seen.append(approval)
        return Edited({"text": 5}) if len(seen) == 1 else "deny"

    events_of(app_with(scripted(turns()), Saving, approve=approve), way=way)
    assert seen[1].use.payload == {"text": "new\n"}
    assert "the edited arguments were not taken" in seen[1].note
    assert Saving.saved == []


@ways
def test_arguments_that_change_while_they_are_edited_are_denied(way: Way) -> None:
    def approve(approval: Approval) -> Any:
        approval.use.payload["text"] = "something else"
        return Edited({"text": "mine"})

    app = app_with(scripted(turns()), Saving, approve=approve)
    events_of(app, way=way)
    assert Saving.saved == []
    assert "changed while" in app.decisions[0].reason


LINES = st.lists(st.sampled_from(["a", "b", "c", "", " a", "\ta"]), max_size=30)


def apply_difference(old: list[str], diff: str) -> list[str]:
    """The text that a unified difference makes of another; the long way."""
    made, at = [], 0
    for line in diff.split("\n") if diff else ():
        if line.startswith("@@"):
            first = int(line.split()[1][1:].split(",")[0]) - 1
            made += old[at:first]
            at = first
        elif line.startswith("+"):
            made.append(line[1:])
        elif not line.startswith("\\"):
            assert old[at] == line[1:]
            made += [line[1:]] if line.startswith(" ") else []
            at += 1
    return made + old[at:]


@patient
@given(LINES, LINES, st.sampled_from([2, 400]))
def test_a_difference_makes_the_one_text_of_the_other(
    old: list[str], new: list[str], most: int
) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    kept = previews._MAX_LINES
    previews._MAX_LINES = most  # type: ignore[misc]
    try:
        (change,) = previews._compare_all([{"path": "a", "before": before, "after": after}]).changes
    finally:
        previews._MAX_LINES = kept  # type: ignore[misc]
    assert apply_difference(old, change["diff"]) == new


def test_what_is_too_long_is_told_instead_of_compared() -> None:
    given = [{"path": "a", "before": "x\n" * 600_000, "after": ""}, *[{"path": "b"}] * 60]
    preview = previews._compare_all(given)
    assert preview.changes[0]["note"].startswith("too long to compare: 1200000 characters")
    assert preview.problem == "11 more files than can be compared"


def test_a_line_that_is_not_ended_is_told_of() -> None:
    (change,) = previews._compare_all([{"path": "a", "before": "x\n", "after": "x"}]).changes
    assert change["diff"] == "@@ -1,1 +1,1 @@\n-x\n+x\n\\ no line break at the end"
