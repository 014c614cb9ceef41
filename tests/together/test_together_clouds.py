"""Recorded traffic of Azure and Vertex, asked for at the very addresses it was recorded at.

Whether the answers are read right is for the comparison of all recordings; here it is about where
requests go, in which header the key is, and what of the body the cloud wants elsewhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("agent_host_testing")

from agent_hookspecs.errors import AgentError, ConfigError
from agent_host import AgentCore
from agent_host.plugins.load import load_catalog
from agent_host_anthropic.vertex import vertex_base as claude_base
from agent_host_google.vertex import vertex_base as gemini_base
from agent_host_testing.corpus import Recording, load_recordings
from loopback import Peer, Request, serve

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
#: Who plays the cloud, and the header that its key is in.
CLOUDS = {
    ("azure", "openai.chat"): ("azure", {}, "api-key"),
    ("azure", "openai.responses"): ("openai", {"api": "responses"}, "api-key"),
    ("anthropic-vertex", "anthropic.messages"): ("anthropic", {}, "authorization"),
    ("google-vertex", "google.generate"): ("google", {}, "authorization"),
}
TOKEN = "opaque-token-of-a-cloud"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recording" in metafunc.fixturenames:
        path = metafunc.config.getoption("corpus", None) or CORPUS
        found = [r for r in load_recordings(path) if (r.provider, r.protocol) in CLOUDS]
        metafunc.parametrize("recording", found, ids=str)


@dataclass
class Played:
    """What was sent, and what came of it."""

    request: Request
    text: str
    error: AgentError | None


def base_urls(recording: Recording, server: str) -> Iterator[str]:
    """The recorded address at our server: as it is, and without the name of the endpoint."""
    address = urlsplit(recording.url)
    query = f"?{address.query}" if address.query else ""
    if recording.provider == "azure":
        yield f"{server}{address.path}{query}"
        for endpoint in ("/chat/completions", "/responses"):
            if address.path.endswith(endpoint):
                yield f"{server}{address.path.removesuffix(endpoint)}{query}"
    else:
        yield f"{server}{address.path.partition('/models/')[0]}"


def model_of(recording: Recording) -> str:
    named = recording.request.get("model")
    return str(named or urlsplit(recording.url).path.rpartition("/models/")[2].partition(":")[0])


def play(recording: Recording) -> Iterator[Played]:
    provider, settings, _ = CLOUDS[recording.provider, recording.protocol]
    body = recording.body
    chance = random.Random(recording.name)
    places = sorted(chance.sample(range(1, len(body)), min(24, len(body) - 1)))

    def answer(peer: Peer, request: Request) -> None:
        if recording.status != 200 or not recording.stream:
            peer.answer(body, status=f"{recording.status} Recorded")
            return
        peer.begin("Content-Type: text/event-stream\r\n")
        for start, end in zip([0, *places], [*places, len(body)], strict=True):
            peer.chunk(body[start:end])
        peer.send(b"0\r\n\r\n")

    with serve(answer) as server, AgentCore(catalog=load_catalog()) as core:
        for base_url in base_urls(recording, server.url):
            config: dict[str, Any] = {
                "provider": provider, "model": model_of(recording), "base_url": base_url,
                "api_key": TOKEN, "retries": 0, "use_tools": [], **settings,
            }  # fmt: skip
            session = core.create_session().with_added({"role": "user", "content": "hi"})
            error: AgentError | None = None
            text = ""
            try:
                if recording.stream:
                    with core.send_request_stream(session, config) as stream:
                        for event in stream:
                            if event["type"] == "final":
                                text = "".join(m["content"] for m in event["messages"])
                else:
                    text = "".join(m["content"] for m in core.send_request(session, config)[1])
            except AgentError as failure:
                error = failure
            yield Played(server.requests[-1], text, error)


def test_the_recorded_address_is_asked_and_its_answer_read(recording: Recording) -> None:
    header = CLOUDS[recording.provider, recording.protocol][2]
    address = urlsplit(recording.url)
    path = f"{address.path}?{address.query}" if address.query else address.path
    for played in play(recording):
        assert played.request.line == f"POST {path} HTTP/1.1"
        assert played.request.headers[header].removeprefix("Bearer ") == TOKEN
        sent = json.loads(played.request.body)
        assert sent.get("anthropic_version") == recording.request.get("anthropic_version")
        # Where an address names the deployment or model, a body that does so too is Azure's habit.
        assert sent.get("model") in (recording.request.get("model"), model_of(recording))
        assert recording.provider == "azure" or "model" not in sent
        wanted = recording.expected.get("error")
        assert (played.error is None) is (wanted is None), played.error
        if wanted is None:
            assert played.text == recording.expected.get("text")
        else:
            assert getattr(played.error, "status", None) == wanted["status"]


@pytest.mark.parametrize("region", [None, "global", "us", "eu", "us-east5"])
def test_both_packages_find_a_region_of_vertex_at_the_same_host(region: str | None) -> None:
    config = {"vertex_project": "p", "vertex_region": region}
    claude, gemini = claude_base(config, "https://api.anthropic.com"), gemini_base(config)
    assert claude is not None
    assert gemini is not None
    assert claude.replace("/v1/", "/v1beta1/").replace("anthropic", "google") == gemini


@pytest.mark.parametrize(
    "config",
    [
        {"vertex_region": "eu"},
        {"base_url": "http://h/v1/projects/p/locations/l", "vertex_project": "q"},
        {"base_url": "http://h/v1/projects/p/locations/l", "vertex_region": "eu"},
    ],
)
def test_both_packages_refuse_the_same_settings_of_vertex_in_the_same_words(
    config: dict[str, str],
) -> None:
    with pytest.raises(ConfigError) as claude:
        claude_base(config, "https://api.anthropic.com")
    with pytest.raises(ConfigError) as gemini:
        gemini_base(config)
    assert claude.value.message == gemini.value.message
    assert claude.value.key == gemini.value.key
