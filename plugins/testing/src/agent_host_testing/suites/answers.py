"""Checks of what a provider makes of an answer, whichever way it is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from agent_hookspecs.messages import MessageMetadata
from agent_host.plugins.implementations import can_list_models
from agent_host_testing.script import Call, Finish, Part, Reply, Text, Thought, Tokens, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import Outcome
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require
from agent_host_testing.wire import Ledger, Request, WireFormat

__all__ = ["KINDS", "AnswerChecks", "reply_of_kind"]

#: Kinds of answers, and the tag by which a provider claims them.
KINDS = {"text": "", "tools": "supports_tools", "reasoning": "supports_reasoning"}

# Not ASCII, several lines, and a character at which careless splitters break lines.
_TEXT = "Grüße 世界 👋, this is\nmore than one line\u2028or is it?"
_DECLINED: tuple[Finish, ...] = ("refusal", "blocked")
# So many characters as no other number of an answer is.
_MANY_WORDS = "word after word, " * 47
_TOKENS = Tokens(input=1201, output=345, cached_input=1024, reasoning=128)


def reply_of_kind(kind: str) -> Reply:
    """An answer of text, with a call or a thought as the kind says."""
    parts: list[Part] = [Text(_TEXT)]
    if kind == "tools":
        parts.append(Call("weather", {"place": "Tromsø"}, id="call_kind_1"))
    if kind == "reasoning":
        parts.insert(0, Thought("Let me see.", signature="c2lnbmVkLWtpbmQtMQ=="))
    return Reply(tuple(parts))


class AnswerChecks(ProviderSuite):
    """Text, equality of the four ways, history on the wire, usage and models."""

    @check("text", "docs/hooks.md#provider-from_native_messages")
    def test_text(self) -> None:
        """The text of an answer is the content of its assistant messages, unchanged."""
        with self.talk(stream=False) as talk:
            outcome = talk.ask(say(_TEXT)).expect()
            more = outcome.session.count - outcome.asked
            require(more > 0, "the session has no message more than before")
            roles = {final["role"] for final in outcome.finals}
            require(roles == {"assistant"}, f"its messages are of {', '.join(sorted(roles))}")
            found = outcome.answer["content"]
            require(found == _TEXT, f"the content is {found!r} instead of {_TEXT!r}")

    @check("streaming", "docs/hooks.md#provider-process_chunk", claim="supports_streaming")
    def test_streamed_text(self) -> None:
        """A stream shows each fragment once, as it comes, and its final is their sum."""
        with self.talk() as talk:
            outcome = talk.ask(say(_TEXT, fragments=6)).expect()
            fragments = [event["message"]["content"] for event in outcome.of("partial")]
            fragments = [fragment for fragment in fragments if fragment]
            require(len(fragments) > 1, f"the fragments are {fragments}")
            require(outcome.shown == _TEXT, f"the fragments are {fragments} of {_TEXT!r}")
            found = outcome.answer["content"]
            require(found == _TEXT, f"the final is {found!r}")
            ends = [event["type"] for event in outcome.events][-2:]
            require(ends == ["final", "done"], f"the stream ends with {ends}")

    @pytest.mark.parametrize("kind", KINDS)
    @check("streamed = whole", "docs/testing.md#one-answer-four-ways")
    def test_streamed_equals_whole(self, kind: str) -> None:
        """A streamed answer leaves the same messages, metadata and natives as a whole one."""
        whole, streamed = (self._outcome(kind, stream=stream) for stream in (False, True))
        _same(whole.comparable(), streamed.comparable(), "whole", "streamed")

    @pytest.mark.parametrize("kind", KINDS)
    @check("sync = async", "docs/testing.md#one-answer-four-ways")
    def test_sync_equals_async(self, kind: str) -> None:
        """An async request sees the same events and leaves the same session as a sync one."""
        for stream in (False, True):
            one, two = (self._outcome(kind, stream=stream, asynchronous=a) for a in (False, True))
            _same(one.comparable(), two.comparable(), "sync", "async")
            _same(one.comparable_events(), two.comparable_events(), "sync", "async")

    def _outcome(self, kind: str, *, stream: bool, asynchronous: bool = False) -> Outcome:
        if KINDS[kind]:
            self.require_claim(KINDS[kind])
        more = self.reasoning_settings if kind == "reasoning" else {}
        with self.talk(stream=stream, asynchronous=asynchronous, **more) as talk:
            return talk.ask(reply_of_kind(kind)).expect()

    @check("conversation", "docs/hooks.md#provider-to_native_messages")
    def test_conversation_reaches_the_wire(self) -> None:
        """Every message of the session is sent once, and nothing that is only for the host."""
        self.require_wire()
        with self.talk() as talk:
            talk.say("marker-system", role="system")
            talk.ask(say("marker-answer"), "marker-first").expect()
            talk.ask(say("done"), "marker-second").expect()
            sent = talk.server.requests[-1].raw.decode()
            for marker in ("marker-system", "marker-first", "marker-answer", "marker-second"):
                count = sent.count(marker)
                require(count == 1, f"the second request has {marker!r} {count} times")
            require("_metadata" not in sent, "_metadata was sent")

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @check("ends", "docs/testing.md#ends")
    def test_an_answer_that_is_cut_off_says_so(self, stream: bool) -> None:
        """An answer without room for its end has the finish ``length``, and keeps its text."""
        self.require_wire()
        with self.talk(stream=stream) as talk:
            outcome = talk.ask(say("Some words", finish="length")).expect()
            finish = outcome.metadata.get("finish")
            word = outcome.metadata.get("finish_reason")
            require(finish == "length", f"finish is {finish!r}, for the word {word!r}")
            text = outcome.answer["content"]
            require(text == "Some words", f"the text is {text!r}")

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @check("ends", "docs/testing.md#ends")
    def test_an_answer_that_is_declined_says_so(self, stream: bool) -> None:
        """An answer that the model refuses, or the API withholds, says so and keeps its words."""
        format = self.require_wire()
        with self.talk(stream=stream) as talk:
            for ending in _DECLINED:
                talk.again()
                talk.ask(say("Some words")).expect()
                reply = say("Some words", finish=ending)
                if not _can_end(format, reply, talk.server.requests[-1]):
                    continue
                talk.again()
                outcome = talk.ask(reply).expect()
                finish = outcome.metadata.get("finish")
                word = outcome.metadata.get("finish_reason")
                require(finish in _DECLINED, f"finish is {finish!r}, for the word {word!r}")
                said = outcome.answer["content"] or outcome.metadata.get("refusal")
                require(said == "Some words", f"of the words there is {said!r}")

    @check("metadata", "docs/testing.md#metadata")
    def test_nothing_is_left_over_in_messages(self) -> None:
        """A message has in its metadata what the contract knows, and what the API has said."""
        self.require_wire()
        with self.talk() as talk:
            outcome = talk.ask(say(_MANY_WORDS, fragments=9)).expect()
            last = self.exchanges()[-1]
            known = {*get_type_hints(MessageMetadata), *self.own_metadata}
            told = (last.body + last.answer).decode()
            for key, value in outcome.metadata.items():
                made_up = [leaf for leaf in _leaves(value) if not _is_told(leaf, told)]
                require(
                    key in known or not made_up,
                    f"its metadata has {key!r}: {value!r:.100}, which nobody has said: take it out "
                    "in finalize, or name it in the suite's 'own_metadata'",
                )

    @check("usage", "docs/testing.md#usage")
    def test_usage_is_counted_once(self) -> None:
        """Usage is told once for each answer, in the host's terms, and kept with its message."""
        with self.talk() as talk:
            parts: tuple[Part, ...] = (Text("Some words."),)
            if self.claims("supports_reasoning"):
                parts = (Thought("Hm.", signature="c2lnbmVkLXVzYWdl"), *parts)
            kinds = [parts, parts]
            if self.claims("supports_tools"):
                kinds.append((*parts, Call("weather", {"place": "Oslo"}, id="call_usage_1")))
            for kind in kinds:
                talk.again()
                outcome = talk.ask(Reply(kind, tokens=_TOKENS)).expect()
                reported = [event["usage"] for event in outcome.of("usage")]
                if self.wire is None and not reported and not outcome.metadata.get("usage"):
                    not_claimed("the provider has no wire, and counts nothing itself")
                require(len(reported) == 1, f"there are {len(reported)} usage events")
                stored = outcome.metadata.get("usage")
                require(
                    stored == reported[0],
                    f"reported is {reported[0]}, but the message has {stored}",
                )
                self._require_counts(reported[0])

    def _require_counts(self, usage: dict[str, Any]) -> None:
        if self.wire is None:
            counts = [usage.get("input"), usage.get("output")]
            require(all(isinstance(count, int) for count in counts), f"the usage is {usage}")
            return
        reported = self.exchanges()[-1].answer.decode()
        for name in ("input", "output", "cached_input", "reasoning"):
            expected = getattr(_TOKENS, name)
            # Not every API says how many were cached, or thought.
            if name in ("input", "output") or str(expected) in reported:
                found = usage.get(name)
                require(found == expected, f"{name} is {found} and not {expected}: {usage}")

    @check("usage", "docs/testing.md#usage")
    def test_usage_is_not_invented(self) -> None:
        """An answer that reports no usage has none."""
        self.require_wire()
        with self.talk() as talk:
            outcome = talk.ask(say("Some words.", tokens=None)).expect()
            reported, stored = outcome.of("usage"), outcome.metadata.get("usage")
            require(not reported and not stored, f"the usage is {reported or stored}")

    @check("models", "docs/hooks.md#provider-get_models")
    def test_models_are_listed(self) -> None:
        """The models are those that the API lists, each with its id."""
        self._require_models()
        with self.host() as host:
            server = None if self.wire is None else self.serve()
            models = host.core.get_models(self.request_config(server))
            ids = [model.get("id") for model in models]
            require(len(ids) == len({*ids}), f"some are listed twice: {ids}")
            wanted = {*server.models} if server is not None else {self.settings.get("model")}
            missing = sorted(map(str, wanted - {*ids}))
            require(not missing, f"{', '.join(missing)} is missing from {ids}")
        if self.wire is not None:
            with self.host() as host:
                none = host.core.get_models(self.request_config(self.serve(models=())))
                require(none == [], f"where the API lists none the models are {none}")

    @check("models", "docs/hooks.md#provider-get_models")
    def test_models_are_empty_on_failure(self) -> None:
        """A list of models that cannot be had is empty, and requests go on without it."""
        self._require_models()
        self.require_wire()
        with self.host() as host:
            server = self.serve(key="another key")
            models = host.core.get_models(self.request_config(server))
            require(models == [], f"with a key that is refused the models are {models}")
            host.core.get_ui_elements(self.request_config(server))

    def _require_models(self) -> None:
        if not can_list_models(self.loaded().implementations):
            not_claimed(f"{self.plugin!r} has neither get_models nor models_request")


def _leaves(value: Any) -> Iterator[Any]:
    """The texts and numbers in a value."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value:
        yield value


def _is_told(leaf: str | float, told: str) -> bool:
    """Whether a text or a number stands in what went over the wire."""
    if isinstance(leaf, str):
        return leaf in told or json.dumps(leaf)[1:-1] in told
    return re.search(rf"(?<![\d.]){re.escape(str(leaf))}(?![\d.])", told) is not None


def _can_end(format: WireFormat, reply: Reply, request: Request) -> bool:
    """Whether the format has another way to say this end than that of any answer."""
    try:
        written = [format.whole(each, request, Ledger()) for each in (say("Some words"), reply)]
    except (KeyError, ValueError):
        # Nothing is lost: a format may know no words for ends that its API does not have.
        return False
    return written[0] != written[1]


def _same(one: Any, two: Any, first: str, second: str) -> None:
    """Refuse a difference, telling the first place of it and not the whole."""
    if one != two:
        place, left, right = _difference(one, two, "")
        require(False, f"{place or 'it'} is {left!r:.300} {first} and {right!r:.300} {second}")


def _difference(one: Any, two: Any, place: str) -> tuple[str, Any, Any]:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in {**one, **two}:
            if one.get(key) != two.get(key):
                return _difference(one.get(key), two.get(key), f"{place}.{key}")
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, (left, right) in enumerate(zip(one, two, strict=True)):
            if left != right:
                return _difference(left, right, f"{place}[{number}]")
    return place.lstrip("."), one, two
