from __future__ import annotations

import collections
import copy
import json
import operator
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from json import encoder as json_encoder
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_hookspecs.authoring.partial import Partial, plain

EXPECTED = {"role": "assistant", "content": "Hello", "extra": [1]}


def growing() -> Partial:
    """A partial whose content has fragments that nobody has read yet."""
    partial = Partial(role="assistant", content="He", extra=[1])
    partial.append_text("content", "l")
    partial.append_text("content", "lo")
    return partial


def takes_keywords(**values: Any) -> dict[str, Any]:
    return values


def matched(value: object) -> dict[Any, Any]:
    match value:
        case {"content": str(text), **rest}:
            return {**rest, "content": text}
    raise AssertionError("no match")


def updated(value: dict[str, Any]) -> dict[str, Any]:
    target: dict[str, Any] = {}
    target.update(value)
    return target


READERS: dict[str, Callable[[Partial], Any]] = {
    "spread": lambda p: {**p},
    "dict": lambda p: dict(p),
    "dict with keywords": lambda p: dict(p, extra=[1]),
    "or empty": lambda p: p | {},
    "empty or": lambda p: {} | p,
    "or partial": lambda p: Partial() | p,
    "in-place or": lambda p: Partial().__ior__(p),
    "update": updated,
    "keywords": lambda p: takes_keywords(**p),
    "match": matched,
    "items": lambda p: dict(p.items()),
    "reversed items": lambda p: dict(reversed(p.items())),
    "zip": lambda p: dict(zip(p, p.values(), strict=True)),
    "subscripts": lambda p: {key: p[key] for key in p},
    "get": lambda p: {key: p.get(key) for key in p.keys()},  # noqa: SIM118
    "pop": lambda p: {key: p.pop(key) for key in list(p)},
    "popitem": lambda p: dict(p.popitem() for _ in range(len(p))),
    "setdefault": lambda p: {key: p.setdefault(key, "no") for key in p},
    "copy method": lambda p: p.copy(),
    "unbound copy": lambda p: dict.copy(p),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda p: pickle.loads(pickle.dumps(p)),
    "pickle 0": lambda p: pickle.loads(pickle.dumps(p, protocol=0)),
    "repr": lambda p: eval(repr(p), {}),
    "json": lambda p: json.loads(json.dumps(p)),
    "json indent": lambda p: json.loads(json.dumps(p, indent=2)),
    "json sorted": lambda p: json.loads(json.dumps(p, sort_keys=True)),
    "json nested": lambda p: json.loads(json.dumps([{"p": p}]))[0]["p"],
    "ordered": lambda p: dict(collections.OrderedDict(p)),
    "chain": lambda p: dict(collections.ChainMap(p)),
    "proxy": lambda p: {key: MappingProxyType(p)[key] for key in p},
    "partial": lambda p: Partial(p),
    "plain": plain,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_every_way_to_read_sees_pending_text(read: Callable[[Partial], Any]) -> None:
    assert read(growing()) == EXPECTED


def test_pure_python_json_encoder_sees_pending_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_encoder, "c_make_encoder", None)
    assert json.loads(json.dumps(growing())) == EXPECTED


def test_json_of_a_partial_that_has_only_pending_text() -> None:
    partial = Partial()
    partial.append_text("content", "x")
    assert json.dumps(partial) == '{"content": "x"}'


def test_percent_formatting_and_format_map_see_pending_text() -> None:
    assert "%(content)s" % growing() == "Hello"  # noqa: UP031
    assert "{content}".format_map(growing()) == "Hello"


def test_equality_holds_in_both_directions_and_nested() -> None:
    other = {**EXPECTED, "content": "Hel"}
    for equal in (EXPECTED, growing()):
        assert operator.eq(growing(), equal)
        assert operator.eq(equal, growing())
        assert not operator.ne(growing(), equal)
        assert not operator.ne(equal, growing())
    assert operator.ne(growing(), other)
    assert operator.ne(other, growing())
    assert not operator.eq(other, growing())
    assert growing() != 3
    assert [{"a": growing()}] == [{"a": EXPECTED}]


def test_or_keeps_the_right_side_and_gives_a_plain_dict() -> None:
    assert growing() | {"content": "new"} == {**EXPECTED, "content": "new"}
    assert {"content": "old", "z": 1} | growing() == {**EXPECTED, "z": 1}
    assert type(growing() | {}) is dict
    assert type({} | growing()) is dict
    with pytest.raises(TypeError):
        growing() | [("a", 1)]


def test_copies_are_plain_and_independent() -> None:
    partial = growing()
    partial["nested"] = growing()
    copies = [partial.copy(), copy.copy(partial), copy.deepcopy(partial), {**partial}]
    copies.append(pickle.loads(pickle.dumps(partial)))
    partial.append_text("content", "!")
    for one in copies:
        assert type(one) is dict
        assert one["content"] == "Hello"
    assert type(copy.deepcopy(partial)["nested"]) is dict
    assert type(plain(partial)["nested"]) is dict


def test_deep_copy_keeps_shared_and_circular_references() -> None:
    partial = growing()
    partial["self"] = partial
    partial["twice"] = [partial["extra"], partial["extra"]]
    copied = copy.deepcopy(partial)
    assert copied["self"] is copied
    assert copied["twice"][0] is copied["twice"][1] is copied["extra"]


def test_length_membership_and_order_are_right_while_text_is_pending() -> None:
    partial = Partial(a=1)
    partial.append_text("b", "x")
    partial["c"] = 3
    assert len(partial) == 3
    assert "b" in partial
    assert list(partial) == list(partial.keys()) == ["a", "b", "c"]
    assert list(reversed(partial)) == ["c", "b", "a"]
    assert bool(partial)


@pytest.mark.parametrize("start", [{}, {"content": None}, {"content": ""}])
def test_append_starts_from_nothing(start: dict[str, Any]) -> None:
    partial = Partial(start)
    partial.append_text("content", "")
    assert partial == {"content": ""}
    partial.append_text("content", "é")
    partial.append_text("content", "\r\n\ud83d")
    assert partial["content"] == "é\r\n\ud83d"


@pytest.mark.parametrize("value", [[], {}, 0, False, b"x"])
def test_append_to_another_type_names_the_key(value: object) -> None:
    partial = Partial(content=value)
    with pytest.raises(TypeError, match="'content'"):
        partial.append_text("content", "x")
    assert partial == {"content": value}


def test_appending_what_is_no_text_names_the_key_and_changes_nothing() -> None:
    partial = growing()
    with pytest.raises(TypeError, match="'content'"):
        partial.append_text("content", None)  # type: ignore[arg-type]
    assert partial == EXPECTED


def clear_and_update(partial: Partial) -> None:
    partial.clear()
    assert partial == {}
    partial.update({**EXPECTED, "content": "new"})


WRITERS: dict[str, Callable[[Partial], Any]] = {
    "assignment": lambda p: p.__setitem__("content", "new"),
    "update": lambda p: p.update(content="new"),
    "update from pairs": lambda p: p.update([("content", "new")]),
    "in-place or": lambda p: p.__ior__({"content": "new"}),
    "clear and update": clear_and_update,
    "init again": lambda p: p.__init__(content="new"),  # type: ignore[misc]
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_assignment_drops_pending_text(write: Callable[[Partial], Any]) -> None:
    partial = growing()
    write(partial)
    assert partial == {**EXPECTED, "content": "new"}
    partial.append_text("content", "er")
    assert partial["content"] == "newer"


def test_deleting_a_key_forgets_its_text() -> None:
    partial = growing()
    del partial["content"]
    assert "content" not in partial
    with pytest.raises(KeyError):
        del partial["content"]
    partial.append_text("content", "x")
    assert partial["content"] == "x"


def test_views_are_live() -> None:
    partial = growing()
    items, values, keys = partial.items(), partial.values(), partial.keys()
    partial.append_text("content", "!")
    partial.append_text("new", "n")
    assert dict(items) == {**EXPECTED, "content": "Hello!", "new": "n"}
    assert list(values) == ["assistant", "Hello!", [1], "n"]
    assert list(reversed(values)) == ["n", [1], "Hello!", "assistant"]
    assert "new" in keys
    assert ("content", "Hello!") in items
    assert "Hello!" in values
    assert len(items) == len(values) == 4
    assert repr(items) == repr(dict(partial).items())
    assert repr(values) == repr(dict(partial).values())


def test_appending_while_iterating_is_seen_and_allowed() -> None:
    partial = Partial(a="", b="", c="")
    seen = []
    for key, value in partial.items():
        seen.append(value)
        for other in "abc":
            partial.append_text(other, key)
    assert seen == ["", "a", "ab"]


def test_of_gives_the_same_object_or_a_copy() -> None:
    partial = growing()
    source = {"a": 1}
    copied = Partial.of(source)
    assert Partial.of(partial) is partial
    assert copied == source
    copied["a"] = 2
    assert source == {"a": 1}
    assert Partial.of(None) == {}
    assert type(Partial.of(MappingProxyType(source))) is Partial


def test_fromkeys_makes_a_partial() -> None:
    made = Partial.fromkeys(["a", "b"], None)
    assert type(made) is Partial
    made.append_text("a", "x")
    assert made == {"a": "x", "b": None}


def test_is_not_hashable() -> None:
    with pytest.raises(TypeError):
        hash(growing())


def test_plain_leaves_other_values_alone() -> None:
    marker = object()
    assert plain({"a": (growing(), marker)}) == {"a": (EXPECTED, marker)}
    assert type(plain({"a": (growing(),)})["a"][0]) is dict


def test_memory_stays_near_the_text_itself() -> None:
    partial = Partial()
    count = 500_000
    fragments: Iterator[str] = (f"{number % 1000:03d}" for number in range(count))
    tracemalloc.start()
    try:
        for fragment in fragments:
            partial.append_text("content", fragment)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(partial["content"]) == 3 * count
    # As a list of strings these would take nearly 60 bytes each.
    assert held < 25 * count


class PartialIsADict(RuleBasedStateMachine):
    """The same operations on a dict and on a Partial are observed to do the same."""

    keys = st.sampled_from("abcd")
    texts = st.text(max_size=3)
    values = st.one_of(st.none(), st.integers(), texts, st.lists(st.integers(), max_size=2))
    mappings = st.dictionaries(keys, values, max_size=3)

    @initialize(start=mappings)
    def begin(self, start: dict[str, Any]) -> None:
        self.model = dict(start)
        self.partial = Partial(start)
        self.views: list[tuple[Any, Any]] = []

    def same(self, act: Callable[[dict[str, Any]], Any]) -> None:
        outcomes = []
        for target in (self.model, self.partial):
            try:
                outcomes.append(("gave", act(target)))
            except (KeyError, TypeError, RuntimeError) as error:
                outcomes.append(("raised", type(error)))
        assert outcomes[0] == outcomes[1]

    @rule(key=keys, text=texts)
    def append(self, key: str, text: str) -> None:
        current = self.model.get(key)
        if current is None or isinstance(current, str):
            self.model[key] = (current or "") + text
            self.partial.append_text(key, text)
        else:
            with pytest.raises(TypeError):
                self.partial.append_text(key, text)

    @rule(key=keys, value=values)
    def assign(self, key: str, value: Any) -> None:
        self.same(lambda d: d.__setitem__(key, value))

    @rule(key=keys)
    def delete(self, key: str) -> None:
        self.same(lambda d: d.__delitem__(key))

    @rule(key=keys)
    def subscript(self, key: str) -> None:
        self.same(lambda d: d[key])

    @rule(key=keys, default=values)
    def get(self, key: str, default: Any) -> None:
        self.same(lambda d: d.get(key, default))

    @rule(key=keys)
    def pop(self, key: str) -> None:
        self.same(lambda d: d.pop(key))

    @rule(key=keys, default=values)
    def pop_with_default(self, key: str, default: Any) -> None:
        self.same(lambda d: d.pop(key, default))

    @rule()
    def popitem(self) -> None:
        self.same(lambda d: d.popitem())

    @rule(key=keys, default=values)
    def setdefault(self, key: str, default: Any) -> None:
        self.same(lambda d: d.setdefault(key, default))

    @rule(other=mappings)
    def update(self, other: dict[str, Any]) -> None:
        self.same(lambda d: d.update(other))

    @rule(other=mappings)
    def update_in_place(self, other: dict[str, Any]) -> None:
        self.same(lambda d: d.__ior__(other))

    @rule(other=mappings)
    def join(self, other: dict[str, Any]) -> None:
        self.same(lambda d: (d | other, other | d, list((d | other).items())))

    @rule(other=mappings)
    def compare(self, other: dict[str, Any]) -> None:
        self.same(lambda d: (d == other, other == d, d != other, other != d))

    @rule(
        look=st.sampled_from(
            [repr, json.dumps, dict, copy.copy, copy.deepcopy, list, len, bool, plain]
        )
    )
    def observe(self, look: Callable[[Any], Any]) -> None:
        self.same(look)

    @rule()
    def spread(self) -> None:
        self.same(lambda d: list({**d}.items()))

    @rule()
    def hold_views(self) -> None:
        self.views.append((self.model.items(), self.partial.items()))
        self.views.append((self.model.values(), self.partial.values()))

    @precondition(lambda self: self.views)
    @rule()
    def read_views(self) -> None:
        for of_model, of_partial in self.views:
            assert list(of_model) == list(of_partial)

    @rule()
    def clear(self) -> None:
        self.same(lambda d: d.clear())

    @invariant()
    def keys_agree_without_reading_text(self) -> None:
        assert len(self.model) == len(self.partial)
        assert list(self.model) == list(self.partial)


TestPartialIsADict = PartialIsADict.TestCase
TestPartialIsADict.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
