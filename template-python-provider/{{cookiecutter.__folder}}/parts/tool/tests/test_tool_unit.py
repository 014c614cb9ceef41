"""The conversions themselves, and calls of them in a host."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hookspecs import ToolArgumentsError
from agent_host import AgentApplication

from {{ cookiecutter.package }}.units import UNITS, convert, units


@pytest.mark.parametrize(
    ("value", "source", "target", "said"),
    [
        (5, "km", "mi", "5 km = 3.10686 mi"),
        (1, "lb", "g", "1 lb = 453.592 g"),
        (212, "F", "C", "212 F = 100 C"),
        (0, "K", "C", "0 K = -273.15 C"),
    ],
)
def test_units_are_converted(value: float, source: Any, target: Any, said: str) -> None:
    assert convert(value, source, target) == said


def test_units_of_different_quantities_are_refused() -> None:
    with pytest.raises(ToolArgumentsError, match="km measures length and kg measures mass"):
        convert(1, "km", "kg")


def test_every_unit_is_listed_once() -> None:
    assert sorted(unit for listed in units().values() for unit in listed) == sorted(UNITS)


def called(payload: str) -> str:
    """What a model gets that calls the tool; the offline model calls what it is told to."""
    with AgentApplication({}, approve=lambda approval: "once") as app:
        return app.run(f"/call {{ cookiecutter.__snake }}_convert {payload}").text


def test_a_model_gets_the_result() -> None:
    assert "5 km = 3.10686 mi" in called('{"value": 5, "source": "km", "target": "mi"}')


def test_a_model_is_told_what_is_wrong_with_its_call() -> None:
    assert "target" in called('{"value": 5, "source": "km", "target": "parsec"}')
    assert "measures" in called('{"value": 5, "source": "km", "target": "kg"}')
