"""Checks of features that speak: that a provider sends what they say, and that they say it well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from agent_hookspecs.messages import NativeMessage, State
from agent_hookspecs.roles import FeaturePlugin, ProviderPlugin
from agent_host.sessions.session import Session
from agent_host_testing.script import Call, Part, Reply, Text, Thought, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.history import changed_key
from agent_host_testing.suites.hooks import HookConformance
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require

__all__ = ["SpeechChecks", "SpokenChecks"]

#: As long as real ones begin, and of their alphabet.
_SIGNATURE = "c2lnbmF0dXJlaGVhcmQAA=="
_HOOKS = ("get_instructions", "get_context_parts")


class SpeechChecks(ProviderSuite):
    """What features say arrives in the provider's wire format."""

    @contextmanager
    def _talk(self, said: dict[str, Any], **more: Any) -> Iterator[Talk]:
        """A conversation with a feature that says these, and a model that may reason."""
        self.require_wire()
        if self.claims("supports_reasoning"):
            more |= self.reasoning_settings
        with self.talk(**more) as talk:
            talk.host.core.register_feature(_speaker(said))
            yield talk

    @check("features that speak", "docs/testing.md#features-that-speak")
    def test_what_features_say_is_sent(self) -> None:
        """Instructions stand with the system prompt, context with the user's words, each once."""
        said = {"instructions": "marker-instructions", "context": ["marker-context"]}
        with self._talk(said) as talk:
            talk.say("marker-system", role="system")
            outcome = talk.ask(say("Yes."), "marker-question").expect()
            warned = [event["message"] for event in outcome.of("warning")]
            require(not warned, f"it warns: {'; '.join(warned)}")
            sent = json.loads(talk.server.requests[-1].raw)
            pairs = ("marker-system", "marker-instructions"), ("marker-context", "marker-question")
            for pair in pairs:
                together = [text for text in _texts(sent) if all(word in text for word in pair)]
                require(len(together) == 1, f"{pair[0]} and {pair[1]} do not stand together")
            for word in ("marker-instructions", "marker-context"):
                count = sum(word in text for text in _texts(sent))
                require(count == 1, f"the request has {word!r} {count} times")
                kept = json.dumps(talk.session.to_dict()["messages"])
                require(word not in kept, f"{word!r} has become a message of the session")

    @check("features that speak", "docs/testing.md#features-that-speak")
    def test_what_features_say_needs_no_system_prompt(self) -> None:
        """Instructions are sent where the session has no system prompt, too."""
        with self._talk({"instructions": "marker-instructions"}) as talk:
            talk.ask(say("Yes."), "marker-question").expect()
            sent = talk.server.requests[-1].raw.decode()
            require("marker-instructions" in sent, "the request lacks the instructions")

    @check("features that speak", "docs/testing.md#features-that-speak")
    def test_speaking_keeps_the_beginning(self) -> None:
        """While features say the same, each request begins with what the one before it sent."""
        said = {"instructions": "marker-instructions", "context": ["marker-context"]}
        with self._talk(said, strict=False) as talk:
            talk.ask(_reply(self)).expect()
            if talk.last.calls:
                talk.run_calls()
                talk.go_on(say("So it is.")).expect()
            talk.ask(say("Yes."), "Really?").expect()
            bodies = [exchange.body for exchange in self.exchanges()]
            for number, (before, after) in enumerate(pairwise(bodies), 1):
                key = changed_key(json.loads(before), json.loads(after))
                require(not key, f"request {number + 1} changes {key!r} of request {number}")

    @check("features that speak", "docs/testing.md#features-that-speak")
    def test_changed_instructions_leave_the_history(self) -> None:
        """Instructions that change are sent as they are now, and earlier turns as they were."""
        said = {"instructions": "marker-before", "context": ["marker-context"]}
        with self._talk(said) as talk:
            talk.ask(_reply(self)).expect()
            answer = self.exchanges()[-1].answer
            if talk.last.calls:
                talk.run_calls()
            else:
                talk.say("Really?")
            said["instructions"] = "marker-after"
            talk.go_on(say("So it is.")).expect()
            sent = talk.server.requests[-1].raw
            require(b"marker-after" in sent, "the request lacks the new instructions")
            require(b"marker-before" not in sent, "the request has the old instructions, too")
            require(b"marker-context" in sent, "the request lacks the context of the turn")
            if _SIGNATURE.encode() in answer:
                require(_SIGNATURE.encode() in sent, "the signature of the first answer is lost")


class SpokenChecks(HookConformance):
    """What a feature says has the right form, arrives, and is nobody's message."""

    @check("speaking", "docs/testing.md#features-that-speak")
    def test_what_it_says_arrives(self) -> None:
        """The texts of the feature are in what the provider gets, and in no message."""
        hooks = [self.loaded().implementations.get(name) for name in _HOOKS]
        if not any(hooks):
            not_claimed(f"{self.plugin!r} has neither {' nor '.join(_HOOKS)}")
        seen: list[list[NativeMessage]] = []
        session = Session([{"role": "user", "content": "What do you know about it?"}])
        with self.host() as host:
            host.core.register_provider(_listener(seen))
            config = {**self.config(), "provider": "conformance_listener"}
            outcome = host.ask(session, config).expect()
        context = {**self.context(), "session": session}
        given = [
            self.result_of(found[0], session, self.whole_config(), context)
            for found in hooks
            if found
        ]
        kept = [text for each in outcome.session.messages for text in _texts(dict(each))]
        for text in filter(str.strip, _texts([*given])):
            require(
                any(text in each for each in _texts(seen[-1])),
                f"{text!r:.200} is not in what the provider gets",
            )
            require(not any(text in each for each in kept), f"{text!r:.200} is kept in the session")


def _speaker(said: dict[str, Any]) -> type[FeaturePlugin]:
    """A feature that says what stands in ``said`` when it is asked."""

    class Speaker(FeaturePlugin):
        name = "conformance_speaker"
        version = "1"

        def get_instructions(self) -> str | None:
            return said.get("instructions")

        def get_context_parts(self) -> list[Any] | None:
            return said.get("context")

    return Speaker


def _reply(suite: ProviderSuite) -> Reply:
    """The richest answer that the provider claims to understand."""
    parts: list[Part] = [Text("Let me look.")]
    if suite.claims("supports_reasoning"):
        parts.insert(0, Thought("I have heard of it.", _SIGNATURE))
    if suite.claims("supports_tools"):
        parts.append(Call("weather", {"place": "Oslo"}, id="call_heard"))
    return Reply(tuple(parts))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _listener(seen: list[list[NativeMessage]]) -> type[ProviderPlugin]:
    """A provider that answers from memory and notes what it gets."""

    class Listener(ProviderPlugin):
        name = "conformance_listener"
        version = "1"

        def init(self, config: dict[str, Any]) -> State:
            return {"config": config}

        def call_api(
            self, native_messages: list[NativeMessage], state: State
        ) -> tuple[list[Any], list[NativeMessage], list[NativeMessage], State]:
            seen.append(native_messages)
            final: NativeMessage = {"role": "assistant", "content": "So I hear."}
            return [], [final], [*native_messages, final], state

    return Listener
