"""A real model answers, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest
from agent_host import AgentApplication

pytestmark = pytest.mark.integration


def test_the_model_answers(live: dict[str, Any]) -> None:
    with AgentApplication({}) as app:
        assert app.run("Say hello in one word.", **live).text.strip()


def test_a_stream_ends_with_the_sum_of_its_fragments(live: dict[str, Any]) -> None:
    with AgentApplication({}) as app, app.stream("Count from 1 to 5.", **live) as stream:
        events = [*stream]
    fragments = [e["message"]["content"] for e in events if e["type"] == "partial"]
    assert "".join(fragments).strip() == stream.session.messages[-1]["content"].strip()
    assert events[-1]["type"] == "done"


def test_the_model_remembers_the_turn_before(live: dict[str, Any]) -> None:
    with AgentApplication({}) as app:
        first = app.run("My name is Ada.", **live)
        second = app.run("Say my name is Ada, once more.", session=first.session, **live)
    assert "Ada" in second.text
    assert len(second.session.messages) == 4
