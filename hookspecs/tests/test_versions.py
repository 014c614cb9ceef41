"""Version ranges behave as tuples of numbers do."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.versions import contains

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=4)
OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
clauses = st.tuples(st.sampled_from(sorted(OPERATORS)), numbers)


def dotted(version: list[int]) -> str:
    return ".".join(map(str, version))


def padded(version: list[int]) -> tuple[int, ...]:
    return (*version, *[0] * (5 - len(version)))


@given(st.lists(clauses, min_size=1, max_size=4), numbers, st.sampled_from(["", " ", "  "]))
def test_a_range_contains_what_all_its_clauses_contain(
    wanted: list[tuple[str, list[int]]], version: list[int], space: str
) -> None:
    text = f",{space}".join(f"{sign}{space}{dotted(bound)}" for sign, bound in wanted)
    expected = all(OPERATORS[sign](padded(version), padded(bound)) for sign, bound in wanted)
    assert contains(text, dotted(version)) is expected


@pytest.mark.parametrize(
    ("wanted", "version"), [("==1", "1.0.0"), (">=1,<2", "1.0"), ("!=2", "10")]
)
def test_trailing_zeros_and_length_do_not_count(wanted: str, version: str) -> None:
    assert contains(wanted, version)


@pytest.mark.parametrize(
    "wrong", ["", "1", ">=", "~=1", ">=1,", ",", ">=1.x", "^1", ">=1 <2", "=>1", ">=１", "latest"]
)
def test_what_is_no_range_is_refused_and_shown(wrong: str) -> None:
    with pytest.raises(ValueError, match="not a version range such as '>=1,<2'"):
        contains(wrong, "1.0")
