"""A real model thinks between calls: what is signed goes back with them, or the API complains."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication

pytestmark = pytest.mark.integration


@tool(effect="read")
def secret_number(name: str) -> int:
    """The secret number of a person. Nobody knows it without this tool.

    Args:
        name: The name of the person.
    """
    return 4000 + len(name)


def test_calls_and_thoughts_alternate(live_tools_reasoning: dict[str, Any]) -> None:
    prompt = "Ask the tool secret_number about Ada, then tell me the number."
    with AgentApplication({}, tools=[secret_number]) as app:
        answer = app.run(prompt, **live_tools_reasoning)
    turns = [message["metadata"] for message in answer.session.messages]
    assert any(turn.get("tool_calls") for turn in turns)
    assert any(turn.get("reasoning") for turn in turns)
    assert "400" in answer.text
