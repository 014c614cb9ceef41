"""A real model tells what an answer cost, once."""

from __future__ import annotations

from typing import Any

import pytest
from agent_host import AgentApplication

pytestmark = pytest.mark.integration


def test_usage_is_told_once_and_kept_with_the_message(live: dict[str, Any]) -> None:
    with AgentApplication({}) as app, app.stream("Say hello in one word.", **live) as stream:
        told = [event["usage"] for event in stream if event["type"] == "usage"]
    assert len(told) == 1
    assert told[0]["input"] > 0
    assert told[0]["output"] > 0
    assert stream.session.messages[-1]["metadata"]["usage"] == told[0]
