from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import CollisionError
from agent_hookspecs.tool_interop import WireNames


@pytest.mark.parametrize(
    ("tool_id", "wire"),
    [
        ("read_file", "read_file"),
        ("Read-File_2", "Read-File_2"),
        ("mcp:server", "mcp__server"),
        ("a.b:c", "a--b__c"),
        ("größe", "gr__e"),
        ("a b\n", "a_b_"),
        ("", "_"),
        ("x" * 64, "x" * 64),
    ],
)
def test_ids_are_encoded_for_the_wire(tool_id: str, wire: str) -> None:
    names = WireNames([tool_id])
    assert names.encode(tool_id) == wire
    assert names.decode(wire) == tool_id


def test_long_ids_are_shortened_and_stay_apart() -> None:
    one, two = "server:" + "x" * 80 + "1", "server:" + "x" * 80 + "2"
    names = WireNames([one, two])
    assert names.encode(one).startswith("server__xxx")
    assert len(names.encode(one)) == 64
    assert names.encode(one) != names.encode(two)
    assert [names.decode(names.encode(each)) for each in (one, two)] == [one, two]


def test_two_ids_of_one_wire_name_are_an_error_that_names_both() -> None:
    names = WireNames(["a:b"])
    with pytest.raises(CollisionError, match="'a:b' and 'a__b'") as caught:
        names.encode("a__b")
    assert caught.value.owners == ("a:b", "a__b")
    assert caught.value.hint
    assert list(names) == ["a:b"]


def test_a_name_that_was_not_encoded_is_not_decoded_by_rule() -> None:
    names = WireNames(["a:b"])
    assert names.decode("c__d") == "c__d"
    assert len(names) == 1


@given(st.lists(st.text(), unique=True, max_size=6))
def test_every_encoded_id_is_legal_and_decodes_to_itself(ids: list[str]) -> None:
    names = WireNames()
    for tool_id in ids:
        with contextlib.suppress(CollisionError):
            names.encode(tool_id)
    assert set(names) <= set(ids)
    assert len(names) >= min(len(ids), 1)
    for tool_id in names:
        wire = names.encode(tool_id)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire)
        assert names.decode(wire) == tool_id


def test_an_api_with_other_rules_spells_names_its_own_way() -> None:
    names = WireNames(["a:b", "a.b-c"], spell=lambda tool: tool.replace(":", "0").upper())
    assert names.encode("a:b") == "A0B"
    assert names.decode("A0B") == "a:b"
    with pytest.raises(CollisionError, match="'a:b' and 'A:b'"):
        names.encode("A:b")
