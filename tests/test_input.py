"""What a run is given: text and files, looked at before anything is sent."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_host import AgentApplication, Audio, File, Image, InputError
from agent_host.input import make_message
from agent_host.input.media_types import sniff_media_type


def png() -> bytes:
    """A picture of one white pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\xff\xff")
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PNG = png()
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)
PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n"


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\x01\0\x01\0\x80", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 \xff", "image/webp"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", "audio/mp4"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "video/mp4"),
        (WAV, "audio/wav"),
        (b"ID3\x04\0\0\0\0\0\xff", "audio/mpeg"),
        (b"\xff\xfb\x90\x64\0", "audio/mpeg"),
        (b"\xff\xf1\x50\x80\0", "audio/aac"),
        (b"OggS\0\x02\xff", "audio/ogg"),
        (b"fLaC\0\0\0\x22\xff", "audio/flac"),
        (b"\x1aE\xdf\xa3\x9f", "video/webm"),
        (PDF, "application/pdf"),
        (b"PK\x03\x04\x14\0\xff", "application/zip"),
        (b"plain", "text/plain"),
        ("BMW and ID3 are words, größer als nichts".encode(), "text/plain"),
        ("ID3 is a word".encode("utf-16"), "text/plain"),
        (b"\0\x01\x02\x03", None),
    ],
)
def test_what_data_is_is_told_by_its_content(data: bytes, media_type: str | None) -> None:
    assert sniff_media_type(data) == media_type


@given(st.binary(max_size=64))
def test_any_data_is_text_a_known_format_or_nothing(data: bytes) -> None:
    found = sniff_media_type(data)
    assert found is None or "/" in found


def test_text_alone_is_the_content_of_the_message() -> None:
    assert make_message("Hello") == {"role": "user", "content": "Hello", "metadata": {}}


def picture_file(folder: Path) -> Path:
    # A name that lies: nobody looks at it.
    file = folder / "cat.txt"
    file.write_bytes(PNG)
    return file


@pytest.mark.parametrize(
    "source",
    [
        lambda folder: Image(PNG),
        lambda folder: Image(data_url("image/jpeg", PNG)),
        lambda folder: Image(str(picture_file(folder))),
        picture_file,
        lambda folder: PNG,
        lambda folder: File(picture_file(folder), media_type="image/png"),
    ],
    ids=["bytes", "data-url", "path-text", "path", "bare-bytes", "said"],
)
def test_a_picture_may_be_data_an_address_or_a_path(
    tmp_path: Path, source: Callable[[Path], Any]
) -> None:
    message = make_message(["What is this?", source(tmp_path)])
    assert message["content"] == "What is this?"
    [part] = message["multipartContent"]
    assert part["type"] == "image"
    assert part["content"]["url"] == data_url("image/png", PNG)
    assert part["metadata"] == {"media_type": "image/png"}


def test_the_order_of_text_and_files_is_kept() -> None:
    message = make_message(["Compare", "these:", Image(PNG), "with", Audio(WAV), File(PDF)])
    assert message["content"] == "Compare\nthese:"
    kinds = [part["type"] for part in message["multipartContent"]]
    assert kinds == ["image", "text", "audio", "file"]


def test_a_file_of_text_is_text_with_its_name_and_a_fence(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("Use ``` for code.\n", "utf-8")
    [part] = make_message(["Summarise:", file])["multipartContent"]
    assert part["content"]["text"] == "notes.md:\n````\nUse ``` for code.\n````"
    [bare] = make_message([File(b"just text")])["multipartContent"]
    assert bare["content"]["text"] == "just text"


def test_an_address_on_the_web_is_sent_as_it_is() -> None:
    picture, paper = make_message(
        [Image("https://x.test/cat"), File("https://x.test/a/report.pdf?v=2")]
    )["multipartContent"]
    assert picture == {"type": "image", "content": {"url": "https://x.test/cat"}, "metadata": {}}
    assert paper["type"] == "file"
    assert paper["metadata"] == {"media_type": "application/pdf"}
    with pytest.raises(InputError, match="nothing tells what"):
        make_message([File("https://x.test/thing")])


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (lambda folder: Image(b"just text"), "is text/plain, and not image"),
        (lambda folder: Audio(PNG), "is image/png, and not audio"),
        (lambda folder: File(b"\0\x01\x02"), "nothing tells what 3 bytes is"),
        (lambda folder: File(PNG, media_type="image/gif"), "said to be image/gif"),
        (lambda folder: File(PNG, max_bytes=10), "and 10 are allowed"),
        (lambda folder: File(picture_file(folder), max_bytes=10), "and 10 are allowed"),
        (lambda folder: File(b""), "is empty"),
        (lambda folder: File("data:image/png;base64,%%%"), "cannot be read"),
        (lambda folder: folder / "gone.png", "cannot be read: No such file"),
        (lambda folder: folder, "cannot be read: Is a directory"),
        (lambda folder: File("a\0b"), "it has no such name"),
        (lambda folder: 3, "a prompt cannot hold int"),
        (lambda folder: ["x", {"type": "image"}], "a prompt cannot hold dict"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, prompt: Callable[[Path], Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        make_message(prompt(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a file"):
        make_message(tmp_path / "pipe")


def test_a_run_takes_parts_and_stores_them(tmp_path: Path) -> None:
    with AgentApplication({}, store=f"sqlite://{tmp_path}/s.db") as app:
        answer = app.run(
            ["What is this?", Image(PNG, name="cat.png")], settings={"provider": "echo"}
        )
        assert answer.text == f"What is this?\n[image/png, cat.png, {len(PNG)} bytes]"
        loaded = app.sessions.load(answer.session.id)
    assert loaded.messages[0]["multipartContent"][0]["type"] == "image"


@pytest.mark.parametrize("store", [False, True], ids=["unstored", "stored"])
def test_what_a_model_does_not_take_is_refused_before_anything_is_sent(
    tmp_path: Path, store: bool
) -> None:
    where = f"sqlite://{tmp_path}/s.db" if store else False
    options: dict[str, Any] = {"model": "echo-1", "provider": "echo"}
    with AgentApplication({}, store=where) as app:
        with pytest.raises(InputError) as refused:
            app.run(["What is this?", Image(PNG, name="cat.png")], **options)
        assert refused.value.part == "cat.png"
        assert "echo with the model 'echo-1' takes no image/png" in refused.value.message
        assert "'supports_images'" in refused.value.hint
        with pytest.raises(InputError, match="takes no image/heic"):
            app.run(Image(b"\0\0\0\x18ftypheic\0\0\0\0"), provider="echo")
        settings = {"remove_tags": ["supports_image_urls"]}
        with pytest.raises(InputError, match=r"fetches no image from the web"):
            app.run(Image("https://x.test/cat"), provider="echo", settings=settings)
        events = []
        with pytest.raises(InputError), app.stream(Image(PNG), **options) as stream:
            events += [event["type"] for event in stream]
        answer = app.run(Image(PNG), **options, settings={"add_tags": ["supports_images"]})
    assert answer.text == f"[image/png, {len(PNG)} bytes]"


@pytest.mark.parametrize("prompt", ["", " \n", [], ["", " "]])
def test_a_prompt_of_nothing_is_refused(prompt: Any) -> None:
    with pytest.raises(InputError, match="the prompt is empty"):
        make_message(prompt)
