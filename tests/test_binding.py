"""Binding over the space of signatures: whatever Python allows is bound rightly or refused."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import BindingError
from agent_hookspecs.markers import Combining
from agent_hookspecs.specs import Hook
from agent_host.plugins.binding import bind

ARGS = ("alpha", "beta", "gamma", "delta")
HOOK = Hook("provider", "hook", ARGS, Combining("single"), "hook(…)", "")
VALUES = {name: f"<{name}>" for name in ARGS}


def function(signature: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def hook({signature}):\n    return dict(locals())\n", namespace)
    return namespace["hook"]


def received(signature: str) -> Any:
    return bind(HOOK, function(signature), plugin="p").call(*VALUES.values())


@st.composite
def signatures(draw: st.DrawFn) -> str:
    """Any legal parameter list over the hook's names and some strangers."""
    names = draw(st.permutations([*ARGS, "one", "two"]))
    cuts = sorted(draw(st.lists(st.integers(0, 6), min_size=3, max_size=3)))
    only, either, keyword = (
        names[: cuts[0]],
        names[cuts[0] : cuts[1]],
        names[cuts[1] : cuts[2]],
    )
    defaulted_from = draw(st.integers(0, len(only) + len(either)))
    parts = []
    for number, name in enumerate([*only, *either]):
        parts.append(f"{name}=None" if number >= defaulted_from else name)
    if only:
        parts.insert(len(only), "/")
    variadic = draw(st.sampled_from(["", "*rest"]))
    if variadic:
        parts.append(variadic)
    elif keyword:
        parts.append("*")
    parts += [name + draw(st.sampled_from(["", "=None"])) for name in keyword]
    if draw(st.booleans()):
        parts.append("**more")
    return ", ".join(parts)


@given(signatures())
def test_a_signature_is_bound_so_that_every_named_argument_has_its_value_or_it_is_refused(
    signature: str,
) -> None:
    parameters = inspect.signature(function(signature)).parameters.values()
    try:
        binding = bind(HOOK, function(signature), plugin="p")
    except BindingError:
        return
    result = binding.call(*VALUES.values())
    rest, more = result.pop("rest", ()), result.pop("more", {})
    assert all(VALUES[name] == value for name, value in more.items())
    assert list(rest) == list(VALUES.values())[len(ARGS) - len(rest) :]
    if binding.by_position:
        required = [
            p.name
            for p in parameters
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        assert [result[name] for name in required] == list(VALUES.values())[: len(required)]
    else:
        assert {n: v for n, v in result.items() if n in VALUES} == {
            n: v for n, v in VALUES.items() if n in result
        }
        assert all(result[name] is None for name in result if name not in VALUES)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        assert {*result.values(), *rest, *more.values()} >= set(VALUES.values())


@given(st.lists(st.sampled_from(ARGS), unique=True), st.booleans())
def test_any_subset_of_names_is_never_refused(names: list[str], keyword_only: bool) -> None:
    star = ["*"] if keyword_only and names else []
    assert received(", ".join([*star, *names])) == {name: VALUES[name] for name in names}


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("chunk, history, delta=None", {"chunk": "alpha", "history": "beta", "delta": "delta"}),
        ("mine, *, delta", {"mine": "alpha", "delta": "delta"}),
        ("mine, **more", {"mine": "alpha", "more": ["beta", "gamma", "delta"]}),
        ("mine, *rest", {"mine": "alpha", "rest": ["beta", "gamma", "delta"]}),
        ("alpha, *rest", {"alpha": "alpha", "rest": ["beta", "gamma", "delta"]}),
        ("gamma, *rest", {"gamma": "gamma", "rest": []}),
        ("own=None, *rest", {"own": None, "rest": []}),
        ("*rest, delta", {"rest": list(ARGS), "delta": "delta"}),
        ("**alpha", {"alpha": list(ARGS)}),
    ],
)
def test_mixed_signatures(signature: str, expected: dict[str, Any]) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            return [item.strip("<>") for item in value]
        return value.strip("<>") if value else value

    assert {name: plain(value) for name, value in received(signature).items()} == expected


@pytest.mark.parametrize(
    ("signature", "named"),
    [
        ("one, alpha", "one"),
        ("beta, one", "one"),
        ("*, stranger", "stranger"),
        ("alpha, *, stranger", "stranger"),
        ("a, b, c, d, e", "'a', 'b', 'c', 'd', 'e'"),
        ("own=1, alpha=None, /", "alpha"),
    ],
)
def test_what_cannot_be_bound_is_refused_naming_plugin_hook_and_argument(
    signature: str, named: str
) -> None:
    with pytest.raises(BindingError) as caught:
        bind(HOOK, function(signature), plugin="culprit")
    for part in ("'culprit'", "'hook'", named):
        assert part in caught.value.message
    assert "alpha, beta, gamma, delta" in caught.value.hint


class _Unreadable:
    __signature__ = "no signature"

    def __call__(self) -> None:
        raise AssertionError("it is never called")


def test_a_callable_without_a_readable_signature_is_refused() -> None:
    with pytest.raises(BindingError, match="cannot be read"):
        bind(HOOK, _Unreadable(), plugin="p")
