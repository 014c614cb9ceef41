"""Images, files and sound in messages and results for the Responses API."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from openai_wire import (
    ask,
    ask_streamed,
    call,
    events_of,
    message,
    response,
    streamed,
    user,
    warnings_in,
    wire,
)

from agent_hookspecs.authoring.attachments import attachment
from agent_host import Session

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def with_parts(*parts: dict[str, Any], text: str = "Look") -> Session:
    return Session([{"role": "user", "content": text, "multipartContent": list(parts)}])


def content_sent(session: Session) -> Any:
    with wire(response(message("Ok"))) as served:
        ask(served, session)
    return served.bodies[0]["input"][0]["content"]


def part(kind: str, **content: Any) -> dict[str, Any]:
    return {"type": kind, "content": content, "metadata": {}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (part("image", url=PIXEL), {"type": "input_image", "image_url": PIXEL}),
        (part("image", file_id="f"), {"type": "input_image", "file_id": "f"}),
        (part("file", url="https://e.org/a.pdf"), {"file_url": "https://e.org/a.pdf"}),
        (part("file", file_id="f"), {"file_id": "f"}),
        (part("file", url=PIXEL), {"type": "input_image", "image_url": PIXEL}),
        (part("text", text="Look out"), {"type": "input_text", "text": "Look out"}),
        (
            part("file", data="QQ==", media_type="application/pdf", name="a.pdf"),
            {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"},
        ),
        (part("text", text="more"), {"type": "input_text", "text": "more"}),
    ],
)
def test_images_and_files_become_input_parts(given: Any, wanted: dict[str, Any]) -> None:
    content = content_sent(with_parts(given))
    wanted = {"type": "input_file", **wanted} if "type" not in wanted else wanted
    assert content == [{"type": "input_text", "text": "Look"}, wanted]


@pytest.mark.parametrize(
    "given",
    [
        part("audio", url="https://e.org/a.mp3", name="a.mp3"),
        part("file", data="data:audio/mpeg;base64,QQ==", name="a.mp3"),
    ],
)
def test_sound_becomes_a_text_that_says_so(given: dict[str, Any]) -> None:
    with wire(streamed(message("Ok"))) as served:
        told = warnings_in(events_of(served, with_parts(given)))
    (item,) = served.bodies[0]["input"]
    assert item["content"][1] == {"type": "input_text", "text": "[audio not sent: a.mp3]"}
    assert any("a.mp3" in each for each in told)


def test_files_of_this_machine_are_put_in_when_the_request_is_made(tmp_path: Path) -> None:
    for name in ("a.png", "b.pdf"):
        (tmp_path / name).write_bytes(b"data")
    session = with_parts(*(dict(attachment(tmp_path / name)) for name in ("a.png", "b.pdf")))
    with wire(response(message("Ok"))) as served:
        answered, _ = ask(served, session, attachments_root=str(tmp_path))
    coded = base64.b64encode(b"data").decode()
    image, file = served.bodies[0]["input"][0]["content"][1:]
    assert image == {"type": "input_image", "image_url": f"data:image/png;base64,{coded}"}
    assert file == {
        "type": "input_file",
        "file_data": f"data:application/pdf;base64,{coded}",
        "filename": "b.pdf",
    }
    assert coded not in str(answered.metadata["native_messages"])
    refused = content_sent(session)
    assert [each["type"] for each in refused] == ["input_text"] * 3


def test_images_in_a_tool_result_stand_in_its_output() -> None:
    shown = {
        "type": "tool_result",
        "text": "A pixel",
        "content": [part("text", text="A pixel"), part("image", url=PIXEL)],
    }
    with wire(streamed(call()), streamed(message("Ok"))) as served:
        session, _ = ask_streamed(served, user("Hi"))
        told = {"role": "tool", "content": "A pixel", "metadata": {"tool_call_id": "call_1"}}
        ask_streamed(served, session.with_added({**told, "toolResult": shown}))
    assert served.bodies[1]["input"][-1]["output"] == [
        {"type": "input_text", "text": "A pixel"},
        {"type": "input_image", "image_url": PIXEL},
    ]
