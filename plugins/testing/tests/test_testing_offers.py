"""How the suites find out under which name a tool is offered, in formats of any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testing_reference_formats import MemoFormat

from agent_host_testing import Gist, Offer, Request, Violation
from agent_host_testing.suites.tool_turns import offered_name

WORDS = "The kit:weather.now of a place."


class Format(MemoFormat):
    """One that says what is offered; the other formats of references do not."""

    def gist(self, request: Request) -> Gist:
        return Gist("", offers=(Offer("clock", {}), Offer("kit_weather_now", {})))


def asking(**body: Any) -> Request:
    return Request("POST", "/", {}, {}, json.dumps(body).encode(), body)


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "kit_weather_now", "description": WORDS}],
        [{"function": {"name": "kit_weather_now", "about": {"text": WORDS}}}],
        [["clock", "The time."], ["kit_weather_now", WORDS, {"type": "object"}]],
    ],
    ids=["objects", "nested", "lists"],
)
def test_a_tool_is_found_by_what_stands_beside_its_name(tools: list[Any]) -> None:
    request = asking(allowed=["kit_weather_now"], tools=tools)
    assert offered_name(Format(), request, "kit:weather.now") == "kit_weather_now"


def test_a_tool_that_is_not_offered_is_told_of() -> None:
    request = asking(tools=[{"name": "clock", "description": "The time."}])
    with pytest.raises(Violation, match="no name in the request stands beside the description"):
        offered_name(Format(), request, "kit:weather.now")
