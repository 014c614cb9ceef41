"""Gating agrees with the formula of the design, for any candidates in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import GatingError
from agent_host.plugins.gate import Candidate, Gating, gate, with_twins
from counting import lines_run

TAGS = ["a", "b", "c", "d", "supports_reasoning", "supports_thinking"]
tags = st.frozensets(st.sampled_from(TAGS), max_size=3)


@dataclass(frozen=True)
class Asked:
    """An `is_enabled` that depends on the tags and is comparable, so that examples print well."""

    trigger: str
    present: bool | None
    absent: bool | None

    def __call__(self, given: frozenset[str]) -> bool | None:
        return self.present if self.trigger in given else self.absent


answers = st.sampled_from([True, False, None])


needed = st.frozensets(st.sampled_from(["p0", "extension:p1", "p2", "given"]), max_size=1)


@st.composite
def universes(draw: st.DrawFn) -> list[Candidate]:
    size = draw(st.integers(0, 7))
    return [
        Candidate(
            key=f"extension:p{number}",
            name=f"p{number}",
            required=draw(tags),
            forbidden=draw(tags),
            provides=draw(tags),
            required_plugins=draw(needed),
            default_enabled=draw(st.booleans()),
            is_enabled=draw(st.none() | st.builds(Asked, st.sampled_from(TAGS), answers, answers)),
            get_tags=draw(st.none() | tags.map(lambda given: lambda: given)),
            asked_first=draw(st.booleans()),
        )
        for number in range(size)
    ]


names = st.frozensets(st.sampled_from([f"p{number}" for number in range(7)]), max_size=3)


def reference(
    provider: frozenset[str],
    candidates: Sequence[Candidate],
    enabled: frozenset[str],
    forced: frozenset[str],
) -> tuple[set[str], set[str]] | None:
    """The design's formula, word for word: E' = {c: ok(c, T)}, T' = provider's tags with tags(E').

    Who needs another plugin must find it in E, or it is the one that is given.

    None when a set comes back.
    """

    def both(given: set[str]) -> set[str]:
        pair = {"supports_reasoning", "supports_thinking"}
        return given | pair if given & pair else given

    def ok(candidate: Candidate, present: set[str]) -> bool:
        if candidate.name in forced:
            return True
        if not candidate.default_enabled and candidate.name not in enabled:
            return False
        there = {"given", *active, *(key.removeprefix("extension:") for key in active)}
        if not candidate.required_plugins <= there:
            return False
        fits = candidate.required <= present and not candidate.forbidden & present
        answer = candidate.is_enabled(frozenset(present)) if candidate.is_enabled else None
        if candidate.asked_first and answer is True:
            return True
        return fits and answer is not False

    active: set[str] = set()
    present = both(set(provider))
    seen = [active]
    while True:
        following = {c.key for c in candidates if ok(c, present)}
        if following == active:
            return active, present
        if following in seen:
            return None
        seen.append(following)
        active = following
        present = set(provider)
        for candidate in candidates:
            if candidate.key in active:
                present |= candidate.provides
                present |= set(candidate.get_tags()) if candidate.get_tags else set()
        present = both(present)


@given(tags, universes(), names, names)
def test_gating_agrees_with_the_formula(
    provider: frozenset[str],
    candidates: list[Candidate],
    enabled: frozenset[str],
    forced: frozenset[str],
) -> None:
    expected = reference(provider, candidates, enabled, forced)
    if expected is None:
        with pytest.raises(GatingError) as caught:
            gate(provider, candidates, enabled=enabled, forced=forced, present=["given"])
        assert set(caught.value.plugins) <= {c.key for c in candidates}
        assert caught.value.plugins
        return
    found = gate(provider, candidates, enabled=enabled, forced=forced, present=["given"])
    assert (set(found.enabled), set(found.tags)) == expected
    assert set(found.rejected) == {c.key for c in candidates} - set(found.enabled)
    assert all(found.rejected.values()), "a rejection has a reason"
    assert replayed(found) == set(found.enabled)


def replayed(found: Gating) -> set[str]:
    """Who takes part according to the rounds alone."""
    active: set[str] = set()
    for change in found.rounds:
        assert not active & set(change.joined)
        assert active >= set(change.left)
        active = active - set(change.left) | set(change.joined)
    return active


@given(tags, universes().flatmap(lambda u: st.tuples(st.just(u), st.permutations(u))))
def test_the_order_of_candidates_makes_no_difference(
    provider: frozenset[str], both: tuple[list[Candidate], list[Candidate]]
) -> None:
    def outcome(candidates: Sequence[Candidate]) -> object:
        try:
            return gate(provider, candidates)
        except GatingError as error:
            return str(error)

    assert outcome(both[0]) == outcome(both[1])


@given(tags, universes())
def test_without_forbidden_tags_and_questions_it_always_ends(
    provider: frozenset[str], candidates: list[Candidate]
) -> None:
    monotone = [replace(c, forbidden=frozenset(), is_enabled=None) for c in candidates]
    found = gate(provider, monotone)
    assert len(found.rounds) <= len(monotone)
    assert all(not change.left and not change.lost for change in found.rounds)


def test_plugins_that_switch_each_other_are_named() -> None:
    first = Candidate("extension:first", "first", forbidden=frozenset("x"), provides=frozenset("x"))
    calm = Candidate("extension:calm", "calm")
    with pytest.raises(GatingError, match=r"on and off for ever: extension:first \(") as caught:
        gate([], [first, calm])
    assert caught.value.plugins == ("extension:first",)
    assert "disable one" in caught.value.hint


def test_two_that_exclude_each_other_flip_together() -> None:
    pair = [
        Candidate("extension:l", "l", forbidden=frozenset("r"), provides=frozenset("l")),
        Candidate("extension:r", "r", forbidden=frozenset("l"), provides=frozenset("r")),
    ]
    with pytest.raises(GatingError) as caught:
        gate([], pair)
    assert caught.value.plugins == ("extension:l", "extension:r")


def test_reasons_say_what_is_missing_refused_or_off() -> None:
    found = gate(
        ["present"],
        [
            Candidate("e:needs", "needs", required=frozenset({"x", "y", "present"})),
            Candidate("e:refuses", "refuses", forbidden=frozenset({"present"})),
            Candidate("e:off", "off", default_enabled=False),
            Candidate("e:no", "no", is_enabled=lambda tags: False),
            Candidate("e:alone", "alone", required_plugins=frozenset({"tool:x", "off"})),
        ],
    )
    assert found.rejected == {
        "e:needs": "needs tags x, y, which nothing that takes part provides",
        "e:refuses": "refuses tag present, which is present",
        "e:off": "off by default; name it in enabled_plugins",
        "e:no": "its is_enabled said no",
        "e:alone": "needs off and tool:x, which do not take part",
    }


def test_enabled_switches_on_what_is_off_but_not_past_its_tags() -> None:
    off = Candidate("e:off", "off", required=frozenset("x"), default_enabled=False)
    assert gate(["x"], [off]).enabled == ()
    assert gate(["x"], [off], enabled=["off"]).enabled == ("e:off",)
    assert gate([], [off], enabled=["off"]).enabled == ()


def test_forced_overrides_tags_defaults_and_the_plugins_own_word() -> None:
    unwilling = Candidate(
        "e:u",
        "u",
        required=frozenset("x"),
        forbidden=frozenset("y"),
        default_enabled=False,
        is_enabled=lambda tags: False,
        provides=frozenset({"gained"}),
    )
    found = gate(["y"], [unwilling], forced=["u"])
    assert found.enabled == ("e:u",)
    assert "gained" in found.tags


def test_a_plugin_is_asked_only_once_the_static_checks_pass() -> None:
    asked: list[frozenset[str]] = []

    def is_enabled(given: frozenset[str]) -> bool:
        asked.append(given)
        return True

    candidate = Candidate("e:c", "c", required=frozenset("x"), is_enabled=is_enabled)
    assert gate(["y"], [candidate]).enabled == ()
    assert asked == []
    assert gate(["x"], [candidate]).enabled == ("e:c",)
    assert set(asked) == {frozenset("x")}


def test_a_yes_of_one_that_is_asked_first_skips_the_tag_checks() -> None:
    eager = Candidate(
        "e:c", "c", required=frozenset("x"), is_enabled=lambda tags: True, asked_first=True
    )
    assert gate([], [eager]).enabled == ("e:c",)


def test_reasoning_and_thinking_are_one_tag() -> None:
    assert with_twins(["supports_thinking"]) == {"supports_thinking", "supports_reasoning"}
    needs = Candidate("e:c", "c", required=frozenset({"supports_reasoning"}))
    gives = Candidate("e:g", "g", provides=frozenset({"supports_thinking"}))
    assert gate(["supports_thinking"], [needs]).enabled == ("e:c",)
    assert gate([], [needs, gives]).enabled == ("e:c", "e:g")


def chain(length: int) -> list[Candidate]:
    return [
        Candidate(
            f"extension:p{number:05}",
            f"p{number:05}",
            required=frozenset({f"tag{number}"}),
            provides=frozenset({f"tag{number + 1}"}),
        )
        for number in range(length)
    ]


def gated(length: int) -> None:
    found = gate(["tag0"], chain(length))
    assert len(found.enabled) == len(found.rounds) == length


def test_a_long_chain_takes_as_many_rounds_but_no_round_looks_at_everybody() -> None:
    assert lines_run(lambda: gated(400)) < 4.5 * lines_run(lambda: gated(100))


def test_a_chain_that_breaks_in_the_middle_stops_there() -> None:
    candidates = [c for c in chain(100) if c.name != "p00050"]
    found = gate(["tag0"], candidates)
    assert len(found.enabled) == 50
    assert found.rejected["extension:p00051"].startswith("needs tag tag51")
