"""The three jobs of the extension: request, chunks, mapping; and all of it in a host."""

from __future__ import annotations

from typing import Any

from agent_hookspecs import ProviderPlugin
from agent_hookspecs.authoring import AccumulatorStreamingMixin
from agent_host import AgentCore
from agent_host_testing import FakeServer, Raw

from {{ cookiecutter.package }}.extension import Citations

NOTE = {
    "type": "url_citation",
    "url_citation": {"url": "https://b.example", "title": "B"},
}
SOURCES = [{"url": "https://a.example"}, {"url": "https://b.example", "title": "B"}]


def state(**config: Any) -> dict[str, Any]:
    shared = {"config": config, "request": {"payload": {"model": "m"}}, "partial": None}
    return Citations().init(config, shared)


def read(*chunks: Any) -> dict[str, Any]:
    given = state()
    for chunk in chunks:
        *_, given = Citations().process_chunk(chunk, [], [], [], given)
    return given


def test_a_search_is_asked_for_only_if_the_setting_says_so() -> None:
    _, asked = Citations().initialize_request([], state(search_context="high"))
    assert asked["request"]["payload"] == {
        "model": "m",
        "web_search_options": {"search_context_size": "high"},
    }
    _, silent = Citations().initialize_request([], state())
    assert silent["request"]["payload"] == {"model": "m"}


def test_sources_are_kept_once_in_the_order_they_came() -> None:
    addresses = {"citations": ["https://a.example"], "choices": []}
    notes = {"choices": [{"delta": {"annotations": [NOTE]}}]}
    assert [*read(addresses, notes, addresses)["citations"].values()] == SOURCES


def test_odd_chunks_are_no_harm() -> None:
    odd: list[Any] = [None, [], {}, {"citations": "none"}, {"choices": [{"delta": None}]}]
    assert read(*odd)["citations"] == {}


def test_sources_become_metadata_and_are_never_sent() -> None:
    final: dict[str, Any] = {"role": "assistant", "content": "So."}
    given = {**state(), "citations": {source["url"]: source for source in SOURCES}}
    Citations().finalize([final], [final], given)
    assert final["_metadata"] == {"citations": SOURCES}
    [message] = Citations().from_native_messages(
        [final],
        [{"role": "assistant", "content": "So.", "metadata": {"finish_reason": "stop"}}],
    )
    assert message["metadata"] == {"finish_reason": "stop", "citations": SOURCES}


class Server(AccumulatorStreamingMixin, ProviderPlugin):
    """The least that can talk to a server of the format."""

    name = "{{ cookiecutter.plugin_id if cookiecutter.kind == 'mix' else 'server' }}"

    def get_tags(self) -> list[str]:
        return [f"provider:{self.name}", "supports_citations"]

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config, "request": {}, "partial": None}

    def initialize_request(self, native_messages: Any, state: dict[str, Any]) -> Any:
        url = state["config"]["base_url"] + "/chat/completions"
        state["request"] = {"url": url, "payload": {"model": "m"}}
        return native_messages, state


def test_an_answer_from_a_server_has_its_sources() -> None:
    answer = Raw(
        (
            b'data: {"citations": ["https://a.example"], "choices":',
            b' [{"delta": {"role": "assistant", "content": "So."}}]}\n\n',
            b'data: {"choices": [{"delta": {"annotations": [{"type": "url_citation",',
            b' "url_citation": {"url": "https://b.example", "title": "B"}}]},',
            b' "finish_reason": "stop"}]}\n\n',
        ),
        headers={"content-type": "text/event-stream"},
    )
    with FakeServer("openai.chat", answer) as server, AgentCore() as core:
        core.register_provider(Server)
        core.register_extension(Citations)
        session = core.add_message(core.create_session(), "user", "Why?")
        config = {"provider": Server.name, "base_url": server.base_url, "search_context": "low"}
        with core.send_request_stream(session, config) as stream:
            for _ in stream:
                continue
        assert stream.session.messages[-1]["metadata"]["citations"] == SOURCES
        assert server.requests[0].body["web_search_options"] == {"search_context_size": "low"}
