"""Functions made tools: their schemas, what they accept, what they are given, what is refused."""

from __future__ import annotations

import asyncio
import enum
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.authoring.function_tools import FunctionTool, tool, tools
from agent_hookspecs.errors import ContractError, ToolArgumentsError, UnknownToolError
from agent_hookspecs.messages import Context, State
from agent_hookspecs.roles import ToolPlugin
from agent_host.plugins.implementations import find_implementations, require_contract

pydantic = pytest.importorskip("pydantic")
BaseModel, Field = pydantic.BaseModel, pydantic.Field

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):  # type: ignore[misc,valid-type]
    """A point in the plane."""

    x: int
    title: str = "here"


@dataclass
class Box:
    corner: Point
    size: float = 1.0


STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
POINT = {
    "type": "object",
    "description": "A point in the plane.",
    "properties": {"x": INTEGER, "title": {**STRING, "default": "here"}},
    "required": ["x"],
}


def nothing() -> None: ...
def plain(a: int, b: str) -> None: ...
def defaults(a: int = 3, b: bool = False, *, c: float = 0.5) -> None: ...
def optional(a: Optional[int], b: str | None = None) -> None: ...  # noqa: UP045
def choices(mode: Literal["fast", "slow"], colour: Colour = Colour.RED) -> None: ...
def lists(names: list[str], pairs: dict[str, int], ids: set[int] | None = None) -> None: ...
def nested(point: Point, more: list[Point]) -> None: ...
def boxed(box: Box) -> None: ...
def anything(value: Any, other: object = None) -> None: ...
def told(a: Annotated[str, "The first."], b: Annotated[int, Field(description="B.", ge=1)]) -> None:
    """Say it.

    Args:
        a: Not this.
        b: Nor this.
    """


def awkward(
    json: str, copy: int, model_config: bool, _hidden: str, self: str, cls: int
) -> None: ...
def dated(day: date, pattern: Annotated[str, Field(pattern="^a")] = "a") -> None: ...
def opaque(a: int, sentinel: Any = object()) -> None: ...  # noqa: B008
def given_by_host(a: int, context: Context, state: State) -> None: ...
def untyped_host(a: int, context, state=None) -> None: ...  # type: ignore[no-untyped-def]
def maybe_host(a: int, context: Context | None = None, state: dict[str, Any] = {}) -> None: ...  # noqa: B006
def own_state(state: str, context: list[str]) -> None: ...
def returning(a: int) -> Decimal: ...  # type: ignore[empty-body]


def parameters(*required: str, defs: Any = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        **({"required": list(required)} if required else {}),
        **({"$defs": defs} if defs else {}),
    }


A = parameters("a", a=INTEGER)

SCHEMAS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (nothing, parameters()),
    (plain, parameters("a", "b", a=INTEGER, b=STRING)),
    (
        defaults,
        parameters(
            a={**INTEGER, "default": 3},
            b={"type": "boolean", "default": False},
            c={"type": "number", "default": 0.5},
        ),
    ),
    (
        optional,
        parameters("a", a={"anyOf": [INTEGER, NULL]}, b={"anyOf": [STRING, NULL], "default": None}),
    ),
    (
        choices,
        parameters(
            "mode",
            mode={**STRING, "enum": ["fast", "slow"]},
            colour={"$ref": "#/$defs/Colour", "default": "red"},
            defs={"Colour": {**STRING, "enum": ["red", "blue"]}},
        ),
    ),
    (
        lists,
        parameters(
            "names",
            "pairs",
            names={"type": "array", "items": STRING},
            pairs={"type": "object", "additionalProperties": INTEGER},
            ids={
                "anyOf": [{"type": "array", "items": INTEGER, "uniqueItems": True}, NULL],
                "default": None,
            },
        ),
    ),
    (
        nested,
        parameters(
            "point",
            "more",
            point={"$ref": "#/$defs/Point"},
            more={"type": "array", "items": {"$ref": "#/$defs/Point"}},
            defs={"Point": POINT},
        ),
    ),
    (
        boxed,
        parameters(
            "box",
            box={"$ref": "#/$defs/Box"},
            defs={
                "Box": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "corner": {"$ref": "#/$defs/Point"},
                        "size": {"type": "number", "default": 1.0},
                    },
                    "required": ["corner"],
                },
                "Point": POINT,
            },
        ),
    ),
    (anything, parameters("value", value={}, other={"default": None})),
    (
        told,
        parameters(
            "a",
            "b",
            a={**STRING, "description": "The first."},
            b={**INTEGER, "description": "B.", "minimum": 1},
        ),
    ),
    (
        awkward,
        parameters(
            *("json", "copy", "model_config", "_hidden", "self", "cls"),
            json=STRING,
            copy=INTEGER,
            model_config={"type": "boolean"},
            _hidden=STRING,
            self=STRING,
            cls=INTEGER,
        ),
    ),
    (
        dated,
        parameters(
            "day",
            day={**STRING, "format": "date"},
            pattern={**STRING, "pattern": "^a", "default": "a"},
        ),
    ),
    (opaque, parameters("a", a=INTEGER, sentinel={})),
    (given_by_host, A),
    (untyped_host, A),
    (maybe_host, A),
    (
        own_state,
        parameters("state", "context", state=STRING, context={"type": "array", "items": STRING}),
    ),
    (returning, A),
]


@pytest.mark.parametrize(
    ("function", "wanted"), SCHEMAS, ids=lambda each: getattr(each, "__name__", "")
)
def test_the_schema_says_what_the_signature_says(
    function: Callable[..., Any], wanted: dict[str, Any]
) -> None:
    schema = tool(function).schema
    assert schema["name"] == function.__name__
    assert schema["parameters"] == wanted
    json.dumps(schema)


# Docstrings.


def in_google_style(path: str, limit: int = 1, deep: bool = False, quiet: bool = False) -> None:
    """Read a file and
    give its text.

    It may be long: see limit.

    Args:
        path (str): Where it is: relative
            to the root.

            Never absolute.
        limit: How much.
        deep (Callable[[int], str], optional): Go on.

    Returns:
        quiet: nothing of the kind.
    """


def in_numpy_style(path: str, limit: int = 1, deep: bool = False, quiet: bool = False) -> None:
    """Read a file and give its text.

    Parameters
    ----------
    path : str
        Where it is: relative
        to the root.

        Never absolute.
    limit : int, optional
        How much.
    deep
        Go on.

    Returns
    -------
    quiet : bool
        Nothing of the kind.
    """


def in_sphinx_style(path: str, limit: int = 1, deep: bool = False, quiet: bool = False) -> None:
    """Read a file and give its text.

    :param path: Where it is: relative
        to the root. Never absolute.
    :param int limit: How much.
    :param dict[str, int] deep: Go on.
    :type limit: int
    :returns: quiet: nothing of the kind.
    """


@pytest.mark.parametrize("function", [in_google_style, in_numpy_style, in_sphinx_style])
def test_parameters_are_described_as_the_docstring_does(function: Callable[..., Any]) -> None:
    schema = tool(function).schema
    assert schema["description"] == "Read a file and give its text."
    texts = {k: v.get("description") for k, v in schema["parameters"]["properties"].items()}
    assert texts == {
        "path": "Where it is: relative to the root. Never absolute.",
        "limit": "How much.",
        "deep": "Go on.",
        "quiet": None,
    }


def both(a: int, b: int) -> None:
    """Two at once.

    Parameters
    ----------
    a, b : int
        A number.
    """


def only_arguments(a: int) -> None:
    """
    Args:
        a: A number.
    """


def only_fields(a: int) -> None:
    """:param a: A number."""


def test_one_entry_may_describe_several_parameters() -> None:
    properties = tool(both).schema["parameters"]["properties"]
    assert [each["description"] for each in properties.values()] == ["A number.", "A number."]


@pytest.mark.parametrize("function", [only_arguments, only_fields])
def test_a_section_is_no_description(function: Callable[..., Any]) -> None:
    schema = tool(function).schema
    assert "description" not in schema
    assert schema["parameters"]["properties"]["a"]["description"] == "A number."


def test_name_and_description_can_be_given() -> None:
    made = tool(name="say-it", description="Other words.", effect="read")(told)
    assert (made.schema["name"], made.schema["description"]) == ("say-it", "Other words.")
    assert made.plugin.effects == {"say-it": "read"}
    assert made.plugin.name == "say-it"
    assert made.name == "say-it"


@given(st.text(max_size=200))
def test_any_docstring_can_be_read(text: str) -> None:
    def function(a: int) -> None: ...

    function.__doc__ = text
    assert tool(function).schema["parameters"]["properties"]["a"]["type"] == "integer"


# The object.


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def test_the_decorated_name_is_still_the_function() -> None:
    assert add(1, b=2) == 3
    assert add(1) == 2
    assert (add.__name__, add.__module__) == ("add", __name__)
    assert add.__doc__ is not None
    assert add.__doc__.startswith("Add two numbers.")
    assert repr(add) == "<tool 'add', effect execute>"


def test_the_class_is_a_tool_plugin_that_meets_the_contract() -> None:
    assert issubclass(add.plugin, ToolPlugin)
    assert add.plugin.__module__ == __name__
    require_contract("tool", add.plugin, "add")
    assert set(find_implementations(add.plugin(), "tool", "add")) == {
        "get_tool_schemas",
        "execute_tool",
    }


def test_nobody_can_change_the_schema_of_another() -> None:
    add.schema["parameters"]["properties"].clear()
    (offered,) = executor(add.plugin)["get_tool_schemas"][0].call({})
    offered["parameters"].clear()
    assert set(add.schema["parameters"]["properties"]) == {"a", "b"}


def test_threads_may_ask_for_the_first_schema_at_once() -> None:
    made = tool(nested)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: made.schema, range(16)))
    assert all(each == found[0] for each in found)


def test_a_bound_method_can_be_a_tool() -> None:
    class Shelf:
        def __init__(self, books: list[str]) -> None:
            self.books = books

        def find(self, text: str) -> list[str]:
            """Find books."""
            return [book for book in self.books if text in book]

    made = tool(Shelf(["red book", "blue book"]).find)
    assert set(made.schema["parameters"]["properties"]) == {"text"}
    assert run(made, {"text": "red"}) == ["red book"]


#: A decorator of another module, in which the types of what it decorates mean nothing.
LOGGED = """
from functools import wraps

def logged(function):
    @wraps(function)
    def wrapper(*args, **kwargs):
        return ["logged", function(*args, **kwargs)]
    return wrapper
"""


def test_a_wrapped_function_keeps_its_types() -> None:
    elsewhere: dict[str, Any] = {}
    exec(LOGGED, elsewhere)
    made = tool(elsewhere["logged"](across))
    assert made.schema["parameters"]["properties"] == {"point": {"$ref": "#/$defs/Point"}}
    assert run(made, {"point": {"x": 1}}) == ["logged", 1]


def across(point: Point) -> int:
    x: int = point.x
    return x


# Calls.


def executor(plugin: type[ToolPlugin]) -> Any:
    return find_implementations(plugin(), "tool", plugin.name)


def run(made: FunctionTool[..., Any], payload: Any, state: Any = None, context: Any = None) -> Any:
    """A call as the host makes it."""
    (execute,) = executor(made.plugin)["execute_tool"]
    return execute.call(made.name, payload, state or {}, context or {})


def test_a_call_gets_validated_arguments_and_its_result_is_passed_through() -> None:
    result = object()

    def function(day: date, colour: Colour, point: Point, ids: set[int]) -> Any:
        return result, day, colour, point, ids

    made = tool(function)
    payload = {"day": "2024-02-29", "colour": "blue", "point": {"x": 4}, "ids": [1, 1]}
    found = run(made, payload)
    assert found == (result, date(2024, 2, 29), Colour.BLUE, Point(x=4), {1})
    assert found[0] is result
    assert payload["day"] == "2024-02-29"


def test_what_is_not_given_is_left_to_the_functions_own_defaults() -> None:
    kept: list[int] = []

    def function(a: int = 1, seen: list[int] = kept) -> Any:
        return a, seen

    found = run(tool(function), {})
    assert found == (1, [])
    assert found[1] is kept


def test_a_default_that_only_the_annotation_has_is_passed() -> None:
    def function(a: Annotated[int, Field(default=7)]) -> int:
        return a

    assert run(tool(function), {}) == 7


@pytest.mark.parametrize("payload", [None, {}])
def test_a_tool_without_parameters_takes_nothing(payload: Any) -> None:
    assert run(tool(nothing), payload) is None


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({}, ["a: Field required"]),
        ({"a": "x"}, ["a: Input should be a valid integer"]),
        ({"a": 1, "c": 2}, ["c: Extra inputs are not permitted"]),
        ({"a": None, "b": []}, ["a: ", "b: "]),
        ({"p0": 1}, ["a: Field required", "p0: Extra inputs"]),
    ],
)
def test_wrong_arguments_are_an_error_that_names_each_field(
    payload: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(ToolArgumentsError, match="tool 'add' cannot take these") as caught:
        run(add, payload)
    assert caught.value.tool == "add"
    assert all(each in caught.value.message for each in told)


def test_an_error_inside_an_argument_says_where() -> None:
    with pytest.raises(ToolArgumentsError, match=r"more\.1\.x: Field required"):
        run(tool(nested), {"point": {"x": 1}, "more": [{"x": 1}, {}]})


def test_a_flood_of_errors_is_counted() -> None:
    with pytest.raises(ToolArgumentsError, match="and 90 more") as caught:
        run(add, {"a": 1, **{f"x{number}": 1 for number in range(100)}})
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("payload", ["text", [1], 3])
def test_a_payload_that_is_no_object_is_refused(payload: Any) -> None:
    with pytest.raises(ToolArgumentsError, match="takes an object of arguments, not"):
        run(add, payload)


def test_an_error_of_the_functions_own_is_its_own() -> None:
    def function(a: int) -> int:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        run(tool(function), {"a": 1})


def test_a_coroutine_is_handed_on_to_be_awaited() -> None:
    @tool(effect="network")
    async def fetch(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    assert asyncio.run(run(fetch, {"a": 1})) == 2
    with pytest.raises(ToolArgumentsError):
        run(fetch, {})


def test_a_generator_is_handed_on_and_refuses_wrong_arguments_before_it_starts() -> None:
    @tool
    def count(to: int) -> Generator[str, None, int]:
        for number in range(to):
            yield f"at {number}"
        return to

    steps = run(count, {"to": 2})
    assert [next(steps), next(steps)] == ["at 0", "at 1"]
    with pytest.raises(StopIteration) as stopped:
        next(steps)
    assert stopped.value.value == 2
    with pytest.raises(ToolArgumentsError):
        run(count, {"to": "many"})


def test_an_async_generator_is_handed_on() -> None:
    @tool
    async def count(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    async def all_of(items: Any) -> list[int]:
        return [item async for item in items]

    assert asyncio.run(all_of(run(count, {"to": 3}))) == [0, 1, 2]


def test_context_and_state_come_from_the_host() -> None:
    context: Context = {"config": {}}
    state: State = {"open": True}

    def typed(a: int, context: Context, *, state: State) -> Any:
        return context, state

    def untyped(context, state) -> Any:  # type: ignore[no-untyped-def]
        return context, state

    def maybe(context: Context | None = None, state: State | None = None) -> Any:
        return context, state

    for function, payload in ((typed, {"a": 1}), (untyped, {}), (maybe, {})):
        found = run(tool(function), payload, state, context)
        assert found[0] is context
        assert found[1] is state


def test_a_model_cannot_give_what_the_host_gives() -> None:
    with pytest.raises(ToolArgumentsError, match="context: Extra inputs"):
        run(tool(given_by_host), {"a": 1, "context": {}})


def test_a_parameter_of_such_a_name_and_another_type_is_an_ordinary_one() -> None:
    def shipping(state: str) -> str:
        return state

    assert run(tool(shipping), {"state": "Ohio"}) == "Ohio"


# Bundles.


def test_several_functions_make_one_plugin() -> None:
    bundle = tools(add, tool(effect="read")(told), plain, name="sums", label="Sums", version="1")
    assert (bundle.name, bundle.label, bundle.version) == ("sums", "Sums", "1")
    assert bundle.effects == {"add": "execute", "told": "read", "plain": "execute"}
    found = executor(bundle)
    assert [each["name"] for each in found["get_tool_schemas"][0].call({})] == [*bundle.effects]
    assert found["execute_tool"][0].call("add", {"a": 2}, {}, {}) == 3
    with pytest.raises(UnknownToolError, match="'sums' has no tool 'sub'"):
        found["execute_tool"][0].call("sub", {}, {}, {})


@pytest.mark.parametrize(
    ("functions", "name", "told"),
    [((add, add), "sums", "two tools called add"), ((), "sums", "no tools"), ((add,), "", "no pl")],
)
def test_a_bundle_that_cannot_be_is_refused(functions: Any, name: str, told: str) -> None:
    with pytest.raises(ContractError, match=told):
        tools(*functions, name=name)


# What is refused.


def any_number(*numbers: int) -> None: ...
def any_name(**names: int) -> None: ...
def by_position(a: int, /) -> None: ...
def without_type(a) -> None: ...  # type: ignore[no-untyped-def]
def _private(a: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (any_number, "'numbers', which takes any number"),
        (any_name, "'names', which takes arguments of any name"),
        (by_position, "'a', which cannot be passed by name"),
        (without_type, "'a', which has no type"),
        (_private, "'_private' is no name"),
        (lambda: None, "'<lambda>' is no name"),
        (Point, "'Point' is not a function"),
        (add, "'add' is not a function"),
        (3, "'int' is not a function"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_decorated(function: Any, told: str) -> None:
    with pytest.raises(ContractError, match=told) as caught:
        tool(function)
    assert caught.value.hint


@pytest.mark.parametrize("effect", ["", "delete", None, ["read"], "Read"])
def test_the_effect_is_one_of_four(effect: Any) -> None:
    with pytest.raises(ContractError, match="has the effect") as caught:
        tool(effect=effect)(plain)
    assert caught.value.hint == "it must be one of read, write, execute, network"


def by_checker_only(price: Decimal) -> None: ...
def no_schema(stream: Callable[[int], int]) -> None: ...
def field_as_default(a: int = Field(default=1)) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (by_checker_only, "type that cannot be read: name 'Decimal' is not defined"),
        (no_schema, "JSON Schema cannot describe"),
        (field_as_default, "a Field as the default of 'a'"),
    ],
)
def test_types_without_a_schema_are_refused_when_it_is_asked_for(function: Any, told: str) -> None:
    made = tool(function)
    with pytest.raises(ContractError, match=told) as caught:
        _ = made.schema
    assert caught.value.plugin == function.__name__
    assert caught.value.hint


# pydantic.


def python(source: str, *folders: Path) -> str:
    paths = os.pathsep.join([*map(str, folders), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


DECORATING = """
import sys
from agent_hookspecs.authoring.function_tools import tool

@tool
def add(a: int, b: int = 1) -> int:
    return a + b

assert add(1) == 2 and add.plugin().name == "add"
"""


def test_decorating_and_calling_does_not_import_pydantic() -> None:
    shown = python(DECORATING + "sys.stdout.write(str('pydantic' in sys.modules))")
    assert shown == "False"
    shown = python(DECORATING + "add.schema; sys.stdout.write(str('pydantic' in sys.modules))")
    assert shown == "True"


def test_without_pydantic_the_error_says_what_to_install() -> None:
    source = (
        "import sys; sys.modules['pydantic'] = None\n"
        + DECORATING
        + "from agent_hookspecs.errors import ContractError\n"
        + "try:\n    add.schema\nexcept ContractError as error:\n"
        + "    sys.stdout.write(error.explain())\n"
    )
    shown = python(source)
    assert "tool 'add' is made from its function's types with pydantic 2" in shown
    assert "pip install 'pydantic>=2.7'" in shown
