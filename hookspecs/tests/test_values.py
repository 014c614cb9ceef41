"""Our dataclasses behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
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
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def explicit_hash(dataclass: Any) -> Any:
    @dataclass(slots=True)
    class Value:
        x: int

        def __hash__(self) -> int:
            return 42

    return hash(Value(1))


def explicit_hash_of_a_frozen_one(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        x: int

        def __hash__(self) -> int:
            return 42

    return hash(Value(1))


def equality_without_a_hash(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    return hash(Value(1)) == hash(Value(1)), Value(1) == Value(2)


def no_hash_at_all(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        x: int
        __hash__ = None  # type: ignore[assignment]

    return Value.__hash__


def fields_that_nobody_gives(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        x: int
        three: int = dataclasses.field(init=False, default=3)
        made: list[int] = dataclasses.field(init=False, default_factory=list)
        late: int = dataclasses.field(init=False, default=4, kw_only=True)

    return repr(Value(1)), Value(1).made is Value(1).made, [*inspect.signature(Value).parameters]


def fields_that_the_hash_leaves_out(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        x: int
        parts: list[int] = dataclasses.field(default_factory=list, hash=False)
        note: str = dataclasses.field(default="", compare=False, hash=True)

    same = Value(1, [1]) != Value(1, [2]) and Value(1, note="a") == Value(1, note="b")
    return same, hash(Value(1, [1])) == hash(Value(1, [2])), hash(Value(1)) == hash(Value(2))


def a_field_called_self(dataclass: Any) -> Any:
    @dataclass(slots=True, frozen=True)
    class Value:
        self: int
        y: int = 2

    return repr(Value(1)), repr(Value(self=1, y=3))


@pytest.mark.parametrize(
    "told",
    [
        explicit_hash,
        explicit_hash_of_a_frozen_one,
        equality_without_a_hash,
        no_hash_at_all,
        fields_that_nobody_gives,
        fields_that_the_hash_leaves_out,
        a_field_called_self,
    ],
)
def test_a_class_is_as_one_of_the_standard_library(told: Callable[[Any], object]) -> None:
    assert told(dataclass) == told(dataclasses.dataclass)


def late(dataclass: Any) -> None:
    @dataclass(slots=True)
    class Value:
        z: dataclasses.InitVar[int]


def derived(dataclass: Any) -> None:
    @dataclass(slots=True)
    class Value(Counter):
        z: int


def settable(dataclass: Any) -> None:
    @dataclass(slots=True, frozen=True)
    class Value:
        z: int

        def __setattr__(self, name: str, value: object) -> None: ...


def disordered(dataclass: Any) -> None:
    @dataclass(slots=True)
    class Value:
        x: int = 0
        z: int  # type: ignore[misc]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (late, r"Value has 'z', which is an InitVar; use dataclasses\.dataclass"),
        (derived, r"Value inherits the fields of Counter; use dataclasses\.dataclass"),
        (settable, r"Value is frozen and has its own __setattr__; use"),
        (disordered, r"non-default argument 'z' of .*Value follows default argument 'x'"),
    ],
)
def test_what_we_do_not_make_is_refused_where_it_is_declared(
    declare: Callable[[Any], None], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        declare(dataclass)


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
