"""A real model thinks before it answers, and its thoughts stay apart from the text."""

from __future__ import annotations

from typing import Any

import pytest
from agent_host import AgentApplication

pytestmark = pytest.mark.integration


def test_thoughts_are_shown_and_kept(live_reasoning: dict[str, Any]) -> None:
    with AgentApplication({}) as app, app.stream("What is 17 * 23?", **live_reasoning) as stream:
        thoughts = [event["text"] for event in stream if event["type"] == "reasoning"]
    message = stream.session.messages[-1]
    assert "".join(thoughts)
    assert message["metadata"]["reasoning"]
    assert message["content"].strip()


def test_a_conversation_with_thoughts_goes_on(live_reasoning: dict[str, Any]) -> None:
    with AgentApplication({}) as app:
        first = app.run("What is 17 * 23?", **live_reasoning)
        second = app.run("And twice that?", session=first.session, **live_reasoning)
    assert second.text.strip()
