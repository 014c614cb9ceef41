"""Checks of where things stand in a request: instructions, turns, results beside their calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from agent_host.sessions.session import Session
from agent_host_testing.script import Call, Part, Reply, Text, say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require
from agent_host_testing.wire import Request

__all__ = ["ConversationChecks", "require_places"]

_TOOLS = "supports_tools"
_WHERE = "docs/testing.md#conversations"


class ConversationChecks(ProviderSuite):
    """Order of messages, instructions in the middle, results, and failed ones."""

    @check("conversation", _WHERE)
    def test_messages_keep_their_order(self) -> None:
        """Messages are sent in their order; only what the API has a place of its own for is not."""
        format = self.require_wire()
        said = [
            ("system", "order-one"),
            ("user", "order-two"),
            ("assistant", "order-three"),
            ("system", "order-four"),
            ("user", "order-five"),
            ("user", "order-six"),
            ("assistant", "order-seven"),
            ("system", "order-eight"),
            ("user", "order-nine"),
        ]
        with self.talk(tools=()) as talk:
            for role, text in said:
                talk.say(text, role=role)
            talk.go_on(say("Yes.")).expect()
            sent = Carried(talk.server.requests[-1])
            for role, text in said:
                count = len(sent.places(text))
                require(count == 1, f"the {role} message {text!r} is there {count} times")
            turns = sent.list_of("order-two")
            hoisted = {text for role, text in said if role == "system"}
            among = [text for _, text in said if sent.list_of(text) == turns]
            inside = [t for t in among if not format.instructions_first or t not in hoisted]
            found = sent.in_order(inside)
            require(found == inside, f"the messages are sent as {', '.join(found)}")
            apart = [text for _, text in said if text not in inside]
            found = sent.in_order(apart)
            require(found == apart, f"the instructions are sent as {', '.join(found)}")
            first = [text for text in apart if text in among] + inside
            found = sent.in_order(first)
            require(found == first, f"not all instructions come first: {', '.join(found)}")
            spoken = [text for role, text in said if role != "system"]
            lost = [text for text in spoken if text not in inside]
            require(not lost, f"{', '.join(lost)} does not stand among the turns")

    @check("conversation", _WHERE)
    def test_what_is_said_twice_is_sent_twice(self) -> None:
        """Messages and results that are the same as others before them are sent as well."""
        self.require_wire()
        with self.talk() as talk:
            for _ in range(2):
                talk.say("twice-asked")
            if self.claims(_TOOLS):
                calls = [Call("weather", {"place": "Oslo"}, id=f"call_twice_{n}") for n in (1, 2)]
                talk.go_on(Reply(tuple(calls))).expect()
                talk.run_calls()
            talk.go_on(say("twice-said")).expect()
            talk.say("Again?")
            talk.go_on(say("twice-said")).expect()
            talk.ask(say("Yes."), "And then?").expect()
            told = [message["content"] for message in talk.session.messages]
            results = [text for text in told if text.startswith("weather was asked")]
            sent = Carried(talk.server.requests[-1])
            for text in dict.fromkeys(["twice-asked", "twice-said", *results]):
                count = sum(leaf.value.count(text) for leaf in sent.places(text))
                require(count == 2, f"{text!r} stands twice in the session, and is sent {count} x")

    @check("conversation", _WHERE)
    def test_empty_answers_do_no_harm(self) -> None:
        """A session with an answer that says nothing, as after a cancelled one, goes on."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            talk.say("empty-before")
            talk.say("", role="assistant")
            talk.say("empty-behind")
            outcome = talk.go_on(say("Yes."))
            require(outcome.error is None, f"with an empty answer in it: {outcome.error}")
            sent = Carried(talk.server.requests[-1])
            lost = [text for text in ("empty-before", "empty-behind") if not sent.has_text(text)]
            require(not lost, f"with an empty answer in it the request lacks {lost}")

    @check("results", _WHERE, claim=_TOOLS)
    def test_results_stand_beside_their_calls(self) -> None:
        """Each result is sent with the id of its call, or in the order of the calls."""
        self.require_wire()
        with self.talk() as talk:
            for round_ in ("first", "second"):
                asked = [(name, f"{round_}-{n}") for n, name in enumerate(("weather", "clock") * 2)]
                calls = [
                    Call(name, {"place": place}, id=f"call_{place.replace('-', '_')}")
                    for name, place in asked
                ]
                ask = talk.ask if round_ == "first" else talk.go_on
                ask(Reply((Text(f"Looking, {round_}."), *calls))).expect()
                talk.run_calls()
                talk.go_on(say(f"Seen, {round_}.")).expect()
                talk.say("Again.")
            self._require_pairs(talk)

    def _require_pairs(self, talk: Talk) -> None:
        sent = Carried(talk.server.requests[-1])
        calls = [
            call
            for message in talk.session.messages
            for call in (message.get("metadata") or {}).get("tool_calls") or ()
        ]
        results = [
            (message["metadata"]["tool_call_id"], message["content"])
            for message in talk.session.messages
            if message["role"] == "tool"
        ]
        require(len(results) == len(calls) == 8, f"{len(calls)} calls have {len(results)} results")
        ids = [identity for identity, _ in results]
        places = [_marker(text) for _, text in results]
        on_wire = [identity for identity in ids if sent.has_value(identity)]
        for (identity, text), marker in zip(results, places, strict=True):
            found = sent.places(text)
            require(found, f"the result of {identity!r} is not in the request")
            if on_wire:
                owner = sent.owner_of(text, ids)
                require(
                    owner == identity,
                    f"the result of {identity!r} ({marker}) stands beside {owner!r}",
                )
        told = [text for _, text in results]
        if not on_wire:
            found_order = sent.in_order(told)
            require(found_order == told, f"the results are sent in the order {found_order}")

    @check("calls", _WHERE, claim=_TOOLS)
    def test_parts_keep_their_places(self) -> None:
        """What was said between calls stands between them when it goes back."""
        self.require_wire()
        parts: list[Part] = []
        for place in ("first", "second"):
            parts += [
                Text(f"said-{place}"),
                Call("weather", {"place": f"asked-{place}"}, id=f"call_{place}"),
            ]
        with self.talk(stream=False) as talk:
            talk.ask(Reply(tuple(parts))).expect()
            talk.run_calls()
            talk.go_on(say("Yes.")).expect()
            markers = ("said-first", "asked-first", "said-second", "asked-second")
            require_places(self.exchanges()[0].answer, talk.server.requests[-1], markers)

    @check("results", _WHERE, claim=_TOOLS)
    def test_every_kind_of_result_is_sent(self) -> None:
        """Results that failed, are empty, or are lists of texts reach the API and are accepted."""
        self.require_wire()
        kinds: dict[str, tuple[str, dict[str, Any], list[str]]] = {
            "failed": (
                "failed: no such place",
                {"metadata": {"error": True}},
                ["failed: no such place"],
            ),
            "empty": ("", {}, []),
            "a list of texts": (
                "list-one list-two",
                {"content": [_text("list-one"), _text("list-two")]},
                ["list-one", "list-two"],
            ),
            "JSON": ('{"degrees": 4, "wind": ["N"]}', {}, ["degrees", "wind"]),
        }
        with self.talk() as talk:
            for kind, (text, more, texts) in kinds.items():
                talk.again()
                talk.ask(Reply((Call("weather", {"place": "Oslo"}, id="call_kind_9"),))).expect()
                talk.session = _answer(talk, text, **more)
                outcome = talk.go_on(say("I see."))
                require(outcome.error is None, f"a result that is {kind}: {outcome.error}")
                sent = Carried(talk.server.requests[-1])
                lost = [each for each in texts if not (sent.has_text(each) or each in sent.keys)]
                require(not lost, f"of a result that is {kind} the request lacks {lost}")

    @check("results", _WHERE, claim=_TOOLS)
    def test_failed_results_say_so(self) -> None:
        """Where the API has a place for it, a result that failed is marked as such."""
        format = self.require_wire()
        with self.talk() as talk:
            bodies = []
            for failed in (False, True):
                talk.again()
                talk.ask(Reply((Call("weather", {"place": "Oslo"}, id="call_fail_1"),))).expect()
                marked = {"error": True} if failed else {}
                talk.session = _answer(talk, "no such place", metadata=marked)
                talk.go_on(say("I see.")).expect()
                bodies.append(json.dumps(talk.server.requests[-1].body))
            if format.marks_failed_results:
                require(bodies[0] != bodies[1], "a failed result is sent as one that did not fail")


def require_places(answer: bytes, request: Request, markers: Sequence[str]) -> None:
    """What stood in a list of the answer stands in the same order in the request after it.

    An answer that is no JSON says nothing of places.
    """
    sent = Carried(request)
    try:
        given = Carried(replace(request, raw=b"", body=json.loads(answer)))
    except ValueError:
        # Nothing is lost: other checks see what is missing.
        return
    for one, two in combinations(markers, 2):
        was, now = given.before(one, two), sent.before(one, two)
        same = was is None or now is None or was == now
        require(same, f"{two!r} has changed places with {one!r}")


def _marker(text: str) -> str:
    return text.partition('"place": ')[2].strip('"}')


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": {"text": text}}


def _answer(
    talk: Talk,
    text: str,
    *,
    metadata: dict[str, Any] | None = None,
    content: Sequence[dict[str, Any]] = (),
) -> Session:
    """The session with a result for the one call of its last answer."""
    (made,) = talk.last.calls
    about = {"tool_call_id": made.id, "tool_name": made.name, **(metadata or {})}
    envelope: dict[str, Any] = {"type": "tool_result", "text": text}
    if content:
        envelope["content"] = list(content)
    return talk.host.core.add_message(talk.session, "tool", text, about, toolResult=envelope)
