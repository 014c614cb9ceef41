"""What pydantic finds wrong is said in our words, for every model alike."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from agent_host.checking import CHOICE, find_problem, json_schema, suggest


class Inner(BaseModel):
    """Words about the class."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, pattern="^[a-z]+$")]
    size: Annotated[int, Field(ge=2)] = 2
    ratio: Annotated[float, Field(ge=0.5)] = 1
    on: bool = True
    kind: Literal["first", "second"] = "first"
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def check_odd(cls, value: int, info: ValidationInfo) -> int:
        if value % 2 == 0:
            raise ValueError("an odd number is wanted")
        return value


class Outer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    inner: Inner | None = Field(default=None, description="Words about the key.")
    several: list[Inner] = Field(default=[], min_length=1)
    by_name: dict[Literal["left", "right"], Inner] = {}
    free: dict[str, Inner] = {}
    either: list[
        Annotated[
            Annotated[str, Tag(f"{CHOICE}text")] | Annotated[Inner, Tag(f"{CHOICE}inner")],
            Discriminator(
                lambda value: f"{CHOICE}inner" if isinstance(value, dict) else f"{CHOICE}text"
            ),
        ]
    ] = []


OUTER = TypeAdapter(Outer)
SCHEMA = json_schema(OUTER, "outer", "The outermost.")


@pytest.mark.parametrize(
    ("document", "where", "what", "remedy"),
    [
        ([], "", "the document is []", "it must be an object"),
        ({"inner": 3}, "inner", "inner is 3", "it must be an object"),
        ({"inner": {}}, "inner.name", "inner.name is missing", "add it"),
        (
            {"inner": {"nmae": "a", "size": 2}},
            "inner.name",
            "inner.name is missing",
            "write it instead of 'nmae'",
        ),
        ({"several": []}, "several", "several is []", "it must be a list that is not empty"),
        ({"several": {}}, "several", "several is {}", "it must be a list"),
        (
            {"several": [{"name": "a"}, {"name": "A"}]},
            "several[1].name",
            "several[1].name is 'A'",
            "it must be a string that matches ^[a-z]+$",
        ),
        (
            {"several": [{"name": ""}]},
            "several[0].name",
            "several[0].name is ''",
            "it must be a string that is not empty",
        ),
        (
            {"free": {"x": {"name": "a", "size": 1}}},
            "free.x.size",
            "free.x.size is 1",
            "it must be at least 2",
        ),
        (
            {"free": {"x": {"name": "a", "ratio": 0}}},
            "free.x.ratio",
            "free.x.ratio is 0",
            "it must be at least 0.5",
        ),
        (
            {"free": {"x": {"name": "a", "on": 1}}},
            "free.x.on",
            "free.x.on is 1",
            "it must be true or false",
        ),
        (
            {"free": {"x": {"name": "a", "kind": "frist"}}},
            "free.x.kind",
            "free.x.kind is 'frist'",
            "it must be one of first, second",
        ),
        (
            {"free": {"x": {"name": "a", "odd": 2}}},
            "free.x.odd",
            "free.x.odd is 2",
            "it must be right: Value error, an odd number is wanted",
        ),
        (
            {"free": {"x": {"name": "a", "sise": 2}}},
            "free.x.sise",
            "there is no key 'free.x.sise'",
            "did you mean 'size'?",
        ),
        (
            {"several": [{"name": "a", "zebra": 2}]},
            "several[0].zebra",
            "there is no key 'several[0].zebra'",
            "known are name, size, ratio, on, kind, odd",
        ),
        (
            {"by_name": {"lift": {"name": "a"}}},
            "by_name.lift",
            "there is no key 'by_name.lift'",
            "did you mean 'left'?",
        ),
        (
            {"free": {3: {"name": "a"}}},
            "free[3]",
            "free[3] is under a key that is no text",
            "put it under a name",
        ),
        ({"either": [3]}, "either[0]", "either[0] is 3", "it must be a string"),
        (
            {"either": ["a", {"name": 3}]},
            "either[1].name",
            "either[1].name is 3",
            "it must be a string",
        ),
    ],
)
def test_a_problem_says_where_what_and_how_it_would_be_right(
    document: Any, where: str, what: str, remedy: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        OUTER.validate_python(document)
    problem = find_problem(caught.value, SCHEMA)
    assert (problem.where, problem.what, problem.remedy) == (where, what, remedy)
    assert problem.quotes is problem.remedy.startswith("it must be")


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValidationError) as caught:
        OUTER.validate_python({"inner": "x" * 1000})
    assert len(find_problem(caught.value, SCHEMA).what) < 80


def test_a_schema_is_whole_in_each_place_and_has_no_made_up_words() -> None:
    assert list(SCHEMA)[:3] == ["$schema", "title", "description"]
    inner = SCHEMA["properties"]["several"]["items"]
    assert list(inner["properties"]) == ["name", "size", "ratio", "on", "kind", "odd"]
    text = str(SCHEMA)
    assert "$ref" not in text
    assert "$defs" not in text
    assert "'default'" not in text
    assert text.count("'title'") == 1


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [
        ("plugin", "did you mean 'plugins'?"),
        ("provders", "did you mean 'providers'?"),
        ("tool", "did you mean 'tools'?"),
        # They share letters and no meaning.
        ("prefix", ""),
        ("products", ""),
        ("loops", ""),
        ("zebra", ""),
    ],
)
def test_a_word_is_suggested_only_where_one_is_near(word: str, suggestion: str) -> None:
    assert suggest(word, ["plugins", "providers", "tools", "store", "prefer_plugins"]) == suggestion
