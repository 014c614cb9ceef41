"""The wire shapes of providers, 1 to 38, in exact bytes: each through a provider that it hits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from stops import STOPS, Stop

from agent_host import AgentCore
from agent_host.plugins.catalog import Catalog, build_catalog
from agent_host.plugins.discover import discover
from agent_host_testing import SHAPES, Shape, check_shape

#: The shapes that are a provider's to bear; the rest are framing and ends, which the host bears.
NUMBERS = range(1, 39)
PROVIDER_SHAPES = [shape for number in NUMBERS for shape in SHAPES[number]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A stop with all that is installed, as the kit wants to hear of it."""

    stop: Stop

    @property
    def format(self) -> str:
        return self.stop.wire

    def core(self) -> AgentCore:
        return AgentCore(catalog=_installed())

    def config(self, base_url: str) -> dict[str, Any]:
        return {
            "provider": self.stop.provider,
            "model": self.stop.model,
            "base_url": base_url,
            "api_key": self.stop.key,
            **self.stop.always,
        }


@cache
def _installed() -> Catalog:
    return build_catalog(discover())


def borne_by(shape: Shape) -> Stop:
    """The stop that the shape is tried on: by dialect where it has one, else by its format.

    Of the stops that speak one format the last is the one with the least of its own.
    """
    if shape.dialect:
        return next(each for each in STOPS if each.provider == shape.dialect)
    return [each for each in STOPS if each.wire == shape.format][-1]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_has_bytes(number: int) -> None:
    assert SHAPES[number]
    for shape in SHAPES[number]:
        assert all(sent.body or sent.status != 200 for sent in shape.answers)


def test_every_provider_bears_shapes() -> None:
    hit = {borne_by(shape).provider for shape in PROVIDER_SHAPES}
    assert hit == {each.provider for each in STOPS}


@pytest.mark.parametrize("shape", PROVIDER_SHAPES, ids=lambda shape: shape.name)
def test_a_shape_gives_the_right_answer_or_a_typed_error(shape: Shape) -> None:
    found = check_shape(shape, Subject(borne_by(shape)), splits=2)
    assert found == [], "\n".join(found)
