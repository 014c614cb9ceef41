"""Pictures, papers and sounds of a prompt reach every API in the form it wants, or are refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from stops import STOPS, TOOL_BUNDLES, Stop
from touring import PIXEL

from agent_host import AgentApplication
from agent_host.application import Answer
from agent_host.input import Audio, File, Image, InputError, Prompt
from agent_host_testing import FakeServer, say

PNG = base64.b64decode(PIXEL)
PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n"
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)
#: What the plain model of a stop needs to be told that it sees, or hears.
SEES = {"ollama": ["supports_images"], "cohere": ["supports_images"]}
HEARS = {"openai-chat": ["supports_audio"], "custom": ["supports_audio"]}


def ask(stop: Stop, server: FakeServer, prompt: Prompt, **settings: Any) -> Answer:
    with AgentApplication({"denied_plugins": [*TOOL_BUNDLES, "context"]}) as app:
        config = stop.config(server, model=stop.bare, **settings)
        for name in stop.settings:
            del config[name]
        return app.run(prompt, settings=config)


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_picture_is_sent_without_further_settings(stop: Stop) -> None:
    with stop.serve() as server:
        server.queue(say("A pixel."))
        prompt: Prompt = ["What is this?", Image(PNG, name="pixel.png"), "Be brief."]
        answer = ask(stop, server, prompt, add_tags=SEES.get(stop.name, []))
        assert server.problems == []
        body = server.requests[-1].raw
    assert (answer.text, answer.warnings) == ("A pixel.", [])
    assert PIXEL.encode() in body
    assert body.index(b"What is this?") < body.index(b"Be brief.")


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_paper_is_sent_to_who_reads_papers_and_else_refused(stop: Stop) -> None:
    reads = stop.name not in ("ollama", "cohere")
    with stop.serve() as server:
        server.queue(say("A paper."))
        if reads:
            answer = ask(stop, server, ["Read:", File(PDF, name="report.pdf")])
            assert server.problems == []
            assert base64.b64encode(PDF) in server.requests[-1].raw
            assert answer.warnings == []
        else:
            with pytest.raises(InputError, match="takes no application/pdf") as refused:
                ask(stop, server, ["Read:", File(PDF, name="report.pdf")])
            assert stop.provider in refused.value.message
            assert server.unused == 1


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_sound_is_sent_to_who_hears_and_else_refused(stop: Stop) -> None:
    hears = stop.name in ("google", *HEARS)
    with stop.serve() as server:
        server.queue(say("Silence."))
        if hears:
            answer = ask(stop, server, ["Listen:", Audio(WAV)], add_tags=HEARS.get(stop.name, []))
            assert server.problems == []
            assert base64.b64encode(WAV) in server.requests[-1].raw
            assert answer.warnings == []
        else:
            with pytest.raises(InputError, match="takes no audio/wav"):
                ask(stop, server, ["Listen:", Audio(WAV)])


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_an_address_of_a_picture_goes_to_who_fetches_it_and_else_is_refused(stop: Stop) -> None:
    address = "https://pictures.test/cat.png"
    with stop.serve() as server:
        server.queue(say("A cat."))
        if stop.name == "ollama":
            with pytest.raises(InputError, match="fetches no image/png from the web"):
                ask(stop, server, [Image(address)], add_tags=["supports_images"])
        else:
            tags = ["supports_images", "supports_image_urls"] if stop.name == "cohere" else []
            answer = ask(stop, server, ["Look:", Image(address)], add_tags=tags)
            assert server.problems == []
            assert address.encode() in server.requests[-1].raw
            assert answer.warnings == []


@pytest.mark.parametrize("stop", STOPS, ids=lambda each: each.name)
def test_a_file_of_text_is_sent_to_everybody(stop: Stop) -> None:
    with stop.serve() as server:
        server.queue(say("Notes."))
        answer = ask(stop, server, ["Sum up:", File(b"remember the milk", name="notes.txt")])
        assert server.problems == []
        assert b"remember the milk" in server.requests[-1].raw
    assert answer.warnings == []
