"""Tools that a program gives: functions, objects, with a context, for one run, within limits."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import ToolPlugin, ToolRetry
from agent_hookspecs.authoring import ToolContext, tool
from agent_hookspecs.errors import CollisionError, ConfigError, ContractError, ToolArgumentsError
from agent_host import AgentApplication
from agent_host.agent.answering import share_out
from agent_host.agent.limits import Limits
from agent_host.input import File, Image

ALLOWED = {"tools": {"effects": {"execute": "allow"}}}


def app_with(*tools: Any, **section: Any) -> AgentApplication:
    return AgentApplication({"tools": {**ALLOWED["tools"], **section}}, tools=tools, store=False)


def result_of(app: AgentApplication, prompt: str, **options: Any) -> dict[str, Any]:
    """The first tool message of a run."""
    answer = app.run(prompt, provider="echo", **options)
    (first, *_) = [each for each in answer.messages if each["role"] == "tool"]
    return dict(first)


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
    """
    return a + b


def test_a_plain_function_is_a_tool_that_may_do_anything() -> None:
    with app_with(add) as app:
        assert result_of(app, '/call add {"a": 2}')["content"] == "3"
        (schema,) = [s for s in app.stack(provider="echo").config["tools"] if s["name"] == "add"]
        assert schema["description"] == "Add two numbers."
        assert schema["parameters"]["properties"]["a"]["description"] == "The first."
    with AgentApplication({}, tools=[add], store=False) as app:
        assert "denied: effect execute" in result_of(app, '/call add {"a": 2}')["content"]


@pytest.mark.parametrize("wrong", [print, 3, "add", lambda a: a])
def test_what_cannot_be_a_tool_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises((ContractError, ConfigError)):
        AgentApplication({}, tools=[wrong], store=False)


class Counter:
    """Counts, and is shared by its tools."""

    def __init__(self) -> None:
        self.count = 0

    @tool(effect="read")
    def look(self) -> int:
        """The count."""
        return self.count

    @tool
    def raise_by(self, step: int) -> int:
        """Count on."""
        self.count += step
        return self.count

    def reset(self) -> None:
        """No tool."""
        self.count = 0


def test_an_object_brings_the_tools_of_its_class_and_its_state() -> None:
    one, two = Counter(), Counter()
    with app_with(one) as app:
        assert result_of(app, '/call raise_by {"step": 2}')["content"] == "2"
        assert result_of(app, "/call look")["content"] == "2"
        assert "reset" not in app.stack(provider="echo").tool_names
    with app_with(two.raise_by) as app:
        assert result_of(app, '/call raise_by {"step": 5}')["content"] == "5"
    assert (one.count, two.count) == (2, 5)
    assert Counter.raise_by(one, 1) == 3
    with pytest.raises(ContractError, match="give an object of the class"):
        AgentApplication({}, tools=[Counter.look], store=False)
    with pytest.raises(ContractError, match=r"give an object of it: Counter\("):
        AgentApplication({}, tools=[Counter], store=False)


def test_a_method_bound_by_hand_is_a_tool_as_well() -> None:
    words: list[str] = []
    with app_with(Keeper(words).keep) as app:
        result_of(app, '/call keep {"word": "hello"}')
    assert words == ["hello"]


def test_an_object_without_tools_is_refused_with_what_would_do() -> None:
    for wrong in (Keeper([]), functools.partial(add, 1)):
        with pytest.raises(ContractError, match="has no tools") as error:
            AgentApplication({}, tools=[wrong], store=False)
        assert "@tool" in error.value.hint


class Visit(TypedDict):
    place: str
    days: int | None


def test_a_typed_dict_may_be_an_argument() -> None:
    def plan(visits: list[Visit]) -> str:
        """Plan visits."""
        return ", ".join(visit["place"] for visit in visits)

    with app_with(plan) as app:
        call = '/call plan {"visits": [{"place": "Ulm", "days": null}]}'
        assert result_of(app, call)["content"] == "Ulm"


class Keeper:
    def __init__(self, words: list[str]) -> None:
        self.words = words

    def keep(self, word: str) -> None:
        """Keep a word."""
        self.words.append(word)


class Person:
    def __init__(self, name: str) -> None:
        self.name = name


def greet(context: ToolContext[Person], word: str) -> str:
    """Greet somebody."""
    return f"{word}, {context.deps.name} ({context.call_id}, {context.cancelled})"


def test_a_typed_context_is_filled_by_the_host_and_hidden_from_the_model() -> None:
    with app_with(greet) as app:
        (schema,) = [s for s in app.stack(provider="echo").config["tools"] if s["name"] == "greet"]
        assert [*schema["parameters"]["properties"]] == ["word"]
        said = result_of(app, '/call greet {"word": "Hello"}', deps=Person("Ada"))
        call_id = said["metadata"]["tool_call_id"]
        assert said["content"] == f"Hello, Ada ({call_id}, False)"
        lacking = result_of(app, '/call greet {"word": "Hello"}')
        assert "pass deps=" in lacking["content"]


def test_a_caller_cannot_pass_deps_as_a_context_key() -> None:
    with app_with(greet) as app:
        said = result_of(app, '/call greet {"word": "Hi"}', context={"deps": Person("Eve")})
        assert "Eve" not in said["content"]


def test_a_retry_reaches_the_model_as_a_failed_result_with_its_hint_alone() -> None:
    def find(city: str) -> str:
        """Find a city."""
        raise ToolRetry("Name the country too, as in 'Oslo, Norway'.")

    async def afind(city: str) -> str:
        """Find a city."""
        raise ToolRetry("Later.")

    def stepwise(city: str) -> Iterator[str]:
        """Find a city."""
        yield "looking"
        raise ToolRetry("Somewhere else.")

    with app_with(find, afind, stepwise) as app:
        result = result_of(app, '/call find {"city": "Oslo"}')
        assert result["content"] == "Name the country too, as in 'Oslo, Norway'."
        assert result["metadata"]["error"] is True
        assert result_of(app, '/call afind {"city": "Oslo"}')["content"] == "Later."
        assert result_of(app, '/call stepwise {"city": "Oslo"}')["content"] == "Somewhere else."


def test_the_hint_of_an_error_reaches_the_model() -> None:
    def find(city: str) -> str:
        """Find a city."""
        raise ToolArgumentsError("there is no such city", hint="name a capital")

    with app_with(find) as app:
        result = result_of(app, '/call find {"city": "Nowhere"}')
        assert result["content"].endswith("there is no such city (name a capital)")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_tool_of_one_run_is_gone_with_it_and_is_closed(asynchronous: bool) -> None:
    closed: list[str] = []

    class Lamp(ToolPlugin):
        name = "lamp"
        effects = {"light": "read"}  # noqa: RUF012

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"name": "light", "parameters": {"type": "object", "properties": {}}}]

        def execute_tool(self, tool_name: str) -> str:
            assert not closed
            return "lit"

        def close(self) -> None:
            closed.append("lamp")

    with app_with() as app:
        options: Any = {"provider": "echo", "tools": [Lamp, add]}
        if asynchronous:
            answer = asyncio.run(app.arun("/call light", **options))
        else:
            answer = app.run("/call light", **options)
        assert answer.text == "light returned: lit"
        assert closed == ["lamp"]
        assert "light" not in app.stack(provider="echo").tool_names


def test_a_name_that_is_taken_and_a_pattern_in_the_wrong_place_are_refused() -> None:
    with app_with(add) as app:
        with pytest.raises(CollisionError):
            app.run("Hello", provider="echo", tools=[add])
        with pytest.raises(ConfigError, match="use_tools"):
            app.run("Hello", provider="echo", tools=["add"])
        with pytest.raises(ConfigError, match="use_tools"):
            app.run("Hello", provider="echo", tools="add")
        alone: Any = add
        with pytest.raises(ConfigError, match="tools is function, and not a list"):
            app.run("Hello", provider="echo", tools=alone)
        with pytest.raises(ConfigError, match="tools is function, and not a list"):
            AgentApplication({}, tools=alone)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", ["plain", "async", "generator"])
def test_a_tool_that_takes_too_long_is_given_up_and_told(kind: str, asynchronous: bool) -> None:
    seen: list[bool] = []
    ended = threading.Event()

    @tool(timeout=0.05)
    def plain(context: ToolContext[None]) -> None:
        """Wait."""
        while not context.cancelled:
            threading.Event().wait(0.005)
        seen.append(context.cancelled)
        ended.set()

    @tool(name="async", timeout=0.05)
    async def awaiting() -> None:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @tool(timeout=0.05)
    def generator(context: ToolContext[None]) -> Iterator[str]:
        """Wait."""
        yield "begun"
        while not context.cancelled:
            threading.Event().wait(0.005)
        ended.set()
        yield "ended"

    with app_with(plain, awaiting, generator) as app:
        prompt = f"/call {kind}"
        if asynchronous:
            answer = asyncio.run(app.arun(prompt, provider="echo"))
        else:
            answer = app.run(prompt, provider="echo")
        result = f"Tool '{kind}' was given up: it took longer than 0.05 s."
        assert answer.text == f"{kind} returned: {result}"
        assert ended.wait(10)


def test_the_time_of_every_call_can_be_limited_by_config_and_by_run() -> None:
    def wait(context: ToolContext[None]) -> None:
        """Wait."""
        while not context.cancelled:
            threading.Event().wait(0.005)

    with app_with(wait, max_call_seconds=0.05) as app:
        assert "longer than 0.05 s" in result_of(app, "/call wait")["content"]
    with app_with(wait) as app:
        limits = Limits(call_seconds=0.02)
        assert "longer than 0.02 s" in result_of(app, "/call wait", limits=limits)["content"]


@pytest.mark.parametrize("wrong", [0, -1, "5", True])
def test_limits_that_are_no_numbers_are_refused(wrong: Any) -> None:
    for limit in ("timeout", "concurrency"):
        with pytest.raises(ContractError, match=limit):
            tool(**{limit: wrong})(add)


class Busy:
    """How many calls are at work at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def work(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.01)
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize(("own", "of_all", "most"), [(None, None, 6), (2, None, 2), (None, 3, 3)])
def test_as_many_calls_run_at_once_as_may(own: int | None, of_all: int | None, most: int) -> None:
    busy = Busy()

    @tool(concurrency=own)
    def work(number: int) -> int:
        """Work."""
        busy.work()
        return number

    section = {"parallel": True, **({"max_parallel_calls": of_all} if of_all else {})}
    with app_with(work, **section) as app:
        calls = "\n".join(f'/call work {{"number": {number}}}' for number in range(6))
        answer = app.run(calls, provider="echo")
    assert busy.most <= most
    results = [each["content"] for each in answer.messages if each["role"] == "tool"]
    assert results == [str(number) for number in range(6)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none()) | st.tuples(st.just("d"), st.just(2))),
    st.none() | st.integers(1, 4),
)
def test_lanes_have_every_call_once_and_keep_all_limits(calls: Any, most: int | None) -> None:
    lanes = share_out(calls, most)
    assert sorted(place for lane in lanes for place in lane) == list(range(len(calls)))
    assert most is None or len(lanes) <= most
    assert sum(any(calls[place][0] == "d" for place in lane) for lane in lanes) <= 2


PIXEL = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


def test_a_tool_may_return_pictures_files_and_text_beside_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some notes", "utf-8")

    def draw() -> Any:
        """Draw."""
        return ["A square.", Image(PIXEL), File(tmp_path / "notes.txt")]

    def dump() -> bytes:
        """Draw, too."""
        return PIXEL

    def lose() -> Any:
        """Lose a file."""
        return File(tmp_path / "gone.png")

    with app_with(draw, dump, lose) as app:
        message = result_of(app, "/call draw")
        said, picture, notes = message["toolResult"]["content"]
        assert said["content"] == {"text": "A square."}
        assert picture["type"] == "image"
        assert picture["content"]["url"].startswith("data:image/png;base64,")
        assert "some notes" in notes["content"]["text"]
        assert message["content"].startswith("A square.")
        (picture,) = result_of(app, "/call dump")["toolResult"]["content"]
        assert picture["type"] == "image"
        lost = result_of(app, "/call lose")
        assert "gone.png" in lost["content"]
        assert lost["metadata"]["error"] is True


def test_a_class_with_limits_that_are_no_numbers_is_left_out_and_told() -> None:
    class Slow(ToolPlugin):
        name = "slow"
        timeouts = {"wait": "5"}  # type: ignore[dict-item]  # noqa: RUF012

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"name": "wait", "parameters": {"type": "object", "properties": {}}}]

        def execute_tool(self, tool_name: str) -> str:
            return "waited"

    with app_with(Slow) as app:
        (warned,) = [e["message"] for e in app.run("Hello", provider="echo").warnings]
    assert "'slow' could not be prepared" in warned
    assert "timeouts" in warned
