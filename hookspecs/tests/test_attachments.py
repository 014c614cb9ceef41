"""Compact references to files: expanded in copies, and never anything but what was allowed."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_hookspecs.authoring import attachment, expand_attachments

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "a picture.png"
    file.write_bytes(PIXEL)
    return file


def only(parts: list[dict[str, Any]]) -> dict[str, Any]:
    (part,) = parts
    return part


def said(part: dict[str, Any]) -> str:
    assert part["type"] == "text"
    text = part["content"]["text"]
    assert isinstance(text, str)
    return text


def test_a_reference_is_small_and_names_what_it_is(picture: Path) -> None:
    part = attachment(picture)
    assert part == {
        "type": "image",
        "content": {"url": picture.as_uri(), "name": "a picture.png"},
        "metadata": {"media_type": "image/png"},
    }
    assert attachment(picture.with_name("x.unheard-of"))["type"] == "file"
    assert attachment(picture.with_name("x.bin"), media_type="audio/wav")["type"] == "audio"


def test_a_reference_becomes_a_data_url_in_a_copy(picture: Path, tmp_path: Path) -> None:
    part = attachment(picture)
    before = json.dumps(part)
    expanded = only(expand_attachments([part], root=tmp_path))
    head, _, data = expanded["content"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data) == PIXEL
    assert json.dumps(part) == before


@pytest.mark.parametrize(
    "wrap",
    [
        lambda p: {"role": "user", "content": "look", "metadata": {}, "multipartContent": [p]},
        lambda p: {
            "role": "tool",
            "content": "",
            "metadata": {},
            "toolResult": {"type": "tool_result", "text": "", "content": [p]},
        },
        lambda p: {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": p["content"]["url"]}}],
        },
        lambda p: {
            "role": "user",
            "content": [{"type": "input_image", "image_url": p["content"]["url"]}],
        },
        lambda p: {
            "type": "function_call_output",
            "output": [{"type": "input_file", "file_data": p["content"]["url"]}],
        },
        lambda p: {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "content": [
                        {"type": "image", "source": {"type": "url", "url": p["content"]["url"]}}
                    ],
                }
            ],
        },
    ],
)
def test_references_are_found_where_messages_keep_them(
    wrap: Callable[[Any], dict[str, Any]], picture: Path, tmp_path: Path
) -> None:
    message = wrap(attachment(picture))
    other = {"role": "assistant", "content": "fine", "metadata": {}}
    new, same = expand_attachments([message, other], root=tmp_path)
    assert "file:" not in json.dumps(new)
    assert base64.b64encode(PIXEL).decode() in json.dumps(new)
    assert "file:" in json.dumps(message)
    assert same is other


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "file:///etc/hostname"},
        {"type": "tool_use", "id": "1", "name": "open", "input": {"url": "file:///etc/hostname"}},
        {"type": "function", "function": {"name": "f", "arguments": "file:///etc/hostname"}},
        {"type": "image", "content": {"url": "https://example.com/a.png"}},
        {"type": "image", "content": {"url": "data:image/png;base64,AAAA"}},
    ],
)
def test_what_is_no_reference_is_passed_on_as_it_is(part: dict[str, Any]) -> None:
    assert only(expand_attachments([part], root="/")) is part


def test_without_a_root_nothing_is_read(picture: Path) -> None:
    warnings: list[str] = []
    sent = only(expand_attachments([attachment(picture)], warn=warnings.append))
    assert warnings == [
        "image not attached: attachments_root, the folder from which files may be sent, is not set"
    ]
    assert said(sent) == f"[{warnings[0]}]"


def escapes(tmp_path: Path) -> dict[str, str]:
    """Addresses that must not be read, and a word of why."""
    outside = tmp_path / "secret.png"
    outside.write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.png").symlink_to(outside)
    (root / "up").symlink_to(tmp_path)
    (root / "folder.png").mkdir()
    os.mkfifo(root / "pipe.png")
    return {
        outside.as_uri(): "not in the folder",
        f"{root.as_uri()}/../secret.png": "not in the folder",
        f"{root.as_uri()}/%2e%2e/secret.png": "not in the folder",
        f"{root.as_uri()}/link.png": "not in the folder",
        f"{root.as_uri()}/up/secret.png": "not in the folder",
        f"{root.as_uri()}/folder.png": "folder.png",
        f"{root.as_uri()}/pipe.png": "not a file",
        f"{root.as_uri()}/gone.png": "not there any more",
        f"{root.as_uri()}/nul%00.png": "cannot be read",
        f"file://elsewhere{root}/x.png": "not of this machine",
        "file:relative.png": "not of this machine",
        "file://[": "cannot be read",
        "file:": "not of this machine",
    }


def test_nothing_leads_out_of_the_root_and_nothing_raises(tmp_path: Path) -> None:
    for url, why in escapes(tmp_path).items():
        part = {"type": "image", "content": {"url": url}}
        text = said(only(expand_attachments([part], root=tmp_path / "root")))
        assert text.startswith("[image not attached: ")
        assert why in text, url
        assert "secret" not in text.replace("secret.png", "")


def test_a_file_that_is_too_large_is_not_sent(picture: Path, tmp_path: Path) -> None:
    size = len(PIXEL)
    fits = expand_attachments([attachment(picture)], root=tmp_path, max_bytes=size)
    assert only(fits)["type"] == "image"
    cut = expand_attachments([attachment(picture)], root=tmp_path, max_bytes=size - 1)
    assert f"more than {size - 1} bytes" in said(only(cut))


def test_the_caller_says_how_a_note_looks_on_its_wire(picture: Path) -> None:
    native = {"role": "user", "content": [{"type": "input_image", "image_url": picture.as_uri()}]}
    (new,) = expand_attachments([native], note=lambda text: {"type": "input_text", "text": text})
    (part,) = new["content"]
    assert part["type"] == "input_text"
    assert part["text"].startswith("[input_image not attached: ")


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="folders have no handles here")
def test_a_folder_that_becomes_a_link_while_its_file_is_opened_leaks_nothing(
    tmp_path: Path,
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "inner", "inside"), (outside, "secret")):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(text, encoding="utf-8")
    armed = [True]

    def swap_before_first_open(event: str, arguments: tuple[Any, ...]) -> None:
        # Hooks of this kind cannot be taken away, so this one goes off once.
        if armed and event == "open" and str(arguments[0]).startswith(str(root)):
            armed.clear()
            (root / "inner").rename(root / "moved")
            (root / "inner").symlink_to(outside)

    part = attachment(root / "inner" / "a.txt")
    sys.addaudithook(swap_before_first_open)
    (sent,) = expand_attachments([part], root=root)
    assert not armed
    assert base64.b64encode(b"secret").decode() not in json.dumps(sent)
    assert "not attached" in said(sent)
