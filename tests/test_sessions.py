"""Sessions as values: what they refuse, what they share, and how they travel."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
import threading
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_hookspecs import Session as SessionProtocol
from agent_hookspecs.errors import SessionError
from agent_hookspecs.store import StoredItems, encode_item
from agent_host import AgentCore, Session
from agent_host.sessions.session import SCHEMA_VERSION
from talking import said

# Lone surrogates are in: models send them, and JSON can hold them.
text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, values, max_size=3)
messages = st.builds(
    lambda role, content, metadata, more: {
        **more,
        "role": role,
        "content": content,
        "metadata": metadata,
    },
    st.sampled_from(["system", "user", "assistant", "tool"]),
    text,
    objects,
    objects,
)


def test_a_session_is_what_plugins_may_rely_on() -> None:
    assert isinstance(said("x"), SessionProtocol)


def test_adding_a_message_leaves_the_old_session_alone() -> None:
    core = AgentCore()
    empty = core.create_session({"topic": "tests"})
    one = core.add_message(empty, "user", "Hello", {"n": 1}, multipartContent=[{"type": "image"}])
    assert len(empty.messages) == 0
    assert one.messages[0] == {
        "role": "user",
        "content": "Hello",
        "metadata": {"n": 1},
        "multipartContent": [{"type": "image"}],
    }
    assert one.metadata == {"topic": "tests"}
    assert one.id == empty.id


CHANGES: dict[str, Any] = {
    "message item": lambda s: s.messages[0].__setitem__("content", "other"),
    "message delete": lambda s: s.messages[0].__delitem__("content"),
    "message update": lambda s: s.messages[0].update(content="other"),
    "message merge": lambda s: s.messages[0].__ior__({"content": "other"}),
    "message pop": lambda s: s.messages[0].pop("content"),
    "message default": lambda s: s.messages[0].setdefault("more", 1),
    "message clear": lambda s: s.messages[0].clear(),
    "deep list": lambda s: s.messages[0]["metadata"]["list"].append(3),
    "deep list item": lambda s: s.messages[0]["metadata"]["list"].__setitem__(0, 3),
    "deep list sort": lambda s: s.messages[0]["metadata"]["list"].sort(),
    "deep list add": lambda s: s.messages[0]["metadata"]["list"].__iadd__([3]),
    "deep dict": lambda s: s.messages[0]["metadata"]["list"][1].update(a=3),
    "metadata": lambda s: s.metadata.__setitem__("kept", 2),
    "deep metadata": lambda s: s.metadata["kept"].append(2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_nothing_in_a_session_can_be_changed_in_place(change: Any) -> None:
    message = {"role": "user", "content": "x", "metadata": {"list": [1, {"a": 2}]}}
    session = Session([message], {"kept": [1]})
    before = session.to_dict()
    with pytest.raises(TypeError, match="copy it, change the copy"):
        change(session)
    assert session.to_dict() == before


def test_what_the_caller_passed_in_stays_the_callers() -> None:
    metadata: dict[str, Any] = {"list": [1]}
    session = Session([{"role": "user", "content": "x", "metadata": metadata}], metadata)
    metadata["list"].append(2)
    assert session.messages[0]["metadata"] == session.metadata == {"list": [1]}


def test_copies_are_plain_and_can_be_changed() -> None:
    session = Session([{"role": "user", "content": "x", "metadata": {"list": [{"a": 1}]}}])
    message: Any = session.messages[0]
    for copied in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert copied == message
        assert type(copied) is dict
        assert type(copied["metadata"]["list"]) is list
        copied["metadata"]["list"][0]["a"] = 2
    for shallow in (message.copy(), copy.copy(message), dict(message), {**message}, message | {}):
        assert type(shallow) is dict
    inner: Any = message["metadata"]["list"]
    for shallow in (inner.copy(), copy.copy(inner), inner[:], inner * 1, list(inner)):
        assert type(shallow) is list
    assert message["metadata"]["list"] == [{"a": 1}]
    assert json.loads(json.dumps(message)) == message


def test_a_session_survives_pickle_and_needs_no_copies() -> None:
    session = said("one", "two").with_metadata({"a": [1]})
    again = pickle.loads(pickle.dumps(session))
    assert again == session
    with pytest.raises(TypeError, match="cannot be changed"):
        again.messages[0]["content"] = "other"
    assert copy.copy(session) is copy.deepcopy(session) is session


@given(st.lists(messages, max_size=4), objects)
def test_to_dict_and_from_dict_are_exact_through_json(
    given_messages: list[dict[str, Any]], metadata: dict[str, Any]
) -> None:
    session = Session(given_messages, metadata)
    document = session.to_dict()
    assert document["messages"] == given_messages
    assert document["metadata"] == metadata
    again = Session.from_dict(json.loads(json.dumps(document)))
    assert again == session
    assert again.to_dict() == document
    count = len(given_messages)
    assert again.digest(count) == session.digest(count)


@given(st.lists(messages, min_size=1, max_size=4), st.data())
def test_the_digest_tells_every_other_beginning_apart(
    given_messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    session = Session(given_messages)
    place = data.draw(st.integers(0, len(given_messages) - 1))
    changed = [*given_messages]
    changed[place] = {**changed[place], "content": changed[place]["content"] + "!"}
    other = session.with_messages(changed)
    for count in range(len(given_messages) + 1):
        assert (session.digest(count) == other.digest(count)) is (count <= place)


def test_the_digest_of_a_branch_is_that_of_its_own_messages() -> None:
    session = said("one", "two", "three")
    session.digest(3)
    branch = session.branch(0).with_added({"role": "user", "content": "other"})
    assert branch.digest(1) == session.digest(1)
    assert branch.digest(2) == said("one", "other").digest(2) != session.digest(2)


def test_the_digest_of_a_long_message_is_that_of_all_it_says() -> None:
    long = "word " * 100_000
    digests = {
        Session([{"role": role, "content": content, "metadata": metadata}]).digest(1)
        for role in ("user", "assistant")
        for content in (long, f"{long}.", f".{long}", f"{long[:-1]}\ud800")
        for metadata in ({}, {"finish": "stop"})
    }
    assert len(digests) == 16


def test_a_message_that_json_cannot_sort_still_has_a_digest() -> None:
    odd: Any = {"role": "user", "content": "x", "metadata": {1: "a", "b": 2}}
    assert Session([odd]).digest(1) != Session([{**odd, "content": "y"}]).digest(1)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "the document is [] (it must be an object)"),
        ({}, "schema_version is missing (add it)"),
        ({"schema_version": True}, "schema_version is True"),
        ({"schema_version": 0}, "schema_version is 0"),
        ({"schema_version": "1"}, "schema_version is '1'"),
        ({"schema_version": SCHEMA_VERSION + 1}, "upgrade agent-host-core"),
        ({"schema_version": 1}, "id is missing"),
        ({"schema_version": 1, "id": ""}, "id is ''"),
        ({"schema_version": 1, "id": "x"}, "messages is missing"),
        ({"schema_version": 1, "id": "x", "messages": "no"}, "is 'no' (it must be a list)"),
        (
            {"schema_version": 1, "id": "x", "messages": [], "metadata": []},
            "metadata is [] (it must be an object)",
        ),
        (
            {"schema_version": 1, "id": "x", "messages": [3]},
            "messages[0] is 3 (it must be an object)",
        ),
        ({"schema_version": 1, "id": "x", "messages": [{"role": "bot"}]}, "role 'bot'"),
        (
            {"schema_version": 1, "id": "x", "messages": [{"role": "user", "content": []}]},
            "multipartContent",
        ),
        (
            {"schema_version": 1, "id": "x", "messages": [{"role": "user", "metadata": 3}]},
            "metadata of message 0",
        ),
    ],
)
def test_what_is_no_session_is_refused_in_words(document: object, words: str) -> None:
    with pytest.raises(SessionError) as caught:
        Session.from_dict(document)
    assert words in caught.value.explain()


def test_a_branch_goes_on_from_a_message_under_another_id() -> None:
    session = said("one", "two", "three").with_metadata({"a": 1})
    branch = session.branch(1)
    assert [m["content"] for m in branch.messages] == ["one", "two"]
    assert branch.id != session.id
    assert branch.metadata == session.metadata
    assert [m["content"] for m in session.branch(-1).messages] == ["one", "two", "three"]
    assert len(session.messages) == 3


@pytest.mark.parametrize("at", [3, -4])
def test_there_is_no_branch_from_a_message_that_is_not_there(at: int) -> None:
    with pytest.raises(SessionError, match=f"no message {at}"):
        said("one", "two", "three").branch(at)


def test_with_metadata_sets_keys_and_none_removes_them() -> None:
    session = Session((), {"a": 1, "b": None, "c": 3})
    changed = session.with_metadata({"a": None, "d": {"e": [4]}})
    assert changed.metadata == {"b": None, "c": 3, "d": {"e": [4]}}
    assert session.metadata == {"a": 1, "b": None, "c": 3}


def test_sessions_are_equal_by_what_they_hold() -> None:
    one = Session([{"role": "user", "content": "x"}], {"a": 1}, id="same")
    two = Session([{"role": "user", "content": "x"}], {"a": 1}, id="same")
    assert one == two
    assert hash(one) == hash(two)
    assert one != two.with_metadata({"a": 2})
    assert one != two.with_added({"role": "user", "content": "y"})
    assert one != Session(one.messages, one.metadata)
    assert one != "same"
    assert repr(one) == "Session(same, 1 messages)"


def calling(*ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "function": {"name": "f", "arguments": "{}"}} for call_id in ids]
    return {"role": "assistant", "content": "", "metadata": {"tool_calls": calls}}


def test_a_session_knows_the_ids_of_its_calls_and_of_no_other_session() -> None:
    session = said("one").with_added(calling("a", "b"))
    assert set(session.tool_call_ids) == {"a", "b"}
    first, second = session.with_added(calling("c")), session.with_added(calling("d"))
    assert set(first.tool_call_ids) == {"a", "b", "c"}
    assert set(second.tool_call_ids) == {"a", "b", "d"}
    assert set(session.tool_call_ids) == {"a", "b"}
    assert len(session.branch(0).tool_call_ids) == 0


def test_calls_of_other_shapes_have_ids_too() -> None:
    call = {"type": "function_call", "call_id": "r", "name": "f", "arguments": "{}"}
    odd = {"role": "assistant", "content": "", "metadata": {"tool_calls": [call, "junk", {}]}}
    assert list(Session([odd, {**odd, "metadata": {"tool_calls": "junk"}}]).tool_call_ids) == ["r"]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12))
def test_sessions_that_part_keep_digests_and_ids_of_their_own(
    steps: list[tuple[int, bool]],
) -> None:
    grown = [said("start")]
    for number, (place, calls) in enumerate(steps):
        base = grown[place % len(grown)]
        message = calling(f"id{number}") if calls else {"role": "user", "content": str(number)}
        grown.append(base.with_added(message))
        count = len(grown[-1].messages)
        grown[-1].digest(count)
    for session in grown:
        alone = Session(session.messages)
        count = len(session.messages)
        assert [session.digest(n) for n in range(count + 1)] == [
            alone.digest(n) for n in range(count + 1)
        ]
        assert set(session.tool_call_ids) == set(alone.tool_call_ids)


@given(
    st.lists(messages, max_size=6),
    st.lists(messages, max_size=3),
    st.lists(
        st.integers(-10, 10)
        | st.builds(
            slice,
            st.none() | st.integers(-10, 10),
            st.none() | st.integers(-10, 10),
            st.sampled_from([None, 1, 2, -1]),
        ),
        max_size=6,
    ),
)
def test_a_session_from_a_store_is_the_one_that_was_stored(
    stored: list[dict[str, Any]], added: list[dict[str, Any]], looks: list[int | slice]
) -> None:
    whole = Session(stored, {"topic": "x"}, id="s")
    texts = [encode_item(message) for message in whole.messages]
    restored = Session.restore("s", StoredItems(texts), {"topic": "x"}, whole.digest(whole.count))
    one, other = whole.with_added(*added), restored.with_added(*added)
    for look in looks:
        assert outcome(lambda at: other.messages[at], look) == outcome(
            lambda at: one.messages[at], look
        )
    assert (other.count, other.since(2)) == (one.count, one.since(2))
    digests = [one.digest(n) for n in range(one.count + 1)]
    # Whichever is asked for first, and also of what begins like it.
    assert other.digest(one.count) == digests[-1]
    assert [other.digest(n) for n in range(one.count + 1)] == digests
    for at in range(one.count):
        assert restored.with_added(*added).branch(at).digest(at + 1) == digests[at + 1]
    assert (other, restored) == (one, whole)
    assert set(other.tool_call_ids) == set(one.tool_call_ids)
    assert other.to_dict() == one.to_dict()


def outcome(function: Any, at: int | slice) -> object:
    try:
        return function(at)
    except IndexError:
        return IndexError


def test_messages_from_a_store_are_read_when_somebody_looks() -> None:
    class Watched(StoredItems):
        def __getitem__(self, place: Any) -> Any:
            seen.append(place)
            return super().__getitem__(place)

    seen: list[Any] = []
    items = Watched(
        encode_item({"role": "user", "content": str(n), "metadata": {}}) for n in range(9)
    )
    session = Session.restore("s", items, {}, "digest").with_added(calling("a"))
    assert (session.count, session.digest(9), repr(session)) == (
        10,
        "digest",
        "Session(s, 10 messages)",
    )
    session.digest(10)
    assert seen == []
    assert session.messages[-2]["content"] == "8"
    assert session.messages[8] is session.with_added(calling("b")).messages[8]
    assert seen == [slice(8, 9)]
    with pytest.raises(TypeError, match="cannot be changed"):
        session.messages[8]["content"] = "x"
    assert set(session.tool_call_ids) == {"a"}
    assert len(seen) == 2


def test_the_ids_of_a_session_can_be_counted_while_others_that_share_its_messages_grow() -> None:
    wrong: list[object] = []

    def grow(session: Session, start: threading.Barrier) -> None:
        start.wait()
        grown = session
        for number in range(200):
            grown = grown.with_added(calling(f"b{number}"))
            assert f"b{number}" in grown.tool_call_ids

    def count(session: Session, start: threading.Barrier) -> None:
        start.wait()
        try:
            for _ in range(400):
                ids = session.tool_call_ids
                assert (len(ids), len(list(ids))) == (20, 20)
        except BaseException as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            given = (Session([calling(f"a{n}") for n in range(20)]), threading.Barrier(3))
            threads = [threading.Thread(target=t, args=given) for t in (grow, count, count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


DEEP = json.loads("[" * 500 + "]" * 500)


@pytest.mark.parametrize(
    "part",
    [
        {"metadata": {"a": DEEP}},
        {"messages": [{"role": "user", "content": "x", "metadata": {"a": DEEP}}]},
        {"messages": [{"role": "user", "content": "x", "more": DEEP}]},
    ],
)
def test_what_is_nested_too_deeply_for_a_session_is_refused_in_words(part: dict[str, Any]) -> None:
    def read(depth: int) -> Session:
        # However deep it is called from, and the newest Pythons have more room.
        return read(depth - 1) if depth else Session.from_dict({**said("x").to_dict(), **part})

    with pytest.raises(SessionError, match="nested too deeply"):
        read(sys.getrecursionlimit() - 300 - len(inspect.stack(0)))


def test_a_session_that_is_too_deep_where_it_is_written_says_so() -> None:
    session = Session((), {"a": json.loads("[" * 100 + "]" * 100)})

    def write(depth: int) -> Any:
        return write(depth - 1) if depth else session.to_dict()

    assert write(0)["metadata"] == session.metadata
    with pytest.raises(SessionError, match="nested too deeply"):
        write(sys.getrecursionlimit() - 50 - len(inspect.stack(0)))
