"""Checks of answers that do not come as they should: refusals, retries, cuts and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from agent_hookspecs.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    TransportError,
)
from agent_host_testing.faults import (
    RETRY_FORMS,
    Fault,
    Reset,
    RetryForm,
    Stall,
    Truncate,
    retry_headers,
)
from agent_host_testing.script import Call, Failure, FailureKind, Reply, Text, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.hosting import PATIENCE, Outcome
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require

__all__ = ["FailureChecks"]

_EXPECTED: dict[FailureKind, type[ProviderError]] = {
    "authentication": AuthenticationError,
    "permission": AuthenticationError,
    "invalid_request": InvalidRequestError,
    "model_not_found": ModelNotFoundError,
    "context_length": ContextLengthError,
    "rate_limit": RateLimitError,
    "overloaded": OverloadedError,
    "server": ServerError,
}
_LONG = " ".join(f"word-{number}" for number in range(40))


class FailureChecks(ProviderSuite):
    """Errors, retries, broken streams and cancellation."""

    @pytest.mark.parametrize("kind", get_args(FailureKind))
    @check("errors", "docs/testing.md#errors")
    def test_errors_are_typed(self, kind: FailureKind) -> None:
        """A refusal is the error of its kind, with status, request id and whether to retry."""
        expected = _EXPECTED[kind]
        with self.talk() as talk:
            error = _provider_error(talk.ask(Failure(kind, f"the reason is {kind}")))
            require(type(error) is expected, _named(error))
            require(error.provider == self.plugin, f"its provider is {error.provider!r}")
            retryable = expected.usually_retryable
            require(error.retryable is retryable, f"retryable is {error.retryable}")
            if self.wire is None:
                return
            delivery = talk.server.deliveries[-1][1]
            require(error.status == delivery.status, f"its status is {error.status}")
            given = delivery.headers[talk.server.format.request_id_header]
            require(error.request_id == given, f"its request id is {error.request_id!r}")
            require("the reason is" in error.message, f"it says {error.message!r}")

    @pytest.mark.parametrize("form", RETRY_FORMS)
    @pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
    @check("retries", "docs/testing.md#retries")
    def test_retry_after_is_understood(self, kind: FailureKind, form: RetryForm) -> None:
        """The wait that an API asks for is known, in whichever way it says so."""
        self.require_wire()
        with self.talk() as talk:
            failure = Failure(kind, "wait", retry_headers(form, 7.0))
            wait = _provider_error(talk.ask(failure)).retry_after
            if form == "absent":
                # Some APIs say it in the body, and then it is no invention.
                says_when = b"retry" in talk.server.deliveries[-1][1].body.lower()
                require(says_when or wait is None, f"it is {wait} s though none was asked for")
            else:
                # A date has whole seconds, and some time has passed since it was written.
                require(wait is not None and 5.0 <= wait <= 8.0, f"it is {wait} s and not 7")

    @pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server"])
    @check("retries", "docs/testing.md#retries")
    def test_refusals_are_retried(self, kind: FailureKind, monkeypatch: pytest.MonkeyPatch) -> None:
        """What may be better a moment later is asked again, before the model has said anything."""
        self.require_wire()
        monkeypatch.setattr("random.random", lambda: 0.0)
        with self.talk(retries=1) as talk:
            talk.server.queue(Failure(kind, "wait", retry_headers("milliseconds", 0.001)))
            outcome = talk.ask(say("Here I am.")).expect()
            text = outcome.answer["content"]
            require(text == "Here I am.", f"the answer is {text!r}")
            require(len(talk.server.deliveries) == 2, f"{len(talk.server.deliveries)} requests")

    @pytest.mark.parametrize("kind", ["authentication", "invalid_request"])
    @check("retries", "docs/testing.md#retries")
    def test_lasting_refusals_are_not_retried(self, kind: FailureKind) -> None:
        """What cannot get better is asked once."""
        self.require_wire()
        with self.talk(retries=2) as talk:
            _provider_error(talk.ask(Failure(kind)))
            count = len(talk.server.deliveries)
            require(count == 1, f"there were {count} requests")

    @check("mid-stream failures", "docs/testing.md#broken-streams", claim="supports_streaming")
    def test_mid_stream_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An error in the middle of a stream is typed, keeps the text, and is not retried."""
        monkeypatch.setattr("random.random", lambda: 0.0)
        with self.talk(retries=2) as talk:
            failure = Failure("overloaded", "too much to do")
            outcome = talk.ask(Reply((Text(_LONG),), failure=failure, fragments=8))
            error = _provider_error(outcome)
            # An API whose error events do not say why leaves no more to know.
            vague = self.wire is not None and b"overload" not in self.exchanges()[-1].answer.lower()
            expected = (OverloadedError, ServerError) if vague else OverloadedError
            require(isinstance(error, expected), _named(error))
            require("too much to do" in error.message, f"it says {error.message!r}")
            _kept_partial(outcome, _LONG)
            if self.wire is not None:
                count = len(talk.server.deliveries)
                require(count == 1, f"after text was shown there were {count} requests")

    @pytest.mark.parametrize("fault", ["reset", "missing last chunk"])
    @check("broken streams", "docs/testing.md#broken-streams")
    def test_broken_connections(self, fault: str) -> None:
        """A connection that breaks is an error that keeps the text so far."""
        self.require_wire()
        with self.talk() as talk:
            half = self._half(talk, Reply((Text(_LONG),), fragments=20))
            broken: Fault = Truncate(half) if fault != "reset" else Reset(half)
            # The bytes before a reset can be lost with it, so only what was shown must be kept.
            outcome = talk.ask(Reply((Text(_LONG),), fragments=20), fault=broken)
            error = _provider_error(outcome)
            require(isinstance(error, TransportError), _named(error))
            if outcome.shown:
                _kept_partial(outcome, _LONG)

    @check("broken streams", "docs/hooks.md#provider-stream_complete")
    def test_truncated_text(self) -> None:
        """A stream that ends before its protocol's end is an error, however tidily it ends."""
        self._cut_everywhere(Reply((Text(_LONG),), fragments=6), b"word-39")

    @check("broken streams", "docs/hooks.md#provider-stream_complete", claim="supports_tools")
    def test_truncated_calls(self) -> None:
        """A call that is not whole when the stream ends is an error and never runs."""
        place = "a place with a long name that ends in zzz-end"
        made = Call("weather", {"place": place}, id="call_cut_1")
        self._cut_everywhere(Reply((made,), fragments=6), b"-end")

    def _cut_everywhere(self, reply: Reply, last: bytes) -> None:
        """Cut the stream after each of its events that come before the last of the content."""
        self.require_wire()
        with self.talk() as talk:
            talk.ask(reply).expect()
            cuts = _cuts(talk.server.deliveries[-1][1].pieces, last)
            require(cuts, "the answer has come in a way that the check cannot cut")
            for after, cut in cuts:
                talk.again()
                outcome = talk.ask(reply, fault=Truncate(cut, tidy=True))
                require(outcome.error is not None, f"{after}, it ends well: {outcome.answer}")
                require(
                    isinstance(outcome.error, ProviderError),
                    f"{after}, it raises {type(outcome.error).__name__}: {outcome.error}",
                )
                calls = outcome.metadata.get("tool_calls")
                require(not calls, f"{after}, it has the calls {calls}")

    def _half(self, talk: Talk, reply: Reply) -> int:
        """Half the length of the stream of the reply, which is somewhere in its text."""
        talk.ask(reply).expect()
        talk.again()
        return len(talk.server.deliveries[-1][1].body) // 2

    @pytest.mark.parametrize("way", ["close", "async close", "cancelled task"])
    @check("cancellation", "docs/requests.md#streams-are-objects", claim="supports_streaming")
    def test_cancellation(self, way: str) -> None:
        """Closing a stream, or cancelling its task, closes the socket and keeps the text so far."""
        reply = Reply((Text(_LONG),), fragments=20)
        with self.talk() as talk:
            if self.wire is not None:
                talk.server.queue(reply, fault=Stall(self._half(talk, reply)))
            talk.say(self.prompt_to(reply))
            if way == "close":
                outcome = self._close_midway(talk)
            else:
                outcome = asyncio.run(asyncio.wait_for(self._aclose_midway(talk, way), PATIENCE))
            _kept_partial(outcome, _LONG)
            if self.wire is not None:
                gone = talk.server.wait(lambda server: server.abandoned == 1, PATIENCE)
                require(gone, "the server still has its client")

    def _close_midway(self, talk: Talk) -> Outcome:
        outcome = Outcome(talk.session)
        stream = talk.host.core.send_request_stream(talk.session, talk.config)
        for event in stream:
            outcome.events.append(event)  # type: ignore[arg-type]
            if outcome.shown:
                break
        stream.close()
        outcome.session = stream.session
        return outcome

    async def _aclose_midway(self, talk: Talk, way: str) -> Outcome:
        outcome = Outcome(talk.session)
        stream = talk.host.core.asend_request_stream(talk.session, talk.config)
        begun = asyncio.Event()

        async def read() -> None:
            async for event in stream:
                outcome.events.append(event)  # type: ignore[arg-type]
                if outcome.shown:
                    begun.set()
                    if way == "async close":
                        break

        reading = asyncio.ensure_future(read())
        await begun.wait()
        if way == "async close":
            await reading
            await stream.aclose()
        else:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        outcome.session = stream.session
        if self.wire is not None:
            # While the loop goes on: its end would close the socket for us.
            await asyncio.to_thread(talk.server.wait, lambda server: server.abandoned == 1)
        await talk.host.core.async_wire.aclose()
        return outcome


def _cuts(pieces: Sequence[bytes], last: bytes) -> list[tuple[str, int]]:
    """Where to cut: after each event before the last of the content, or within a whole body."""
    if len(pieces) == 1:
        (body,) = pieces
        return [(f"cut after byte {at}", at) for at in range(1, len(body), max(1, len(body) // 8))]
    whole = next((n for n, piece in enumerate(pieces) if last in piece), len(pieces) - 1)
    if not whole:
        # All of it comes in the first event, which is cut itself.
        return [("cut inside the first event", pieces[0].index(last))]
    return [
        (f"cut after event {count} of {len(pieces)}", sum(map(len, pieces[:count])))
        for count in range(1, whole + 1)
    ]


def _provider_error(outcome: Outcome) -> ProviderError:
    error: Any = outcome.error
    require(error is not None, f"there is no error, but the answer {outcome.answer}")
    require(
        isinstance(error, ProviderError),
        f"it raises {type(error).__name__}, which is no ProviderError: {error}",
    )
    found: ProviderError = error
    return found


def _kept_partial(outcome: Outcome, text: str) -> None:
    """The session has what was shown, marked as partial, and it is the beginning of the text."""
    require(outcome.shown, "nothing was shown before the end")
    last = outcome.answer
    require(last["role"] == "assistant", "the session has no text of the answer")
    require(last["metadata"].get("partial") is True, "its message is not marked as partial")
    kept = last["content"]
    require(
        kept.startswith(outcome.shown) and text.startswith(kept),
        f"shown was {outcome.shown!r}, kept is {kept!r}",
    )


def _named(error: BaseException) -> str:
    return f"the error is {type(error).__name__}: {error}"
