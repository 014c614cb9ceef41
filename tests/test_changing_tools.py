"""Tools that say what they do not offer, and that they offer others by now."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent_hookspecs import ToolPlugin
from agent_hookspecs.authoring import tool
from agent_hookspecs.store.values import Question
from agent_host import AgentApplication

CONFIG = {"providers": {"main": {"provider": "echo"}}, "tools": {"effects": {"execute": "allow"}}}


class Shelf(ToolPlugin):
    """Offers a tool for each title that is on it."""

    name = "shelf"
    titles: ClassVar[list[str]] = []
    closed: ClassVar[list[list[str]]] = []

    def init(self, config: Any) -> Any:
        return {"titles": [*self.titles], "folder": config["plugin_folder"]}

    def get_tool_schemas(self, state: Any) -> list[dict[str, Any]]:
        described = {"description": "Read.", "parameters": {"type": "object", "properties": {}}}
        return [{"name": f"read_{title}", **described} for title in state["titles"]]

    def get_tool_warnings(self, state: Any) -> list[str]:
        return [] if state["titles"] else ["the shelf is empty; put a book there"]

    def has_changed_tools(self, state: Any) -> bool:
        if "broken" in self.titles:
            raise ValueError("the shelf fell over")
        return bool(state["titles"] != self.titles)

    def execute_tool(self, tool_name: str, payload: Any, state: Any) -> str:
        return f"{tool_name} of {len(state['titles'])}"

    def close(self, state: Any) -> None:
        self.closed.append(state["titles"])


@pytest.fixture
def shelf() -> type[Shelf]:
    class Own(Shelf):
        titles: ClassVar[list[str]] = []
        closed: ClassVar[list[list[str]]] = []

    return Own


def test_what_a_tool_has_to_say_is_told_with_every_run(shelf: type[Shelf]) -> None:
    with AgentApplication(CONFIG, tools=[shelf]) as app:
        for _ in range(2):
            told = [each for each in app.run("Hello").warnings if each.get("plugin") == "shelf"]
            assert [each["message"] for each in told] == ["the shelf is empty; put a book there"]


def test_tools_that_have_changed_are_offered_in_the_next_run(shelf: type[Shelf]) -> None:
    with AgentApplication(CONFIG, tools=[shelf]) as app:
        assert app.stack().tool_names.count("read_emma") == 0
        shelf.titles.append("emma")
        answer = app.run("/call read_emma {}")
        assert "read_emma of 1" in answer.text
        assert answer.warnings == []
        # Whoever used the stack before has left it.
        assert shelf.closed == [[]]
        assert app.stack() is app.stack()
    assert shelf.closed == [[], ["emma"]]


def test_a_stack_stays_if_its_tool_cannot_say_whether_it_has_changed(
    shelf: type[Shelf], caplog: pytest.LogCaptureFixture
) -> None:
    with AgentApplication(CONFIG, tools=[shelf]) as app:
        before = app.stack()
        shelf.titles.append("broken")
        assert app.stack() is before
    assert "the shelf fell over" in caplog.text


def test_a_tool_knows_the_folder_that_is_its_own(
    shelf: type[Shelf], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_HOST_HOME", str(tmp_path))
    with AgentApplication(CONFIG, tools=[shelf]) as app:
        (own,) = [each for each in app.stack().tools if each.plugin.name == "shelf"]
        assert own.state["folder"] == str(tmp_path / "plugins" / "shelf")


@tool(effect="write")
def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


def call(app: AgentApplication, name: str, payload: dict[str, Any], **options: Any) -> Any:
    return asyncio.run(app.acall_tool(name, payload, **options))


def test_a_tool_is_called_without_a_model_and_under_the_policy() -> None:
    with AgentApplication(CONFIG, tools=[save]) as app:
        denied = call(app, "save", {"text": "it"})
        assert "nobody can be asked" in denied["content"]
        assert denied["metadata"]["error"]
        allowed = call(app, "save", {"text": "it"}, approve=lambda approval: "once")
        assert allowed["content"] == "saved it"
        assert "Invalid arguments" in call(app, "save", {})["content"]
        assert "Tool not found" in call(app, "other", {})["content"]
        assert [decision.allowed for decision in app.decisions] == [False, True]


def test_a_call_without_a_model_may_come_to_its_question() -> None:
    with AgentApplication(CONFIG, tools=[save]) as app:
        question = call(app, "save", {"text": "it"}, park=True)
        assert isinstance(question, Question)
        assert question.shown["payload"] == {"text": "it"}
        digests: list[str] = []

        def approve(approval: Any) -> str:
            digests.append(approval.digest)
            return "once"

        assert call(app, "save", {"text": "it"}, approve=approve)["content"] == "saved it"
        assert digests == [question.digest]


def test_progress_of_a_call_without_a_model_is_told() -> None:
    @tool(effect="read")
    def count() -> Any:
        """Count."""
        yield "one"
        yield "two"
        return "done"

    events: list[Any] = []
    with AgentApplication(CONFIG, tools=[count]) as app:
        assert call(app, "count", {}, on_event=events.append)["content"] == "done"
    assert [each["update"] for each in events if each["type"] == "tool_update"] == ["one", "two"]


def test_an_agent_is_not_called_without_a_model() -> None:
    config = {**CONFIG, "agents": {"default": {}, "chef": {"system": "You cook."}}}
    with AgentApplication(config) as app:
        app.core.register_tool(app.agent("chef").as_tool())
        assert "called by agents alone" in call(app, "chef", {"prompt": "Soup."})["content"]
