"""Checks that texts arrive as they are: white space, markup, and characters made of several.

The texts are data. Each goes through every place where a text can stand, in a stream cut between
all of its characters.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_host_testing.script import Call, Reply, Text, Thought, say
from agent_host_testing.suites.carried import Carried
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.talking import ProviderSuite
from agent_host_testing.violations import require

__all__ = ["TEXTS", "MarkupChecks"]

_WHERE = "docs/testing.md#exact-text"
#: Texts that careless code changes, by what is special about them.
TEXTS = {
    "blanks at the edges": "  two blanks before, two behind  ",
    "lines at the edges": "\n\nan empty line before and behind\n\n",
    "tabs and returns": "\ta tab\r\na return\tand a tab\t",
    "markup": "<b>bold</b> & <i>&amp; escaped</i> &lt;",
    "quotes": "\"double\" and 'single' and `back` \u201ccurly\u201d",
    "backslashes": "C:\\new\\table \\n is no line, \\u0041 no letter \\",
    "emoji": "👩‍👩‍👧‍👦 family, 🇳🇴 flag, 👍🏽 thumb",
    "combining marks": "\u0301e\u0301 a\u0308 \u0928\u093f",
    "looks like JSON": '{"not": ["an", "object"]}',
    "looks like an event": "data: [DONE]\n\nevent: end\n: comment",
    "looks like thinking": "a <think>tag</think> in text",
    "percent and braces": "100 %s {0} {{x}} %20 ${HOME}",
    "separators": "one\u2028two\u2029three\u0085four\u00a0five\u200bsix",
}
#: Longer than what careless code takes for enough.
_LONG = " ".join(f"word-{number}" for number in range(8000))


class MarkupChecks(ProviderSuite):
    """Text of answers, thoughts, arguments, questions, instructions and results."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    @check("exact text", _WHERE)
    def test_answers_are_exact(self, stream: bool) -> None:
        """The text of an answer is kept and shown to the letter, wherever it is cut."""
        with self.talk(stream=stream) as talk:
            for what, text in TEXTS.items():
                if not self._can_say(say(text)):
                    continue
                talk.again()
                outcome = talk.ask(say(text, fragments=len(text))).expect()
                found = outcome.answer["content"]
                require(found == text, f"{what}: the answer {text!r} is kept as {found!r}")
                if stream:
                    shown = outcome.shown
                    require(shown == text, f"{what}: the answer {text!r} is shown as {shown!r}")

    @check("exact text", _WHERE)
    def test_texts_are_sent_exactly(self) -> None:
        """What system, user and model have said stands in the request to the letter."""
        self.require_wire()
        with self.talk(tools=()) as talk:
            for text in TEXTS.values():
                talk.again()
                talk.say(f"system {text}x", role="system")
                talk.ask(say(f"said {text}x"), f"asked {text}x").expect()
                talk.ask(say("Yes."), "Go on.").expect()
                sent = Carried(talk.server.requests[-1])
                for role, begin in (("system", "system"), ("user", "asked"), ("model", "said")):
                    whole = f"{begin} {text}x"
                    found = [leaf.value for leaf in sent.places(begin)]
                    require(sent.has_text(whole), f"of {role} {whole!r} it sends {found}")

    @check("exact text", _WHERE)
    def test_long_texts_are_whole(self) -> None:
        """Long texts are kept and sent to their end."""
        self.require_wire()
        with self.talk() as talk:
            talk.say(f"system {_LONG}", role="system")
            found = talk.ask(say(f"said {_LONG}"), f"asked {_LONG}").expect().answer["content"]
            require(found == f"said {_LONG}", f"of an answer it keeps {_share(found)}")
            if self.claims("supports_tools"):
                talk.say("Go on.")
                talk.go_on(Reply((Call("weather", {"place": "Oslo"}, id="call_long_1"),))).expect()
                talk.run_calls()
                talk.session = _with_result(talk.session, f"result {_LONG}")
                talk.go_on(say("Yes.")).expect()
            else:
                talk.ask(say("Yes."), "Go on.").expect()
            sent = Carried(talk.server.requests[-1])
            told = ("system", "asked", "said", *(["result"] * self.claims("supports_tools")))
            for begin in told:
                whole = f"{begin} {_LONG}"
                found = max(
                    (leaf.value for leaf in sent.places(f"{begin} word-0")), default="", key=len
                )
                require(
                    sent.has_text(whole), f"of what begins with {begin!r} it sends {_share(found)}"
                )

    @check("exact text", _WHERE, claim="supports_reasoning")
    def test_reasoning_is_exact(self) -> None:
        """Reasoning is shown and kept to the letter, wherever it is cut."""
        self.require_wire()
        with self.talk(**self.reasoning_settings) as talk:
            for what, text in TEXTS.items():
                talk.again()
                thought = Thought(text, "c2lnbmVkLW1hcmt1cA==")
                outcome = talk.ask(Reply((thought, Text("So.")), fragments=len(text))).expect()
                shown = "".join(event["text"] for event in outcome.of("reasoning"))
                require(shown == text, f"{what}: the reasoning {text!r} is shown as {shown!r}")
                kept = outcome.metadata.get("reasoning")
                require(kept == text, f"{what}: the reasoning {text!r} is kept as {kept!r}")

    @check("exact text", _WHERE, claim="supports_tools")
    def test_arguments_and_results_are_exact(self) -> None:
        """Texts in arguments reach the tool, and texts of results the API, to the letter."""
        with self.talk() as talk:
            for what, text in TEXTS.items():
                given = {"place": text}
                made = Call("weather", json.dumps(given, ensure_ascii=False), id="call_markup_1")
                reply = Reply((made,), fragments=len(text))
                if not self._can_say(reply):
                    continue
                talk.again()
                talk.noted.clear()
                talk.ask(reply).expect()
                talk.run_calls()
                got = talk.noted[0][1] if talk.noted else None
                require(got == given, f"{what}: the tool gets {got!r} instead of {given!r}")
                if self.wire is None:
                    continue
                talk.session = _with_result(talk.session, f"result {text}x")
                talk.go_on(say("Yes.")).expect()
                sent = Carried(talk.server.requests[-1])
                found = [leaf.value for leaf in sent.places("result ")]
                whole = f"result {text}x"
                require(sent.has_text(whole), f"{what}: of the result {whole!r} it sends {found}")

    @check("exact text", _WHERE)
    def test_parts_are_not_joined_with_anything(self) -> None:
        """Texts that come, or go, in several parts get nothing between them."""
        reply = Reply((Text("first part,"), Text("second part,"), Text("third.")))
        whole = "first part,second part,third."
        for stream in (False, True):
            with self.talk(stream=stream, tools=()) as talk:
                if self.wire is None and self.prompt_for(reply) is None:
                    continue
                found = talk.ask(reply).expect().answer["content"]
                require(found == whole, f"the answer of three parts is kept as {found!r}")
        if self.wire is None:
            return
        parts = [{"type": "text", "content": {"text": text}} for text in ("one,", "two,", "three")]
        with self.talk(tools=()) as talk:
            core = talk.host.core
            talk.session = core.add_message(talk.session, "user", "", multipartContent=parts)
            talk.go_on(say("Yes.")).expect()
            sent = Carried(talk.server.requests[-1])
            texts = [leaf.value for leaf in sent.leaves if isinstance(leaf.value, str)]
            apart = all(part in texts for part in ("one,", "two,", "three"))
            joined = sent.has_text("one,two,three")
            close = [text for text in texts if "one," in text or "two," in text]
            require(apart or joined, f"of the parts 'one,' 'two,' 'three' it sends {close}")

    def _can_say(self, reply: Reply) -> bool:
        return self.wire is not None or self.prompt_for(reply) is not None


def _share(found: str) -> str:
    return f"{len(found)} characters of {len(_LONG)}"


def _with_result(session: Any, text: str) -> Any:
    """The session with another text for the result at its end."""
    last = session.to_dict()["messages"][-1]
    result = {**last, "content": text, "toolResult": {"type": "tool_result", "text": text}}
    return session.branch(session.count - 2).with_added(result)
