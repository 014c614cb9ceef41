"""The two markers: what they store, and what they refuse when a specification is written."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hookspecs.markers import Combining, combining_of, hookimpl, hookspec


def test_a_hookspec_stores_its_combining_and_stays_callable() -> None:
    @hookspec("fold", over=("state",), wrappers=True)
    def init(self: Any, config: Any, state: Any) -> Any:
        """Words."""

    assert combining_of(init) == Combining(
        "fold", ("state",), wrappers=True, result=("state",), optional=True
    )
    assert init(None, 1, 2) is None


def test_a_hookspec_stores_what_a_result_must_be_and_how_the_hook_is_called() -> None:
    @hookspec("collect", result=("tags",), optional=True, per_chunk=True, skips=True)
    def hook(self: Any) -> Any: ...

    assert combining_of(hook) == Combining(
        "collect", result=("tags",), optional=True, per_chunk=True, skips=True
    )


def test_nothing_is_asked_of_a_result_that_is_not_declared() -> None:
    @hookspec("single")
    def hook(self: Any) -> Any: ...

    assert combining_of(hook) == Combining("single")


@pytest.mark.parametrize(("said", "given"), [((), ("state",)), (("tags",), ("tags",))])
def test_a_fold_gives_back_what_it_runs_over_or_what_is_said(
    said: tuple[str, ...], given: tuple[str, ...]
) -> None:
    @hookspec("fold", over=("state",), result=said)
    def hook(self: Any, state: Any) -> Any: ...

    combining = combining_of(hook)
    assert combining is not None
    assert (combining.result, combining.optional) == (given, True)


@pytest.mark.parametrize("arguments", [{"result": ("nonsense",)}, {"over": ("nonsense",)}])
def test_a_part_that_nobody_can_check_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match="no part of a result called nonsense"):
        hookspec("fold" if "over" in arguments else "single", **arguments)


def test_the_mode_is_added_to_the_docstring() -> None:
    @hookspec("single", may_be_async=True)
    def hook(self: Any) -> None:
        """Words.

        Fires: never.
        """

    assert hook.__doc__ is not None
    assert hook.__doc__.rstrip().endswith("Mode: single: goes to its one owner. May be async.")


def test_a_hook_without_a_docstring_gets_none() -> None:
    @hookspec("collect")
    def hook(self: Any) -> None: ...

    assert hook.__doc__ is None


@pytest.mark.parametrize(
    ("mode", "over"), [("fold", ()), ("single", ("state",)), ("first", ("a",))]
)
def test_a_fold_and_only_a_fold_names_what_it_runs_over(mode: Any, over: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="only a fold"):
        hookspec(mode, over=over)


def test_a_fold_over_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="hook has no argument models"):

        @hookspec("fold", over=("models",))
        def hook(self: Any, state: Any) -> None: ...


@pytest.mark.parametrize(
    ("combining", "words"),
    [
        (Combining("single"), "one owner"),
        (Combining("first"), "other than None"),
        (Combining("collect"), "form a list"),
        (Combining("fold", ("a", "b")), "the a and b the previous one returned"),
        (Combining("fold", ("a",), wrappers=True), "Wrappers allowed."),
    ],
)
def test_a_combining_describes_itself(combining: Combining, words: str) -> None:
    assert words in combining.describe()


def test_what_is_no_hookspec_has_no_combining() -> None:
    assert combining_of(len) is None
    assert combining_of(None) is None


def test_a_hookimpl_leaves_the_method_as_it_is() -> None:
    @hookimpl(specname="init")
    def begin(config: Any) -> Any:
        return config

    assert begin(3) == 3
