"""Several implementations become one result: order, wrappers, failures."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import HookError, RateLimitError
from agent_hookspecs.markers import Combining
from agent_hookspecs.specs import Hook
from agent_host.plugins.combining import Implementation, combine, told

Wrapper = Callable[..., Generator[None, Any, Any]]


def hook_of(combining: Combining, *args: str) -> Hook:
    return Hook("extension", "hook", args, combining, "", "")


FOLD = hook_of(Combining("fold", ("left", "right"), wrappers=True), "fixed", "left", "right")
FIRST = hook_of(Combining("first", wrappers=True), "value")
COLLECT = hook_of(Combining("collect"), "value")


def plain(call: Callable[..., Any], plugin: str = "plain") -> Implementation:
    return Implementation(plugin, "hook", call)


def wrapper(call: Wrapper, plugin: str = "wrapper") -> Implementation:
    return Implementation(plugin, "hook", call, wrapper=True)


@given(st.lists(st.tuples(st.integers(), st.integers()) | st.none()))
def test_a_fold_hands_each_result_to_the_next(results: list[tuple[int, int] | None]) -> None:
    seen: list[Any] = []

    def step(result: tuple[int, int] | None) -> Implementation:
        def call(fixed: Any, left: Any, right: Any) -> Any:
            seen.append((fixed, left, right))
            return result

        return plain(call)

    final = combine(FOLD, [step(result) for result in results])("fixed", "a", "b")
    current: tuple[Any, Any] = ("a", "b")
    for result, received in zip(results, seen, strict=True):
        assert received == ("fixed", *current)
        current = result or current
    assert final == current


@given(st.lists(st.none() | st.integers()))
def test_first_stops_at_the_first_answer(answers: list[int | None]) -> None:
    asked: list[int | None] = []

    def asking(answer: int | None) -> Implementation:
        def call(value: Any) -> int | None:
            asked.append(answer)
            return answer

        return plain(call)

    known = [answer for answer in answers if answer is not None]
    result = combine(FIRST, [asking(answer) for answer in answers])("value")
    assert result == (known[0] if known else None)
    assert asked == (answers[: answers.index(known[0]) + 1] if known else answers)


@given(st.lists(st.none() | st.integers()))
def test_collect_keeps_every_answer_in_order(answers: list[int | None]) -> None:
    implementations = [plain(lambda value, answer=answer: answer) for answer in answers]
    assert combine(COLLECT, implementations)("value") == answers


def test_errors_of_the_contract_pass_as_they_are() -> None:
    limited = RateLimitError("slow down", retry_after=3)

    def raising(*args: Any) -> None:
        raise limited

    for hook in (FOLD, FIRST, COLLECT):
        with pytest.raises(RateLimitError) as caught:
            combine(hook, [plain(raising)])(*hook.args)
        assert caught.value is limited


def test_a_fold_that_fails_calls_nobody_after_it() -> None:
    called: list[str] = []

    def failing(*args: Any) -> None:
        raise ValueError("no")

    late = plain(lambda *args: called.append("late"))
    with pytest.raises(HookError):
        combine(FOLD, [plain(failing), late])(1, 2, 3)
    assert called == []


def test_wrappers_enclose_the_whole_fold_the_first_one_outermost() -> None:
    trail: list[str] = []

    def around(name: str) -> Implementation:
        def call(fixed: Any, left: Any, right: Any) -> Generator[None, Any, Any]:
            trail.append(f"{name} before {left}")
            result = yield
            trail.append(f"{name} after {result}")
            return (*result, name)

        return wrapper(call)

    def step(fixed: Any, left: Any, right: Any) -> Any:
        trail.append(f"step {left}")
        return left + 1, right

    call = combine(FOLD, [around("outer"), plain(step), around("inner"), plain(step)])
    assert call("fixed", 1, "r") == (3, "r", "inner", "outer")
    assert trail == [
        "outer before 1",
        "inner before 1",
        "step 1",
        "step 2",
        "inner after (3, 'r')",
        "outer after (3, 'r', 'inner')",
    ]


def failing(value: Any) -> None:
    raise KeyError("inside")


def test_a_wrapper_sees_an_exception_and_may_answer_in_its_place() -> None:
    seen: list[BaseException] = []

    def rescuing(value: Any) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except HookError as error:
            seen.append(error)
            return "rescued"

    assert combine(FIRST, [wrapper(rescuing), plain(failing)])("value") == "rescued"
    assert isinstance(seen[0], HookError)
    assert isinstance(seen[0].__cause__, KeyError)


def test_a_wrapper_that_lets_an_exception_pass_changes_nothing() -> None:
    def passing(value: Any) -> Generator[None, Any, Any]:
        return (yield)

    with pytest.raises(HookError) as caught:
        combine(FIRST, [wrapper(passing), plain(failing, "culprit")])("value")
    assert caught.value.plugin == "culprit"


def test_an_exception_of_the_wrapper_itself_names_the_wrapper() -> None:
    def early(value: Any) -> Generator[None, Any, Any]:
        yield int("before")  # type: ignore[misc]

    def late(value: Any) -> Generator[None, Any, Any]:
        yield
        raise ValueError("after")

    for broken in (early, late):
        with pytest.raises(HookError, match=r"wrapper.*raised ValueError") as caught:
            combine(FIRST, [wrapper(broken), plain(lambda value: value)])("value")
        assert caught.value.plugin == "wrapper"


def test_a_wrapper_that_yields_twice_or_never_is_an_error_that_says_so() -> None:
    closed: list[bool] = []

    def twice(value: Any) -> Generator[None, Any, Any]:
        try:
            yield
            yield
        finally:
            closed.append(True)

    def never(value: Any) -> Generator[None, Any, Any]:
        yield from ()
        return 1

    for misused, words in ((twice, "yielded twice"), (never, "did not yield")):
        with pytest.raises(HookError, match=words) as caught:
            combine(FIRST, [wrapper(misused), plain(lambda value: value)])("value")
        assert caught.value.plugin == "wrapper"
        assert "yields once" in caught.value.hint
    assert closed == [True]


def test_interruptions_are_not_taken_for_failures_of_a_plugin() -> None:
    def interrupted(value: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        combine(FIRST, [plain(interrupted)])("value")


def test_an_exception_that_cannot_be_printed_is_still_reported() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def raising(value: Any) -> None:
        raise Unspeakable

    with pytest.raises(HookError, match="raised Unspeakable"):
        combine(FIRST, [plain(raising)])("value")
    assert told(ValueError("x")) == "ValueError: x"
    assert told(ValueError()) == "ValueError"


# Going on without a plugin that failed ------------------------------------------------------------


class Tolerant:
    """Remembers what failed and lets the call go on."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []

    def __call__(self, implementation: Implementation, error: Exception) -> None:
        self.failures.append((implementation.plugin, str(error)))


STATE = hook_of(Combining("fold", ("state",), wrappers=True), "config", "state")


def test_a_tolerated_fold_goes_on_from_the_values_before_the_failure() -> None:
    def adding(key: str) -> Callable[..., Any]:
        return lambda config, state: {**state, key: True}

    def half_done(config: Any, state: Any) -> None:
        state["half"] = True
        raise ValueError("no further")

    tolerant = Tolerant()
    steps = [plain(adding("a")), plain(half_done, "broken"), plain(adding("b"))]
    assert combine(STATE, steps, tolerant)({}, {}) == {"a": True, "b": True}
    ((plugin, message),) = tolerant.failures
    assert plugin == "broken"
    assert "no further" in message


def test_a_result_of_the_wrong_kind_is_tolerated_too() -> None:
    tolerant = Tolerant()
    wrong = plain(lambda config, state: "text", "broken")
    assert combine(STATE, [wrong], tolerant)({}, {"kept": 1}) == {"kept": 1}
    assert tolerant.failures[0][1].endswith("must return a dict as state, not a value of type str")


def test_a_tolerated_collect_leaves_the_failure_out() -> None:
    tolerant = Tolerant()
    call = combine(COLLECT, [plain(failing, "broken"), plain(lambda value: value)], tolerant)
    assert call("x") == ["x"]
    assert [plugin for plugin, _ in tolerant.failures] == ["broken"]


def test_a_tolerated_wrapper_that_fails_by_itself_is_passed_over() -> None:
    def early(config: Any, state: Any) -> Generator[None, Any, Any]:
        yield int("before")  # type: ignore[misc]

    def late(config: Any, state: Any) -> Generator[None, Any, Any]:
        yield
        raise ValueError("after")

    for broken in (early, late):
        tolerant = Tolerant()
        assert combine(STATE, [wrapper(broken)], tolerant)({}, {"kept": 1}) == {"kept": 1}
        assert [plugin for plugin, _ in tolerant.failures] == ["wrapper"]


def test_tolerance_may_still_end_the_call() -> None:
    def refuse(implementation: Implementation, error: Exception) -> None:
        raise error

    with pytest.raises(HookError, match="'broken'"):
        combine(COLLECT, [plain(failing, "broken")], refuse)("x")
