"""Features that speak: instructions beside the system prompt, and context for the user's turn."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import Any

import pytest

from agent_hookspecs import FeaturePlugin, ProviderExtensionPlugin
from agent_hookspecs.authoring import Rendering, render_history, tool
from agent_hookspecs.errors import HookError, HookResultError
from agent_host import AgentCore, Session
from loopback import Peer, Request, serve
from openai_like import OpenAiLike
from scripted import app_with, call, calling, saying, scripted
from talking import WAYS, Way, ask, core_with, events_of, said, talker

Natives = list[dict[str, Any]]


def speaking(
    instructions: Any = None, context: Any = None, name: str = "speaking"
) -> type[FeaturePlugin]:
    """A feature that says these; a function is called with the session."""

    class Speaking(FeaturePlugin):
        def get_instructions(self, session: Any) -> Any:
            return instructions(session) if callable(instructions) else instructions

        def get_context_parts(self, session: Any) -> Any:
            return context(session) if callable(context) else context

    Speaking.name = name
    return Speaking


def prompted(*texts: str) -> Session:
    """A session that begins with a system prompt."""
    return Session([{"role": "system", "content": "Be brief."}, *said(*texts).messages])


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def assistant(text: str = "Hi") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize("way", WAYS)
def test_both_are_sent_and_neither_becomes_a_message(way: Way) -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent), speaking("Speak French.", ["A passage.", "Another."]))
    session, _ = ask(core, prompted("What is it?"), {}, way)
    assert sent == [
        [system("Be brief.\n\nSpeak French."), user("A passage.\n\nAnother.\n\nWhat is it?")]
    ]
    assert [message["content"] for message in session.messages] == [
        "Be brief.",
        "What is it?",
        "Hi",
    ]


def test_without_a_system_prompt_instructions_stand_first() -> None:
    sent: list[Natives] = []
    ask(core_with(talker(sent), speaking("Speak French.")), said("Hello"))
    assert sent == [[system("Speak French."), user("Hello")]]


def test_features_speak_in_order_and_the_silent_add_nothing() -> None:
    sent: list[Natives] = []
    core = core_with(
        talker(sent),
        speaking("First.", ["one"], "a_first"),
        speaking(None, None, "b_silent"),
        speaking("  ", [" "], "c_blank"),
        speaking("Last.", ["two"], "d_last"),
    )
    ask(core, said("Hello"))
    assert sent == [[system("First.\n\nLast."), user("one\n\ntwo\n\nHello")]]


def test_the_beginning_stays_the_same_while_the_text_does() -> None:
    sent: list[Natives] = []
    core = core_with(talker(sent), speaking("Speak French.", ["A passage."]))
    session = prompted("one")
    for text in ("two", "three", "four"):
        session, _ = ask(core, session)
        session = session.with_added(user(text))
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


def test_changed_instructions_leave_retained_natives_alone() -> None:
    sent: list[Natives] = []

    class Signed(talker(sent)):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: Any) -> Any:
            partials, finals, natives, state = super().call_api(native_messages, state)
            natives[-1] = finals[0] = {**natives[-1], "signature": "sealed"}
            return partials, finals, natives, state

    moods = iter(["Be glad.", "Be sad.", None, "Be calm."])
    core = core_with(Signed, speaking(lambda session: next(moods)))
    session = prompted("one")
    for text in ("two", "three", "four", "five"):
        session, _ = ask(core, session)
        session = Session.from_dict(json.loads(json.dumps(session.to_dict())))
        session = session.with_added(user(text))
    assert [natives[0]["content"] for natives in sent] == [
        "Be brief.\n\nBe glad.",
        "Be brief.\n\nBe sad.",
        "Be brief.",
        "Be brief.\n\nBe calm.",
    ]
    assert [native.get("signature") for native in sent[-1]] == [
        *(None, None, "sealed", None, "sealed", None, "sealed", None),
    ]
    assert session.metadata["native_messages"][0] == system("Be brief.")


class Counting(Rendering):
    """The natives, and how many were looked at in all."""

    added = 0

    def __init__(self) -> None:
        self.natives: Natives = []

    def add(self, native: dict[str, Any]) -> None:
        type(self).added += 1
        self.natives.append(native)


def test_a_history_under_instructions_is_rendered_once() -> None:
    rendered: list[Natives] = []

    class Listing(Counting):
        added = 0

    class Rendered(talker()):  # type: ignore[misc]
        def call_api(self, native_messages: Natives, state: Any, context: Any) -> Any:
            rendered.append(render_history(Listing, native_messages, context).natives)
            assert rendered[-1] == native_messages
            return super().call_api(native_messages, state)

    core, session = core_with(Rendered, speaking("Speak French.")), prompted("one")
    for text in map(str, range(10)):
        session, _ = ask(core, session)
        session = session.with_added(user(text))
    assert len(rendered[-1]) == 20
    # Each message once as the end of a request and once as a part of what is retained.
    assert Listing.added < 3 * len(rendered[-1])


def test_context_is_asked_for_once_a_turn_of_the_user() -> None:
    sent: list[Natives] = []
    asked: list[str] = []

    def find(session: Any) -> list[str]:
        asked.append(session.messages[-1]["content"])
        return [f"about {asked[-1]}"]

    core = core_with(talker(sent), speaking(None, find))
    session, _ = ask(core, said("one"))
    session, _ = ask(core, session)
    ask(core, session.with_added(user("two")))
    assert asked == ["one", "two"]
    assert sent[-1] == [
        user("about one\n\none"),
        assistant(),
        assistant(),
        user("about two\n\ntwo"),
    ]


def test_pictures_follow_the_users_own_parts() -> None:
    seen: list[Any] = []

    class Seeing(talker()):  # type: ignore[misc]
        def to_native_messages(self, messages: Any) -> Natives:
            seen.extend(messages)
            return [dict(message) for message in messages]

    def picture(name: str) -> dict[str, Any]:
        return {"type": "image", "content": {"url": f"https://a.test/{name}"}, "metadata": {}}

    core = core_with(Seeing, speaking(None, [picture("found"), "A map."]))
    asked = {**user("Where?"), "multipartContent": [picture("mine")]}
    session, _ = ask(core, Session([asked]))
    assert seen[0]["content"] == "A map.\n\nWhere?"
    assert seen[0]["multipartContent"] == [picture("mine"), picture("found")]
    assert session.messages[0]["multipartContent"] == [picture("mine")]


def test_hooks_may_read_the_session_and_may_block() -> None:
    seen: list[Any] = []
    here = threading.get_ident()

    class Reading(FeaturePlugin):
        name = "reading"

        def get_instructions(self, session: Any, config: Any, context: Any) -> None:
            assert context["session"] is session
            assert config == context["config"]
            seen.append((session.messages[-1]["content"], threading.get_ident() == here))

        def initialize_request(self, native_messages: Natives, state: Any, context: Any) -> Any:
            seen.append(context["session"].messages[-1]["content"])
            return native_messages, state

    core = core_with(talker(), Reading)
    ask(core, said("one"), {}, "call")
    ask(core, said("two"), {}, "acall")
    assert seen == [("one", True), "one", ("two", False), "two"]


def test_a_wrong_result_names_the_hook_and_a_failing_feature_can_be_left_out() -> None:
    core = core_with(talker(), speaking(["a", "list"]))
    with pytest.raises(HookResultError, match=r"'get_instructions' must return a string, not list"):
        ask(core, said("one"))
    core = core_with(talker(), speaking(None, "text"))
    with pytest.raises(HookResultError, match=r"'get_context_parts' must return a list of strings"):
        ask(core, said("one"))

    def fail(session: Any) -> str:
        raise OSError("the index is gone")

    sent: list[Natives] = []
    core = core_with(talker(sent), speaking("Speak French.", name="a"), speaking(fail, name="b"))
    with pytest.raises(HookError, match="the index is gone"):
        ask(core, said("one"))
    ask(core, said("one"), {"on_plugin_error": "skip"})
    assert sent == [[system("Speak French."), user("one")]]


def test_instructions_that_a_plugin_moves_or_copies_are_still_taken_out() -> None:
    sent: list[Natives] = []

    class Moving(ProviderExtensionPlugin):
        name = "moving"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            return [user("(before)"), *json.loads(json.dumps(native_messages))], state

    core = core_with(talker(sent), Moving, speaking("Speak French."))
    session, _ = ask(core, prompted("one"))
    kept = [user("(before)"), system("Be brief."), user("one"), assistant()]
    assert session.metadata["native_messages"] == kept


def test_instructions_that_cannot_be_taken_out_are_told_and_never_retained() -> None:
    class Shouting(ProviderExtensionPlugin):
        name = "shouting"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            return [{**n, "content": n["content"].upper()} for n in native_messages], state

    core = core_with(talker(), Shouting, speaking("Speak French."))
    events = events_of(core, prompted("one"))
    warned = [event["message"] for event in events if event["type"] == "warning"]
    assert any("native history of this turn is not retained" in each for each in warned)
    (final,) = [event for event in events if event["type"] == "final"]
    assert "FRENCH" not in json.dumps(final["session"].to_dict())


def warnings_of(core: AgentCore, session: Session, config: dict[str, Any]) -> list[Any]:
    events = events_of(core, session, config)
    return [(e["plugin"], e["message"]) for e in events if e["type"] == "warning"]


def test_a_provider_that_takes_no_system_message_is_named_in_a_warning() -> None:
    class Deaf(talker()):  # type: ignore[misc]
        def to_native_messages(self, messages: Any) -> Natives:
            return [dict(message) for message in messages if message["role"] != "system"]

    core = core_with(Deaf, speaking("Speak French.", ["A passage."], "memory"))
    assert warnings_of(core, said("one"), {}) == [
        ("talker", "talker does not send the instructions of memory")
    ]


def test_what_is_not_in_the_body_of_a_request_is_seen_too() -> None:
    class Dropping(OpenAiLike):
        name = "dropping"

        def initialize_request(self, native_messages: Natives, state: Any) -> Any:
            native_messages, state = super().initialize_request(native_messages, state)
            state["request"]["messages"] = native_messages[-1:]
            return native_messages, state

    class Encoding(OpenAiLike):
        name = "encoding"

        def build_request(self, native_messages: Natives, state: Any) -> Any:
            body = json.dumps({"messages": native_messages}).encode()
            return {"method": "POST", "url": state["request"]["url"], "body": body}

    def answer(peer: Peer, request: Request) -> None:
        chunk = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
        peer.answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    core = core_with(OpenAiLike, Dropping, Encoding, speaking("Écris “bien”.", ["A passage."]))
    with serve(answer) as server, core:
        for name in ("openai_like", "encoding"):
            assert not warnings_of(core, said("one"), {"provider": name, "base_url": server.url})
        found = warnings_of(core, said("one"), {"provider": "dropping", "base_url": server.url})
        assert found == [("dropping", "dropping does not send the instructions of speaking")]


def test_no_context_is_sought_for_what_the_host_asks_once_more() -> None:
    asked: list[str] = []
    sent: list[Natives] = []

    def find(session: Any) -> list[str]:
        asked.append(session.messages[-1]["content"])
        return ["A passage."]

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "grass"

    script = [calling(call("look")), saying(""), saying("Green.")]
    with app_with(scripted(script, sent), look) as app:
        app.core.register_feature(speaking(None, find))
        answer = app.run("What colour?")
    assert answer.text == "Green."
    assert asked == ["What colour?"]
    assert [native["content"] for native in sent[-1] if native["role"] == "user"] == [
        "A passage.\n\nWhat colour?",
        "Please provide your final answer.",
    ]
