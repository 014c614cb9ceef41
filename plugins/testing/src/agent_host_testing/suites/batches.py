"""Checks of the batch endpoint of a provider: what a batch brings is what its requests would bring.

The endpoint says what to ask, and is asked here over a socket of the check's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from agent_hookspecs.batch import BatchEndpoint, BatchReply, SubmittedBatch
from agent_hookspecs.messages import RequestSpec
from agent_host_testing.batches import BatchDesk
from agent_host_testing.script import Answer, Failure, say
from agent_host_testing.suites.checking import check
from agent_host_testing.suites.claims import not_claimed
from agent_host_testing.suites.hosting import PATIENCE
from agent_host_testing.suites.talking import ProviderSuite, Talk
from agent_host_testing.violations import require

__all__ = ["BatchChecks"]

PAGE = "docs/batch.md#batches-of-a-provider"
_CLAIM = "supports_batches"
_MARK = "5e1f7c0d5e1f7c0d"
#: What belongs to a connection, or is the client's own.
_OF_CLIENTS = ("host", "connection", "content-length", "accept", "accept-encoding", "user-agent")


class BatchChecks(ProviderSuite):
    """Submitting, finding again, cancelling, and the replies."""

    @check("batches", PAGE, claim=_CLAIM)
    def test_batches_bring_what_requests_bring(self) -> None:
        """A line of a batch has the status and the body that its request would have by itself."""
        with self.talk(stream=False, tools=()) as talk:
            trial = self._trial(talk)
            refused = Failure("rate_limit", "kit says no")
            batch = trial.submit([say("One."), refused, say("Three.")])
            replies = trial.replies(trial.wait(batch))
            require({*replies} == {*trial.ids}, f"of {trial.ids} there are replies to {[*replies]}")
            for id, text in ((trial.ids[0], "One."), (trial.ids[2], "Three.")):
                reply = replies[id]
                require(
                    reply.status == 200 and text in json.dumps(reply.body),
                    f"the reply to {text!r} has status {reply.status} and body {reply.body}",
                )
            told = replies[trial.ids[1]]
            require(
                told.status == 429 and "kit says no" in json.dumps(told.body),
                f"a refusal with 429 has status {told.status} and body {told.body}",
            )

    @check("batches", PAGE, claim=_CLAIM)
    def test_a_batch_is_found_again(self) -> None:
        """A batch is among those that are listed, by its mark or by its size and time."""
        with self.talk(stream=False, tools=()) as talk:
            trial = self._trial(talk)
            before = time.time()
            made = trial.submit([say("One."), say("Two.")])
            listed = trial.ask(trial.endpoint.list_batches(before - 60))
            found = [each for each in listed if each.id == made.id]
            require(bool(found), f"{made.id!r} is not among {[each.id for each in listed]}")
            (again,) = found
            known = again.mark == _MARK or (
                again.mark is None and again.total == 2 and abs((again.created or 0) - before) < 60
            )
            require(known, f"neither its mark nor its size and time are those of it: {again}")
            require(not made.is_over, "a batch is over before anything was answered")

    @check("batches", PAGE, claim=_CLAIM)
    def test_what_a_batch_leaves_unanswered_has_no_status(self) -> None:
        """Lines that were not asked when a batch was cancelled or ran out have no answer."""
        with self.talk(stream=False, tools=()) as talk:
            trial = self._trial(talk)
            cancelled = trial.submit([say("One."), say("Two.")])
            trial.ask(trial.endpoint.cancel(cancelled.id))
            over = trial.wait(cancelled)
            require(
                all(each.status is None for each in trial.replies(over).values()),
                "a line that was never asked has an answer",
            )
            expired = trial.submit([say("One."), say("Two.")])
            trial.desk.end(trial.desk.kept[-1], "expired", answered=1)
            over = trial.wait(expired)
            replies = trial.replies(over)
            require(
                replies[trial.ids[0]].status == 200, "an answer is lost because others never came"
            )
            left = replies.get(trial.ids[1])
            require(
                (left is None and bool(over.problem))
                or (left is not None and left.status is None and bool(left.problem)),
                f"nothing says why a line has no answer: {left}, {over}",
            )

    def _trial(self, talk: Talk) -> _Trial:
        desk = talk.server.batches
        if desk is None:
            not_claimed(f"the format {talk.server.format.name} has no batches in the kit")
        talk.ask(say("Yes.")).expect()
        sent = talk.server.requests[-1]
        spec: RequestSpec = {
            "method": sent.method,
            "url": talk.server.url + sent.path,
            "headers": {k: v for k, v in sent.headers.items() if k not in _OF_CLIENTS},
            "body": sent.body,
        }
        hooks = self.loaded().implementations.get("get_batch_endpoint", ())
        require(bool(hooks), f"the tags have {_CLAIM}, and there is no get_batch_endpoint")
        endpoint = hooks[0].call(talk.config, spec)
        require(endpoint is not None, "get_batch_endpoint gives None for a plain request")
        return _Trial(talk, desk, endpoint, spec)


class _Trial:
    """An endpoint and the server that it is asked at."""

    def __init__(
        self, talk: Talk, desk: BatchDesk, endpoint: BatchEndpoint, spec: RequestSpec
    ) -> None:
        self._talk = talk
        self._spec = spec
        self.desk = desk
        self.endpoint = endpoint
        self.ids: list[str] = []

    def submit(self, answers: Sequence[Answer]) -> SubmittedBatch:
        """A batch with a line for each answer."""
        self.ids = [f"{_MARK}_{number}-0123456789abcdef" for number in range(len(answers))]
        self._talk.server.queue(*answers)
        lines = [self.endpoint.encode_request(id, self._spec) for id in self.ids]
        made: SubmittedBatch = self.ask(self.endpoint.submit(_MARK, lines))
        return made

    def wait(self, batch: SubmittedBatch) -> SubmittedBatch:
        for _ in range(self.desk.looks + 2):
            if batch.is_over:
                return batch
            batch = self.ask(self.endpoint.look_up(batch.id))
        require(batch.is_over, f"a batch that has ended is not over: {batch}")
        return batch

    def replies(self, batch: SubmittedBatch) -> dict[str, BatchReply]:
        """All replies of a batch, by their ids."""
        found: dict[str, BatchReply] = {}
        for spec in self.endpoint.result_requests(batch):
            body = self._send(spec)
            parts = [body] if spec.get("framing") == "json" else body.splitlines()
            for part in parts:
                for reply in self.endpoint.read_replies(json.loads(part)):
                    require(reply.id not in found, f"there are two replies to {reply.id!r}")
                    found[reply.id] = reply
        return found

    def ask(self, steps: Generator[RequestSpec, Any, Any]) -> Any:
        """What steps of the endpoint come to."""
        answer = None
        while True:
            try:
                spec = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = json.loads(self._send(spec) or b"{}")

    def _send(self, spec: RequestSpec) -> bytes:
        url = urlsplit(spec["url"])
        body, headers = spec.get("body"), dict(spec.get("headers") or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        connection = HTTPConnection(str(url.hostname), url.port, timeout=PATIENCE)
        try:
            target = url.path + (f"?{url.query}" if url.query else "")
            connection.request(spec.get("method", "POST"), target, body, headers)
            response = connection.getresponse()
            told = response.read()
        finally:
            connection.close()
        require(
            200 <= response.status < 300,
            f"{spec.get('method')} {url.path} was refused with {response.status}: {told[:500]!r}",
        )
        return told
