"""A real model and a tool in an application: from the config file to the finished task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
{%- if cookiecutter.kind not in ("tool", "mix") %}
from agent_hookspecs.authoring import tool
{%- endif %}
from agent_host import AgentApplication

pytestmark = pytest.mark.integration
{%- if cookiecutter.kind not in ("tool", "mix") %}


@tool(effect="read")
def to_miles(kilometres: float) -> float:
    """Convert kilometres to miles.

    Args:
        kilometres: The distance to convert.
    """
    return round(kilometres / 1.609344, 2)
{%- endif %}


def test_an_agent_uses_a_tool_and_answers(live_tools: dict[str, Any], tmp_path: Path) -> None:
    alias = {"provider": live_tools["provider"], "model": live_tools["model"]}
    config = {
        "providers": {"live": {**alias, **live_tools["settings"]}},
        "agents": {"default": {"provider": "live", "system": "Answer with the bare number."}},
    }
    file = tmp_path / "agent-host.json"
    file.write_text(json.dumps(config), encoding="utf-8")
{%- if cookiecutter.kind in ("tool", "mix") %}
    with AgentApplication(file, approve=lambda approval: "once") as app:
        prompt = "Use the tool {{ cookiecutter.__snake }}_convert: how many miles are 100 km?"
        answer = app.run(prompt)
    results = [m["content"] for m in answer.session.messages if m["role"] == "tool"]
    assert results
{%- else %}
    with AgentApplication(file, tools=[to_miles]) as app:
        answer = app.run("Use the tool to_miles: how many miles are 100 kilometres?")
    results = [m["content"] for m in answer.session.messages if m["role"] == "tool"]
    assert results
{%- endif %}
    assert answer.text.strip()
