"""A role's manager: pluggy calls the plugins, and their results become one; failures have names."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import (
    CollisionError,
    HookError,
    HookResultError,
    RateLimitError,
)
from agent_hookspecs.markers import RESULT_PARTS, Combining, hookimpl
from agent_hookspecs.specs import SPECS, Hook, SpecRole, hooks_of
from agent_host.plugins.implementation import Implementation, check_result, describe_failure
from agent_host.plugins.implementations import find_implementations
from agent_host.plugins.manager import RoleManager

Around = Generator[None, Any, Any]


def manager_of(role: SpecRole, *plugins: dict[str, Any], **options: Any) -> RoleManager:
    """A manager with plugins ``p0``, ``p1``, …, each made of its functions."""
    found = [
        (f"p{number}", find_implementations(made(functions), role, f"p{number}"))
        for number, functions in enumerate(plugins)
    ]
    return RoleManager(role, found, **options)


def made(functions: dict[str, Any]) -> object:
    return type("Made", (), {name: staticmethod(each) for name, each in functions.items()})()


def wrapping(function: Callable[..., Around]) -> Callable[..., Around]:
    return hookimpl(wrapper=True)(function)


def call_state(manager: RoleManager, state: Any) -> Any:
    return manager.hook.init(config={}, state=state)


# How results combine ------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(), st.integers()), max_size=5))
def test_a_fold_gives_each_plugin_what_the_one_before_returned(
    numbers: list[tuple[int, int]],
) -> None:
    results = [([one], {"number": two}) for one, two in numbers]
    seen: list[Any] = []

    def step(result: Any) -> dict[str, Any]:
        def initialize_request(native_messages: Any, state: Any, context: Any) -> Any:
            seen.append((native_messages, state, context))
            return result

        return {"initialize_request": initialize_request}

    manager = manager_of("extension", *map(step, results))
    final = manager.hook.initialize_request(native_messages=["a"], state={}, context="fixed")
    current: tuple[Any, Any] = (["a"], {})
    for result, received in zip(results, seen, strict=True):
        assert received == (*current, "fixed")
        current = result
    assert final == current


@given(st.lists(st.integers() | st.none(), max_size=5))
def test_a_fold_over_one_value_leaves_it_where_nothing_is_returned(
    numbers: list[int | None],
) -> None:
    def step(number: int | None) -> dict[str, Any]:
        given = None if number is None else {"number": number}
        return {"init": lambda config, state: given}

    known = [number for number in numbers if number is not None]
    given = call_state(manager_of("extension", *map(step, numbers)), {})
    assert given == ({"number": known[-1]} if known else {})


@given(st.lists(st.none() | st.integers(), max_size=5))
def test_first_stops_at_the_first_answer(answers: list[int | None]) -> None:
    asked: list[int | None] = []

    def asking(answer: int | None) -> dict[str, Any]:
        def open_session_store(url: str) -> int | None:
            asked.append(answer)
            return answer

        return {"open_session_store": open_session_store}

    known = [answer for answer in answers if answer is not None]
    manager = manager_of("host", *map(asking, answers))
    result = manager.hook.open_session_store(url="x", config={})
    assert result == (known[0] if known else None)
    assert asked == (answers[: answers.index(known[0]) + 1] if known else answers)


@given(st.lists(st.none() | st.integers(), max_size=5))
def test_collect_has_every_answer_in_order(answers: list[int | None]) -> None:
    plugins = [{"get_actions": lambda state, answer=answer: answer} for answer in answers]
    given = manager_of("extension", *plugins).hook.get_actions(state={})
    assert given == [answer for answer in answers if answer is not None]


def test_single_is_answered_by_its_owner() -> None:
    manager = manager_of("provider", {"init": lambda config: {"config": config}})
    assert manager.hook.init(config=1) == {"config": 1}
    assert manager.hook.finalize(native_messages=[], state={}, context={}) is None


def test_a_manager_says_who_implements_what() -> None:
    manager = manager_of(
        "extension",
        {"init": lambda: None},
        {"init": wrapping(lambda: (yield))},
        {"finalize": lambda: None},
    )
    assert [each.plugin for each in manager.implementations("init")] == ["p0"]
    assert manager.implements("init")
    assert not manager.implements("to_native_messages")
    assert manager.implementation("p2", "finalize") is not None
    assert manager.implementation("p1", "finalize") is None


def test_several_implementations_of_one_plugin_run_in_the_order_of_their_names() -> None:
    def adding(mark: str) -> Callable[..., Any]:
        @hookimpl(specname="init")
        def add(state: Any) -> Any:
            return {"marks": [*state["marks"], mark]}

        return add

    names = [f"m{number:02}" for number in range(12)]
    manager = manager_of("extension", {name: adding(name) for name in names})
    assert call_state(manager, {"marks": []}) == {"marks": names}


# Wrappers -----------------------------------------------------------------------------------------


def test_wrappers_enclose_the_whole_fold_the_first_one_outermost() -> None:
    trail: list[str] = []

    def around(name: str) -> dict[str, Any]:
        @wrapping
        def init(state: Any) -> Around:
            trail.append(f"{name} before {state['n']}")
            result = yield
            trail.append(f"{name} after {result['n']}")
            return {**result, name: True}

        return {"init": init}

    def step(state: Any) -> Any:
        trail.append(f"step {state['n']}")
        return {"n": state["n"] + 1}

    manager = manager_of(
        "extension", around("outer"), {"init": step}, around("inner"), {"init": step}
    )
    assert call_state(manager, {"n": 1}) == {"n": 3, "inner": True, "outer": True}
    assert trail == [
        "outer before 1",
        "inner before 1",
        "step 1",
        "step 2",
        "inner after 3",
        "outer after 3",
    ]


def failing(*given: Any) -> None:
    raise KeyError("inside")


def test_a_wrapper_sees_an_exception_and_may_answer_in_its_place() -> None:
    seen: list[BaseException] = []

    @wrapping
    def init(config: Any) -> Around:
        try:
            return (yield)
        except HookError as error:
            seen.append(error)
            return {"rescued": True}

    manager = manager_of("provider", {"init": init}, {"init": failing})
    assert manager.hook.init(config={}) == {"rescued": True}
    assert isinstance(seen[0].__cause__, KeyError)


def test_a_wrapper_that_passes_an_exception_on_changes_nothing() -> None:
    @wrapping
    def init(config: Any) -> Around:
        return (yield)

    with pytest.raises(HookError) as caught:
        manager_of("provider", {"init": init}, {"init": failing}).hook.init(config={})
    assert caught.value.plugin == "p1"


@wrapping
def failing_early(state: Any) -> Around:
    yield int("before")  # type: ignore[misc]


@wrapping
def failing_late(state: Any) -> Around:
    yield
    raise ValueError("after")


@wrapping
def forgetting_the_result(state: Any) -> Around:
    yield


@wrapping
def yielding_never(state: Any) -> Around:
    yield from ()
    return state


BAD_WRAPPERS = {
    "raised ValueError: invalid literal": failing_early,
    "raised ValueError: after": failing_late,
    "must return a dict as state, not NoneType": forgetting_the_result,
    "did not yield": yielding_never,
}


@pytest.mark.parametrize("words", BAD_WRAPPERS)
def test_a_fault_of_the_wrapper_itself_names_the_wrapper(words: str) -> None:
    manager = manager_of("extension", {"init": lambda state: state}, {"init": BAD_WRAPPERS[words]})
    with pytest.raises(HookError, match=words) as caught:
        call_state(manager, {})
    assert (caught.value.plugin, caught.value.hook) == ("p1", "init")


@pytest.mark.parametrize("words", BAD_WRAPPERS)
def test_a_tolerated_wrapper_with_a_fault_is_passed_over(words: str) -> None:
    tolerant = Tolerant()
    manager = manager_of("extension", {"init": BAD_WRAPPERS[words]}, tolerate=tolerant)
    assert call_state(manager, {"there": 1}) == {"there": 1}
    ((plugin, message),) = tolerant.failures
    assert plugin == "p0"
    assert words in message


def test_a_tolerated_wrapper_with_a_fault_does_not_hide_an_error() -> None:
    @wrapping
    def init(state: Any) -> Around:
        try:
            yield
        except HookError:
            return None

    def refuse(implementation: Implementation, error: Exception) -> None:
        if not implementation.wrapper:
            raise error

    manager = manager_of("extension", {"init": init}, {"init": failing}, tolerate=refuse)
    with pytest.raises(HookError, match="inside"):
        call_state(manager, {})


def test_a_wrapper_that_yields_twice_is_told_how_it_is_done_and_closed() -> None:
    closed: list[bool] = []

    @wrapping
    def init(state: Any) -> Around:
        try:
            yield
            yield
        finally:
            closed.append(True)

    with pytest.raises(HookError, match="yielded twice") as caught:
        call_state(manager_of("extension", {"init": init}), {})
    assert "yields once" in caught.value.hint
    assert closed == [True]


# Failures -----------------------------------------------------------------------------------------


def test_a_failure_names_plugin_and_hook_and_has_its_cause() -> None:
    asked: list[tuple[SpecRole, str]] = [
        ("extension", "init"),
        ("host", "open_session_store"),
        ("extension", "get_actions"),
        ("provider", "build_request"),
    ]
    for role, hook in asked:
        arguments: dict[str, Any] = {name: {} for name in hooks_of(role)[hook].args}
        with pytest.raises(HookError, match=f"'p0': hook '{hook}' raised KeyError") as caught:
            getattr(manager_of(role, {hook: failing}).hook, hook)(**arguments)
        assert (caught.value.plugin, caught.value.hook) == ("p0", hook)
        assert isinstance(caught.value.__cause__, KeyError)
        assert describe_failure(caught.value) == "KeyError: 'inside'"


def test_errors_of_our_tree_pass_as_they_are() -> None:
    limited = RateLimitError("slow down", retry_after=3)

    def raising() -> None:
        raise limited

    for hook in ("init", "get_actions"):
        arguments: dict[str, Any] = {name: {} for name in hooks_of("extension")[hook].args}
        with pytest.raises(RateLimitError) as caught:
            getattr(manager_of("extension", {hook: raising}).hook, hook)(**arguments)
        assert caught.value is limited


def test_nobody_is_called_after_one_that_failed() -> None:
    called: list[str] = []
    late = {"init": lambda: called.append("late")}
    with pytest.raises(HookError):
        call_state(manager_of("extension", {"init": failing}, late), {})
    assert called == []


def test_interruptions_are_not_taken_for_failures_of_a_plugin() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_state(manager_of("extension", {"init": interrupted}), {})


def test_an_exception_that_cannot_be_printed_is_still_reported() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def raising() -> None:
        raise Unspeakable

    with pytest.raises(HookError, match="raised Unspeakable"):
        call_state(manager_of("extension", {"init": raising}), {})


# Shapes of results --------------------------------------------------------------------------------

RIGHT: dict[str, list[Any]] = {
    "dict": [{}],
    "list": [[], [1]],
    "dicts": [[], [{}]],
    "texts": [[], ["a"], ("a",), {"a"}, frozenset("a")],
    "text": ["", "a"],
    "contents": [[], ["a", {}]],
    "flag": [True, False, None],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "dict": [([], "a dict, not list"), ("text", "a dict, not str")],
    "list": [((), "a list, not a tuple of 0"), ({}, "a list, not dict")],
    "dicts": [({}, "a list, not dict"), ([3], "dicts as NAME, not int")],
    "texts": [("text", "a list of strings, not str"), ([3], "a list of strings, not list")],
    "text": [([], "a string, not list"), (b"x", "a string, not bytes")],
    "contents": [
        ("text", "a list of strings and parts, not str"),
        ([3], "a list of strings and parts, not list"),
    ],
    "flag": [(1, "True, False or None, not int"), ("no", "True, False or None, not str")],
}


def implementation_of(*parts: str) -> Implementation:
    combining = Combining("single", result=parts)
    return Implementation("p", Hook("provider", "hook", (), combining, "", ""), print)


@pytest.mark.parametrize("part", RESULT_PARTS)
def test_a_result_of_every_kind_is_accepted_or_refused_in_words(part: str) -> None:
    kind = RESULT_PARTS[part]
    alone, pair = implementation_of(part), implementation_of(part, "state")
    for right in RIGHT[kind]:
        assert check_result(alone, right) is right
        check_result(pair, (right, {}))
    for wrong, words in WRONG[kind]:
        words = words.replace("NAME", part)
        with pytest.raises(HookResultError) as caught:
            check_result(alone, wrong)
        assert caught.value.message == f"plugin 'p': hook 'hook' must return {words}"
        with pytest.raises(HookResultError, match=f"as {part}, not"):
            check_result(pair, (wrong, {}))
    with pytest.raises(HookResultError, match=rf"a tuple of \({part}, state\), not a tuple of 1"):
        check_result(pair, ({},))


def test_a_wrong_result_is_refused_where_it_was_made_and_goes_to_nobody() -> None:
    called: list[str] = []
    manager = manager_of(
        "extension", {"init": lambda: "text"}, {"init": lambda: called.append("late")}
    )
    with pytest.raises(HookResultError, match="'p0': hook 'init' must return a dict as state"):
        call_state(manager, {})
    assert called == []


# Going on without a plugin that failed ------------------------------------------------------------


class Tolerant:
    """Remembers what failed; the call goes on."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []

    def __call__(self, implementation: Implementation, error: Exception) -> None:
        self.failures.append((implementation.plugin, str(error)))


def adding(key: str) -> dict[str, Any]:
    return {"init": lambda state: {**state, key: True}}


def half_done(state: Any) -> None:
    state["half"] = True
    raise ValueError("no further")


def test_a_tolerated_fold_goes_on_from_the_values_before_the_failure() -> None:
    tolerant = Tolerant()
    manager = manager_of(
        "extension", adding("a"), {"init": half_done}, adding("b"), tolerate=tolerant
    )
    assert call_state(manager, {}) == {"a": True, "b": True}
    ((plugin, message),) = tolerant.failures
    assert plugin == "p1"
    assert "no further" in message


def test_without_tolerance_a_plugin_works_on_the_values_themselves() -> None:
    state: dict[str, Any] = {"deep": []}
    seen: list[Any] = []
    manager = manager_of("extension", {"init": lambda state: seen.append(state)})
    call_state(manager, state)
    assert seen[0] is state


def test_a_result_of_the_wrong_kind_is_tolerated_too() -> None:
    tolerant = Tolerant()
    manager = manager_of("extension", {"init": lambda: "text"}, tolerate=tolerant)
    assert call_state(manager, {"there": 1}) == {"there": 1}
    assert tolerant.failures[0][1].endswith("must return a dict as state, not str")


def test_a_tolerated_collect_leaves_the_failure_out() -> None:
    tolerant = Tolerant()
    manager = manager_of(
        "extension", {"get_actions": failing}, {"get_actions": lambda: [1]}, tolerate=tolerant
    )
    assert manager.hook.get_actions(state={}) == [[1]]
    assert [plugin for plugin, _ in tolerant.failures] == ["p0"]


def test_tolerance_may_still_end_the_call() -> None:
    def refuse(implementation: Implementation, error: Exception) -> None:
        raise error

    manager = manager_of("extension", {"get_actions": failing}, tolerate=refuse)
    with pytest.raises(HookError, match="'p0'"):
        manager.hook.get_actions(state={})


def test_who_is_left_out_by_tolerance_is_called_by_no_later_hook() -> None:
    def leave_out(implementation: Implementation, error: Exception) -> None:
        manager.drop_plugin(implementation.plugin)

    called: list[str] = []
    broken = {"init": half_done, "finalize": lambda: called.append("broken")}
    sound = {**adding("sound"), "finalize": lambda: called.append("sound")}
    manager = manager_of("extension", broken, sound, tolerate=leave_out)
    assert call_state(manager, {}) == {"sound": True}
    manager.hook.finalize(final_messages=[], native_messages=[], state={}, context={})
    assert called == ["sound"]


SKIPPING = [h for role in SPECS for h in hooks_of(role).values() if h.combining.skips]


@pytest.mark.parametrize("hook", SKIPPING, ids=[f"{h.role}.{h.name}" for h in SKIPPING])
def test_a_hook_that_skips_reports_a_failure_and_goes_on(hook: Hook) -> None:
    def spoiling(models: list[Any]) -> None:
        models.append("half")
        raise ValueError("no further")

    reported = Tolerant()
    manager = manager_of(
        hook.role, {hook.name: spoiling}, {hook.name: lambda: [{"id": "b"}]}, report=reported
    )
    arguments: dict[str, Any] = {name: [] for name in hook.args}
    result = getattr(manager.hook, hook.name)(**arguments)
    assert result == ([[{"id": "b"}]] if hook.combining.mode == "collect" else [{"id": "b"}])
    assert [plugin for plugin, _ in reported.failures] == ["p0"]
    if hook.combining.mode == "fold":
        assert arguments["models"] == []


def test_other_hooks_are_not_reported() -> None:
    reported = Tolerant()
    with pytest.raises(HookError):
        call_state(manager_of("extension", {"init": failing}, report=reported), {})
    assert reported.failures == []


# Owners, registration, state ----------------------------------------------------------------------


def test_asking_one_plugin_calls_no_other() -> None:
    called: list[str] = []

    def tool(mark: str) -> dict[str, Any]:
        def init() -> dict[str, str]:
            called.append(mark)
            return {"mark": mark}

        def execute_tool() -> str:
            called.append(mark)
            return mark

        return {"init": init, "execute_tool": execute_tool}

    manager = manager_of("tool", tool("a"), tool("b"), {"close": failing})
    call: dict[str, Any] = {"tool_name": "t", "payload": {}, "state": {}, "context": {}}
    assert manager.ask("p1", "execute_tool", **call) == "b"
    assert manager.ask("p1", "init", config={}) == {"mark": "b"}
    assert manager.ask("p0", "execute_tool", **call) == "a"
    assert manager.ask("p2", "execute_tool", **call) is None
    assert manager.ask("p0", "close", state={}) is None
    assert called == ["b", "b", "a"]


def test_what_pluggy_is_given_has_the_hooks_by_their_names() -> None:
    """pluggy before 1.7 tells by that who implements a hook, and asks all the others with it."""

    @hookimpl(specname="init")
    def begin(state: Any) -> Any:
        return state

    manager = manager_of("extension", {"begin": begin, **adding("a")}, {"finalize": lambda: None})
    first, second = manager.get_plugin("p0"), manager.get_plugin("p1")
    assert (hasattr(first, "init"), hasattr(first, "finalize")) == (True, False)
    assert (hasattr(second, "init"), hasattr(second, "finalize")) == (False, True)


def test_asking_goes_on_to_be_right_when_a_plugin_is_dropped() -> None:
    manager = manager_of("tool", {"init": lambda: "a"}, {"init": lambda: "b"})
    assert manager.ask("p0", "init", config={}) == "a"
    assert manager.ask("p1", "init", config={}) == "b"
    manager.drop_plugin("p0")
    assert manager.ask("p0", "init", config={}) is None
    assert manager.ask("p1", "init", config={}) == "b"
    assert [each.plugin for each in manager.implementations("init")] == ["p1"]


def test_a_plugin_that_is_dropped_is_called_no_more() -> None:
    manager = manager_of("extension", adding("a"), adding("b"))
    manager.drop_plugin("p0")
    assert call_state(manager, {}) == {"b": True}
    assert not manager.has_plugin("p0")
    assert manager.implementation("p0", "init") is None


def test_two_plugins_of_one_name_collide() -> None:
    found = find_implementations(made(adding("a")), "extension", "same")
    with pytest.raises(CollisionError, match="two extension plugins are called 'same'") as caught:
        RoleManager("extension", [("same", found), ("other", {}), ("same", found)])
    assert "rename one" in caught.value.hint


def test_a_plugin_may_be_called_like_the_host() -> None:
    found = find_implementations(made(adding("a")), "extension", "agent_host")
    manager = RoleManager("extension", [("agent_host", found)])
    assert call_state(manager, {}) == {"a": True}
    assert manager.implements("init")


def test_the_state_is_shown_after_each_plugin_and_after_a_failure() -> None:
    seen: list[Any] = []
    manager = manager_of("extension", adding("a"), {"init": half_done}, tolerate=Tolerant())
    manager.watch_state = lambda _: lambda state: seen.append(dict(state))
    call_state(manager, {})
    assert {"a": True} in seen
    assert {"a": True, "half": True} in seen


def test_only_folds_over_a_state_show_one() -> None:
    seen: list[Any] = []
    manager = manager_of("extension", {"get_models": lambda models: [*models, {"id": "m"}]})
    manager.watch_state = lambda _: seen.append
    assert manager.hook.get_models(config={}, models=[]) == [{"id": "m"}]
    assert seen == []
