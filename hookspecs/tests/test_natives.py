"""Native histories: what may be sent of them, and the ids they use."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pytest

from agent_hookspecs.authoring import (
    Rendering,
    bare_messages,
    render_history,
    retained_count,
    taken_call_ids,
)


class Contents(Rendering):
    """The contents of a history, each with a mark."""

    def __init__(self, mark: str = "") -> None:
        self.mark = mark
        self.contents: list[Any] = []

    def add(self, native: dict[str, Any]) -> None:
        native["changed"] = True
        self.contents.append((self.mark, native["content"]))


@dataclass
class Retained:
    """What a host could put into a context."""

    sent: list[dict[str, Any]]

    def render(
        self, kind: Any, natives: list[dict[str, Any]], options: tuple[Hashable, ...]
    ) -> tuple[Any, ...]:
        return "the host's", kind, natives, options


def test_what_is_kept_for_ourselves_is_not_sent() -> None:
    natives: list[dict[str, Any]] = [
        {"role": "user", "_metadata": {"a": 1}},
        {"role": "assistant"},
    ]
    assert bare_messages(natives) == [{"role": "user"}, {"role": "assistant"}]
    assert natives[0]["_metadata"] == {"a": 1}


def test_what_is_no_message_is_not_sent() -> None:
    broken: list[Any] = [{"role": "user"}, None, "text"]
    assert bare_messages(broken) == [{"role": "user"}]


def test_a_rendering_is_made_of_copies_of_every_message_and_of_nothing_else() -> None:
    natives: list[Any] = [{"content": 1}, None, {"content": 2}]
    assert render_history(Contents, natives).contents == [("", 1), ("", 2)]
    assert render_history(Contents, natives, {}, "a").contents == [("a", 1), ("a", 2)]
    assert natives == [{"content": 1}, None, {"content": 2}]


def test_a_host_that_retains_natives_is_asked_for_the_rendering() -> None:
    retained = Retained([{"content": 1}, {"content": 2}])
    context = {"retained": retained}
    natives = [*retained.sent, {"content": 3}]
    given: Any = render_history(Contents, natives, context, "a")
    assert given == ("the host's", Contents, natives, ("a",))
    assert retained_count(context) == 2
    assert retained_count({}) == retained_count() == 0


def test_a_copy_of_a_rendering_shares_nothing_that_can_be_added_to() -> None:
    class Everything(Rendering):
        def __init__(self) -> None:
            self.listed: list[Any] = []
            self.by_name: dict[str, Any] = {}
            self.names: set[str] = set()
            self.latest = ""

        def add(self, native: dict[str, Any]) -> None:
            self.latest = native["name"]
            self.listed.append(native)
            self.by_name[self.latest] = native
            self.names.add(self.latest)

    first = Everything()
    first.extend([{"name": "a"}])
    second = first.copy()
    second.extend([{"name": "b"}])
    assert vars(first) == {
        "listed": [{"name": "a"}],
        "by_name": {"a": {"name": "a"}},
        "names": {"a"},
        "latest": "a",
    }
    assert (second.names, second.latest, len(second.listed)) == ({"a", "b"}, "b", 2)
    assert second.listed[0] is first.listed[0]


def test_a_rendering_that_takes_no_messages_says_what_it_lacks() -> None:
    with pytest.raises(NotImplementedError, match=r"Rendering has no add\(native\)"):
        Rendering().extend([{"content": 1}])


def test_ids_are_looked_up_where_the_host_has_them() -> None:
    natives = [{"tool_calls": [{"id": "a"}]}]
    assert "a" in taken_call_ids(natives)
    assert "a" not in taken_call_ids(natives, {"tool_call_ids": {"b"}})


def test_ids_are_found_by_whoever_knows_where_they_stand() -> None:
    natives = [{"own": "a"}]
    assert "a" in taken_call_ids(natives, {}, lambda each: {native["own"] for native in each})
