"""The rules that every store follows and that need no database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs.errors import ConfigError
from agent_hookspecs.store import (
    Change,
    NotStoredError,
    Owner,
    Question,
    SessionLease,
    SessionLockedError,
    StoredRun,
    StoreError,
    StoreOptions,
    StoreVersionError,
    check_free,
    check_version,
    content_digest,
    current_owner,
    decode_item,
    decode_items,
    encode_item,
    expiry_time,
    make_excerpt,
    make_title,
    new_id,
    pick_match,
    query_words,
    search_words,
    without_content,
)

#: Half surrogates included.
texts = st.text(st.characters())
items = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


def message(content: str) -> Any:
    return {"role": "user", "content": content, "metadata": {}}


@given(st.lists(items))
def test_items_come_back_as_they_were(many: list[Any]) -> None:
    encoded = [encode_item(item) for item in many]
    assert decode_items(encoded) == many
    assert [decode_item(each) for each in encoded] == many
    # To an equal sign 1 and True and 1.0 are the same, and keys have no order.
    assert json.dumps(decode_items(encoded)) == json.dumps(many)
    assert len({*map(content_digest, encoded)}) == len({*encoded})


@pytest.mark.parametrize("item", [object(), {"x": b"bytes"}, {1, 2}])
def test_what_json_cannot_hold_is_an_error_that_says_what_to_do(item: Any) -> None:
    with pytest.raises(StoreError) as caught:
        encode_item(item)
    assert caught.value.hint


def test_what_contains_itself_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(StoreError, match="nested too deeply"):
        encode_item(circle)


def test_ids_sort_by_when_they_were_made_also_among_threads() -> None:
    made: list[list[str]] = []

    def make() -> None:
        made.append([new_id() for _ in range(2000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each == sorted(each) for each in made)
    assert len({id for each in made for id in each}) == 8000


def test_an_id_is_a_uuid_of_version_7_that_says_when_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    id = new_id()
    assert len(id) == 32
    assert id[12] == "7"
    assert id[16] in "89ab"
    assert 0 <= int(id[:12], 16) - before < 60_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, hello World!", ["hello", "world"]),
        ("snake_case and file.py", ["snake", "case", "and", "file", "py"]),
        ("Café CAFE\u0301", ["cafe"]),
        ("Straße", ["strasse"]),
        ("東京 x", ["東", "京", "x"]),
        ("v2.5", ["v2", "5"]),
        ("... --", []),
    ],
)
def test_words_are_letters_and_digits_in_any_script(text: str, words: list[str]) -> None:
    assert search_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("Wor*", ["wor*"]), ("a.b*", ["a", "b*"]), ("* x", ["x"]), ("\ud800y\0z", ["y", "z"])],
)
def test_a_star_makes_a_beginning(text: str, words: list[str]) -> None:
    assert query_words(text) == words


@given(texts)
def test_no_text_breaks_a_search(text: str) -> None:
    for word in query_words(text):
        bare = word.removesuffix("*")
        assert bare.isalnum() or not bare.isascii()
        bare.encode()


def test_an_excerpt_shows_the_hit_and_a_title_the_beginning() -> None:
    long = message("x " * 500 + "needle " + "y " * 500)
    assert "needle" in make_excerpt(long, ["needle"])
    assert len(make_excerpt(long, ["needle"])) < 200
    system: Any = {**message("Be brief."), "role": "system"}
    assert make_title([system, message(" What\nis it? ")]) == "What is it?"
    assert len(make_title([message("word " * 100)])) == 80
    assert make_title([]) == ""


def test_a_reference_means_an_id_before_a_name_before_a_beginning() -> None:
    rows: list[tuple[str, str | None]] = [("aa", "b"), ("b", None)]
    assert pick_match("session", "b", rows) == "b"
    assert pick_match("session", "a", [("aa", None)]) == "aa"
    for wrong in ([], rows):
        with pytest.raises(NotStoredError):
            pick_match("session", "x", wrong)


def test_a_process_knows_who_is_alive() -> None:
    owner = current_owner()
    assert owner.is_current()
    assert not owner.is_dead()
    assert str(os.getpid()) in owner.describe()
    again = replace(owner, started="another start")
    assert again.is_dead() or not owner.started
    elsewhere = replace(owner, machine="another", process=1 << 30)
    assert not elsewhere.is_dead()
    assert not elsewhere.is_current()


def test_a_process_that_has_ended_is_dead() -> None:
    program = "from agent_hookspecs.store import current_owner as o; import json;"
    command = [sys.executable, "-c", f"{program} print(json.dumps(o().to_dict()))"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert Owner(**json.loads(said)).is_dead()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_nobody_has_waited_for_is_dead() -> None:
    owner = current_owner()
    child = os.fork()
    if not child:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert replace(owner, process=child, started="").is_dead() == os.path.exists("/proc/self")
    finally:
        os.waitpid(child, 0)


def test_a_lease_is_free_when_its_time_is_over() -> None:
    lease = SessionLease("s", "t", current_owner(), time.time() + 60)
    check_free(None)
    check_free(replace(lease, expires=time.time() - 1))
    with pytest.raises(SessionLockedError) as caught:
        check_free(lease)
    error = caught.value.to_dict()
    assert (error["session"], error["locked_by"]) == ("s", lease.owner.describe())
    assert "branch" in error["hint"]


def test_sessions_expire_once_a_day_if_at_all() -> None:
    day = 86400.0
    assert expiry_time(None, 0, 100 * day) is None
    assert expiry_time(30, 0, 100 * day) == 70 * day
    assert expiry_time(30, 99.5 * day, 100 * day) is None


def test_without_content_nothing_that_was_said_is_left() -> None:
    asked = Question(id="q", kind="question", shown={"x": "secret"}, digest="d")
    run = StoredRun(
        id="r",
        session="s",
        state="failed",
        usage={"input": 3},
        error={"type": "ServerError", "message": "secret"},
        questions=[asked],
        details={"x": "secret"},
    )
    change = Change(
        messages=[message("secret")],
        metadata={"x": "secret"},
        run=run,
        events=[
            {"type": "tool_call", "call": {"arguments": "secret"}},
            {"type": "usage", "usage": {"input": 3}},
        ],
    )
    left = without_content(change, "s", has_content=False)
    assert "secret" not in repr(left)
    assert left.run is not None
    assert (left.run.state, left.run.usage) == ("failed", {"input": 3})
    assert left.events == [{"type": "tool_call"}, {"type": "usage", "usage": {"input": 3}}]


@pytest.mark.parametrize("config", [{"content": 1}, {"keep_days": -1}, {"keep_days": "9"}])
def test_options_that_mean_nothing_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        StoreOptions.of(config)


def test_a_newer_version_is_refused() -> None:
    assert check_version(1) == 1
    with pytest.raises(StoreVersionError):
        check_version(1000)
