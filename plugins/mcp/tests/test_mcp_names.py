"""The names under which models know the tools of servers."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from agent_host_mcp.names import wire_name

#: What every provider takes: letters, digits, _ and -, at most 64, and a letter first.
EVERYWHERE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
NAMES = st.text(min_size=1, max_size=80) | st.from_regex(r"[a-z_-]{1,70}", fullmatch=True)


def test_a_plain_name_stays_readable() -> None:
    assert wire_name("git", "log") == "mcp_git__log"
    assert wire_name("my_files", "read-text") == "mcp_my_files__read-text"


@given(server=NAMES, tool=NAMES)
def test_every_provider_takes_the_name(server: str, tool: str) -> None:
    assert EVERYWHERE.fullmatch(wire_name(server, tool))


@given(one=st.tuples(NAMES, NAMES), two=st.tuples(NAMES, NAMES))
def test_two_tools_never_share_a_name(one: tuple[str, str], two: tuple[str, str]) -> None:
    assert one == two or wire_name(*one) != wire_name(*two)


def test_the_names_of_two_servers_cannot_be_made_to_collide() -> None:
    pairs = [("a", "b__c"), ("a__b", "c"), ("a_", "_b__c"), ("a", "_b__c"), ("a b", "c")]
    assert len({wire_name(*pair) for pair in pairs}) == len(pairs)
