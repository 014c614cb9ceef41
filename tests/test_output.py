"""Answers of a type: shapes, ways of asking, retries, and what there is in place of data."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field
from typing_extensions import NotRequired

from agent_hookspecs.authoring import tool
from agent_host import (
    AgentApplication,
    AgentError,
    ConfigError,
    OutputCutError,
    OutputError,
    OutputInvalidError,
    OutputRefusedError,
)
from agent_host.output import choose_mode
from agent_host.output.shape import MismatchError, shape_of
from scripted import WAYS, Way, app_with, call, calling, delta, end, saying, scripted

#: pydantic does not take the typed dicts of ``typing`` before 3.12.
OLD = sys.version_info < (3, 12)


class Size(Enum):
    SMALL = "small"


class City(BaseModel):
    name: str
    people: int = Field(ge=0)


class Visit(TypedDict):
    place: str
    days: int


class Tour(TypedDict, total=False):
    visits: list[Visit]


class Trip(Tour):
    """A tour with a first stop."""

    first: Visit | None
    notes: NotRequired[str]


@dataclass
class Point:
    x: float
    y: float = 0.0


@pytest.mark.parametrize(
    ("output_type", "said", "value"),
    [
        (City, {"name": "Ulm", "people": 1}, City(name="Ulm", people=1)),
        (Point, {"x": 1}, Point(1.0)),
        (Visit, {"place": "Ulm", "days": 2}, {"place": "Ulm", "days": 2}),
        (
            Tour,
            {"visits": [{"place": "Ulm", "days": 2}]},
            {"visits": [{"place": "Ulm", "days": 2}]},
        ),
        (Trip, {"first": {"place": "Ulm", "days": 2}}, {"first": {"place": "Ulm", "days": 2}}),
        (Visit | int, {"value": 3}, 3),
        (Visit | None, {"value": None}, None),
        (
            Annotated[dict[str, Visit], "by guest"],
            {"Ann": {"place": "Ulm", "days": 2}},
            {"Ann": {"place": "Ulm", "days": 2}},
        ),
        (City | Point, {"value": {"x": 1}}, Point(1.0)),
        (int | str, {"value": "x"}, "x"),
        (int, {"value": 3}, 3),
        (bool, {"value": True}, True),
        (list[int], {"value": [1, 2]}, [1, 2]),
        (Size, {"value": "small"}, Size.SMALL),
        (Literal["a", "b"], {"value": "a"}, "a"),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"a": 1},
            {"a": 1},
        ),
        ({"type": "array", "items": {"type": "string"}}, {"value": ["x"]}, ["x"]),
    ],
)
def test_any_type_is_asked_for_as_an_object_and_read_back(
    output_type: Any, said: Any, value: Any
) -> None:
    shape = shape_of(output_type)
    assert shape.schema["type"] == "object"
    assert shape.read_text(json.dumps(said)) == value
    assert shape.read_payload(said) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": "Ulm", "people": -1}', "people: Input should be greater than or equal to 0"),
        ('{"name": "Ulm"}', "people: Field required"),
        ("I would rather not.", "holds no JSON"),
        ('{"name": "Ulm", ', "no valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("Here: " + "[" * 100_000, "nested too deeply"),
        # So many that nobody would see the end if each were a place to begin anew.
        ("```" + "\n" * 1_000_000 + "x", "holds no JSON"),
    ],
)
def test_what_does_not_fit_is_told_in_words(text: str, words: str) -> None:
    with pytest.raises(MismatchError, match=words):
        shape_of(City).read_text(text)
    schema = {"type": "object", "required": ["a"]}
    with pytest.raises(MismatchError, match=r"the answer must contain \['a'\]"):
        shape_of(schema).read_payload({})


@pytest.mark.parametrize("wrapping", ["{}", "```json\n{}\n```", "Here you are: {} Anything else?"])
def test_words_and_fences_around_an_answer_do_not_matter(wrapping: str) -> None:
    text = wrapping.replace("{}", '{"x": 1, "y": 2}')
    assert shape_of(Point).read_text(text) == Point(1, 2)


@given(st.text(max_size=40))
def test_any_text_is_an_answer_or_told_to_be_none(text: str) -> None:
    with suppress(MismatchError):
        assert isinstance(shape_of(Point).read_text(text), Point)


def test_an_answer_deeper_than_its_check_can_go_is_told_to_be() -> None:
    deep: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit() * 2):
        deep = {"inner": deep}
    with pytest.raises(MismatchError, match="nested too deeply"):
        shape_of({"type": "object", "properties": {"inner": {"$ref": "#"}}}).read_payload(deep)


@pytest.mark.parametrize("output_type", [object(), {"type": "nonsense"}])
def test_what_is_no_type_is_refused(output_type: Any) -> None:
    with AgentApplication({}) as app, pytest.raises(ConfigError, match="no answer can be asked"):
        app.run("x", provider="echo", output_type=output_type)


class Tree(TypedDict):
    trees: list[Tree]


@dataclass
class Diary:
    visits: list[Visit]


@pytest.mark.parametrize(
    ("output_type", "hint"),
    [
        ([City, Point], "A | B"),
        (len, "with the answer's data"),
        (lambda city: city, "with the answer's data"),
        *([(Tree, "typing_extensions"), (Diary, "typing_extensions")] if OLD else []),
    ],
)
def test_what_is_nearly_a_type_is_refused_with_the_way_out(output_type: Any, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        shape_of(output_type)
    assert hint in error.value.hint


def test_a_key_that_may_be_absent_stays_so() -> None:
    schema = shape_of(Trip).schema
    assert schema["required"] == ["first"]
    assert schema["description"] == "A tour with a first stop."


def test_the_way_of_asking_follows_the_tags() -> None:
    both = {"supports_tools", "supports_structured_output"}
    assert choose_mode(both, has_tools=False) == "schema"
    assert choose_mode(both, has_tools=True) == "tool"
    together = {*both, "supports_structured_output_with_tools"}
    assert choose_mode(together, has_tools=True) == "schema"
    assert choose_mode({"supports_tools"}, has_tools=False) == "tool"
    assert choose_mode(set(), has_tools=True) == "prompt"


ULM = {"name": "Ulm", "people": 3}


def answer_call(payload: Any, id: str = "c1") -> Any:
    return calling(call("give_answer", json.dumps(payload), id=id), prompt_tokens=1)


def run(app: AgentApplication, way: Way, **options: Any) -> Any:
    if way == "sync":
        return app.run("go", **options)
    return asyncio.run(app.arun("go", **options))


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_comes_as_the_arguments_of_a_call(way: Way) -> None:
    with app_with(scripted([answer_call(ULM)])) as app:
        answer = run(app, way, output_type=City)
    assert answer.data == City(name="Ulm", people=3)
    assert answer.finish == "stop"
    assert [message["role"] for message in answer.messages] == ["assistant", "tool"]


@pytest.mark.parametrize("way", WAYS)
def test_tools_may_be_used_before_the_answer(way: Way) -> None:
    @tool(effect="read")
    def count() -> int:
        """Count."""
        return 3

    turns = [calling(call("count", id="c0")), answer_call(ULM)]
    with app_with(scripted(turns), count) as app:
        answer = run(app, way, output_type=City)
    assert answer.data.people == 3
    results = [each["content"] for each in answer.messages if each["role"] == "tool"]
    assert results == ["3", "The answer was taken."]


def test_a_wrong_answer_goes_back_with_the_reason_until_nobody_asks_any_more() -> None:
    sent: list[Any] = []
    wrong = [answer_call({"name": "Ulm", "people": "x"}, id=f"c{n}") for n in range(9)]
    with app_with(scripted(wrong, sent)) as app:
        answer = app.run("go", output_type=City, output_retries=1)
    assert len(sent) == 2
    assert "people: Input should be a valid integer" in sent[1][-1]["content"]
    assert "(1 of 1)" in answer.warnings[0]["message"]
    with pytest.raises(OutputInvalidError, match="people: Input should be a valid integer"):
        answer.data  # noqa: B018
    assert answer.finish == "stop"


def test_a_model_that_answers_in_words_is_told_to_call() -> None:
    sent: list[Any] = []
    with app_with(scripted([saying("It is Ulm."), answer_call(ULM)], sent)) as app:
        answer = app.run("go", output_type=City)
    assert "Call give_answer with the whole answer again" in sent[1][-1]["content"]
    assert answer.data.name == "Ulm"


def test_without_tools_the_prompt_asks_for_it() -> None:
    sent: list[Any] = []
    settings = {"remove_tags": ["supports_tools"]}
    with app_with(scripted([saying(json.dumps(ULM))], sent)) as app:
        answer = app.run("go", output_type=City, settings=settings)
    assert answer.data.name == "Ulm"
    assert sent[0][0]["role"] == "system"
    assert '"people"' in sent[0][0]["content"]
    # What the host says is nobody's word, and not part of the session.
    assert [each["role"] for each in answer.session.messages] == ["user", "assistant"]


def test_a_refusal_a_cut_and_a_limit_are_outcomes_of_their_own() -> None:
    cut = [delta(content='{"name": "U'), end("length")]
    with AgentApplication({}) as app:
        refused = app.run("/refuse I will not", provider="echo", output_type=City)
    with pytest.raises(OutputRefusedError, match="I will not") as why:
        refused.data  # noqa: B018
    assert why.value.text == "I will not"
    with app_with(scripted([cut])) as app, pytest.raises(OutputCutError, match="length"):
        app.run("go", output_type=City).data  # noqa: B018
    with app_with(scripted([saying("no")] * 3)) as app:
        limited = app.run("go", output_type=City, limits={"max_turns": 1})
    with pytest.raises(OutputCutError, match="max_turns"):
        limited.data  # noqa: B018


def test_without_a_type_there_is_no_data() -> None:
    with AgentApplication({}) as app:
        assert app.run("hi", provider="echo").data is None


@pytest.mark.parametrize("mode", ["tool", "prompt"])
def test_what_has_arrived_can_be_looked_at_while_it_streams(mode: str) -> None:
    text = json.dumps({"value": ["a", "b", "c"]})
    pieces = [text[place : place + 6] for place in range(0, len(text), 6)]
    if mode == "tool":
        deltas = [
            {"index": 0, "id": "c1", "type": "function",
             "function": {"name": "give_answer", "arguments": pieces[0]}},
            *({"index": 0, "function": {"arguments": piece}} for piece in pieces[1:]),
        ]  # fmt: skip
        turn = [*(delta(tool_calls=[each]) for each in deltas), end("tool_calls")]
    else:
        turn = [*(delta(content=piece) for piece in pieces), end("stop")]
    settings = {"remove_tags": ["supports_tools"]} if mode == "prompt" else {}
    seen: list[Any] = []
    with (
        app_with(scripted([turn])) as app,
        app.stream("go", output_type=list[str], settings=settings) as stream,
    ):
        with pytest.raises(Exception, match="no answer yet"):
            stream.answer  # noqa: B018
        seen += [stream.partial for _ in stream]
        assert stream.answer.data == ["a", "b", "c"]
    lengths = [len(each) for each in seen if each is not None]
    assert lengths == sorted(lengths)
    assert {0, 1, 2, 3} & set(lengths) >= {1, 3}


@pytest.mark.parametrize("read", [0, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_is_left_has_no_answer(way: Way, read: int) -> None:
    async def leave() -> Any:
        async with app.astream("go") as stream:
            for _ in range(read):
                await anext(stream)
        return stream

    pieces = [*(delta(content=word) for word in ("a", "b", "c")), end()]
    with app_with(scripted([pieces])) as app:
        if way == "sync":
            with app.stream("go") as left:
                for _ in range(read):
                    next(left)
            stream: Any = left
        else:
            stream = asyncio.run(leave())
    with pytest.raises(AgentError, match="closed or cancelled before its answer"):
        stream.answer  # noqa: B018


def test_a_stored_run_that_goes_on_takes_its_type_again(tmp_path: Any) -> None:
    @tool(effect="write")
    def save() -> str:
        """Save."""
        return "saved"

    turns = [calling(call("save", id="c0")), answer_call(ULM)]
    with app_with(scripted(turns), save, store=f"sqlite://{tmp_path}/s.db") as app:
        first = app.run("go", output_type=City, park=True)
        with pytest.raises(OutputError, match="the run waits"):
            first.data  # noqa: B018
        assert first.run is not None
        answer = app.resume(first.run, {"c0": "once"}, output_type=City)
    assert answer.data == City(name="Ulm", people=3)


def test_usage_is_that_of_all_turns_and_costs_are_known_or_none() -> None:
    with AgentApplication({}) as app:
        answer = app.run('/call give_answer {"x": 1}', provider="echo", output_type=Point)
    total = [each["metadata"].get("usage", {}).get("output", 0) for each in answer.messages]
    assert answer.usage["output"] == sum(total) > 0
    assert answer.cost is None


@pytest.mark.parametrize("wrong", [-1, "2"])
def test_what_is_no_number_of_retries_is_refused(wrong: Any) -> None:
    with AgentApplication({}) as app, pytest.raises(ConfigError, match="output_retries is"):
        app.run("Hello", output_type=int, output_retries=wrong)
