"""Recorded traffic of Cohere, replayed over a socket in pieces of any length, sync and async.

What comes of it is compared with what Cohere's own SDK made of it, the request with the recorded
one, and one more turn is sent, which has to have the answer in it as it came. The recordings lie
beside the repository, or where ``--corpus`` says; without them there is nothing to replay.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from cohere_api import WIRE

from agent_hookspecs.errors import ProviderError
from agent_host import AgentCore, Session
from agent_host.plugins.load import load_catalog
from agent_host_testing import FakeServer, Raw, say
from agent_host_testing.corpus import Recording, load_recordings

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
_SETTINGS = {
    "max_tokens": "max_output_tokens", "stop_sequences": "stop", "temperature": "temperature",
    "seed": "seed", "documents": "documents", "strict_tools": "strict_tools",
}  # fmt: skip
#: Keys of a recorded body that have a setting of ours or are made from the session.
_MADE = {*_SETTINGS, "model", "messages", "tools", "stream"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recording" in metafunc.fixturenames:
        path = metafunc.config.getoption("corpus", None) or CORPUS
        found = [each for each in load_recordings(path) if each.protocol == "cohere.v2"]
        metafunc.parametrize("recording", found, ids=str)


def core_messages(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a session would have to hold for these messages to be sent."""
    return [_core_message(message) for message in recorded]


def _core_message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    words = [{"type": "text", "text": content or ""}]
    parts: list[dict[str, Any]] = content if isinstance(content, list) else words
    texts = [part["text"] for part in parts if part.get("type") == "text"]
    metadata = {key: message[key] for key in ("tool_calls", "tool_plan") if message.get(key)}
    if message["role"] == "tool":
        metadata["tool_call_id"] = message["tool_call_id"]
        documents = [json.dumps(part) for part in parts if part.get("type") == "document"]
        texts += documents
    made: dict[str, Any] = {"role": message["role"], "content": "".join(texts)}
    pictures = [part["image_url"] for part in parts if part.get("type") == "image_url"]
    if pictures:
        made["multipartContent"] = [
            {"type": "image", "content": {"url": picture["url"]}, "metadata": {}}
            for picture in pictures
        ]
    return {**made, "metadata": metadata}


def pieces(recording: Recording) -> tuple[bytes, ...]:
    body = recording.body
    if not recording.stream or len(body) < 2:
        return (body,)
    chance = random.Random(recording.name)
    places = sorted(chance.sample(range(1, len(body)), min(64, len(body) - 1)))
    edges = zip([0, *places], [*places, len(body)], strict=True)
    return tuple(body[start:end] for start, end in edges)


class Played:
    """A recording asked for by the provider, and one more turn after it."""

    def __init__(self, recording: Recording, way: str) -> None:
        self.error: ProviderError | None = None
        self.message: dict[str, Any] = {}
        self.shown = {"partial": "", "reasoning": ""}
        request = recording.request
        raw = Raw(pieces(recording), recording.status, {"content-type": _content_type(recording)})
        with FakeServer(WIRE, raw, strict=False) as server, AgentCore(catalog=load_catalog()) as c:
            config = {
                "provider": "cohere", "model": request["model"], "api_key": "k", "retries": 0,
                "base_url": server.base_url, "use_tools": [], "add_tags": ["supports_tools"],
                "tools": request.get("tools") or [],
                "extra_body": {k: v for k, v in request.items() if k not in _MADE},
                **{ours: request[key] for key, ours in _SETTINGS.items() if key in request},
            }  # fmt: skip
            session = Session(core_messages(request["messages"]))
            try:
                session = self._ask(c, session, config, recording.stream, way)
            except ProviderError as error:
                self.error = error
            self.sent = server.requests[-1].body
            if self.error is not None:
                return
            self.message = session.to_dict()["messages"][-1]
            server.queue(say("Next."))
            new: list[dict[str, Any]] = [
                {"role": "tool", "content": "done", "metadata": {"tool_call_id": call["id"]}}
                for call in self.message["metadata"].get("tool_calls", ())
            ] or [{"role": "user", "content": "on", "metadata": {}}]
            self._ask(c, session.with_added(*new), config, recording.stream, way)
            self.next = server.requests[-1].body

    def _ask(
        self, core: AgentCore, session: Session, config: Any, stream: bool, way: str
    ) -> Session:
        if way == "async":
            events = asyncio.run(_ask_async(core, session, config, stream))
        elif stream:
            events = [dict(event) for event in core.send_request_stream(session, config)]
        else:
            return core.send_request(session, config)[0]
        for event in events if not self.message else ():
            if event["type"] == "partial":
                self.shown["partial"] += event["message"]["content"]
            elif event["type"] == "reasoning":
                self.shown["reasoning"] += event["text"]
        found: Session = next(e["session"] for e in events if e["type"] == "final")
        return found


async def _ask_async(
    core: AgentCore, session: Session, config: Any, stream: bool
) -> list[dict[str, Any]]:
    """The events; of an answer in one piece, the one that has its session."""
    try:
        if stream:
            return [dict(event) async for event in core.asend_request_stream(session, config)]
        session, _ = await core.asend_request(session, config)
        return [{"type": "final", "session": session}]
    finally:
        await core.async_wire.aclose()


def _content_type(recording: Recording) -> str:
    return "text/event-stream" if recording.stream else "application/json"


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_recording_comes_out_as_the_sdk_reads_it(recording: Recording, way: str) -> None:
    expected: Any = recording.expected
    played = Played(recording, way)
    if expected.get("error"):
        assert played.error is not None
        assert played.error.status == expected["error"]["status"]
        assert expected["error"]["message"] in played.error.message
        return
    assert played.error is None
    metadata = played.message["metadata"]
    assert played.message["content"] == expected["text"]
    assert metadata.get("reasoning", "") == expected["reasoning"]
    if recording.stream:
        shown = {"partial": expected["text"], "reasoning": expected["reasoning"]}
        assert played.shown == shown
    calls = metadata.get("tool_calls", [])
    assert [(c["id"], c["function"]["name"]) for c in calls] == [
        (c["id"], c["name"]) for c in expected["tool_calls"]
    ]
    for call, wanted in zip(calls, expected["tool_calls"], strict=True):
        assert json.loads(call["function"]["arguments"]) == (wanted["arguments"] or {})
    assert metadata.get("finish_reason") == expected["finish_reason"]
    assert metadata.get("response_id") == expected["id"]
    assert metadata.get("tool_plan", "") == (expected.get("tool_plan") or "")
    usage, counted = metadata.get("usage") or {}, expected["usage"] or {}
    for ours, theirs in (
        ("input", "input_tokens"),
        ("output", "output_tokens"),
        ("cached_input", "cache_read_tokens"),
    ):
        assert usage.get(ours) == counted.get(theirs), theirs


def test_the_request_is_the_recorded_one(recording: Recording) -> None:
    sent, recorded = Played(recording, "sync").sent, recording.request
    assert {k: v for k, v in sent.items() if k not in ("messages", "tools", "stream")} == {
        k: v for k, v in recorded.items() if k not in ("messages", "tools", "stream")
    }
    assert sent["stream"] is bool(recorded.get("stream"))
    assert [tool["function"] for tool in sent.get("tools", ())] == [
        tool["function"] for tool in recorded.get("tools") or ()
    ]
    assert [*map(_said, sent["messages"])] == [*map(_said, recorded["messages"])]


def _said(message: dict[str, Any]) -> Any:
    """A message without what has two spellings: texts alone, or as the one part of a list."""
    content = message.get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = [part.get("text") or part.get("image_url") or json.dumps(part) for part in parts]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    return message["role"], words, calls, message.get("tool_plan") or ""


def test_the_next_turn_has_the_answer_as_it_came(recording: Recording) -> None:
    played = Played(recording, "sync")
    if played.error is not None:
        pytest.skip("the recorded answer is a refusal, which nothing follows")
    before = len(recording.request["messages"])
    answer = played.next["messages"][before]
    assert answer["role"] == "assistant"
    wanted: Any = recording.expected
    texts = [part.get("text") or "" for part in answer.get("content") or ()]
    assert "".join(texts) == wanted["text"]
    thoughts = [part.get("thinking") or "" for part in answer.get("content") or ()]
    assert "".join(thoughts) == wanted["reasoning"]
    assert answer.get("tool_plan", "") == (wanted.get("tool_plan") or "")
    if not recording.stream:
        [told] = [json.loads(recording.body)["message"]]
        for key in ("content", "tool_calls", "citations"):
            assert answer.get(key) == (told.get(key) or None), key
