"""The native history of a session: when it is sent again, and when it is made anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin
from agent_hookspecs.authoring import Rendering, render_history
from agent_hookspecs.errors import HookError
from agent_host import AgentCore, Session
from agent_host.sessions.natives import NativeHistory, RetainedHistory
from loopback import Peer, Request, serve
from talking import WAYS, Way, ask, core_with, said, talker

Natives = list[dict[str, Any]]


class Listing(Rendering):
    """What is rendered of a history: its natives."""

    def __init__(self) -> None:
        self.natives: Natives = []

    def add(self, native: dict[str, Any]) -> None:
        self.natives.append(native)


def sealing(sent: list[Natives], converted: list[int], name: str = "sealing") -> type:
    """A provider whose answers carry a seal that core messages do not have."""

    class Sealing(talker(sent)):  # type: ignore[misc]
        def to_native_messages(self, messages: Any) -> Natives:
            converted.append(len(messages))
            return [{"role": m["role"], "content": m["content"]} for m in messages]

        def finalize(self, native_messages: Natives, state: Any) -> Any:
            raise AssertionError("the finals came with the answer")

        def call_api(self, native_messages: Natives, state: Any, context: Any) -> Any:
            assert render_history(Listing, native_messages, context).natives == native_messages
            partials, finals, natives, state = super().call_api(native_messages, state)
            natives[-1] = finals[0] = {**natives[-1], "seal": len(natives)}
            return partials, finals, natives, state

    Sealing.name = name
    return Sealing


def through_json(session: Session) -> Session:
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(seal: int | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": "Hi", **({"seal": seal} if seal else {})}


@pytest.mark.parametrize("way", WAYS)
def test_natives_survive_two_cores_and_json_and_only_the_tail_is_converted(way: Way) -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    session = said("one")
    for text in ("two", "three", ""):
        core = core_with(sealing(sent, converted))
        session, _ = ask(core, session, {}, way)
        session = through_json(core.add_message(session, "user", text))
    assert sent[-1] == [user("one"), assistant(2), user("two"), assistant(4), user("three")]
    assert converted == [1, 1, 1]


def test_adding_messages_converts_nothing() -> None:
    converted: list[int] = []
    core = core_with(sealing([], converted))
    session = core.create_session()
    for text in ("one", "two", "three"):
        session = core.add_message(session, "user", text)
    assert converted == []
    ask(core, session)
    assert converted == [3]


def edited(session: Session) -> Session:
    first, *rest = session.messages
    return session.with_messages([{**first, "content": "edited"}, *rest])


def relabelled(session: Session) -> Session:
    first, *rest = session.messages
    return session.with_messages([{**first, "metadata": {"label": 1}}, *rest])


def removed(session: Session) -> Session:
    return session.with_messages(session.messages[1:])


def swapped(session: Session) -> Session:
    first, second, *rest = session.messages
    return session.with_messages([second, first, *rest])


def test_natives_of_another_form_are_made_anew_and_those_of_the_same_are_kept() -> None:
    sent: list[Natives] = []
    converted: list[int] = []

    class TwoForms(sealing(sent, converted)):  # type: ignore[misc]
        def init(self, config: dict[str, Any]) -> dict[str, Any]:
            return {**super().init(config), "native_format": config.get("form")}

    core = core_with(TwoForms)
    session = said("one")
    for form, text in (("a", "two"), ("a", "three"), ("b", "four"), (None, "five")):
        session, _ = ask(core, session, {"form": form})
        session = through_json(core.add_message(session, "user", text))
    assert converted == [1, 1, 5, 7]
    assert sent[1] == [user("one"), assistant(2), user("two")]
    assert sent[2] == [
        user("one"),
        assistant(),
        user("two"),
        assistant(),
        user("three"),
    ]


@pytest.mark.parametrize("change", [edited, relabelled, removed, swapped])
def test_natives_are_made_anew_when_messages_were_changed(
    change: Callable[[Session], Session],
) -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    core = core_with(sealing(sent, converted))
    session, _ = ask(core, said("one"))
    changed = change(session.with_added(user("two")))
    ask(core, changed)
    rebuilt = [{"role": m["role"], "content": m["content"]} for m in changed.messages]
    assert sent[-1] == rebuilt
    assert converted[-1] == len(changed.messages)


def test_an_edit_behind_a_turn_leaves_the_natives_before_it() -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    core = core_with(sealing(sent, converted))
    session, _ = ask(core, said("one"))
    session, _ = ask(core, session.with_added(user("two")))
    messages = [*session.messages[:2], {**session.messages[2], "content": "other"}]
    ask(core, session.with_messages(messages))
    assert sent[-1] == [user("one"), assistant(2), user("other")]
    assert converted[-1] == 1


def test_a_branch_reuses_the_longest_beginning_that_holds() -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    core = core_with(sealing(sent, converted))
    session = said("one")
    for text in ("two", "three", "four"):
        session, _ = ask(core, session)
        session = session.with_added(user(text))
    branch = session.branch(3).with_added(user("elsewhere"))
    branched, _ = ask(core, branch)
    assert sent[-1] == [user("one"), assistant(2), user("two"), assistant(4), user("elsewhere")]
    assert converted[-1] == 1
    # In the middle of a turn only the turns before it hold.
    ask(core, session.branch(2).with_added(user("again")))
    assert sent[-1] == [user("one"), assistant(2), user("two"), user("again")]
    # Both lines go on, each with its own history.
    ask(core, branched.with_added(user("more")))
    assert sent[-1][-2:] == [assistant(6), user("more")]
    ask(core, session)
    assert sent[-1] == [
        *(user("one"), assistant(2), user("two"), assistant(4)),
        *(user("three"), assistant(6), user("four")),
    ]


@pytest.mark.parametrize("elsewhere", [{"provider": "other"}, {"base_url": "https://b.test"}])
def test_another_origin_gets_natives_of_its_own(elsewhere: dict[str, Any]) -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    core = core_with(sealing(sent, converted), sealing(sent, converted, "other"))
    here = {"provider": "sealing", "base_url": "https://a.test"}
    session, _ = ask(core, said("one"), here)
    session, _ = ask(core, session.with_added(user("two")), {**here, **elsewhere})
    assert sent[-1] == [user("one"), assistant(), user("two")]
    assert converted == [1, 3]
    ask(core, session.with_added(user("three")), here)
    assert converted == [1, 3, 5]


def test_credentials_in_the_address_are_not_kept_and_do_not_tell_origins_apart() -> None:
    sent: list[Natives] = []
    converted: list[int] = []
    core = core_with(sealing(sent, converted))
    session, _ = ask(core, said("one"), {"base_url": "https://me:hidden@a.test/v1?a@b"})
    assert session.metadata["native_origin"] == ["sealing", "https://a.test/v1?a@b"]
    assert "hidden" not in json.dumps(session.to_dict())
    ask(core, session.with_added(user("two")), {"base_url": "https://a.test/v1?a@b"})
    assert sent[-1] == [user("one"), assistant(2), user("two")]


def test_extensions_may_reorder_drop_and_add_natives() -> None:
    sent: list[Natives] = []

    class Shuffling(ProviderExtensionPlugin):
        name = "shuffling"

        def finalize(self, finals: Natives, natives: Natives, state: Any) -> Any:
            return finals, [{"role": "system", "content": "memo"}, *reversed(natives[-2:])], state

    core = core_with(talker(sent), Shuffling)
    session, _ = ask(core, said("one", "two"))
    kept = [{"role": "system", "content": "memo"}, assistant(), user("two")]
    assert session.metadata["native_messages"] == kept
    session, _ = ask(core, through_json(session).with_added(user("three")))
    assert sent[-1] == [*kept, user("three")]
    # What came before was rearranged again, so a branch cannot rely on it.
    ask(core, session.branch(2).with_added(user("other")))
    assert sent[-1] == [user("one"), user("two"), assistant(), user("other")]


def test_extensions_carry_metadata_into_the_natives_of_the_tail() -> None:
    sent: list[Natives] = []

    class Labelling(ProviderExtensionPlugin):
        name = "labelling"

        def to_native_messages(self, messages: Any, native_messages: Natives) -> Natives:
            pairs = zip(messages, native_messages, strict=True)
            return [{**n, "label": m["metadata"].get("label")} for m, n in pairs]

    core = core_with(talker(sent), Labelling)
    session = core.add_message(core.create_session(), "user", "one", {"label": "a"})
    session, _ = ask(core, session)
    ask(core, core.add_message(session, "user", "two", {"label": "b"}))
    assert [m.get("label") for m in sent[-1]] == ["a", None, "b"]


def test_a_plugin_that_appends_in_place_changes_no_older_session() -> None:
    class Appending(FeaturePlugin):
        name = "appending"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            native_messages.append({"role": "system", "content": "note"})
            return native_messages, state

        def finalize(self, finals: Natives, native_messages: Natives, state: Any) -> Any:
            native_messages.append({"role": "system", "content": "late"})
            return finals, native_messages, state

    core = core_with(talker(), Appending)
    first, _ = ask(core, said("one"))
    before = first.to_dict()
    second, finals = ask(core, first.with_added(user("two")))
    finals[0]["metadata"]["mine"] = True
    assert first.to_dict() == before
    assert [m["content"] for m in second.metadata["native_messages"]] == [
        *("one", "note", "Hi", "late"),
        *("two", "note", "Hi", "late"),
    ]
    assert "mine" not in second.messages[-1]["metadata"]


def test_a_plugin_that_rewrites_an_old_native_in_place_is_told_so() -> None:
    class Rewriting(FeaturePlugin):
        name = "rewriting"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            native_messages[0]["content"] = "rewritten"
            return native_messages, state

    core = core_with(talker(), Rewriting)
    first, _ = ask(core, said("one"))
    with pytest.raises(HookError, match=r"'rewriting'.*'initialize_request'.*change the copy"):
        ask(core, first.with_added(user("two")))


likenesses = st.recursive(
    st.sampled_from([0, 1, 0.0, 1.0, False, True, "1", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner),
    max_leaves=3,
)


@given(likenesses, likenesses, st.booleans())
def test_a_native_that_a_plugin_replaces_is_sent_and_stored_however_alike_they_are(
    old: Any, new: Any, stored_as_json: bool
) -> None:
    sent: list[Natives] = []
    flags = iter([old, new])

    class Flagging(ProviderExtensionPlugin):
        name = "flagging"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            first, *rest = native_messages
            return [{**first, "flag": next(flags)}, *rest], state

    class Rendered(talker()):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: Any, context: Any) -> Any:
            sent.append(render_history(Listing, native_messages, context).natives)
            return super().call_api(native_messages, state)

    core = core_with(Rendered, Flagging)
    session, _ = ask(core, said("one"))
    session, _ = ask(
        core, (through_json(session) if stored_as_json else session).with_added(user("two"))
    )
    # As JSON tells 1, 1.0 and true apart, which == does not.
    for flagged in (sent[-1][0], session.metadata["native_messages"][0]):
        assert json.dumps(flagged["flag"]) == json.dumps(new)


def test_natives_that_were_only_copied_are_not_rendered_again() -> None:
    kind = Counting()

    class Copying(ProviderExtensionPlugin):
        name = "copying"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            return json.loads(json.dumps(native_messages)), state

    class Rendered(talker()):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: Any, context: Any) -> Any:
            render_history(kind, native_messages, context)
            return super().call_api(native_messages, state)

    core, session = core_with(Rendered, Copying), said("one")
    for number in range(5):
        session, _ = ask(core, session.with_added(user(str(number))))
    assert kind.count < 5 * 4


def test_natives_in_another_order_of_keys_are_the_same_and_others_are_not() -> None:
    native = {"content": [{"a": 1, "b": None}], "role": "user"}
    kind, retained = Counting(), RetainedHistory(NativeHistory([native]))
    same: Any = {"role": "user", "content": [{"b": None, "a": 1}]}
    for _ in range(3):
        assert retained.render(kind, [same], ("",)).natives == [native]
    assert kind.count == 1
    others: list[Any] = [{**native, "content": [{"a": True, "b": None}]}, {"role": "user"}]
    for other in others:
        assert retained.render(kind, [other], ("",)).natives == [other]
    assert kind.count == 3
    for garbage in ([native], 1):
        assert retained.render(kind, [garbage], ("",)).natives == []  # type: ignore[list-item]


def test_calls_in_the_finals_are_not_those_in_history() -> None:
    class Calling(talker()):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: Any) -> Any:
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            final = {"role": "assistant", "content": None, "tool_calls": [call]}
            return [], [final], [*native_messages, final], state

        def from_native_messages(self, native_messages: Natives) -> Any:
            return [
                {"role": n["role"], "content": n["content"], "metadata": {"tool_calls": n[key]}}
                for n in native_messages
                for key in ("tool_calls",)
            ]

    session, finals = ask(core_with(Calling), said("one"))
    assert finals[0]["content"] == ""
    finals[0]["metadata"]["tool_calls"][0]["function"]["name"] = "changed"
    (call,) = session.metadata["native_messages"][-1]["tool_calls"]
    assert call["function"]["name"] == "f"
    assert session.messages[-1]["metadata"]["tool_calls"][0]["function"]["name"] == "f"


GARBAGE: list[Any] = [
    None,
    "text",
    {"a": 1},
    [],
    [None],
    [[1]],
    [[1, 1, 1]],
    [["1", 1, "x"]],
    [[1, -1, "x"], [9, 9, "x"], "x"],
    [[True, True, "x"]],
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
@pytest.mark.parametrize("key", ["native_checkpoints", "native_origin"])
def test_garbage_beside_the_natives_is_ignored(key: str, garbage: Any) -> None:
    sent: list[Natives] = []
    core = core_with(sealing(sent, []))
    session, _ = ask(core, said("one"))
    damaged = through_json(session.with_metadata({key: garbage}).with_added(user("two")))
    again, _ = ask(core, damaged)
    assert sent[-1] == [user("one"), assistant(), user("two")]
    ask(core, again.with_added(user("three")))
    assert sent[-1] == [user("one"), assistant(), user("two"), assistant(4), user("three")]


@pytest.mark.parametrize("natives", [None, "text", {"a": 1}, [], [user("one")]], ids=repr)
def test_natives_that_are_too_few_are_made_anew(natives: Any) -> None:
    sent: list[Natives] = []
    core = core_with(sealing(sent, []))
    session, _ = ask(core, said("one"))
    ask(core, session.with_metadata({"native_messages": natives}).with_added(user("two")))
    assert sent[-1] == [user("one"), assistant(), user("two")]


def test_a_bad_checkpoint_does_not_spoil_the_good_ones() -> None:
    sent: list[Natives] = []
    core = core_with(sealing(sent, []))
    session, _ = ask(core, said("one"))
    good = session.metadata["native_checkpoints"]
    mixed = session.with_metadata({"native_checkpoints": ["x", [9, 9, "x"], *good, None]})
    session, _ = ask(core, mixed.with_added(user("two")))
    assert sent[-1] == [user("one"), assistant(2), user("two")]
    ask(core, session.with_added(user("three")))
    assert sent[-1] == [user("one"), assistant(2), user("two"), assistant(4), user("three")]


@pytest.mark.parametrize("stream", [False, True])
def test_private_metadata_is_never_sent(stream: bool) -> None:
    class Wired(ProviderPlugin):
        name = "wired"

        def init(self, config: Any) -> Any:
            return {"config": config, "request": {}}

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            url = state["config"]["base_url"] + "/chat"
            state["request"] = {"url": url, "payload": {"model": "m"}}
            return [*native_messages, "not a message"], state

        def process_chunk(self, native_chunk: Any, native_messages: Natives, state: Any) -> Any:
            final = {"role": "assistant", "content": "ok", "_metadata": {"cached_tokens": 3}}
            return [], [final], [*native_messages, final], state

    def play(peer: Peer, request: Request) -> None:
        peer.answer(b'data: {"x": 1}\n\ndata: [DONE]\n\n' if stream else b'{"x": 1}')

    with serve(play) as server, AgentCore() as core:
        core.register_provider(Wired)
        session = core.add_message(core.create_session(), "user", "one", {"secret_note": 1})
        config = {"base_url": server.url}
        for _ in range(2):
            if stream:
                with core.send_request_stream(session, config) as events:
                    assert [e["type"] for e in events][-1] == "done"
                session = events.session
            else:
                session, _ = core.send_request(session, config)
            session = session.with_added(user("two"))
        bodies = [json.loads(request.body) for request in server.requests]
    assert bodies[1]["messages"] == [
        user("one"),
        {"role": "assistant", "content": "ok"},
        user("two"),
    ]
    assert all(body.get("stream", False) is stream for body in bodies)
    assert session.messages[1]["metadata"] == {"cached_tokens": 3, "finish": "stop"}


def test_the_host_keeps_the_default_conversion_free_of_native_indices() -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent))
    session = core.add_message(core.create_session(), "user", "x", {"native_indices": [1], "a": 2})
    answered, _ = ask(core, session)
    assert answered.metadata["native_messages"][0]["_metadata"] == {"a": 2}
    renumbered = answered.with_messages(
        [
            {**m, "metadata": {**m["metadata"], "native_indices": [n]}}
            for n, m in enumerate(answered.messages)
        ]
    )
    assert renumbered.digest(2) == answered.digest(2)


# --- any sequence of changes ----------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.just(("turn",)),
        st.just(("add",)),
        st.tuples(st.just("edit"), st.integers(0, 9)),
        st.tuples(st.just("branch"), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("switch"), st.sampled_from(["sealing", "other"])),
        st.just(("json",)),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_what_is_sent_is_a_rebuild_with_only_seals_that_still_hold(
    taken: list[tuple[Any, ...]],
) -> None:
    """The model of it: a seal is sent if, and only if, nothing up to its message has changed."""
    sent: list[Natives] = []
    core = core_with(sealing(sent, []), sealing(sent, [], "other"))
    provider = "sealing"
    session = said("start")
    # Which beginnings, as text, were answered by whom since natives were last made anew.
    sealed: dict[tuple[str, ...], int] = {}
    owner = provider
    for number, (step, *args) in enumerate([*taken, ("turn",)]):
        count = len(session.messages)
        texts = tuple(m["content"] for m in session.messages)
        if step == "turn":
            if owner != provider:
                sealed, owner = {}, provider
            holding = {k: v for k, v in sealed.items() if texts[: len(k)] == k}
            session, _ = ask(core, session, {"provider": provider})
            rebuilt = [{"role": m["role"], "content": m["content"]} for m in session.messages[:-1]]
            assert [{k: v for k, v in n.items() if k != "seal"} for n in sent[-1]] == rebuilt
            seals = {place for place, native in enumerate(sent[-1]) if "seal" in native}
            assert seals == {len(beginning) - 1 for beginning in holding}
            # The natives now retained are those of this line only.
            answered = tuple(m["content"] for m in session.messages)
            sealed = {**holding, answered: number}
        elif step == "add":
            session = session.with_added(user(f"m{number}"))
        elif step == "edit" and count:
            messages: list[Any] = list(session.messages)
            place = args[0] % count
            messages[place] = {**messages[place], "content": f"e{number}"}
            session = session.with_messages(messages)
        elif step == "branch" and count:
            session = session.branch(args[0] % count)
        elif step == "remove" and count > 1:
            messages = list(session.messages)
            del messages[args[0] % count]
            session = session.with_messages(messages)
        elif step == "switch":
            provider = args[0]
        elif step == "json":
            session = through_json(session)


# What plugins make of a history.


def numbered(*numbers: int) -> Natives:
    return [{"content": number} for number in numbers]


class Counted(Listing):
    """One that tells its kind how many messages were added."""

    def __init__(self, kind: Counting, mark: str) -> None:
        super().__init__()
        self.kind = kind
        self.mark = mark

    def add(self, native: dict[str, Any]) -> None:
        self.kind.count += 1
        super().add(native)


class Counting:
    """A kind of rendering that counts what is added to any of its renderings."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, mark: str = "") -> Counted:
        return Counted(self, mark)

    def of(self, history: NativeHistory, mark: str = "") -> list[int]:
        """The contents of the rendering, which is spoiled afterwards."""
        rendering = history.rendering(self, (mark,))
        assert rendering.mark == mark
        contents = [native["content"] for native in rendering.natives]
        rendering.natives.append({"content": 0})
        return contents


def test_a_native_is_rendered_once_in_its_life_while_a_conversation_goes_on() -> None:
    kind, history = Counting(), NativeHistory(numbered(1, 2))
    for number in (3, 4, 5):
        history = history.with_natives(numbered(number))
        assert kind.of(history) == kind.of(history) == list(range(1, number + 1))
    assert kind.count == 5


def test_of_two_ways_to_go_on_from_a_place_each_has_its_own() -> None:
    kind, start = Counting(), NativeHistory(numbered(1, 2))
    assert kind.of(start) == [1, 2]
    left, right = start.with_natives(numbered(3)), start.with_natives(numbered(4))
    assert kind.of(left) == [1, 2, 3]
    assert kind.of(right) == [1, 2, 4]
    assert kind.of(start) == [1, 2]
    assert kind.of(left) == [1, 2, 3]
    assert kind.count == 4


def test_other_options_and_a_beginning_alone_are_rendered_anew() -> None:
    kind, history = Counting(), NativeHistory(numbered(1, 2, 3))
    assert kind.of(history, "a") == kind.of(history, "b") == [1, 2, 3]
    assert kind.count == 6
    assert kind.of(history.first(2), "b") == [1, 2]
    assert kind.of(history.with_natives([]), "b") == [1, 2, 3]


def test_a_rendering_that_was_skipped_for_a_turn_goes_on_where_it_was() -> None:
    kind, history = Counting(), NativeHistory(numbered(1))
    kind.of(history)
    longer = history.with_natives(numbered(2)).with_natives(numbered(3))
    assert kind.of(longer) == [1, 2, 3]
    assert kind.count == 3


def test_many_threads_that_go_on_with_one_history_each_get_their_own() -> None:
    kind, start = Counting(), NativeHistory(numbered(*range(50)))

    def contents(number: int) -> list[int]:
        return kind.of(start.with_natives(numbered(number)))

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(contents, range(100, 200))]
    assert found == [[*range(50), number] for number in range(100, 200)]


def test_a_plugin_that_fails_half_way_leaves_no_half_of_a_rendering_behind() -> None:
    class Picky(Listing):
        refused = True

        def add(self, native: dict[str, Any]) -> None:
            if native["content"] == 3 and Picky.refused:
                raise ValueError("not this one")
            super().add(native)

    history = NativeHistory(numbered(1))
    history.rendering(Picky, ())
    history = history.with_natives(numbered(2, 3))
    with pytest.raises(ValueError, match="not this one"):
        history.rendering(Picky, ())
    Picky.refused = False
    assert history.rendering(Picky, ()).natives == numbered(1, 2, 3)
