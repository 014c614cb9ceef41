"""The wire shapes: all fifty are there, their bytes are what they say, and breakages are found."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from testing_subject import ChatSubject

from agent_hookspecs import NativeMessage, State
from agent_host_openai_compatible.chat import ChatCompletionsProvider
from agent_host_testing.formats import FORMATS
from agent_host_testing.shapes import SHAPES, Shape, check_shape, shape, shapes_for
from agent_host_testing.shapes.speech import SPEECHES
from agent_host_testing.suites.wire_shapes import ShapeChecks
from agent_host_testing.wire import WireFormat

PLUGINS = Path(__file__).resolve().parents[2]
EVERY = list(chain.from_iterable(SHAPES.values()))
#: Shapes whose last event is no JSON on purpose, or whose bodies are no events at all.
ODD = ("41-bare", "41-several", "42-", "44-more", "46-inside", "49-", "50-")


def documents(each: Shape) -> Iterator[Any]:
    """What the events or lines of a stream hold."""
    [sent] = each.answers
    text = sent.body.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    for line in text.split("\n"):
        if each.format == "ollama.chat":
            if line:
                yield json.loads(line)
        elif line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            yield None if data == "[DONE]" else json.loads(data)


def test_every_number_has_a_shape() -> None:
    assert list(SHAPES) == list(range(1, 51))
    assert all(SHAPES.values())


@cache
def tried_shapes() -> set[str]:
    """The names of the shapes that the suites of the bundled providers try."""
    files = [path for path in PLUGINS.glob("*/tests/test_*_conformance.py") if is_of_provider(path)]
    named = chain.from_iterable(runpy.run_path(str(path)).values() for path in files)
    suites = [each for each in named if isinstance(each, type) and issubclass(each, ShapeChecks)]
    formats = {(format_name(each.wire), tuple(each.dialects)) for each in suites if each.wire}
    return {each.name for format, dialects in formats for each in shapes_for(format, dialects)}


def is_of_provider(path: Path) -> bool:
    return "ProviderConformance" in path.read_text("utf-8")


def format_name(wire: str | WireFormat) -> str:
    return wire if isinstance(wire, str) else wire.name


@pytest.mark.parametrize("number", range(1, 51))
def test_every_shape_of_a_number_is_tried_on_a_bundled_provider(number: int) -> None:
    """The one place where a wire shape is tested is the suite of a provider that it can hit."""
    assert {each.name for each in SHAPES[number]} <= tried_shapes()


def test_shapes_are_told_apart_by_names_that_begin_with_the_number() -> None:
    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names)
    assert all(each.name.partition("-")[0] == str(each.number) for each in EVERY)
    assert all(each.format in FORMATS for each in EVERY)


@pytest.mark.parametrize("number", [*range(39, 44), *range(46, 51)])
def test_shapes_of_no_format_are_there_for_every_format(number: int) -> None:
    framed = {speech.format for speech in SPEECHES if not speech.lines}
    wanted = framed if number in (41, 42) else set(FORMATS)
    assert {each.format for each in SHAPES[number]} == wanted


@pytest.mark.parametrize(
    "each", [s for s in EVERY if s.stream and not s.name.startswith(ODD)], ids=lambda s: s.name
)
def test_streams_hold_json_in_every_event(each: Shape) -> None:
    assert any(document is not None for document in documents(each))


@pytest.mark.parametrize(
    "each",
    [s for s in EVERY if not s.stream and s.number not in (49, 50)],
    ids=lambda s: s.name,
)
def test_whole_answers_are_one_document(each: Shape) -> None:
    [sent] = each.answers
    assert isinstance(json.loads(sent.body), dict)


def test_bytes_that_are_meant_to_be_broken_are() -> None:
    for name in (f"46-inside-{speech.format}" for speech in SPEECHES):
        with pytest.raises(ValueError, match=r"JSON|Expecting|Unterminated|delimiter"):
            list(documents(shape(name)))
    deltas = [
        call["function"]["arguments"]
        for document in documents(shape("10-malformed"))
        if document
        for call in document["choices"][0]["delta"].get("tool_calls", ())
    ]
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(deltas[0])


def test_shapes_are_found_by_number_and_by_name() -> None:
    assert shape(17).number == 17
    assert shape("6-null").name == "6-null"
    with pytest.raises(LookupError, match="no wire shape 51"):
        shape(51)


def test_shapes_of_a_dialect_are_only_for_those_who_speak_it() -> None:
    plain = {each.number for each in shapes_for("openai.chat")}
    more = {each.number for each in shapes_for("openai.chat", ["openrouter"])}
    assert more - plain == {35}
    assert {each.number for each in shapes_for("ollama.chat")} >= {15, 16, 17, 18, 39, 46, 50}


def test_a_provider_of_another_format_is_told_so() -> None:
    [said] = check_shape(shape(15), ChatSubject())
    assert "the provider speaks openai.chat" in said


@pytest.mark.parametrize("name", ["1-ids", "10-malformed", "36-both", "46-clean-openai.chat"])
def test_a_right_provider_has_no_differences(name: str) -> None:
    assert check_shape(shape(name), ChatSubject(), splits=3) == []


class LosesTheId(ChatCompletionsProvider):
    def to_native_messages(self, messages: Any, state: State) -> list[NativeMessage]:
        natives = super().to_native_messages(messages, state)
        return [{k: v for k, v in each.items() if k != "tool_call_id"} for each in natives]


class NeverCut(ChatCompletionsProvider):
    def stream_complete(self, state: State) -> bool:
        return True


class CountsTwice(ChatCompletionsProvider):
    def from_native_messages(self, native_messages: Any, state: State) -> Any:
        messages = super().from_native_messages(native_messages, state)
        for message in messages:
            if usage := message["metadata"].get("usage"):
                message["metadata"]["usage"] = {**usage, "input": usage["input"] * 2}
        return messages


class DeafToErrors(ChatCompletionsProvider):
    def process_chunk(
        self, native_chunk: Any, native_messages: Any, state: State, event: str | None = None
    ) -> Any:
        heard = {**native_chunk, "error": None}
        return super().process_chunk(heard, native_messages, state)


class SaysTwice(ChatCompletionsProvider):
    def from_native_messages(self, native_messages: Any, state: State) -> Any:
        messages = super().from_native_messages(native_messages, state)
        return [{**message, "content": message["content"] * 2} for message in messages]


class MakesUpArguments(ChatCompletionsProvider):
    def from_native_messages(self, native_messages: Any, state: State) -> Any:
        messages = super().from_native_messages(native_messages, state)
        for call in messages[0]["metadata"].get("tool_calls", ()):
            call["function"] = {**call["function"], "arguments": '{"x": 1}'}
        return messages


class LosesACall(ChatCompletionsProvider):
    def finalize(self, native_messages: Any, state: State, context: Any = None) -> Any:
        finals, natives, state = super().finalize(native_messages, state, context)
        finals[0]["tool_calls"] = finals[0]["tool_calls"][:1]
        return finals, natives, state


@pytest.mark.parametrize(
    ("name", "subject", "said"),
    [
        ("1-ids", ChatSubject(LosesTheId), "the next request"),
        ("46-clean-openai.chat", ChatSubject(NeverCut), "no error instead of StreamCutError"),
        ("48-last-openai.chat", ChatSubject(CountsTwice), "usage.input is 10 instead of 5"),
        ("38-absent", ChatSubject(DeafToErrors), "no error instead of ServerError"),
        ("37", ChatSubject(SaysTwice), "'hellohello' instead of 'hello'"),
        ("10-exact", ChatSubject(MakesUpArguments), "the arguments of the call of f"),
        ("2", ChatSubject(LosesACall), "the calls are ['f'] instead of ['f', 'f']"),
    ],
)
def test_a_broken_provider_is_told_what_and_shown_the_bytes(
    name: str, subject: ChatSubject, said: str
) -> None:
    found = check_shape(shape(name), subject, splits=1)
    assert len(found) == 2, "by blocking and by awaiting"
    for difference in found:
        assert said in difference
        assert f"shape {name}" in difference
        assert "| b'" in difference
