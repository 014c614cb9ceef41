"""Our dataclasses behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from agent_hookspecs.values import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A frozen value."""

    x: int
    y: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)
    source: Any = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(slots=True, kw_only=True)
class Counter:
    """One that changes, and looks at itself when it is made."""

    step: int
    count: int = 0

    def __post_init__(self) -> None:
        self.count += self.step


class Standard:
    """The same two, made by the standard library."""

    Point = dataclasses.make_dataclass(
        "Point",
        [
            ("x", int),
            ("y", int, 0),
            ("tags", list[str], dataclasses.field(default_factory=list)),
            ("source", Any, dataclasses.field(default=None, compare=False, repr=False)),
        ],
        frozen=True,
        slots=True,
    )


@pytest.mark.parametrize(
    "told",
    [
        lambda point: repr(point(1, 2)),
        lambda point: point(1) == point(1, 0, []),
        lambda point: point(1) == point(2),
        lambda point: point(1) == (1, 0, [], None),
        lambda point: point(1, source="here") == point(1, source="there"),
        lambda point: hash(point(1, tags=())) == hash(point(1, tags=())),
        lambda point: repr(dataclasses.replace(point(1), y=5)),
        lambda point: dataclasses.asdict(point(1, 2, ["a"])),
        lambda point: [field.name for field in dataclasses.fields(point)],
        lambda point: point.__match_args__,
        lambda point: point.__slots__,
        lambda point: repr(copy.deepcopy(point(1, tags=["a"]))),
        lambda point: point(1).tags is point(1).tags,
    ],
)
def test_a_value_is_as_one_of_the_standard_library(told: Callable[[Any], object]) -> None:
    assert told(Point) == told(Standard.Point)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda point: point(),
        lambda point: point(1, 2, [], None, 5),
        lambda point: point(1, z=3),
        lambda point: hash(point(1)),
        lambda point: setattr(point(1), "x", 2),
        lambda point: delattr(point(1), "x"),
    ],
)
def test_what_the_standard_library_refuses_is_refused(wrong: Callable[[Any], object]) -> None:
    errors = []
    for point in (Standard.Point, Point):
        with pytest.raises((TypeError, AttributeError)) as caught:
            wrong(point)
        errors.append((caught.type, str(caught.value).replace("Point.", "")))
    assert errors[0] == errors[1]


def test_the_first_value_is_made_as_all_others_are() -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        x: int
        y: int = 2

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Fresh()  # type: ignore[call-arg]
    assert Fresh(1) == Fresh(x=1, y=2)


def test_a_frozen_value_can_be_pickled() -> None:
    point = Point(1, tags=["a"])
    assert pickle.loads(pickle.dumps(point)) == point


def test_one_that_is_not_frozen_can_be_changed_but_not_hashed() -> None:
    counter = Counter(step=2)
    counter.count += 1
    assert repr(counter) == "Counter(step=2, count=3)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(TypeError, match="positional"):
        Counter(2)  # type: ignore[call-arg]


def test_methods_of_the_class_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Loud:
        x: int

        def __repr__(self) -> str:
            return "LOUD"

    assert repr(Loud(1)) == "LOUD"
    assert Point(1, 2).sum == 3


def test_a_value_that_holds_itself_can_be_shown() -> None:
    point = Point(1)
    point.tags.append(point)  # type: ignore[arg-type]
    assert repr(point) == "Point(x=1, y=0, tags=[...])"


def test_frozen_classes_of_the_standard_library_may_derive_from_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Point):
        name: str = ""

    assert Named(1, name="here") == Named(1, 0, [], None, "here")


def test_a_field_that_nobody_gives_is_set_when_the_value_is_made() -> None:
    @dataclass(frozen=True, slots=True)
    class Squared:
        base: int = 2
        square: int = dataclasses.field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "square", self.base**2)

    assert Squared(3).square == 9
    assert Squared() == Squared(2)
    with pytest.raises(TypeError):
        Squared(3, 9)  # type: ignore[call-arg]
