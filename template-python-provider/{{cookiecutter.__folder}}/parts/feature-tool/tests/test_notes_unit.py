"""What is remembered is told to every model, and stands in no session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_host import AgentApplication

from {{ cookiecutter.package }}.notes import SETTING, Memory, read_notes


def call(verb: str, note: str) -> str:
    return f"/call {{ cookiecutter.__snake }}_{verb} " + json.dumps({"note": note})


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {SETTING: str(tmp_path / "notes.txt")}


def ask(prompt: str, config: dict[str, str]) -> str:
    with AgentApplication({}, approve=lambda approval: True, store=False) as app:
        return app.run(prompt, provider="echo", settings=config).text


def test_what_is_remembered_is_told_and_can_be_forgotten(config: dict[str, str]) -> None:
    assert Memory().get_instructions(config) is None
    ask(call("remember", "Her name is Ada."), config)
    said = Memory().get_instructions(config)
    assert said == "You were asked to remember:\nHer name is Ada."
    ask(call("forget", "Her name is Ada."), config)
    assert read_notes(config) == []


def test_a_note_that_is_not_there_is_told_with_those_there_are(config: dict[str, str]) -> None:
    ask(call("remember", "Tea."), config)
    assert "There are: Tea." in ask(call("forget", "Coffee."), config)


def test_what_the_model_is_told_is_no_message(config: dict[str, str]) -> None:
    ask(call("remember", "Tea."), config)
    with AgentApplication({}, store=False) as app:
        session = app.run("Hello", provider="echo", settings=config).session
    assert [message["content"] for message in session.messages] == ["Hello", "Hello"]
