"""Checks of what survives between turns: reasoning, natives, and a change of provider."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from agent_hookspecs.messages import NativeMessage, State
from agent_hookspecs.roles import ProviderPlugin
from agent_host.sessions.session import Session
from agent_host_testing.script import Call, Part, Reply, Text, Thought, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.conversation import require_places
from agent_host_testing.suites.hosting import recording_tools
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require

__all__ = ["HistoryChecks", "changed_key"]

_REASONING = "supports_reasoning"
#: So many that a history is longer than its end, of which nothing is remembered for the next turn.
_MORE_TURNS = 6


def _signature(name: str) -> str:
    # As long as real ones begin, and of their alphabet.
    return f"c2lnbmF0dXJl{name.encode().hex()}AA=="


class HistoryChecks(ProviderSuite):
    """Reasoning, native retention and provider switches."""

    @check("reasoning", "docs/testing.md#reasoning", claim=_REASONING)
    def test_reasoning_is_shown(self) -> None:
        """The model's reasoning is shown as it comes and kept beside the text, not in it."""
        thought = "First the sky, then the sea."
        with self.talk(**self.reasoning_settings) as talk:
            outcome = talk.ask(
                Reply((Thought(thought, _signature("shown")), Text("Blue.")))
            ).expect()
            self._require_reasoning(thought.split()[0])
            shown = "".join(event["text"] for event in outcome.of("reasoning"))
            require(shown == thought, f"shown was {shown!r}")
            kept = outcome.metadata.get("reasoning")
            require(kept == thought, f"the metadata's reasoning is {kept!r}")
            text = outcome.answer["content"]
            require(text == "Blue.", f"the text is {text!r}")

    @check("reasoning", "docs/testing.md#reasoning", claim=_REASONING)
    def test_reasoning_round_trip(self) -> None:
        """Over three turns of calls, the API gets its signed reasoning back as it gave it."""
        if not self.claims("supports_tools"):
            not_claimed("reasoning comes back with calls, and the tags do not have supports_tools")
        with self.talk(**self.reasoning_settings) as talk:
            first = talk.ask(_thinking("one", "weather")).expect()
            kept, shown = first.metadata.get("reasoning"), first.of("reasoning")
            thought = "".join(event["text"] for event in shown)
            require(kept == thought or not shown, f"of the thought {thought!r} it keeps {kept!r}")
            for name, tool in (("two", "clock"), ("three", "weather")):
                talk.run_calls()
                talk.go_on(_thinking(name, tool)).expect()
            talk.run_calls()
            talk.go_on(Reply((Thought("Enough.", _signature("four")), Text("Done.")))).expect()
            talk.ask(say("Good."), "And then?").expect()
            self._signatures_came_back(("one", "two", "three"))

    def _signatures_came_back(self, names: tuple[str, ...]) -> None:
        exchanges = self.exchanges()
        for number, name in enumerate(names):
            signature = _signature(name).encode()
            # Those that the format did not send cannot be asked back.
            if self.wire is not None and signature in exchanges[number].answer:
                back = signature in exchanges[number + 1].body
                require(back, f"request {number + 2} lacks the signature of answer {number + 1}")

    @check("reasoning", "docs/testing.md#reasoning", claim=_REASONING)
    def test_reasoning_keeps_its_place(self) -> None:
        """What was thought between texts and calls stands between them when it goes back."""
        self.require_wire()
        signed = (_signature("before"), _signature("between"))
        parts: list[Part] = [
            Thought("Thought before.", signed[0]),
            Text("said-between"),
            Thought("Thought between.", signed[1]),
        ]
        if self.claims("supports_tools"):
            parts.append(Call("weather", {"place": "asked-last"}, id="call_place_1"))
        with self.talk(stream=False, **self.reasoning_settings) as talk:
            talk.ask(Reply(tuple(parts))).expect()
            if talk.last.calls:
                talk.run_calls()
                talk.go_on(say("Yes.")).expect()
            else:
                talk.ask(say("Yes."), "And then?").expect()
            markers = (*signed, "said-between", "asked-last")
            require_places(self.exchanges()[0].answer, talk.server.requests[-1], markers)

    @check("reasoning", "docs/requests.md#native-history", claim=_REASONING)
    def test_signatures_stay_with_their_origin(self) -> None:
        """A signature is never sent to another address than the one that made it."""
        self.require_wire()
        with self.talk(**self.reasoning_settings) as talk:
            talk.ask(Reply((Thought("Hm.", _signature("mine")), Text("Here.")))).expect()
            elsewhere = self.serve()
            elsewhere.queue(say("There."))
            talk.config = {**talk.config, "base_url": elsewhere.base_url}
            talk.say("Go on.")
            talk.host.ask(talk.session, talk.config).expect()
            sent = elsewhere.requests[-1].raw
            require(_signature("mine").encode() not in sent, "the other address got the signature")
            require(b"Here." in sent, "the other address did not get the text of the history")

    def _require_reasoning(self, word: str) -> None:
        if self.wire is not None and word.encode() not in self.exchanges()[-1].answer:
            not_claimed("the wire format shows no reasoning")

    @check("native retention", "docs/requests.md#native-history")
    def test_natives_survive_another_host(self) -> None:
        """A stored session goes on in another process with the same bytes as in this one."""
        self.require_wire()
        with self.talk(strict=False, **self._reasoning()) as talk:
            talk.ask(_first(self), "marker-first").expect()
            if talk.last.calls:
                talk.run_calls()
                talk.go_on(say("So it is.")).expect()
            for number in range(_MORE_TURNS):
                talk.ask(say(f"Yes, {number}."), f"marker-{number}").expect()
            talk.say("marker-last")
            stored = json.dumps(talk.session.to_dict())
            talk.go_on(say("Yes.")).expect()
            tools = [recording_tools([])] if self.claims("supports_tools") else []
            with self.host(*tools) as other:
                talk.server.queue(say("Yes."))
                session = Session.from_dict(json.loads(stored))
                other.ask(session, talk.config).expect()
            here, there = (exchange.body for exchange in self.exchanges()[-2:])
            require(here == there, f"here it sends {here!r:.900}\nthere it sends {there!r:.900}")

    @check("native retention", "docs/requests.md#native-history")
    def test_history_is_sent_again_as_it_was(self) -> None:
        """Each request begins with what the one before it sent, so that prompt caches hold."""
        self.require_wire()
        with self.talk(strict=False, **self._reasoning()) as talk:
            talk.say("Be brief.", role="system")
            talk.ask(_first(self)).expect()
            if talk.last.calls:
                talk.run_calls()
                talk.go_on(say("So it is.")).expect()
            talk.ask(say("Yes."), "Really?").expect()
            bodies = [exchange.body for exchange in self.exchanges()]
            for number, (before, after) in enumerate(pairwise(bodies), 1):
                key = changed_key(json.loads(before), json.loads(after))
                require(not key, f"request {number + 1} changes {key!r} of request {number}")

    def _reasoning(self) -> dict[str, Any]:
        return dict(self.reasoning_settings) if self.claims(_REASONING) else {}

    @check("provider switch", "docs/requests.md#native-history")
    def test_provider_switch(self) -> None:
        """A session of another provider goes on here and there, and nothing foreign is sent."""
        calls = self.claims("supports_tools")
        seen: list[list[NativeMessage]] = []
        with self.talk(providers=[_stranger(seen, calls)]) as talk:
            own = talk.config
            talk.config = {"provider": "conformance_stranger", "retries": 0}
            talk.say("marker-question")
            talk.last = talk.host.ask(talk.session, talk.config).expect()
            talk.session = talk.last.session
            talk.config = own
            if calls:
                talk.run_calls()
            answer = talk.ask(say("marker-own")).expect().answer["content"]
            if self.wire is not None:
                sent = talk.server.requests[-1].raw.decode()
                for marker in ("marker-question", "marker-foreign"):
                    require(marker in sent, f"the request lacks {marker!r} of the history")
                for foreign in ("stranger_only", "stranger-signature"):
                    require(foreign not in sent, f"the request has the other one's {foreign!r}")
            talk.say("And you?")
            talk.host.ask(talk.session, {"provider": "conformance_stranger"}).expect()
            texts = [str(native.get("content")) for native in seen[-1]]
            require(answer in texts, f"the other provider gets {texts} and not {answer!r}")


def _thinking(name: str, tool: str) -> Reply:
    """A thought that leads to a call, signed wherever a format may sign."""
    thought = Thought(f"Thought {name}.", _signature(name))
    made = Call(tool, {"place": name}, id=f"call_{name}", signature=_signature(f"{name}-call"))
    return Reply((thought, made))


def _first(suite: ProviderSuite) -> Reply:
    """The richest answer that the provider claims to understand."""
    parts: list[Part] = [Text("Let me look, it is déjà vu.")]
    if suite.claims(_REASONING):
        parts.insert(0, Thought("I have seen this.", _signature("first")))
    if suite.claims("supports_tools"):
        parts.append(Call("weather", '{"place":  "Oslo"}', id="call_first"))
    return Reply(tuple(parts))


def changed_key(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The key under which the later request does not begin with the earlier one; else empty."""
    for key, value in before.items():
        later = after.get(key)
        if isinstance(value, list) and isinstance(later, list):
            if later[: len(value)] != value:
                return key
        elif later != value:
            return key
    return ""


def _stranger(seen: list[list[NativeMessage]], calls: bool) -> type[ProviderPlugin]:
    """A provider whose natives have what nobody else should ever be sent."""

    class Stranger(ProviderPlugin):
        name = "conformance_stranger"
        version = "1"

        def init(self, config: dict[str, Any]) -> State:
            return {"config": config}

        def call_api(
            self, native_messages: list[NativeMessage], state: State
        ) -> tuple[list[Any], list[NativeMessage], list[NativeMessage], State]:
            seen.append(native_messages)
            final: NativeMessage = {
                "role": "assistant",
                "content": "marker-foreign",
                "stranger_only": True,
                "_metadata": _foreign_metadata(calls and len(seen) == 1),
            }
            return [], [final], [*native_messages, final], state

    return Stranger


def _foreign_metadata(calls: bool) -> dict[str, Any]:
    detail = {"type": "reasoning.encrypted", "data": "stranger-signature", "index": 0}
    metadata: dict[str, Any] = {"reasoning": "Strange.", "reasoning_details": [detail]}
    if calls:
        function = {"name": "weather", "arguments": '{"place":"Oslo"}'}
        metadata["tool_calls"] = [
            {"id": "stranger.call:1", "type": "function", "function": function}
        ]
    return metadata
