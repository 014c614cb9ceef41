"""Ordering: constraints hold, ties are settled, cycles are shown, the input's order is nothing."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import OrderingError
from agent_host.plugins.order import Sortable, order
from counting import lines_run

NAMES = ["a", "b", "c", "d", "e", "f"]
some = st.lists(st.sampled_from([*NAMES, "absent"]), max_size=2).map(tuple)


@st.composite
def plugin_sets(draw: st.DrawFn) -> list[Sortable]:
    chosen = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return [
        Sortable(
            name,
            before=tuple(n for n in draw(some) if n != name),
            after=tuple(n for n in draw(some) if n != name),
            priority=draw(st.integers(-1, 1)),
        )
        for name in chosen
    ]


def edges(plugins: list[Sortable]) -> set[tuple[str, str]]:
    present = {plugin.name for plugin in plugins}
    wanted = {(other, plugin.name) for plugin in plugins for other in plugin.after}
    wanted |= {(plugin.name, other) for plugin in plugins for other in plugin.before}
    return {(first, then) for first, then in wanted if first in present and then in present}


def outcome(plugins: list[Sortable]) -> object:
    try:
        return order(plugins)
    except OrderingError as error:
        return str(error)


@given(plugin_sets())
def test_it_is_the_best_of_all_orders_that_keep_the_constraints(plugins: list[Sortable]) -> None:
    """Read from the front, each place has the plugin of highest priority, then first name."""
    rank = {plugin.name: (-plugin.priority, plugin.name) for plugin in plugins}
    constraints = edges(plugins)
    allowed = [
        names
        for names in permutations(rank)
        if all(names.index(first) < names.index(then) for first, then in constraints)
    ]
    if not allowed:
        with pytest.raises(OrderingError) as caught:
            order(plugins)
        cycle = [*caught.value.plugins, caught.value.plugins[0]]
        assert set(pairwise(cycle)) <= constraints
        assert " → ".join(cycle) in caught.value.message
        return
    found = [placed.name for placed in order(plugins)]
    assert found == list(min(allowed, key=lambda names: [rank[name] for name in names]))


@given(plugin_sets().flatmap(lambda p: st.tuples(st.just(p), st.permutations(p))))
def test_the_order_of_the_input_makes_no_difference(
    both: tuple[list[Sortable], list[Sortable]],
) -> None:
    assert outcome(both[0]) == outcome(both[1])


def placed(*plugins: Sortable) -> dict[str, str]:
    return {place.name: place.why for place in order(plugins)}


def test_each_place_says_why() -> None:
    assert placed(
        Sortable("late", after=("early",)),
        Sortable("early", priority=-5),
        Sortable("first", before=("late",), priority=10),
        Sortable("plain"),
    ) == {
        "first": "priority 10",
        "plain": "by name",
        "early": "priority -5",
        "late": "after early, first",
    }


def test_ties_go_by_priority_then_by_name() -> None:
    found = order(
        [Sortable("b"), Sortable("a"), Sortable("z", priority=1), Sortable("0", priority=-1)]
    )
    assert [place.name for place in found] == ["z", "a", "b", "0"]


def test_absent_names_are_ignored() -> None:
    assert list(placed(Sortable("b", after=("nobody",), before=("none",)), Sortable("a"))) == [
        "a",
        "b",
    ]


def test_a_cycle_is_printed_in_running_order() -> None:
    with pytest.raises(OrderingError, match=re.escape("a → b → c → a")) as caught:
        order(
            [
                Sortable("c", before=("a",), after=("b",)),
                Sortable("b", after=("a",)),
                Sortable("a"),
                Sortable("hanger-on", after=("c",)),
            ]
        )
    assert caught.value.plugins == ("a", "b", "c")
    assert "remove one" in caught.value.hint


def test_a_plugin_after_itself_is_a_cycle() -> None:
    with pytest.raises(OrderingError, match="a → a"):
        order([Sortable("a", after=("a",))])


def test_nothing_in_nothing_out() -> None:
    assert order([]) == []


def ordered_chain(length: int) -> None:
    names = [f"p{number:04}" for number in range(length)]
    plugins = [Sortable(names[0])]
    plugins += [Sortable(name, after=(earlier,)) for earlier, name in pairwise(names)]
    assert [place.name for place in order(reversed(plugins))] == names


def test_the_cost_of_ordering_grows_with_the_number_of_plugins_and_not_with_its_square() -> None:
    assert lines_run(lambda: ordered_chain(1000)) < 4.5 * lines_run(lambda: ordered_chain(250))
