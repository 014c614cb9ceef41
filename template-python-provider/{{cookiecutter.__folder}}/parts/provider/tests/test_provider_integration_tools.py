"""A real model calls a tool, and makes use of its result."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hookspecs.authoring import tool
from agent_host import AgentApplication

pytestmark = pytest.mark.integration


def test_a_call_has_its_arguments_and_gets_its_result(live_tools: dict[str, Any]) -> None:
    asked: list[str] = []

    @tool(effect="read")
    def warehouse_code(city: str) -> str:
        """The code of the warehouse in a city. Nobody knows it without this tool.

        Args:
            city: The name of the city.
        """
        asked.append(city)
        return "code 7431"

    with AgentApplication({}, tools=[warehouse_code]) as app:
        answer = app.run("Use the tool warehouse_code for the city of Oslo.", **live_tools)
    assert len(asked) == 1
    assert "7431" in answer.text
